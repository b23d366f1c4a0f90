// Reads a file into memory up to a bound, or gives the reason why it cannot be read.
import { open, stat } from 'node:fs/promises';
import { errorCode, type Problem, problem } from '../text/problem.ts';

const defaultMaxBytes = 1024 * 1024;
const sliceBytes = 64 * 1024;

/** The problem is a sentence: "the file does not exist". */
export interface UnreadableFile extends Problem {
  /** `other` may be temporary: too many open files, an error of the mount. */
  readonly reason: 'missing' | 'not regular' | 'denied' | 'too large' | 'other';
}

export type FileContent = { readonly kind: 'bytes'; readonly bytes: Uint8Array } | UnreadableFile;

/** `maxBytes` is 1 MiB by default, which is also the limit of a ConfigMap and of a Secret. Reads pipes too, and waits for their writer. */
export async function loadBoundedFile(file: string, maxBytes = defaultMaxBytes): Promise<FileContent> {
  const slices: Buffer[] = [];
  const unreadable = await readSlices(file, maxBytes, slice => {
    slices.push(slice);
  });
  return unreadable ?? { kind: 'bytes', bytes: Buffer.concat(slices) };
}

/** Refuses a pipe, which would block until somebody writes to it. */
export async function loadRegularFile(file: string, maxBytes?: number): Promise<FileContent> {
  return (await irregular(file)) ?? loadBoundedFile(file, maxBytes);
}

/** Reads a regular file of any length up to the bound without having all of it in memory. Rejects with what `onSlice` throws. */
export async function loadInSlices(
  file: string,
  maxBytes: number,
  onSlice: (slice: Buffer) => void,
): Promise<UnreadableFile | undefined> {
  return (await irregular(file)) ?? readSlices(file, maxBytes, onSlice);
}

async function irregular(file: string): Promise<UnreadableFile | undefined> {
  // `open` says why there is no file.
  const isRegular = await stat(file).then(
    stats => stats.isFile(),
    () => true,
  );
  return isRegular ? undefined : unreadable('not regular', 'the file is not a regular file');
}

async function readSlices(
  file: string,
  maxBytes: number,
  onSlice: (slice: Buffer) => void,
): Promise<UnreadableFile | undefined> {
  try {
    const handle = await open(file, 'r');
    try {
      // Does not rely on the size from stat: pipes and files of /proc have none.
      for (let length = 0; ; ) {
        const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafeSlow(sliceBytes), 0, sliceBytes, null);
        if (bytesRead === 0) return undefined;
        length += bytesRead;
        if (length > maxBytes) return unreadable('too large', `the file is larger than ${maxBytes} bytes`);
        onSlice(buffer.subarray(0, bytesRead));
      }
    } finally {
      await handle.close();
    }
  } catch (error) {
    return toUnreadable(error);
  }
}

function toUnreadable(error: unknown): UnreadableFile {
  const code = errorCode(error);
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
    // A NUL in the name.
    case 'ERR_INVALID_ARG_VALUE':
      return unreadable('missing', 'the file does not exist');
    case 'EISDIR':
      return unreadable('not regular', 'the file is a directory');
    case 'EACCES':
    case 'EPERM':
      return unreadable('denied', 'the file cannot be read: permission denied');
    default:
      if (code === undefined) throw error;
      return unreadable('other', `the file cannot be read (${code})`);
  }
}

function unreadable(reason: UnreadableFile['reason'], text: string): UnreadableFile {
  return { ...problem(text), reason };
}
