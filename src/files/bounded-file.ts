// Reads a file of the operator into memory without trusting its size, and says in words why it could not.
import { open } from 'node:fs/promises';

const maxFileBytes = 1024 * 1024;

export interface FileProblem {
  readonly kind: 'problem';
  /** A whole sentence: "the file does not exist". */
  readonly problem: string;
}

export type FileContent = { readonly kind: 'bytes'; readonly bytes: Uint8Array } | FileProblem;

/** At most 1 MiB, which is also the most that a ConfigMap or a Secret holds. */
export async function loadBoundedFile(file: string): Promise<FileContent> {
  try {
    const handle = await open(file, 'r');
    try {
      // Not by the size that stat tells: pipes and /proc have none.
      const buffer = Buffer.alloc(maxFileBytes + 1);
      let length = 0;
      while (length < buffer.length) {
        const { bytesRead } = await handle.read(buffer, length, buffer.length - length, null);
        if (bytesRead === 0) return { kind: 'bytes', bytes: buffer.subarray(0, length) };
        length += bytesRead;
      }
      return { kind: 'problem', problem: `the file is larger than ${maxFileBytes} bytes` };
    } finally {
      await handle.close();
    }
  } catch (error) {
    return { kind: 'problem', problem: problemOf(error) };
  }
}

function problemOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
    // A NUL in the name.
    case 'ERR_INVALID_ARG_VALUE':
      return 'the file does not exist';
    case 'EISDIR':
      return 'the file is a directory';
    case 'EACCES':
    case 'EPERM':
      return 'the file cannot be read: permission denied';
    default:
      if (typeof code !== 'string') throw error;
      return `the file cannot be read (${code})`;
  }
}
