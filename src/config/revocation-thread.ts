// Reads a revocation list in a worker thread and builds its index on the main thread, some entries per event-loop turn.
import type { FileContent } from '../files/bounded-file.ts';
import { createRevocationList, type Revocation, type RevocationList } from '../revocation/revocation-list.ts';
import { runBoundedThread, type ThreadOptions } from './bounded-thread.ts';
import type { ThreadTask } from './config-thread.ts';
import { unreadable } from './problems.ts';
import { type RefusedConfig, refuse, refusedConfig } from './verdict.ts';

export interface LoadedRevocations {
  readonly kind: 'revocations';
  readonly list: RevocationList;
}

/** What the thread sends: some entries at a time, then whether the list is valid. */
export type ThreadMessage =
  | { readonly kind: 'entries'; readonly entries: readonly Revocation[] }
  | { readonly kind: 'valid' }
  | RefusedConfig;

/** 160 bytes for each entry of the longest list. */
export const maxRevocationBytes = 16 * 1024 * 1024;

// A file of 16 MiB takes 32 MB as text if it is not ASCII. On a machine with little processor time, 100,000 entries take many seconds.
const bounds = { maxHeapMegabytes: 64, maxSeconds: 30 };

const builtEntry = new URL('./revocation-thread-entry.js', import.meta.url);

/** Never rejects: a list that exceeds the bounds is refused. */
export async function loadRevocationsInThread(
  content: FileContent,
  file: string,
  { entry = builtEntry, keepsProcess = false }: ThreadOptions = {},
): Promise<LoadedRevocations | RefusedConfig> {
  if (content.kind === 'problem') return refuse(file, unreadable(content.problem).problems);
  const list = createRevocationList();
  const workerData: ThreadTask = { bytes: Uint8Array.from(content.bytes), file };
  return runBoundedThread<ThreadMessage, LoadedRevocations | RefusedConfig>({
    entry,
    workerData,
    keepsProcess,
    bounds,
    onMessage(message) {
      if (message.kind === 'refused') return message;
      if (message.kind === 'valid') return { kind: 'revocations', list };
      for (const each of message.entries) list.add(each);
      return undefined;
    },
    refused: problem => refusedConfig([`${file}: ${problem}`]),
  });
}
