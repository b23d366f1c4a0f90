// The real entry of the key thread, and URLs that end or block it: what no issuer can do, as far as we know.
import { parentPort } from 'node:worker_threads';
import '../support/key-thread-entry.mjs';

parentPort.on('message', ({ url = '' }) => {
  if (url.endsWith('/exits')) process.exit(3);
  if (url.endsWith('/throws')) throw new Error('nobody catches this');
  if (url.endsWith('/hangs')) for (;;);
  if (url.endsWith('/grows')) {
    const held = [];
    for (;;) held.push(Array.from({ length: 1000 }, () => ({})));
  }
});
