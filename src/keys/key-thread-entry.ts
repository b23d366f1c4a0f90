// The script of the thread of key-thread.ts: answers each task once. The transport bounds the work.
import { parentPort, workerData } from 'node:worker_threads';
import { type Problem, problem } from '../text/problem.ts';
import type { KeyThreadAnswer, KeyThreadData, KeyThreadTask } from './key-thread.ts';
import { getKeyDocument } from './key-transport.ts';
import { setRootsInForce } from './trusted-roots.ts';

const { roots }: KeyThreadData = workerData;
setRootsInForce(roots);
const inFlight = new Map<number, AbortController>();

parentPort?.on('message', (task: KeyThreadTask) => {
  if (task.kind === 'get') void answer(task);
  else inFlight.get(task.id)?.abort();
});

async function answer({ id, request }: KeyThreadTask & { readonly kind: 'get' }): Promise<void> {
  const controller = new AbortController();
  inFlight.set(id, controller);
  const { signal } = controller;
  // Does not wait for work that ignores the signal: the answer shows that the thread does not hang.
  const aborted = new Promise<Problem>(resolve => {
    signal.addEventListener('abort', () => resolve(problem('stopped')));
  });
  const result = await Promise.race([getKeyDocument(request, signal), aborted]);
  inFlight.delete(id);
  send({ id, result });
}

function send(message: KeyThreadAnswer): void {
  const { result } = message;
  if (result.kind !== 'body') {
    parentPort?.postMessage(message);
    return;
  }
  // A copy: the bytes may be a view of a larger buffer, all of which would be sent.
  const bytes = new Uint8Array(result.bytes);
  parentPort?.postMessage({ ...message, result: { ...result, bytes } }, [bytes.buffer]);
}
