// Gets one JSON document over HTTP, for key sets and discovery: bounded in size, TLS always verified, no redirects, JSON types only.
// Never throws: a problem is a stable word, see network-problem.ts.
import type { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import * as tls from 'node:tls';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { Agent, buildConnector, type Dispatcher, EnvHttpProxyAgent } from 'undici';
import { isLoopbackUrl } from '../text/key-url.ts';
import type { Problem } from '../text/problem.ts';
import { maxKeySetBytes } from './jwks.ts';
import { type KeyConnection, type KeyConnectionFiles, loadKeyConnection } from './key-connection.ts';
import { networkProblem } from './network-problem.ts';

/** From the usual environment variables, which the caller reads. Plain http goes to loopback only, so there is no HTTP_PROXY. */
export interface ProxySettings {
  readonly httpsProxy?: string | undefined;
  readonly noProxy?: string | undefined;
}

export interface KeyTransportSettings extends KeyConnectionFiles {
  readonly proxy: ProxySettings;
  readonly timeoutMs: number;
}

export type KeyDocument =
  | { readonly kind: 'body'; readonly bytes: Uint8Array; readonly etag: string | undefined }
  | { readonly kind: 'notModified' }
  | Problem;

export type GetDocument = (url: string, etag?: string) => Promise<KeyDocument>;

export interface KeyTransport {
  /** Runs `work` with its own connections, and closes them at its end or when the signal aborts. Never rejects. */
  use<Result>(signal: AbortSignal, work: (get: GetDocument) => Promise<Result>): Promise<Result | Problem>;
}

export type CreateKeyTransport = (settings: KeyTransportSettings) => KeyTransport;

const maxEtagLength = 256;
const usualKeySetBytes = 16 * 1024;

/** Works in this thread. The transport of createKeyThread works in a worker thread. */
export function createKeyTransport(settings: KeyTransportSettings): KeyTransport {
  return {
    async use(signal, work) {
      let dispatchers: Dispatchers | undefined;
      try {
        const connection = await loadKeyConnection(settings);
        if (connection.kind === 'problem') return connection;
        dispatchers = openDispatchers(settings, connection);
        const { dispatcherFor, wasAskedForCertificate } = dispatchers;
        return await work(async (url, etag) => {
          const document = await getDocument(url, etag, signal, dispatcherFor(url));
          return document.kind === 'problem' && document.problem === closed && wasAskedForCertificate()
            ? { kind: 'problem', problem: `${closed}, client certificate asked for` }
            : document;
        });
      } catch (error) {
        return { kind: 'problem', problem: networkProblem(error) };
      } finally {
        dispatchers?.close();
      }
    },
  };
}

// With TLS 1.3 this is all that a client learns where its certificate is missing or refused: for it the handshake is over.
const closed = 'connection closed';

interface Dispatchers {
  readonly dispatcherFor: (url: string) => Dispatcher;
  /** By the server of the last connection. */
  readonly wasAskedForCertificate: () => boolean;
  close(): void;
}

function openDispatchers(settings: KeyTransportSettings, { secureContext, proxyContext }: KeyConnection): Dispatchers {
  const { proxy, timeoutMs } = settings;
  const tlsOptions = (context: tls.SecureContext | undefined) => ({
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot turn it off.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2' as const,
    timeout: timeoutMs,
    ...(context === undefined ? {} : { secureContext: context }),
  });
  const options = tlsOptions(secureContext);
  const open = buildConnector(options);
  let wasAskedForCertificate = false;
  const connect: buildConnector.connector = (target, callback) =>
    open(target, (...result) => {
      const [, socket] = result;
      // The signature algorithms of the CertificateRequest (RFC 8446 section 4.3.2).
      wasAskedForCertificate = socket instanceof tls.TLSSocket && socket.getSharedSigalgs().length > 0;
      callback(...result);
    });
  const limits = { headersTimeout: timeoutMs, bodyTimeout: timeoutMs, maxResponseSize: maxKeySetBytes };
  const direct = new Agent({ connect, ...limits });
  const { httpsProxy } = proxy;
  const proxied =
    httpsProxy === undefined || httpsProxy === ''
      ? direct
      : new EnvHttpProxyAgent({
          // Empty strings: for undefined, undici reads the environment.
          httpProxy: '',
          httpsProxy,
          noProxy: proxy.noProxy ?? '',
          connect,
          requestTls: options,
          proxyTls: tlsOptions(proxyContext()),
          ...limits,
        });
  return {
    // Plain http is allowed for loopback only (docs/keys.md), and loopback is never behind a proxy.
    dispatcherFor: url => (isLoopbackUrl(url) ? direct : proxied),
    wasAskedForCertificate: () => wasAskedForCertificate,
    close() {
      for (const dispatcher of new Set([direct, proxied])) dispatcher.destroy().catch(() => undefined);
    },
  };
}

async function getDocument(
  url: string,
  etag: string | undefined,
  signal: AbortSignal,
  dispatcher: Dispatcher,
): Promise<KeyDocument> {
  try {
    const { origin, pathname, search } = new URL(url);
    const response = await dispatcher.request({
      ...{ origin, path: `${pathname}${search}`, method: 'GET', signal },
      headers: {
        accept: 'application/json, application/jwk-set+json',
        'accept-encoding': 'identity',
        'user-agent': 'account-authz',
        ...(etag === undefined ? {} : { 'if-none-match': etag }),
      },
    });
    // A body that is not read to its end emits an error.
    response.body.on('error', () => undefined);
    const problem = responseProblem(response, etag);
    if (problem !== undefined) return { kind: 'problem', problem };
    if (response.statusCode === 304) return { kind: 'notModified' };
    return { kind: 'body', bytes: await readBody(response), etag: etagOf(response.headers) };
  } catch (error) {
    return { kind: 'problem', problem: networkProblem(error) };
  }
}

type Headers = Dispatcher.ResponseData['headers'];

function responseProblem(response: Dispatcher.ResponseData, etag: string | undefined): string | undefined {
  const { statusCode, headers } = response;
  if (statusCode === 304 && etag !== undefined) return undefined;
  if (statusCode >= 300 && statusCode < 400 && statusCode !== 304) return 'redirect refused';
  if (statusCode !== 200) return `status ${statusCode}`;
  if (!isJsonType(headers['content-type'])) return 'content type';
  return isKnownEncoding(headers['content-encoding']) ? undefined : 'content encoding';
}

function isJsonType(contentType: string | string[] | undefined): boolean {
  return typeof contentType === 'string' && /^application\/(?:[\w.-]+\+)?json[ \t]*(?:;|$)/i.test(contentType);
}

// Some servers compress despite `identity`. At most one coding, never a chain (CVE-2026-22036).
const decoders: ReadonlyMap<string, () => Transform> = new Map([
  ['gzip', () => createGunzip()],
  ['x-gzip', () => createGunzip()],
  ['deflate', () => createInflate()],
  ['br', () => createBrotliDecompress()],
]);

function isKnownEncoding(encoding: string | string[] | undefined): boolean {
  return encoding === undefined || encoding === 'identity' || (typeof encoding === 'string' && decoders.has(encoding));
}

/** undici bounds the size of the body as it comes, `collect` its decoded size. */
async function readBody({ body, headers }: Dispatcher.ResponseData): Promise<Uint8Array> {
  const decoder = decoders.get(String(headers['content-encoding']))?.();
  if (decoder === undefined) return collect(body);
  // The decoder passes the error of its input on, and `collect` throws it.
  pipeline(body, decoder).catch(() => undefined);
  return collect(decoder);
}

// Into one buffer that grows: a list of half a million chunks of one byte takes a hundred times their size.
async function collect(source: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  let buffer = Buffer.alloc(usualKeySetBytes);
  let size = 0;
  for await (const chunk of source) {
    const end = size + chunk.length;
    if (end > maxKeySetBytes) throw Object.assign(new Error('body too large'), { code: 'ERR_BUFFER_TOO_LARGE' });
    if (end > buffer.length)
      buffer = Buffer.concat([buffer], Math.min(Math.max(end, 2 * buffer.length), maxKeySetBytes));
    buffer.set(chunk, size);
    size = end;
  }
  return buffer.subarray(0, size);
}

function etagOf({ etag }: Headers): string | undefined {
  return typeof etag === 'string' && etag.length <= maxEtagLength && /^(?:W\/)?"[!#-~]*"$/.test(etag)
    ? etag
    : undefined;
}
