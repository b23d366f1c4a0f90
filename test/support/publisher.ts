// A publisher of a revocation list on loopback: what it serves, and each request that it got; an afterEach hook stops it.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';

export type Publisher = Awaited<ReturnType<typeof startPublisher>>;

export async function startPublisher(list = '', tls?: ServerOptions) {
  const requests: { readonly headers: IncomingMessage['headers']; status: number }[] = [];
  let answer: RequestListener;
  const listen = async (port: number) => {
    const serve = (request: IncomingMessage, response: ServerResponse): void => {
      const entry = { headers: request.headers, status: 0 };
      requests.push(entry);
      response.on('error', () => undefined).on('close', () => Object.assign(entry, { status: response.statusCode }));
      answer(request, response);
    };
    const server = tls === undefined ? createServer(serve) : createSecureServer(tls, serve);
    await once(server.listen(port, '127.0.0.1'), 'listening');
    return server;
  };
  let server = await listen(0);
  const { port } = server.address() as AddressInfo;
  const publisher = {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}/revoked.jsonl`,
    requests,
    /** With an ETag of its bytes, from the next request on. */
    publish(body: string) {
      const etag = `"${createHash('sha256').update(body).digest('base64url')}"`;
      answer = (request, response) => {
        if (request.headers['if-none-match'] === etag) response.writeHead(304, { etag }).end();
        else response.writeHead(200, { etag }).end(body);
      };
    },
    answer(how: RequestListener) {
      answer = how;
    },
    /** Closes connections and refuses new ones; it comes back on the same port. */
    async stop() {
      const closed = server.listening ? once(server, 'close') : undefined;
      server.close();
      server.closeAllConnections();
      await closed;
    },
    async restart() {
      server = await listen(port);
    },
  };
  publisher.publish(list);
  return publisher;
}
