// The admin HTTP server: /livez, /readyz, /metrics, the admin page at / and its runbooks. Read-only and without secrets; it answers any Host name,
// because the answers are the same for every client and contain nothing of a request.
import { readFile } from 'node:fs/promises';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from '../http/node-http.ts';
import { packageFile } from '../package.ts';
import { hostAndPort, listenError } from '../text/listen-address.ts';
import { printableValue } from '../text/printable.ts';
import { contentSecurityPolicy } from './admin-html.ts';
import type { AdminPageFacts } from './admin-page.ts';

export interface AdminPages {
  readiness(): { readonly ready: boolean; readonly body: unknown };
  metrics(): Promise<{ readonly contentType: string; readonly text: string }>;
  facts(): Promise<AdminPageFacts>;
}

export interface AdminServer {
  readonly port: number;
  stop(): Promise<void>;
}

/** Limits for clients. */
export interface AdminLimits {
  /** From the connection to the end of the headers. */
  readonly headersMs: number;
  /** Until the client has read the whole answer. */
  readonly responseMs: number;
  /** At this limit a new connection replaces the oldest. */
  readonly maxConnections: number;
}

/** An issuer may be as long. */
const maxTextLength = 1024;

const defaultLimits: AdminLimits = { headersMs: 5000, responseMs: 10_000, maxConnections: 256 };

/** Rejects if the address cannot be bound. */
export async function startAdminServer(
  address: { host: string; port: number },
  pages: AdminPages,
  limits: AdminLimits = defaultLimits,
): Promise<AdminServer> {
  // Singleflight: concurrent requests share one rendering.
  const shared: AdminPages = { ...pages, metrics: onceAtATime(pages.metrics), facts: onceAtATime(pages.facts) };
  const server = createServer(
    {
      headersTimeout: limits.headersMs,
      // No body is read.
      requestTimeout: limits.headersMs,
      // Node checks its timeouts at this interval only, by default every 30 seconds.
      connectionsCheckingInterval: limits.headersMs / 5,
      maxHeaderSize: 8192,
    },
    (request, response) => {
      const overdue = setTimeout(() => request.socket.destroy(), limits.responseMs).unref();
      response.once('close', () => clearTimeout(overdue));
      // One request a connection: no client holds a connection or a queue of answers.
      response.shouldKeepAlive = false;
      answer(shared, request, response).catch(() => {
        if (!response.headersSent) send(response, 500, 'text/plain', 'internal error\n');
        response.end();
      });
    },
  );
  limitConnections(server, limits.maxConnections);
  server.maxRequestsPerSocket = 1;
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
    send(response, 405, 'text/plain', 'use GET or HEAD\n');
    return;
  }
  const [path, query = ''] = (request.url ?? '').split('?', 2);
  switch (path) {
    case '/': {
      // Most instances never show it, and its number formats load half a megabyte of language data.
      const { renderAdminPage } = await import('./admin-page.ts');
      send(response, 200, 'text/html; charset=utf-8', renderAdminPage(await pages.facts(), query));
      return;
    }
    case '/runbooks.md':
      send(response, 200, 'text/plain; charset=utf-8', await readFile(packageFile('docs/runbooks.md'), 'utf8'));
      return;
    case '/livez':
      send(response, 200, 'text/plain', 'ok\n');
      return;
    case '/readyz': {
      const { ready, body } = pages.readiness();
      send(response, ready ? 200 : 503, 'application/json', `${JSON.stringify(printableValue(body, maxTextLength))}\n`);
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
    'content-security-policy': contentSecurityPolicy,
    'cross-origin-resource-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  });
  response.end(body);
}

function onceAtATime<T>(make: () => Promise<T>): () => Promise<T> {
  let making: Promise<T> | undefined;
  return () => {
    making ??= make().finally(() => {
      making = undefined;
    });
    return making;
  };
}

function listen(server: Server, { host, port }: { host: string; port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', error => reject(listenError(hostAndPort(host, port), error)));
    server.listen({ host, port }, () => {
      server.removeAllListeners('error');
      resolve();
    });
  });
}

/** At the limit a new connection replaces the oldest. Replaces Node's `maxConnections`, which closes the new connection, so that a client with idle connections could keep the probes out. */
function limitConnections(server: Server, maxConnections: number): void {
  // In the order of their arrival: a set keeps insertion order.
  const connections = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
    const [oldest] = connections;
    if (connections.size <= maxConnections || oldest === undefined) return;
    connections.delete(oldest);
    oldest.destroy();
  });
}
