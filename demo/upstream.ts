// The protected service of the demo: echoes every request as JSON, over HTTP/1.1 and over HTTP/2 without TLS.
import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttp2Server, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import { type AddressInfo, createServer, type Socket } from 'node:net';

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly httpVersion: string;
  /** One entry per header line: a name may occur more than once. */
  readonly headers: readonly (readonly [name: string, value: string])[];
}

export interface Upstream {
  readonly port: number;
  /** The last 1,000 requests, in the order of arrival. */
  readonly requests: readonly SeenRequest[];
  /** The number of requests so far. */
  readonly count: number;
  stop(): Promise<void>;
}

export interface UpstreamOptions {
  /** Default: 127.0.0.1. */
  readonly host?: string;
  /** Default: a free one. */
  readonly port?: number;
}

/** Rejects if the port is in use. */
export async function startUpstream(options: UpstreamOptions = {}): Promise<Upstream> {
  const { host = '127.0.0.1' } = options;
  const requests: SeenRequest[] = [];
  let count = 0;
  const record = (seen: SeenRequest): void => {
    count += 1;
    requests.push(seen);
    if (requests.length > 1000) requests.shift();
  };
  const http1 = createHttpServer((request, response) => echo(record, request, response));
  const http2 = createHttp2Server((request, response) => echo(record, request, response));
  const sockets = new Set<Socket>();
  const server = createServer(socket => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    socket.once('data', chunk => {
      // The preface of HTTP/2 (RFC 9113 section 3.4) begins with a method that HTTP/1.1 does not have.
      const chosen = chunk.toString('latin1', 0, 4) === 'PRI ' ? http2 : http1;
      // The chosen server reads the bytes again; the socket is paused until it does.
      socket.pause();
      socket.unshift(chunk);
      chosen.emit('connection', socket);
      process.nextTick(() => socket.resume());
    });
  });
  await once(server.listen(options.port ?? 0, host), 'listening');
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

function echo(
  record: (seen: SeenRequest) => void,
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
  record(seen);
  request.resume();
  response.statusCode = 200;
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(seen));
}
