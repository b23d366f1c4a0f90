// The HTTP side for probes, Prometheus and people: /livez, /readyz, /metrics and the page at /. Reads only, holds no secret, and
// answers under any Host name: what it tells is the same for everybody who can reach it, and nothing of a request is put into it.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { foreignValue } from '../foreign-text.ts';
import { type AdminPageFacts, renderAdminPage } from './admin-page.ts';
import { contentSecurityPolicy } from './admin-page-style.ts';
import { createAnswerTurns } from './answer-turns.ts';
import { limitConnections } from './connection-limit.ts';

export interface AdminPages {
  readiness(): { readonly ready: boolean; readonly body: unknown };
  metrics(): Promise<{ readonly contentType: string; readonly text: string }>;
  facts(): Promise<AdminPageFacts>;
}

export interface AdminServer {
  readonly port: number;
  stop(): Promise<void>;
}

/** What one client can hold, and for how long. */
export interface AdminLimits {
  /** From the connection, later from the first byte of a request, to the end of its headers. */
  readonly headersMs: number;
  /** Until the client has taken the whole answer. */
  readonly responseMs: number;
  readonly keepAliveMs: number;
  /** At this many, a new one takes the place of the one that has been idle longest. */
  readonly maxConnections: number;
  readonly maxRequestsPerConnection: number;
}

/** An issuer may be as long. */
const maxTextLength = 1024;

/** Of one connection. */
const maxAnswersInFlight = 4;

const defaultLimits: AdminLimits = {
  headersMs: 5000,
  responseMs: 10_000,
  keepAliveMs: 5000,
  maxConnections: 256,
  maxRequestsPerConnection: 100,
};

/** Rejects where the address cannot be bound. */
export async function startAdminServer(
  address: { host: string; port: number },
  pages: AdminPages,
  limits: AdminLimits = defaultLimits,
): Promise<AdminServer> {
  // A client may ask a hundred times in one packet; what takes work is done once for all who ask meanwhile.
  const shared: AdminPages = { ...pages, metrics: onceAtATime(pages.metrics), facts: onceAtATime(pages.facts) };
  const inTurn = createAnswerTurns(maxAnswersInFlight);
  const server = createServer(
    {
      headersTimeout: limits.headersMs,
      // Nothing is waited for behind the headers.
      requestTimeout: limits.headersMs,
      keepAliveTimeout: limits.keepAliveMs,
      // Node looks for those that are late at this interval only, by default each 30 seconds.
      connectionsCheckingInterval: limits.headersMs / 5,
      maxHeaderSize: 8192,
    },
    (request, response) => {
      const overdue = setTimeout(() => request.socket.destroy(), limits.responseMs).unref();
      response.once('close', () => clearTimeout(overdue));
      // No body is ever read, so the connection cannot go on behind one.
      if (hasBody(request)) response.setHeader('connection', 'close');
      inTurn(request.socket, response, () => {
        answer(shared, request, response).catch(() => {
          if (!response.headersSent) send(response, 500, 'text/plain', 'a fault\n');
          response.end();
        });
      });
    },
  );
  limitConnections(server, limits.maxConnections);
  server.maxRequestsPerSocket = limits.maxRequestsPerConnection;
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
  const [path, query = ''] = (request.url ?? '').split('?', 2);
  switch (path) {
    case '/':
      send(response, 200, 'text/html; charset=utf-8', renderAdminPage(await pages.facts(), query));
      return;
    case '/livez':
      send(response, 200, 'text/plain', 'ok\n');
      return;
    case '/readyz': {
      const { ready, body } = pages.readiness();
      send(response, ready ? 200 : 503, 'application/json', `${JSON.stringify(foreignValue(body, maxTextLength))}\n`);
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

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
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
