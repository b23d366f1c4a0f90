// The entry of the key thread, extended by URLs that end or block it. No issuer can do that as far as we know.
import { parentPort } from 'node:worker_threads';
import '../../dist/key-thread-entry.js';

parentPort.on('message', ({ request }) => {
  const url = request?.url ?? '';
  if (url.endsWith('/exits')) process.exit(3);
  if (url.endsWith('/throws')) throw new Error('uncaught');
  if (url.endsWith('/hangs')) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  if (url.endsWith('/grows')) {
    const retained = [];
    for (;;) retained.push(Array(100_000).fill(0));
  }
});
