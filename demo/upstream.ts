// The protected service of the demo: answers every request with what it was given, in HTTP/1.1 and in HTTP/2 without TLS.
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttp2Server, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import { type AddressInfo, createServer, type Socket } from 'node:net';

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly httpVersion: string;
  /** Every line by itself: one name may stand here more than once. */
  readonly headers: readonly (readonly [name: string, value: string])[];
}

export interface Upstream {
  readonly port: number;
  /** What has come so far, in the order of arrival; the last ones, where only those are remembered. */
  readonly requests: readonly SeenRequest[];
  /** How many have come so far. */
  readonly count: number;
  stop(): Promise<void>;
}

export interface UpstreamOptions {
  /** 127.0.0.1 if not given. */
  readonly host?: string;
  /** 0, the default, takes a free one. */
  readonly port?: number;
  /** How many requests are remembered; all if not given. */
  readonly remembered?: number;
}

/** Rejects when the port is taken. */
export async function startUpstream(options: UpstreamOptions = {}): Promise<Upstream> {
  const { host = '127.0.0.1', remembered = Number.POSITIVE_INFINITY } = options;
  const requests: SeenRequest[] = [];
  let count = 0;
  const see = (seen: SeenRequest): void => {
    count += 1;
    requests.push(seen);
    if (requests.length > remembered) requests.shift();
  };
  const http1 = createHttpServer((request, response) => answer(see, request, response));
  const http2 = createHttp2Server((request, response) => answer(see, request, response));
  const sockets = new Set<Socket>();
  const server = createServer(socket => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    socket.once('data', chunk => {
      // The preface of HTTP/2 (RFC 9113 section 3.4) begins with a method that HTTP/1.1 does not have.
      const chosen = chunk.toString('latin1', 0, 4) === 'PRI ' ? http2 : http1;
      // Back into the socket for the chosen one, which takes over before anything flows again.
      socket.pause();
      socket.unshift(chunk);
      chosen.emit('connection', socket);
      process.nextTick(() => socket.resume());
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    requests,
    get count() {
      return count;
    },
    async stop() {
      const closed = new Promise<void>(resolve => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function answer(
  see: (seen: SeenRequest) => void,
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
): void {
  const { rawHeaders } = request;
  const seen: SeenRequest = {
    method: request.method ?? '',
    path: request.url ?? '',
    httpVersion: request.httpVersion,
    headers: rawHeaders.flatMap((name, index) =>
      index % 2 === 0 ? [[name.toLowerCase(), rawHeaders[index + 1] ?? '']] : [],
    ),
  };
  see(seen);
  request.resume();
  response.statusCode = 200;
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(seen));
}
