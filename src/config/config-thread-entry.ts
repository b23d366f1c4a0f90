// What runs in the thread of config-thread.ts: one configuration in, one verdict out.
import { parentPort, workerData } from 'node:worker_threads';
import type { ThreadTask } from './config-thread.ts';
import { validateConfig } from './load.ts';
import { toVerdict } from './verdict.ts';

const { bytes, file }: ThreadTask = workerData;
parentPort?.postMessage(
  toVerdict(file, await validateConfig({ kind: 'bytes', bytes }, file, { readsRevocations: false })),
);
