// Reads a file of at most 1 MiB into memory, or gives the reason why it cannot be read.
import { open } from 'node:fs/promises';

const defaultMaxBytes = 1024 * 1024;

export interface FileProblem {
  readonly kind: 'problem';
  /** A sentence: "the file does not exist". */
  readonly problem: string;
}

export interface UnreadableFile extends FileProblem {
  readonly reason: 'missing' | 'directory' | 'denied' | 'too large' | 'other';
}

export type FileContent = { readonly kind: 'bytes'; readonly bytes: Uint8Array } | UnreadableFile;

/** 1 MiB is also the limit of a ConfigMap and of a Secret. */
export async function loadBoundedFile(file: string, maxBytes = defaultMaxBytes): Promise<FileContent> {
  try {
    const handle = await open(file, 'r');
    try {
      // Does not rely on the size from stat: pipes and files of /proc have none.
      // Not filled: only what is read takes memory.
      const buffer = Buffer.allocUnsafeSlow(maxBytes + 1);
      let length = 0;
      while (length < buffer.length) {
        const { bytesRead } = await handle.read(buffer, length, buffer.length - length, null);
        if (bytesRead === 0) return { kind: 'bytes', bytes: buffer.subarray(0, length) };
        length += bytesRead;
      }
      return unreadable('too large', `the file is larger than ${maxBytes} bytes`);
    } finally {
      await handle.close();
    }
  } catch (error) {
    return toUnreadable(error);
  }
}

function toUnreadable(error: unknown): UnreadableFile {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
    // A NUL in the name.
    case 'ERR_INVALID_ARG_VALUE':
      return unreadable('missing', 'the file does not exist');
    case 'EISDIR':
      return unreadable('directory', 'the file is a directory');
    case 'EACCES':
    case 'EPERM':
      return unreadable('denied', 'the file cannot be read: permission denied');
    default:
      if (typeof code !== 'string') throw error;
      return unreadable('other', `the file cannot be read (${code})`);
  }
}

function unreadable(reason: UnreadableFile['reason'], problem: string): UnreadableFile {
  return { kind: 'problem', reason, problem };
}
