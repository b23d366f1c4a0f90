// The entry of the key thread, extended by URLs that end or block it. No issuer can do that as far as we know.
import { parentPort } from 'node:worker_threads';
import '../../dist/key-thread-entry.js';

parentPort.on('message', ({ request }) => {
  const url = request?.url ?? '';
  if (url.endsWith('/exits')) process.exit(3);
  if (url.endsWith('/throws')) throw new Error('uncaught');
  if (url.endsWith('/hangs')) for (;;);
  if (url.endsWith('/grows')) {
    const retained = [];
    for (;;) retained.push(Array.from({ length: 1000 }, () => ({})));
  }
});
