// A worker thread validates the configuration of the service, bounded in memory and time. A megabyte of hostile YAML takes many seconds
// and a gigabyte: on the main thread, calls would wait or the process would end. The parser's memory is freed with the thread.
import { Worker } from 'node:worker_threads';
import type { FileContent } from '../files/bounded-file.ts';
import { unreadable } from './problems.ts';
import { type ConfigVerdict, refusedConfig, toVerdict } from './verdict.ts';

const maxHeapMegabytes = 48;
const maxSeconds = 10;

// The built file: a worker thread does not run TypeScript sources.
const builtEntry = new URL('./config-thread-entry.js', import.meta.url);

export interface ThreadOptions {
  readonly entry?: URL;
  /** Whether the thread keeps the process alive. */
  readonly keepsProcess?: boolean;
}

/** Never rejects: a configuration that exceeds the bounds is refused. */
export async function validateInThread(
  content: FileContent,
  file: string,
  { entry = builtEntry, keepsProcess = false }: ThreadOptions = {},
): Promise<ConfigVerdict> {
  if (content.kind === 'problem') return toVerdict(file, unreadable(content.problem));
  const refused = (problem: string): ConfigVerdict => refusedConfig([`${file}: ${problem}`]);
  // A copy of the bytes only: of a view, the whole buffer below it would be copied.
  const workerData: ThreadTask = { bytes: Uint8Array.from(content.bytes), file };
  return new Promise(resolve => {
    const worker = new Worker(entry, {
      workerData,
      // Modules that either preloads, such as an SDK, are for the service and would start again in each thread.
      execArgv: [],
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: maxHeapMegabytes, maxYoungGenerationSizeMb: 8 },
    });
    const end = (verdict: ConfigVerdict): void => {
      clearTimeout(timer);
      resolve(verdict);
      worker.terminate();
    };
    const timer = setTimeout(
      () => end(refused(`the file takes longer than ${maxSeconds} s to be read`)),
      maxSeconds * 1000,
    );
    timer.unref();
    if (!keepsProcess) worker.unref();
    worker.on('message', end);
    worker.on('error', error => end(refused(problemOf(error))));
    worker.on('exit', () => end(refused('the thread that reads the file ended without an answer')));
  });
}

export interface ThreadTask {
  readonly bytes: Uint8Array;
  readonly file: string;
}

function problemOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'no code';
  return code === 'ERR_WORKER_OUT_OF_MEMORY'
    ? `the file takes more than ${maxHeapMegabytes} MB of memory to be read`
    : `the file cannot be judged (${code})`;
}
