// Validates the configuration of the service in a worker thread, bounded in memory and time. A megabyte of hostile YAML takes many seconds
// and a gigabyte: on the main thread, calls would wait or the process would end. The parser's memory is freed with the thread.
import { startThread } from '../built-thread.ts';
import type { FileContent } from '../files/bounded-file.ts';
import { packageFile } from '../package.ts';
import { errorCode } from '../text/problem.ts';
import { unreadable } from './problems.ts';
import { type ConfigVerdict, refusedConfig, toVerdict } from './verdict.ts';

// 20,000 routes in a file of 1 MiB fit. The start has the same bounds as a reload, so what starts can be reloaded.
const maxHeapMegabytes = 128;
const maxSeconds = 10;

const builtScript = packageFile('dist/config-thread-entry.js');

export interface ThreadTask {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly file: string;
}

/** Never rejects: a configuration that exceeds the bounds is refused. Does not read the revocation list. */
export async function validateInThread(
  content: FileContent,
  file: string,
  { script = builtScript, keepsProcessAlive = false } = {},
): Promise<ConfigVerdict> {
  if (content.kind === 'problem') return toVerdict(file, unreadable(content.problem));
  // A copy, which is transferred: the caller keeps its bytes.
  const task: ThreadTask = { bytes: Uint8Array.from(content.bytes), file };
  return new Promise(resolve => {
    const worker = startThread(script, { maxHeapMegabytes, workerData: task, transferList: [task.bytes.buffer] });
    const end = (verdict: ConfigVerdict): void => {
      clearTimeout(timer);
      resolve(verdict);
      worker.terminate();
    };
    const refuse = (problem: string): void => end(refusedConfig([`${file}: ${problem}`]));
    const timer = setTimeout(
      () => refuse(`reading the file must not take longer than ${maxSeconds} s: make it smaller or simpler`),
      maxSeconds * 1000,
    );
    timer.unref();
    if (!keepsProcessAlive) worker.unref();
    worker.on('message', end);
    worker.on('error', error => refuse(problemOf(error)));
    worker.on('exit', () => refuse('the thread that reads the file ended without an answer'));
  });
}

function problemOf(error: unknown): string {
  const code = errorCode(error) ?? 'no code';
  return code === 'ERR_WORKER_OUT_OF_MEMORY'
    ? `reading the file must not take more than ${maxHeapMegabytes} MB of memory: make it smaller or simpler`
    : `the file cannot be validated (${code})`;
}
