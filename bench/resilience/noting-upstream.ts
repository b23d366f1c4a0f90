// The service behind Envoy, as light as it can be, since it shares two cores with what is measured: notes which requests have come
// and as whose, and answers with nothing. A request carries its own name in the query, as `?n=NAME`.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface NotingUpstream {
  readonly port: number;
  /** The x-auth-acc with which each request came, by its name; several lines joined with ", ", none is empty. */
  readonly accounts: ReadonlyMap<string, string>;
  stop(): Promise<void>;
}

/** On a free port of 127.0.0.1. */
export async function startNotingUpstream(): Promise<NotingUpstream> {
  const accounts = new Map<string, string>();
  const server = createServer(({ url = '', headers }, response) => {
    accounts.set(url.slice(url.indexOf('?n=') + 3), String(headers['x-auth-acc'] ?? ''));
    response.writeHead(200, { 'content-length': '0' }).end();
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    accounts,
    stop: () =>
      new Promise(resolve => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
