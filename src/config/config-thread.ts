// Judges a configuration for the service: in a thread of its own, bounded in memory and time, because reading a megabyte of hostile YAML
// takes many seconds and a gigabyte, and the calls of that time would wait or the process would end. What reads configurations, a sixth
// of all that the service would hold, goes with the thread, so that no collection of the service's garbage has to look at it.
import { Worker } from 'node:worker_threads';
import type { FileContent } from '../files/bounded-file.ts';
import { unreadable } from './problems.ts';
import { type ConfigVerdict, refusedConfig, toVerdict } from './verdict.ts';

const maxHeapMegabytes = 48;
const maxSeconds = 10;

// As it is built: a thread does not take sources.
const builtEntry = new URL('./config-thread-entry.js', import.meta.url);

export interface ThreadOptions {
  readonly entry?: URL;
  /** Whether a process that does nothing else waits for the verdict. */
  readonly keepsProcess?: boolean;
}

/** Never rejects: what the thread cannot bear is refused. */
export async function judgeInThread(
  content: FileContent,
  file: string,
  { entry = builtEntry, keepsProcess = false }: ThreadOptions = {},
): Promise<ConfigVerdict> {
  if (content.kind === 'problem') return toVerdict(file, unreadable(content.problem));
  const refused = (problem: string): ConfigVerdict => refusedConfig([`${file}: ${problem}`]);
  // The bytes alone: they may be a view of a larger buffer, which would be copied whole.
  const workerData: ThreadTask = { bytes: Uint8Array.from(content.bytes), file };
  return new Promise(resolve => {
    const worker = new Worker(entry, {
      workerData,
      // What is preloaded by either is meant for the service: an SDK would start in each thread anew.
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
