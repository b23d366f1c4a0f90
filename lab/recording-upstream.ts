// The upstream behind Envoy: records every request byte for byte and echoes it as JSON.
// One port serves HTTP/1.1 and HTTP/2, by the connection preface; it answers a gRPC call with a message and accepts a websocket.
import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttp2Server, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { HeaderField } from './raw-http.ts';

export interface RecordedRequest {
  readonly httpVersion: '1.1' | '2.0';
  readonly method: string;
  readonly path: string;
  /** Every header line in order, names and bytes (latin1) as received; for HTTP/2 without the pseudo headers. */
  readonly headers: readonly HeaderField[];
  readonly trailers: readonly HeaderField[];
  /** One character per byte (latin1). */
  readonly body: string;
}

export interface RecordingUpstream {
  readonly port: number;
  /** In the order in which they completed. */
  readonly requests: readonly RecordedRequest[];
  /** Deletes the recorded requests. */
  clear(): void;
  stop(): Promise<void>;
}

const http2Preface = 'PRI * HTTP/2.0\r\n';

/** Unreferenced: does not keep the process alive. */
export async function startRecordingUpstream(port = 0): Promise<RecordingUpstream> {
  const requests: RecordedRequest[] = [];
  const sockets = new Set<Socket>();

  // It ends no idle connection: on a busy machine Envoy would send a request on one that is just being ended.
  const http1 = createHttpServer(
    { insecureHTTPParser: true, keepAliveTimeout: 0, maxHeaderSize: 1 << 20 },
    (request, response) => {
      void answerHttp1(request, response, requests);
    },
  );
  http1.on('upgrade', (request: IncomingMessage, socket: Socket) => {
    requests.push(recordedHttp1(request, ''));
    socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  });
  const http2 = createHttp2Server();
  http2.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _: number, raw: unknown) =>
    answerHttp2(stream, headers, raw, requests),
  );
  http2.on('sessionError', () => undefined);

  const server = createServer(socket => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
    socket.once('data', first => {
      socket.pause();
      socket.unshift(first);
      const server = first.toString('latin1').startsWith(http2Preface) ? http2 : http1;
      server.emit('connection', socket);
      process.nextTick(() => socket.resume());
    });
  });
  await once(server.listen(port, '127.0.0.1'), 'listening');
  server.unref();
  return {
    port: (server.address() as AddressInfo).port,
    requests,
    clear: () => requests.splice(0),
    stop: () =>
      new Promise(resolve => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

async function answerHttp1(
  request: IncomingMessage,
  response: ServerResponse,
  requests: RecordedRequest[],
): Promise<void> {
  try {
    let body = '';
    for await (const chunk of request.setEncoding('latin1')) body += chunk;
    const recorded = recordedHttp1(request, body);
    requests.push(recorded);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(recorded));
  } catch {
    // The client aborted the request, so there is nothing complete to record.
    response.destroy();
  }
}

function recordedHttp1(request: IncomingMessage, body: string): RecordedRequest {
  return {
    httpVersion: '1.1',
    method: request.method ?? '',
    path: request.url ?? '',
    headers: pairs(request.rawHeaders),
    trailers: pairs(request.rawTrailers),
    body,
  };
}

function answerHttp2(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  raw: unknown,
  requests: RecordedRequest[],
): void {
  const chunks: Buffer[] = [];
  let trailers: HeaderField[] = [];
  stream.on('error', () => undefined);
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.on('trailers', (_: unknown, __: unknown, rawTrailers: unknown) => (trailers = pairs(rawTrailers)));
  stream.on('end', () => {
    const recorded: RecordedRequest = {
      httpVersion: '2.0',
      method: String(headers[':method']),
      path: String(headers[':path']),
      headers: pairs(raw).filter(([name]) => !name.startsWith(':')),
      trailers,
      body: Buffer.concat(chunks).toString('latin1'),
    };
    requests.push(recorded);
    // Envoy reset the stream, for example because of trailers that it refuses: record the request, send no answer.
    if (stream.destroyed || stream.closed) return;
    const json = Buffer.from(JSON.stringify(recorded));
    if (String(headers['content-type']).startsWith('application/grpc')) answerGrpc(stream, json);
    else {
      stream.respond({ ':status': 200, 'content-type': 'application/json' });
      stream.end(json);
    }
  });
}

function answerGrpc(stream: ServerHttp2Stream, message: Buffer): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  stream.end(Buffer.concat([prefix, message]));
}

// Node's alternating list of names and values keeps repetitions and order.
function pairs(raw: unknown): HeaderField[] {
  const list = Array.isArray(raw) ? raw.map(String) : [];
  const fields: HeaderField[] = [];
  for (let i = 0; i + 1 < list.length; i += 2) fields.push([list[i] ?? '', list[i + 1] ?? '']);
  return fields;
}
