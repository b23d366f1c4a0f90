// The HTTP side for probes and Prometheus: /livez, /readyz, /metrics. Reads only, holds no secret.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface AdminPages {
  readiness(): { readonly ready: boolean; readonly body: unknown };
  metrics(): Promise<{ readonly contentType: string; readonly text: string }>;
}

export interface AdminServer {
  readonly port: number;
  stop(): Promise<void>;
}

/** Rejects where the address cannot be bound. */
export async function startAdminServer(
  address: { host: string; port: number },
  pages: AdminPages,
): Promise<AdminServer> {
  const server = createServer(
    { requestTimeout: 10_000, headersTimeout: 5_000, maxHeaderSize: 8192 },
    (request, response) => {
      answer(pages, request, response).catch(() => {
        if (!response.headersSent) send(response, 500, 'text/plain', 'a fault\n');
        response.end();
      });
    },
  );
  server.maxConnections = 256;
  await listen(server, address);
  const { port } = server.address() as AddressInfo;
  return {
    port,
    stop: () =>
      new Promise(resolve => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(pages: AdminPages, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD');
    send(response, 405, 'text/plain', 'GET and HEAD only\n');
    return;
  }
  switch (request.url?.split('?', 1)[0]) {
    case '/livez':
      send(response, 200, 'text/plain', 'ok\n');
      return;
    case '/readyz': {
      const { ready, body } = pages.readiness();
      send(response, ready ? 200 : 503, 'application/json', `${JSON.stringify(body)}\n`);
      return;
    }
    case '/metrics': {
      const { contentType, text } = await pages.metrics();
      send(response, 200, contentType, text);
      return;
    }
    default:
      send(response, 404, 'text/plain', 'not found\n');
  }
}

function send(response: ServerResponse, statusCode: number, contentType: string, body: string): void {
  response.writeHead(statusCode, {
    'content-type': contentType,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  response.end(body);
}

function listen(server: Server, { host, port }: { host: string; port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const used = error.code === 'EADDRINUSE' ? ', which is in use' : '';
      reject(new Error(`cannot listen on ${host}:${port}${used}`, { cause: error }));
    });
    server.listen({ host, port }, () => {
      server.removeAllListeners('error');
      resolve();
    });
  });
}
