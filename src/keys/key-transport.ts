// Gets one JSON document over HTTP, for key sets and discovery: bounded in size, TLS always verified, no redirects, JSON types only.
// Never throws: a problem is a stable word, see network-problem.ts.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { TLSSocket } from 'node:tls';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { request } from '../http/node-http.ts';
import { type Problem, problem } from '../text/problem.ts';
import { maxKeySetBytes } from './jwks.ts';
import { type KeyConnectionFiles, loadKeyConnection } from './key-connection.ts';
import { openKeySocket, type ProxySettings } from './key-socket.ts';
import { networkProblem } from './network-problem.ts';

export interface KeyRequest extends KeyConnectionFiles {
  readonly url: string;
  /** Undefined: an answer 304 is a problem. */
  readonly etag?: string | undefined;
  readonly proxy: ProxySettings;
}

export type KeyDocument =
  | { readonly kind: 'body'; readonly bytes: Uint8Array; readonly etag: string | undefined }
  | { readonly kind: 'notModified' }
  | Problem;

/** Gets the document over a connection of its own, which the signal ends. Never rejects. */
export type GetKeyDocument = (request: KeyRequest, signal: AbortSignal) => Promise<KeyDocument>;

const maxEtagLength = 256;
const usualKeySetBytes = 16 * 1024;
// With TLS 1.3 this is all that a client learns where its certificate is missing or refused: for it the handshake is over.
const closed = 'connection closed';

/** Works in this thread; that of createKeyThread works in a worker thread. */
export async function getKeyDocument(request: KeyRequest, signal: AbortSignal): Promise<KeyDocument> {
  const { etag, proxy } = request;
  let socket: Socket | undefined;
  let wasAskedForCertificate = false;
  try {
    const connection = await loadKeyConnection(request);
    if (connection.kind === 'problem') return connection;
    const url = new URL(request.url);
    socket = await openKeySocket(url, connection, proxy, signal);
    // The signature algorithms of the CertificateRequest (RFC 8446 section 4.3.2).
    wasAskedForCertificate = socket instanceof TLSSocket && socket.getSharedSigalgs().length > 0;
    const response = await responseOver(socket, url, etag, signal);
    const unusable = responseProblem(response, etag);
    if (unusable !== undefined) return problem(unusable);
    if (response.statusCode === 304) return { kind: 'notModified' };
    return { kind: 'body', bytes: await readBody(response), etag: etagOf(response.headers) };
  } catch (error) {
    const reason = networkProblem(error);
    const isAboutCertificate = reason === closed && wasAskedForCertificate;
    return problem(isAboutCertificate ? `${closed}, client certificate asked for` : reason);
  } finally {
    socket?.destroy();
  }
}

/** Node bounds the header: 16 KiB. */
function responseOver(
  socket: Socket,
  { host, pathname, search }: URL,
  etag: string | undefined,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request({
      ...{ createConnection: () => socket, path: `${pathname}${search}`, signal },
      headers: {
        host,
        accept: 'application/json, application/jwk-set+json',
        'accept-encoding': 'identity',
        'user-agent': 'account-authz',
        connection: 'close',
        ...(etag === undefined ? {} : { 'if-none-match': etag }),
      },
    })
      .once('response', response => {
        // A body that is not read to its end emits an error.
        response.on('error', () => undefined);
        resolve(response);
      })
      .on('error', reject)
      .end();
  });
}

function responseProblem(response: IncomingMessage, etag: string | undefined): string | undefined {
  const { statusCode = 0, headers } = response;
  if (statusCode === 304 && etag !== undefined) return undefined;
  if (statusCode >= 300 && statusCode < 400 && statusCode !== 304) return 'redirect refused';
  if (statusCode !== 200) return `status ${statusCode}`;
  if (!isJsonType(headers['content-type'])) return 'content type';
  return isKnownEncoding(headers['content-encoding']) ? undefined : 'content encoding';
}

function isJsonType(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/(?:[\w.-]+\+)?json[ \t]*(?:;|$)/i.test(contentType);
}

// Some servers compress despite `identity`. At most one coding, never a chain (CVE-2026-22036).
const decoders: ReadonlyMap<string, () => Transform> = new Map([
  ['gzip', () => createGunzip()],
  ['x-gzip', () => createGunzip()],
  ['deflate', () => createInflate()],
  ['br', () => createBrotliDecompress()],
]);

function isKnownEncoding(encoding: string | undefined): boolean {
  return encoding === undefined || encoding === 'identity' || decoders.has(encoding);
}

/** Bounds the body as it comes and, in `collect`, its decoded size. */
async function readBody(response: IncomingMessage): Promise<Uint8Array> {
  const decoder = decoders.get(String(response.headers['content-encoding']))?.();
  if (decoder === undefined) return collect(response);
  // The decoder passes the error of its input on, and `collect` throws it.
  pipeline(bounded(response), decoder).catch(() => undefined);
  return collect(decoder);
}

async function* bounded(source: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  let size = 0;
  for await (const chunk of source) {
    size += chunk.length;
    if (size > maxKeySetBytes) throw bodyTooLarge();
    yield chunk;
  }
}

function bodyTooLarge(): Error {
  return Object.assign(new Error('body too large'), { code: 'ERR_BUFFER_TOO_LARGE' });
}

// Into one buffer that grows: a list of half a million chunks of one byte takes a hundred times their size.
async function collect(source: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  let buffer = Buffer.alloc(usualKeySetBytes);
  let size = 0;
  for await (const chunk of source) {
    const end = size + chunk.length;
    if (end > maxKeySetBytes) throw bodyTooLarge();
    if (end > buffer.length)
      buffer = Buffer.concat([buffer], Math.min(Math.max(end, 2 * buffer.length), maxKeySetBytes));
    buffer.set(chunk, size);
    size = end;
  }
  return buffer.subarray(0, size);
}

function etagOf({ etag }: IncomingHttpHeaders): string | undefined {
  return etag !== undefined && etag.length <= maxEtagLength && /^(?:W\/)?"[!#-~]*"$/.test(etag) ? etag : undefined;
}
