// Runs a worker thread that reads a file of the operator, bounded in memory and time. A megabyte of hostile YAML takes many seconds and
// a gigabyte: on the main thread, calls would wait or the process would end. The parser's memory is freed with the thread.
import { Worker } from 'node:worker_threads';

export interface ThreadBounds {
  readonly maxHeapMegabytes: number;
  readonly maxSeconds: number;
}

export interface ThreadOptions {
  /** By default the built one: a worker thread does not run TypeScript sources. */
  readonly entry?: URL;
  /** Whether the thread keeps the process alive. */
  readonly keepsProcess?: boolean;
}

/** Never rejects. `onMessage` returns the answer once it has one; `refused` makes one of a problem, a sentence about the file. */
export async function runBoundedThread<Message, Answer>(task: {
  readonly entry: URL;
  /** The bytes are transferred, not copied. */
  readonly workerData: { readonly bytes: Uint8Array<ArrayBuffer> };
  readonly keepsProcess: boolean;
  readonly bounds: ThreadBounds;
  readonly onMessage: (message: Message) => Answer | undefined;
  readonly refused: (problem: string) => Answer;
}): Promise<Answer> {
  const { entry, workerData, keepsProcess, bounds, onMessage, refused } = task;
  const { maxHeapMegabytes, maxSeconds } = bounds;
  return new Promise(resolve => {
    const worker = new Worker(entry, {
      workerData,
      transferList: [workerData.bytes.buffer],
      // Modules that either preloads, such as an SDK, are for the service and would start again in each thread.
      execArgv: [],
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: maxHeapMegabytes, maxYoungGenerationSizeMb: 8 },
    });
    const end = (answer: Answer): void => {
      clearTimeout(timer);
      resolve(answer);
      worker.terminate();
    };
    const timer = setTimeout(
      () => end(refused(`reading the file must not take longer than ${maxSeconds} s: make it smaller or simpler`)),
      maxSeconds * 1000,
    );
    timer.unref();
    if (!keepsProcess) worker.unref();
    worker.on('message', (message: Message) => {
      const answer = onMessage(message);
      if (answer !== undefined) end(answer);
    });
    worker.on('error', error => end(refused(problemOf(error, maxHeapMegabytes))));
    worker.on('exit', () => end(refused('the thread that reads the file ended without an answer')));
  });
}

function problemOf(error: unknown, maxHeapMegabytes: number): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'no code';
  return code === 'ERR_WORKER_OUT_OF_MEMORY'
    ? `reading the file must not take more than ${maxHeapMegabytes} MB of memory: make it smaller or simpler`
    : `the file cannot be validated (${code})`;
}
