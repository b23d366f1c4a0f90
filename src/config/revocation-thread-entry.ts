// What runs in the thread of revocation-thread.ts: one file in, its entries out, some at a time.
import { parentPort, workerData } from 'node:worker_threads';
import type { ThreadTask } from './config-thread.ts';
import { parseRevocations } from './revocation-file.ts';
import type { ThreadMessage } from './revocation-thread.ts';
import { refuse } from './verdict.ts';

const { bytes, file }: ThreadTask = workerData;
const send = (message: ThreadMessage): void => parentPort?.postMessage(message);
const problems = parseRevocations(bytes, entries => send({ kind: 'entries', entries }));
send(problems.length === 0 ? { kind: 'valid' } : refuse(file, problems));
