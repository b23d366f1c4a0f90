// A forward proxy (CONNECT) that connects every name to one local port and records the requests.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { listen } from './listen.ts';

export async function startConnectProxy(port: number, tls?: { readonly cert: string; readonly key: string }) {
  const requested: string[] = [];
  let certificates = 0;
  const sockets = new Set<Socket>();
  const server =
    tls === undefined
      ? createServer((_request, response) => response.writeHead(500).end())
      : createSecureServer({ ...tls, requestCert: true, rejectUnauthorized: false });
  server.on('connect', (request, client: Socket) => {
    requested.push(request.url ?? '');
    if (client instanceof TLSSocket && client.getPeerX509Certificate() !== undefined) certificates += 1;
    const upstream = connect(port, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      client.pipe(upstream).pipe(client);
    });
    for (const socket of [client, upstream]) sockets.add(socket.on('error', () => undefined));
  });
  const ownPort = await listen(server);
  return {
    url: `${tls === undefined ? 'http://127.0.0.1' : 'https://127.0.0.1'}:${ownPort}`,
    /** host:port of each request. */
    requested: requested as readonly string[],
    /** The number of clients that presented a certificate; a proxy with TLS requests one from each. */
    certificates: () => certificates,
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
