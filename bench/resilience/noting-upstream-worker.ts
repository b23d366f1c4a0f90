// The process behind noting-upstream.ts, as light as it can be, since it shares two cores with what is measured.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { UpstreamReport } from './noting-upstream.ts';

const server = createServer(({ url = '', headers }, response) => {
  // Before the answer: whoever has read that and asks afterwards is told of it.
  tell({ kind: 'came', name: url.slice(url.indexOf('?n=') + 3), account: String(headers['x-auth-acc'] ?? '') });
  response.writeHead(200, { 'content-length': '0' }).end();
});
server.listen(0, '127.0.0.1', () => tell({ kind: 'listening', port: (server.address() as AddressInfo).port }));

process.on('disconnect', () => process.exit(1));
process.on('message', () => tell({ kind: 'told' }));

function tell(report: UpstreamReport): void {
  process.send?.(report);
}
