// Warns of a Node whose HTTP/2 library random frames can crash.

/** The first release in which the server survives frames after an error (NGHTTP2_IB_IGN_ALL). Node 20 has an older one. */
const fixedVersion = '1.68.1';

/** A sentence, or undefined if the nghttp2 of this Node is new enough. */
export function nghttp2Warning(versions: NodeJS.ProcessVersions = process.versions): string | undefined {
  const { node, nghttp2 = '0' } = versions;
  if (!isOlder(nghttp2, fixedVersion)) return undefined;
  return `Node ${node} has nghttp2 ${nghttp2}, older than ${fixedVersion}: whoever can connect to listen can end the process with random HTTP/2 frames; run a Node with nghttp2 ${fixedVersion} or later, such as that of the image`;
}

// Not by localeCompare, which loads half a megabyte of language data into each instance.
function isOlder(version: string, than: string): boolean {
  const parts = version.split('.');
  for (const [place, part] of than.split('.').entries()) {
    const difference = Number(parts[place] ?? 0) - Number(part);
    if (difference !== 0) return difference < 0;
  }
  return false;
}
