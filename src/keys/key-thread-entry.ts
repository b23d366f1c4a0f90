// The script of the thread of key-thread.ts: answers each task once. The transport bounds the work.
import { parentPort } from 'node:worker_threads';
import { type Problem, problem } from '../text/problem.ts';
import type { KeyThreadAnswer, KeyThreadTask } from './key-thread.ts';
import { createKeyTransport } from './key-transport.ts';
import { setRootsInForce } from './trusted-roots.ts';

const inFlight = new Map<number, AbortController>();

parentPort?.on('message', (task: KeyThreadTask) => {
  switch (task.kind) {
    case 'trust':
      setRootsInForce(task.roots);
      break;
    case 'get':
      void answer(task);
      break;
    case 'abort':
      inFlight.get(task.id)?.abort();
  }
});

async function answer({ id, settings, url, etag }: KeyThreadTask & { readonly kind: 'get' }): Promise<void> {
  const controller = new AbortController();
  inFlight.set(id, controller);
  const { signal } = controller;
  // Does not wait for work that ignores the signal: the answer shows that the thread does not hang.
  const aborted = new Promise<Problem>(resolve => {
    signal.addEventListener('abort', () => resolve(problem('stopped')));
  });
  const fetched = createKeyTransport(settings).get(url, signal, etag);
  const result = await Promise.race([fetched, aborted]);
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
