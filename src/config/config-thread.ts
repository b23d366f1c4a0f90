// Validates the configuration of the service in a worker thread.
import type { FileContent } from '../files/bounded-file.ts';
import { runBoundedThread, type ThreadOptions } from './bounded-thread.ts';
import { unreadable } from './problems.ts';
import { type ConfigVerdict, refusedConfig, toVerdict } from './verdict.ts';

// 20,000 routes in a file of 1 MiB fit. The start has the same bounds as a reload, so what starts can be reloaded.
const bounds = { maxHeapMegabytes: 128, maxSeconds: 10 };

const builtEntry = new URL('./config-thread-entry.js', import.meta.url);

/** Never rejects: a configuration that exceeds the bounds is refused. Does not read the revocation list. */
export async function validateInThread(
  content: FileContent,
  file: string,
  { entry = builtEntry, keepsProcess = false }: ThreadOptions = {},
): Promise<ConfigVerdict> {
  if (content.kind === 'problem') return toVerdict(file, unreadable(content.problem));
  // A copy, which is transferred: the caller keeps its bytes.
  const workerData: ThreadTask = { bytes: Uint8Array.from(content.bytes), file };
  return runBoundedThread<ConfigVerdict, ConfigVerdict>({
    entry,
    workerData,
    keepsProcess,
    bounds,
    onMessage: verdict => verdict,
    refused: problem => refusedConfig([`${file}: ${problem}`]),
  });
}

export interface ThreadTask {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly file: string;
}
