// A real HTTP(S) server on a free loopback port that stands in for an authentication service: publishes key sets and discovery,
// counts requests, and can be slow, wrong or down in every way. It signs nothing.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { createGzip, gzipSync } from 'node:zlib';
import type { JWK } from 'jose';

export type IssuerPath = 'jwks' | 'discovery';

/** A fault of the issuer. A refused connection is not among them: use `stop()`. */
export type IssuerFault =
  /** Closes the connection when a request arrives. */
  | { readonly kind: 'reset' }
  /** Accepts the request and never answers. */
  | { readonly kind: 'hang' }
  /** Sends the headers and never a body. */
  | { readonly kind: 'hangAfterHeaders' }
  /** Sends the correct body, one byte at a time. */
  | { readonly kind: 'drip'; readonly intervalMs?: number }
  /** Sends the correct answer after a delay. */
  | { readonly kind: 'slow'; readonly delayMs: number }
  /** Sends endless well-formed JSON; `declared` sends its content-length. */
  | { readonly kind: 'huge'; readonly bytes?: number; readonly declared?: boolean }
  /** The same, compressed about 1000:1. */
  | { readonly kind: 'gzipBomb'; readonly bytes?: number }
  | { readonly kind: 'redirect'; readonly location: string; readonly status?: number }
  /** A login page, with 200. */
  | { readonly kind: 'html' }
  /** Half of the correct body, then the connection is closed. */
  | { readonly kind: 'cutOff' }
  | {
      readonly kind: 'respond';
      readonly status?: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string | Uint8Array;
    };

export interface TestIssuerOptions {
  readonly keys?: readonly JWK[];
  /** Key and certificate in PEM: then it speaks HTTPS. */
  readonly tls?: {
    readonly key: string;
    readonly cert: string;
    readonly minVersion?: 'TLSv1' | 'TLSv1.2';
    readonly maxVersion?: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3';
    readonly ciphers?: string;
    /** Demands a client certificate of the authority in `ca`, PEM. */
    readonly requestCert?: boolean;
    readonly ca?: string;
  };
  /** The host name in the URLs instead of 127.0.0.1; only the caller resolves it. */
  readonly host?: string;
  /** Members that override the discovery document, read at each request. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Headers of every good answer, for example cache-control. */
  readonly headers?: Readonly<Record<string, string>>;
  /** False: no ETag, hence no 304. */
  readonly etag?: boolean;
}

export interface IssuerRequest {
  readonly path: IssuerPath | 'other';
  readonly headers: IncomingMessage['headers'];
  /** 0 until the answer has started. */
  readonly status: number;
  /** performance.now() */
  readonly atMs: number;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export interface TestIssuer {
  /** The issuer identifier, the `iss` of its tokens; without a trailing slash. */
  readonly url: string;
  readonly jwksUrl: string;
  readonly discoveryUrl: string;
  readonly port: number;
  /** Every request, or every request for one path. */
  requests(path?: IssuerPath): readonly IssuerRequest[];
  /** The number of open connections. */
  connections(): number;
  /** Rotation: replaces the published keys. */
  publish(keys: readonly JWK[]): void;
  /** Injects a fault, on one path or on both. */
  fault(fault: IssuerFault, path?: IssuerPath): void;
  /** Ends every fault; does not restart a stopped issuer. */
  healthy(): void;
  /** Stops it: closes connections and refuses new ones. */
  stop(): Promise<void>;
  /** Starts it again on the same port. */
  restart(): Promise<void>;
}

const jwksPath = '/.well-known/jwks.json';
const discoveryPath = '/.well-known/openid-configuration';
const paths: ReadonlyMap<string, IssuerPath> = new Map([
  [jwksPath, 'jwks'],
  [discoveryPath, 'discovery'],
]);
const megabyte = 1024 * 1024;

export async function startTestIssuer(options: TestIssuerOptions = {}): Promise<TestIssuer> {
  const { host = '127.0.0.1', headers = {}, etag = true } = options;
  const requests: Mutable<IssuerRequest>[] = [];
  const faults = new Map<IssuerPath, IssuerFault>();
  const sockets = new Set<Socket>();
  const timers = new Set<NodeJS.Timeout>();
  let keys = options.keys ?? [];
  let server: Server;

  const listen = async (port: number): Promise<number> => {
    server = options.tls === undefined ? createServer(answer) : createSecureServer(options.tls, answer);
    server.on('connection', (socket: Socket) => {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket)).on('error', () => undefined);
    });
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const path = paths.get(request.url ?? '') ?? 'other';
    const entry: Mutable<IssuerRequest> = { path, headers: request.headers, status: 0, atMs: performance.now() };
    requests.push(entry);
    response.on('error', () => undefined);
    response.on('finish', () => {
      entry.status = response.statusCode;
    });
    const fault = path === 'other' ? undefined : faults.get(path);
    if (path === 'other') response.writeHead(404).end();
    else if (fault === undefined) good(path, request, response);
    else misbehave(fault, path, request, response);
    entry.status = response.headersSent ? response.statusCode : 0;
  }

  function bodyOf(path: IssuerPath): string {
    if (path === 'jwks') return JSON.stringify({ keys });
    return JSON.stringify({ issuer: url, jwks_uri: url + jwksPath, ...options.metadata });
  }

  function good(path: IssuerPath, request: IncomingMessage, response: ServerResponse): void {
    const body = bodyOf(path);
    const tag = `"${createHash('sha256').update(body).digest('base64url')}"`;
    const tagged = etag ? { ...headers, etag: tag } : headers;
    if (etag && request.headers['if-none-match'] === tag) response.writeHead(304, tagged).end();
    else response.writeHead(200, { 'content-type': 'application/json', ...tagged }).end(body);
  }

  function later(delayMs: number, action: () => void): void {
    const timer = setTimeout(() => {
      timers.delete(timer);
      action();
    }, delayMs);
    timers.add(timer);
  }

  function misbehave(fault: IssuerFault, path: IssuerPath, request: IncomingMessage, response: ServerResponse): void {
    const body = Buffer.from(bodyOf(path));
    const json = { 'content-type': 'application/json' };
    switch (fault.kind) {
      case 'reset':
        request.socket.destroy();
        return;
      case 'hang':
        return;
      case 'hangAfterHeaders':
        response.writeHead(200, { ...json, 'content-length': body.length }).flushHeaders();
        return;
      case 'drip':
        response.writeHead(200, { ...json, 'content-length': body.length });
        drip(response, body, fault.intervalMs ?? 1000);
        return;
      case 'slow':
        later(fault.delayMs, () => good(path, request, response));
        return;
      case 'huge': {
        const bytes = fault.bytes ?? 300 * megabyte;
        response.writeHead(200, fault.declared === true ? { ...json, 'content-length': bytes } : json);
        pour(bytes, response);
        return;
      }
      case 'gzipBomb': {
        response.writeHead(200, { ...json, 'content-encoding': 'gzip' });
        const gzip = createGzip({ level: 9 });
        gzip.pipe(response);
        response.on('close', () => gzip.destroy());
        pour(fault.bytes ?? 30 * megabyte, gzip);
        return;
      }
      case 'redirect':
        response.writeHead(fault.status ?? 302, { ...json, location: fault.location }).end(body);
        return;
      case 'html':
        response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<title>Sign in</title>');
        return;
      case 'cutOff':
        response.writeHead(200, { ...json, 'content-length': body.length });
        response.write(body.subarray(0, body.length / 2), () => request.socket.destroy());
        return;
      case 'respond':
        response.writeHead(fault.status ?? 200, { ...json, ...fault.headers }).end(fault.body ?? body);
        return;
    }
  }

  function drip(response: ServerResponse, body: Buffer, intervalMs: number): void {
    if (body.length === 0) response.end();
    else if (!response.destroyed) {
      response.write(body.subarray(0, 1));
      later(intervalMs, () => drip(response, body.subarray(1), intervalMs));
    }
  }

  const close = async (): Promise<void> => {
    for (const timer of timers) clearTimeout(timer);
    timers.clear();
    const closed = server.listening ? once(server, 'close') : undefined;
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };

  const port = await listen(0);
  const url = `${options.tls === undefined ? 'http' : 'https'}://${host}:${port}`;
  return {
    url,
    jwksUrl: url + jwksPath,
    discoveryUrl: url + discoveryPath,
    port,
    requests: path => (path === undefined ? requests : requests.filter(request => request.path === path)),
    connections: () => sockets.size,
    publish(published) {
      keys = published;
    },
    fault(fault, path) {
      for (const each of path === undefined ? paths.values() : [path]) faults.set(each, fault);
    },
    healthy: () => faults.clear(),
    stop: close,
    async restart() {
      await close();
      await listen(port);
    },
  };
}

/** A body for `respond`, compressed with gzip as many times as given. */
export function gzipped(body: string | Uint8Array, times = 1): Uint8Array {
  return times === 0 ? Buffer.from(body) : gzipped(gzipSync(body), times - 1);
}

const filler = Buffer.alloc(64 * 1024, ' ');

/** Writes a JSON array of that many bytes with backpressure, and ends the stream. */
function pour(bytes: number, stream: Writable): void {
  let rest = bytes - 2;
  stream.write('[');
  const more = (): void => {
    while (rest > 0 && !stream.destroyed) {
      const chunk = filler.subarray(0, Math.min(rest, filler.length));
      rest -= chunk.length;
      if (!stream.write(chunk)) {
        stream.once('drain', more);
        return;
      }
    }
    if (!stream.destroyed) stream.end(']');
  };
  more();
}
