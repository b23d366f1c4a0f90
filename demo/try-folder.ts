// The folder of `npm run try`: files that it wrote are written again, edited ones are kept, and files of somebody else are an error.
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface TryFolder {
  path(name: FileName): string;
  /** True if the reader changed the file after it was written. */
  isEdited(name: FileName): boolean;
  /** Writes the text unless the file is edited; resolves with the text of the file. Only the owner can read the token. */
  write(name: FileName, text: string): Promise<string>;
}

const fileNames = ['config.yaml', 'envoy.yaml', 'token.txt'] as const;
export type FileName = (typeof fileNames)[number];

/** Names and digests of the written files. */
const recordName = '.written.json';

/** Rejects, and changes nothing, if one of the files is there and was never written by `write`. */
export async function openTryFolder(folder: string): Promise<TryFolder> {
  const pathOf = (name: string): string => join(folder, name);
  const digests = new Map<string, unknown>(Object.entries(JSON.parse((await textOf(pathOf(recordName))) ?? '{}')));
  const edited = new Map<FileName, string>();
  for (const name of fileNames) {
    const text = await textOf(pathOf(name));
    if (text === undefined) continue;
    if (!digests.has(name))
      throw new Error(`${pathOf(name)} is not of npm run try: move it, or name another folder with --out`);
    if (digests.get(name) !== digestOf(text)) edited.set(name, text);
  }
  await mkdir(folder, { recursive: true });
  return {
    path: pathOf,
    isEdited: name => edited.has(name),
    async write(name, text) {
      const kept = edited.get(name);
      if (kept !== undefined) return kept;
      // Before the file: an interrupted write then counts as an edit, and not as a file of somebody else.
      digests.set(name, digestOf(text));
      await writeFile(pathOf(recordName), `${JSON.stringify(Object.fromEntries(digests))}\n`);
      await writeFile(pathOf(name), text, { mode: name === 'token.txt' ? 0o600 : 0o644 });
      return text;
    },
  };
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
