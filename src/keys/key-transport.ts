// One JSON document over HTTP, for key sets and discovery: bounded in size, TLS always verified, no redirects, JSON types only.
// Nothing here throws: what went wrong is a stable word, translated from error codes in one place.
import type { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import * as tls from 'node:tls';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { Agent, type Dispatcher, EnvHttpProxyAgent, errors } from 'undici';
import { isLoopbackUrl } from '../address/key-url.ts';
import { maxKeySetBytes } from './jwks.ts';
import { type Anchors, anchorsOf, type CaFile, createCaFileReader, rootsInForce } from './key-trust.ts';

/** Proxies as the usual environment variables name them; whoever reads the environment passes them in. */
export interface ProxySettings {
  readonly httpProxy?: string | undefined;
  readonly httpsProxy?: string | undefined;
  readonly noProxy?: string | undefined;
}

export interface KeyTransportSettings {
  readonly caFile: string | undefined;
  readonly proxy: ProxySettings;
  readonly timeoutMs: number;
}

export interface TransportProblem {
  readonly kind: 'problem';
  readonly problem: string;
}

export type KeyDocument =
  | { readonly kind: 'body'; readonly bytes: Uint8Array; readonly etag: string | undefined }
  | { readonly kind: 'notModified' }
  | TransportProblem;

export type GetDocument = (url: string, etag?: string) => Promise<KeyDocument>;

/** Who vouches for all that was got so far. */
export type GetAnchors = () => Promise<Anchors>;

export interface KeyTransport {
  /** Runs `work` on connections of its own, which are closed when it is done or the signal aborts. Never rejects. */
  use<Result>(
    signal: AbortSignal,
    work: (get: GetDocument, anchors: GetAnchors) => Promise<Result>,
  ): Promise<Result | TransportProblem>;
}

export type CreateKeyTransport = (settings: KeyTransportSettings) => KeyTransport;

interface TlsOptions {
  readonly rejectUnauthorized: true;
  readonly minVersion: 'TLSv1.2';
  readonly timeout: number;
  readonly secureContext?: tls.SecureContext;
  readonly checkServerIdentity?: typeof tls.checkServerIdentity;
}

const maxEtagLength = 256;

/** In this thread; createKeyThread gives one that works in another. */
export function createKeyTransport(settings: KeyTransportSettings): KeyTransport {
  const readTrust = createTrust(settings.caFile);
  return {
    async use(signal, work) {
      let dispatchers: Dispatchers | undefined;
      try {
        const trust = await readTrust();
        if (trust.kind === 'problem') return trust;
        const shown: tls.DetailedPeerCertificate[] = [];
        dispatchers = openDispatchers(settings, trust.secureContext, certificate => shown.push(certificate));
        const { dispatcherFor } = dispatchers;
        return await work(
          (url, etag) => getDocument(url, etag, signal, dispatcherFor(url), settings.timeoutMs),
          () => anchorsOf(trust.file, shown),
        );
      } catch (error) {
        return { kind: 'problem', problem: networkProblem(error) };
      } finally {
        dispatchers?.close();
      }
    },
  };
}

interface Dispatchers {
  readonly dispatcherFor: (url: string) => Dispatcher;
  close(): void;
}

function openDispatchers(
  settings: KeyTransportSettings,
  secureContext: tls.SecureContext | undefined,
  onVerified: (certificate: tls.DetailedPeerCertificate) => void,
): Dispatchers {
  const { proxy, timeoutMs } = settings;
  const toProxy: TlsOptions = {
    // Said outright: NODE_TLS_REJECT_UNAUTHORIZED must not be able to turn it off.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    timeout: timeoutMs,
    ...(secureContext === undefined ? {} : { secureContext }),
  };
  const options: TlsOptions = {
    ...toProxy,
    // Called once the chain is verified, with all of it.
    checkServerIdentity(host, certificate) {
      if (isDetailed(certificate)) onVerified(certificate);
      return tls.checkServerIdentity(host, certificate);
    },
  };
  const timeouts = { headersTimeout: timeoutMs, bodyTimeout: timeoutMs };
  const direct = new Agent({ connect: options, ...timeouts });
  const { httpsProxy } = proxy;
  const proxied =
    httpsProxy === undefined || httpsProxy === ''
      ? direct
      : new EnvHttpProxyAgent({
          // Empty strings where nothing is set: for undefined undici would read the environment itself.
          httpProxy: '',
          httpsProxy,
          noProxy: proxy.noProxy ?? '',
          connect: options,
          requestTls: options,
          proxyTls: toProxy,
          ...timeouts,
        });
  return {
    // Plain http goes to loopback only (product.md section 3), and loopback is never behind a proxy.
    dispatcherFor: url => (isLoopbackUrl(url) ? direct : proxied),
    close() {
      for (const dispatcher of new Set([direct, proxied])) dispatcher.destroy().catch(() => undefined);
    },
  };
}

function isDetailed(certificate: tls.PeerCertificate): certificate is tls.DetailedPeerCertificate {
  return 'issuerCertificate' in certificate;
}

async function getDocument(
  url: string,
  etag: string | undefined,
  signal: AbortSignal,
  dispatcher: Dispatcher,
  timeoutMs: number,
): Promise<KeyDocument> {
  try {
    const { origin, pathname, search } = new URL(url);
    const response = await dispatcher.request({
      ...{ origin, path: `${pathname}${search}`, method: 'GET', signal },
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      headers: {
        accept: 'application/json, application/jwk-set+json',
        'accept-encoding': 'identity',
        'user-agent': 'account-authz',
        ...(etag === undefined ? {} : { 'if-none-match': etag }),
      },
    });
    // A body that is not read to its end reports that as an error, which nobody waits for.
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

// Some servers compress whatever is asked for. One coding at most, never a chain of them (CVE-2026-22036).
const decoders: ReadonlyMap<string, () => Transform> = new Map([
  ['gzip', () => createGunzip()],
  ['x-gzip', () => createGunzip()],
  ['deflate', () => createInflate()],
  ['br', () => createBrotliDecompress()],
]);

function isKnownEncoding(encoding: string | string[] | undefined): boolean {
  return encoding === undefined || encoding === 'identity' || (typeof encoding === 'string' && decoders.has(encoding));
}

/** Bounded as it comes and as it is decoded, and given up at the first byte too many. */
async function readBody({ body, headers }: Dispatcher.ResponseData): Promise<Uint8Array> {
  const decoder = decoders.get(String(headers['content-encoding']))?.();
  if (decoder === undefined) return collect(bounded(body));
  // What goes wrong on the way into the decoder comes out of it too, there it is awaited.
  pipeline(bounded(body), decoder).catch(() => undefined);
  return collect(bounded(decoder));
}

// Into one buffer: half a million chunks of one byte would take a hundred times their size.
async function collect(source: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const buffer = Buffer.alloc(maxKeySetBytes);
  let size = 0;
  for await (const chunk of source) {
    buffer.set(chunk, size);
    size += chunk.length;
  }
  return buffer.subarray(0, size);
}

async function* bounded(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const chunk of source) {
    size += chunk.length;
    if (size > maxKeySetBytes) throw Object.assign(new Error('body too large'), { code: 'ERR_BUFFER_TOO_LARGE' });
    yield chunk;
  }
}

function etagOf({ etag }: Headers): string | undefined {
  return typeof etag === 'string' && etag.length <= maxEtagLength && /^(?:W\/)?"[!#-~]*"$/.test(etag)
    ? etag
    : undefined;
}

type Trust =
  | { readonly kind: 'trust'; readonly file: CaFile | undefined; readonly secureContext: tls.SecureContext | undefined }
  | TransportProblem;

/** The roots in force plus those of the file. */
function createTrust(caFile: string | undefined): () => Promise<Trust> {
  const read = createCaFileReader(caFile);
  let last: { readonly file: CaFile; readonly secureContext: tls.SecureContext } | undefined;
  return async () => {
    const file = await read();
    if (file === undefined) return { kind: 'trust', file, secureContext: undefined };
    if (file.kind === 'problem') return file;
    if (last?.file !== file) {
      const ca = [...rootsInForce(), file.pem];
      last = { file, secureContext: tls.createSecureContext({ ca, minVersion: 'TLSv1.2' }) };
    }
    return { kind: 'trust', ...last };
  };
}

const problemsByCode: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'connection refused'],
  ['ECONNRESET', 'connection closed'],
  ['EPIPE', 'connection closed'],
  ['UND_ERR_SOCKET', 'connection closed'],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'connection closed'],
  ['ENOTFOUND', 'name not found'],
  ['EAI_AGAIN', 'name lookup failed'],
  ['EHOSTUNREACH', 'network unreachable'],
  ['ENETUNREACH', 'network unreachable'],
  ['ETIMEDOUT', 'timed out'],
  ['UND_ERR_CONNECT_TIMEOUT', 'timed out'],
  ['UND_ERR_HEADERS_TIMEOUT', 'timed out'],
  ['UND_ERR_BODY_TIMEOUT', 'timed out'],
  ['UND_ERR_HEADERS_OVERFLOW', 'headers too large'],
  ['UND_ERR_ABORTED', 'proxy refused'],
  ['UND_ERR_PRX_TLS', 'proxy refused'],
  ['ERR_INVALID_URL', 'proxy URL'],
  ['ERR_BUFFER_TOO_LARGE', 'body too large'],
  ['CERT_HAS_EXPIRED', 'tls: certificate expired'],
  ['CERT_NOT_YET_VALID', 'tls: certificate not yet valid'],
  ['CERT_REVOKED', 'tls: certificate revoked'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls: self-signed certificate'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'tls: unknown certificate authority'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls: unknown certificate authority'],
  ['UNABLE_TO_GET_ISSUER_CERT', 'tls: unknown certificate authority'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'tls: unknown certificate authority'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls: certificate for another name'],
  ['ERR_SSL_UNSUPPORTED_PROTOCOL', 'tls: protocol version'],
  ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'tls: protocol version'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls: not TLS'],
  ['ERR_SSL_PACKET_LENGTH_TOO_LONG', 'tls: not TLS'],
]);

const problemsByPrefix: readonly (readonly [string, string])[] = [
  ['ERR_SSL_', 'tls: handshake failed'],
  ['ERR_TLS_', 'tls: handshake failed'],
  ['EPROTO', 'tls: handshake failed'],
  ['CERT_', 'tls: certificate refused'],
  ['INVALID_', 'tls: certificate refused'],
  ['UNABLE_TO_', 'tls: certificate refused'],
  ['PATH_LENGTH_', 'tls: certificate refused'],
  ['HPE_', 'not HTTP'],
  ['Z_', 'content encoding'],
  ['ERR_BROTLI_', 'content encoding'],
  ['ERR__ERROR_FORMAT_', 'content encoding'],
  ['ERR_PADDING_', 'content encoding'],
];

/** The stable word for an error of undici, TLS, DNS, sockets or zlib: by its code, never by its message. */
export function networkProblem(error: unknown): string {
  // The one error of undici whose code is not always set.
  if (error instanceof errors.HTTPParserError) return 'not HTTP';
  const code = codeOf(error);
  if (code === undefined) return 'network error';
  const problem = problemsByCode.get(code) ?? problemsByPrefix.find(([prefix]) => code.startsWith(prefix))?.[1];
  return problem ?? `network error ${code}`;
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  const { code } = error;
  return typeof code === 'string' && /^[A-Z0-9_]{1,64}$/.test(code) ? code : undefined;
}
