// HTTP clients that send exactly the given bytes and report the answer or how the connection ended.
// No client library: most refuse to send what an attacker would.
import { once } from 'node:events';
import * as http2 from 'node:http2';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { secrets } from './secrets.ts';

export type HeaderField = readonly [name: string, value: string];

export interface HttpAnswer {
  /** 0 if the connection ended without an answer. */
  readonly status: number;
  readonly headers: readonly HeaderField[];
  readonly body: string;
}

/** The values of a header, in order; names are case-insensitive. */
export function headerValues(answer: Pick<HttpAnswer, 'headers'>, name: string): string[] {
  return answer.headers.filter(([key]) => key.toLowerCase() === name.toLowerCase()).map(([, value]) => value);
}

// The upstream echoes the request in its answer; a refusal must contain nothing of the request.
export function showRefusal({ status, headers, body }: HttpAnswer): void {
  if (status >= 400) secrets.show('refusal', `${JSON.stringify(headers)} ${body}`);
}

const noAnswer: HttpAnswer = { status: 0, headers: [], body: '' };
export const answerTimeoutMs = 10_000;

/** Sends the bytes (latin1) on a new connection and reads one HTTP/1.1 answer, past any `100 Continue`. */
export async function exchange(port: number, bytes: string): Promise<HttpAnswer> {
  const socket = connect({ host: '127.0.0.1', port });
  try {
    await once(socket, 'connect');
    socket.write(bytes, 'latin1');
    return await readAnswer(socket, bytes.startsWith('HEAD '));
  } finally {
    socket.destroy();
  }
}

export interface RawConnection {
  /** Sends the bytes (latin1) and reads one HTTP/1.1 answer; one exchange at a time. */
  exchange(bytes: string): Promise<HttpAnswer>;
  close(): void;
}

/** A keep-alive connection, opened again when the server has closed it. */
export function createRawConnection(port: number): RawConnection {
  let socket: Socket | undefined;
  return {
    async exchange(bytes) {
      if (socket === undefined || !socket.writable) {
        socket?.destroy();
        socket = connect({ host: '127.0.0.1', port });
        await once(socket, 'connect');
        socket.on('error', () => undefined);
      }
      socket.write(bytes, 'latin1');
      const answer = await readAnswer(socket, bytes.startsWith('HEAD '));
      if (answer.status === 0 || headerValues(answer, 'connection').includes('close')) socket.destroy();
      return answer;
    },
    close: () => socket?.destroy(),
  };
}

/** The bytes (latin1) of a request with exactly these header lines after `Host`. */
export function requestBytes(method: string, target: string, lines: readonly string[] = [], body = ''): string {
  const isFramed = body === '' || lines.some(line => /^transfer-encoding:/i.test(line));
  const length = isFramed ? [] : [`Content-Length: ${body.length}`];
  return [`${method} ${target} HTTP/1.1`, 'Host: api.test', ...lines, ...length, '', body].join('\r\n');
}

async function readAnswer(socket: Socket, headOnly: boolean): Promise<HttpAnswer> {
  let received = '';
  let ended = false;
  socket.setEncoding('latin1');
  const onTimeout = (): unknown => socket.destroy(new Error(`no answer within ${answerTimeoutMs} ms`));
  socket.setTimeout(answerTimeoutMs, onTimeout);
  const parsed = () => parseAnswer(received, ended, headOnly);
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      const answer = parsed();
      if (answer === undefined) return;
      socket.off('data', onData).off('close', onClose).off('error', onError).setTimeout(0, onTimeout);
      showRefusal(answer);
      resolve(answer);
    };
    const onData = (text: string): void => {
      received += text;
      settle();
    };
    const onClose = (): void => {
      ended = true;
      settle();
    };
    // A server may refuse with a reset; bytes that arrived before it still count.
    const onError = (error: NodeJS.ErrnoException): void => (error.code === 'ECONNRESET' ? undefined : reject(error));
    socket.on('data', onData).on('close', onClose).on('error', onError);
  });
}

function parseAnswer(text: string, ended: boolean, headOnly: boolean): HttpAnswer | undefined {
  const end = text.indexOf('\r\n\r\n');
  if (end === -1) return ended ? noAnswer : undefined;
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n');
  const status = Number(statusLine.split(' ')[1]);
  const rest = text.slice(end + 4);
  if (status === 100) return parseAnswer(rest, ended, headOnly);
  const headers = lines.map((line): HeaderField => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  const answer = { status, headers, body: '' };
  if (headOnly || status === 101 || status === 204 || status === 304) return answer;
  if (headerValues(answer, 'transfer-encoding').includes('chunked')) {
    const body = dechunked(rest);
    return body === undefined && !ended ? undefined : { ...answer, body: utf8(body ?? rest) };
  }
  const length = Number(headerValues(answer, 'content-length')[0] ?? Number.POSITIVE_INFINITY);
  return rest.length < length && !ended ? undefined : { ...answer, body: utf8(rest.slice(0, length)) };
}

function dechunked(text: string): string | undefined {
  let body = '';
  let at = 0;
  for (;;) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd === -1) return undefined;
    const size = Number.parseInt(text.slice(at, lineEnd), 16);
    if (size === 0) return body;
    if (text.length < lineEnd + 4 + size) return undefined;
    body += text.slice(lineEnd + 2, lineEnd + 2 + size);
    at = lineEnd + 4 + size;
  }
}

function utf8(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString('utf8');
}

export interface Http2Request {
  readonly headers: http2.OutgoingHttpHeaders;
  readonly body?: Buffer | string;
  readonly trailers?: http2.OutgoingHttpHeaders;
}

export interface Http2Answer extends HttpAnswer {
  readonly bodyBytes: Buffer;
  readonly trailers: readonly HeaderField[];
}

/** One request over HTTP/2 with prior knowledge, on a new connection. */
export async function http2Exchange(port: number, request: Http2Request): Promise<Http2Answer> {
  const session = http2.connect(`http://127.0.0.1:${port}`);
  try {
    const fields: http2.OutgoingHttpHeaders = { ':authority': 'api.test', ...request.headers };
    const hasBody = request.body !== undefined || request.trailers !== undefined;
    const stream = session.request(fields, { endStream: !hasBody, waitForTrailers: request.trailers !== undefined });
    stream.on('wantTrailers', () => stream.sendTrailers(request.trailers ?? {}));
    let headers: HeaderField[] = [];
    let trailers: HeaderField[] = [];
    stream.on('response', (_: unknown, __: unknown, raw: unknown) => (headers = pairs(raw)));
    stream.on('trailers', (_: unknown, __: unknown, raw: unknown) => (trailers = pairs(raw)));
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    // A refusal may close the connection in any way that HTTP/2 allows; that is an answer too.
    const over = Promise.race([once(stream, 'close'), once(session, 'error')]).catch(() => undefined);
    session.on('error', () => undefined);
    if (hasBody) stream.end(request.body ?? '');
    await Promise.race([over, timeout()]);
    const status = Number(headers.find(([name]) => name === ':status')?.[1] ?? 0);
    const bodyBytes = Buffer.concat(chunks);
    showRefusal({ status, headers, body: bodyBytes.toString('utf8') });
    return { status, headers, body: bodyBytes.toString('utf8'), bodyBytes, trailers };
  } finally {
    session.destroy();
  }
}

async function timeout(): Promise<never> {
  await delay(answerTimeoutMs, undefined, { ref: false });
  throw new Error(`no answer within ${answerTimeoutMs} ms`);
}

// Node's alternating list of names and values keeps repeated names, which an object would merge.
function pairs(raw: unknown): HeaderField[] {
  const list = Array.isArray(raw) ? raw.map(String) : [];
  const fields: HeaderField[] = [];
  for (let i = 0; i + 1 < list.length; i += 2) fields.push([list[i] ?? '', list[i + 1] ?? '']);
  return fields;
}
