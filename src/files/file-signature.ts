// The signature of a file: text that changes when the file is replaced or written, from one stat and without reading it.
import { stat } from 'node:fs/promises';

/** The signature of a directory, a pipe, a socket or a device. */
export const notARegularFile = 'not a regular file';

/** Follows symbolic links. Never rejects: of a file that cannot be reached, the signature is the code of the error. */
export async function fileSignature(file: string): Promise<string> {
  try {
    const stats = await stat(file);
    const { dev, ino, size, mtimeMs, ctimeMs } = stats;
    return stats.isFile() ? [dev, ino, size, mtimeMs, ctimeMs].join(' ') : notARegularFile;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'no code';
  }
}
