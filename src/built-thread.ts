// Starts a built script of the package in a worker thread: a thread cannot run TypeScript sources.
import { Worker, type WorkerOptions } from 'node:worker_threads';

interface ThreadOptions extends Pick<WorkerOptions, 'workerData' | 'transferList'> {
  readonly maxHeapMegabytes: number;
}

export function startThread(script: URL, { maxHeapMegabytes, ...options }: ThreadOptions): Worker {
  return new Worker(script, {
    ...options,
    // Without the preloads of the service, in arguments or environment: an SDK would start in the thread again.
    execArgv: [],
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: maxHeapMegabytes, maxYoungGenerationSizeMb: 8 },
  });
}
