// The signature of a file: a text that differs once the file is replaced or written. It takes one stat and no read.
import { stat } from 'node:fs/promises';
import { errorCode } from '../text/problem.ts';
import { withFileSlot } from './file-slots.ts';

/** The signature of a directory, a pipe, a socket or a device. */
export const notARegularFile = 'not a regular file';

/** Follows symbolic links. Never rejects: if the file is not accessible, the signature is the error code. */
export function fileSignature(file: string): Promise<string> {
  return withFileSlot(file, async () => {
    try {
      const stats = await stat(file);
      const { dev, ino, size, mtimeMs, ctimeMs } = stats;
      return stats.isFile() ? [dev, ino, size, mtimeMs, ctimeMs].join(' ') : notARegularFile;
    } catch (error) {
      return errorCode(error) ?? 'no code';
    }
  });
}
