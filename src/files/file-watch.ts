// Polls files and reports when one of them has changed and is stable. Polling sees every kind of change, on every kind of mount.
import { fileSignature } from './file-signature.ts';

const pollIntervalMs = 1000;

/**
 * Calls `onChange` once the files are the same at two looks and differ from those reported before: a file that is written in place can
 * be seen half-written. Returns the function that ends the watch.
 */
export function watchFiles(files: readonly string[], onChange: () => void): () => void {
  if (files.length === 0) return () => undefined;
  let reported: string | undefined;
  let seen: string | undefined;
  const look = async (): Promise<void> => {
    const signature = (await Promise.all(files.map(fileSignature))).join('\n');
    reported ??= signature;
    const isStable = signature === seen;
    seen = signature;
    if (!isStable || signature === reported) return;
    reported = signature;
    onChange();
  };
  void look();
  const polling = setInterval(() => void look(), pollIntervalMs).unref();
  return () => clearInterval(polling);
}
