// Fetches one document over HTTP: from whichever address of the host answers, through a proxy where one is set, TLS always verified,
// bounded in size, and without following redirects. Never throws: a problem is a few stable words, see network-problem.ts.
import { hash } from 'node:crypto';
import { promises as dns } from 'node:dns';
import type { IncomingMessage, RequestOptions } from 'node:http';
import { connect, isIP, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import * as tls from 'node:tls';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, type ZlibOptions } from 'node:zlib';
import { loadRegularFile } from '../files/bounded-file.ts';
import { noCertificate, parseCertificates } from '../files/certificates.ts';
import { loadTlsFiles, type TlsMaterial } from '../files/tls-files.ts';
import { type Problem, problem } from '../text/problem.ts';
import { hostOf, portOf } from '../text/url.ts';
import { FetchProblem, networkProblem } from './network-problem.ts';
import { finalAnswer, request as httpRequest } from './node-http.ts';
import { type ProxySettings, proxyFor } from './proxy.ts';

/** Read for each fetch, so that replaced files take effect. */
export interface FetchFiles {
  /** Trusted besides the roots in force. */
  readonly caFile?: string | undefined;
  /** Set with clientKeyFile, or neither. Shown to every server that asks for one, never to a proxy. */
  readonly clientCertFile?: string | undefined;
  readonly clientKeyFile?: string | undefined;
}

/** For a conditional request (RFC 9110 section 13.1.2). */
export interface Validator {
  readonly url: string;
  readonly etag: string;
}

export interface FetchRequest extends FetchFiles {
  readonly url: string;
  /** Undefined, or of another URL: an answer 304 is a problem. */
  readonly validator?: Validator | undefined;
  readonly bearerToken?: string | undefined;
  readonly proxy: ProxySettings;
  /** Every address of a host, in the order of preference. Defaults to that of the system. */
  readonly lookup?: Lookup | undefined;
  readonly maxBytes?: number | undefined;
  readonly accept?: string | undefined;
}

export type Lookup = (host: string) => Promise<readonly { readonly address: string }[]>;

export interface FetchedDocument {
  readonly kind: 'document';
  readonly bytes: Uint8Array;
  readonly validator?: Validator | undefined;
  /** Without its parameters: `text/html`. It decides nothing. */
  readonly mediaType?: string | undefined;
  /** Where it is from, if the configuration does not say that. */
  readonly place?: string | undefined;
}

export type FetchResult = FetchedDocument | { readonly kind: 'notModified' } | Problem;

/** Maximum size of a document, as it comes and decompressed, unless a request says otherwise. */
export const maxDocumentBytes = 512 * 1024;

// With TLS 1.3 this is all that a client learns where its certificate is missing or refused: for it the handshake is over.
const closed = 'connection closed';

/** The signal bounds the whole fetch, the body included. */
export async function fetchDocument(request: FetchRequest, signal: AbortSignal): Promise<FetchResult> {
  const { validator, bearerToken, proxy, lookup = host => dns.lookup(host, { all: true }) } = request;
  const { maxBytes = maxDocumentBytes, accept = 'application/json, application/jwk-set+json' } = request;
  const opened = new Set<Socket>();
  const close = (): void => {
    for (const socket of opened) socket.destroy();
  };
  signal.addEventListener('abort', close);
  const sentEtag = validator?.url === request.url ? validator.etag : undefined;
  let wasAskedForCertificate = false;
  try {
    const url = new URL(request.url);
    const trust = await loadTrust(url.protocol === 'https:' ? request : {});
    const open = (at: URL): Promise<Socket> => connectToHost(at, lookup, signal, opened);
    const through = proxyFor(url, proxy);
    const plain = through === undefined ? await open(url) : await openTunnel(url, through, open, trust);
    const socket = url.protocol === 'https:' ? await secure(plain, url, trust) : plain;
    opened.add(socket);
    if (signal.aborted) close();
    // The signature algorithms of the CertificateRequest (RFC 8446 section 4.3.2).
    wasAskedForCertificate = socket instanceof tls.TLSSocket && socket.getSharedSigalgs().length > 0;
    const response = await send(socket, {
      path: `${url.pathname}${url.search}`,
      headers: {
        host: url.host,
        accept,
        'accept-encoding': 'identity',
        'user-agent': 'account-authz',
        connection: 'close',
        ...(sentEtag !== undefined && { 'if-none-match': sentEtag }),
        ...(bearerToken !== undefined && { authorization: `Bearer ${bearerToken}` }),
      },
    });
    if (response.statusCode === 304 && sentEtag !== undefined) return { kind: 'notModified' };
    return await readResponse(response, request.url, maxBytes);
  } catch (error) {
    const reason = networkProblem(error);
    const isAboutCertificate = reason === closed && wasAskedForCertificate;
    return problem(isAboutCertificate ? `${closed}, client certificate asked for` : reason);
  } finally {
    signal.removeEventListener('abort', close);
    close();
  }
}

// Connection: TCP to the host or its proxy, a tunnel through the proxy, TLS.

/** RFC 9110 section 9.3.6. A proxy is never shown the client certificate. */
async function openTunnel(url: URL, proxy: URL, open: (at: URL) => Promise<Socket>, { ca }: Trust): Promise<Socket> {
  const { protocol, username, password } = proxy;
  const path = `${url.hostname}:${portOf(url)}`;
  const credentials = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64');
  const headers = { host: path, ...(username !== '' && { 'proxy-authorization': `Basic ${credentials}` }) };
  try {
    const plain = await open(proxy);
    const socket = protocol === 'https:' ? await secure(plain, proxy, { ca }) : plain;
    const { statusCode } = await send(socket, { method: 'CONNECT', path, headers });
    if (statusCode === 200) return socket;
    throw new FetchProblem(`status ${statusCode}`);
  } catch (error) {
    throw new FetchProblem(`proxy refused: ${networkProblem(error)}`);
  }
}

// RFC 8305 section 5. Node's autoSelectFamily gives an attempt up after this time, and with it an address that is only slow.
const attemptDelayMs = 250;
// All attempts have started when half of the shortest timeoutSeconds is over.
const allStartedMs = 500;

/** Connected to the address that answers first: a further attempt starts when one has failed or takes long, and none is given up. */
async function connectToHost(url: URL, lookup: Lookup, signal: AbortSignal, opened: Set<Socket>): Promise<Socket> {
  const host = hostOf(url);
  const addresses = isIP(host) === 0 ? await lookup(host) : [{ address: host }];
  const delayMs = Math.min(attemptDelayMs, allStartedMs / addresses.length);
  const started: Socket[] = [];
  let first: Socket | undefined;
  const attempt = async (address: string): Promise<Socket> => {
    if (first !== undefined || signal.aborted) throw new FetchProblem('stopped');
    const socket = connect({ host: address, port: portOf(url) });
    started.push(socket);
    opened.add(socket);
    await connected(socket, 'connect');
    first ??= socket;
    return first;
  };
  let mayStart: Promise<unknown> = Promise.resolve();
  const attempts = addresses.map(({ address }) => {
    const attempted = mayStart.then(() => attempt(address));
    mayStart = mayStart.then(() =>
      Promise.race([attempted.catch(() => undefined), delay(delayMs, undefined, { ref: false })]),
    );
    return attempted;
  });
  try {
    const socket = await Promise.any(attempts);
    for (const other of started) if (other !== socket) other.destroy();
    return socket;
  } catch (error) {
    const failures: readonly unknown[] = error instanceof AggregateError ? error.errors : [];
    // An address that answers says more than one without a route.
    throw failures.find(each => networkProblem(each) !== 'network unreachable') ?? failures[0];
  }
}

/** Rejects if the socket ends before. The listener stays: an error without one would be a fault. */
function connected(socket: Socket, event: 'connect' | 'secureConnect'): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once(event, resolve).on('error', reject);
    socket.once('close', () => reject(Object.assign(new Error('closed'), { code: 'ECONNRESET' })));
  });
}

async function secure(socket: Socket, url: URL, trust: Trust): Promise<Socket> {
  const secureContext = toSecureContext(trust);
  const host = hostOf(url);
  const secured = tls.connect({
    socket,
    // The host is what the certificate must name. RFC 6066 section 3: a server name is no IP address.
    host,
    servername: isIP(host) === 0 ? host : '',
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot turn it off.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    ...(secureContext !== undefined && { secureContext }),
  });
  await connected(secured, 'secureConnect');
  return secured;
}

// Exchange: one request over the connection. Node bounds the headers of the response to 16 KiB.

function send(socket: Socket, options: RequestOptions): Promise<IncomingMessage> {
  return finalAnswer(httpRequest({ ...options, createConnection: () => socket }));
}

async function readResponse(response: IncomingMessage, url: string, maxBytes: number): Promise<FetchResult> {
  const { statusCode = 0, headers } = response;
  if (statusCode >= 300 && statusCode < 400 && statusCode !== 304) return problem('redirect refused');
  if (statusCode !== 200) return problem(`status ${statusCode}`);
  const { etag = '', 'content-encoding': encoding = 'identity' } = headers;
  const decode = decoders.get(encoding);
  if (decode === undefined && encoding !== 'identity') return problem('content encoding');
  const body = await readBody(response, maxBytes);
  const bytes = decode === undefined ? body : await decode(body, { maxOutputLength: maxBytes });
  const mediaType = headers['content-type']?.split(';', 1)[0]?.trim();
  const validator = /^(?:W\/)?"[!#-~]{0,256}"$/.test(etag) ? { url, etag } : undefined;
  return { kind: 'document', bytes, mediaType, validator };
}

// Some servers compress despite `identity`. At most one coding, never a chain (CVE-2026-22036).
const decoders: ReadonlyMap<string, (bytes: Uint8Array, options: ZlibOptions) => Promise<Buffer>> = new Map([
  ['gzip', promisify<Uint8Array, ZlibOptions, Buffer>(gunzip)],
  ['x-gzip', promisify<Uint8Array, ZlibOptions, Buffer>(gunzip)],
  ['deflate', promisify<Uint8Array, ZlibOptions, Buffer>(inflate)],
  ['br', promisify<Uint8Array, ZlibOptions, Buffer>(brotliDecompress)],
]);

// Into one buffer: a list of half a million chunks of one byte takes a hundred times their size.
async function readBody(response: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const buffer = Buffer.allocUnsafeSlow(maxBytes);
  let size = 0;
  for await (const chunk of response) {
    if (size + chunk.length > maxBytes) throw new FetchProblem('body too large');
    buffer.set(chunk, size);
    size += chunk.length;
  }
  return Uint8Array.prototype.slice.call(buffer, 0, size);
}

// Trust: the files of an issuer as a context of TLS.

interface Trust {
  readonly ca?: Uint8Array | undefined;
  readonly client?: TlsMaterial | undefined;
}

async function loadTrust({ caFile, clientCertFile, clientKeyFile }: FetchFiles): Promise<Trust> {
  const ca = caFile === undefined ? undefined : await loadRegularFile(caFile);
  if (ca?.kind === 'problem') throw new FetchProblem('CA file not readable');
  if (clientCertFile === undefined) return { ca: ca?.bytes };
  const client = await loadTlsFiles({ certFile: clientCertFile, keyFile: clientKeyFile });
  if (client.kind === 'tls material') return { ca: ca?.bytes, client };
  const isCertificate = client.problems.some(({ key }) => key === 'certFile');
  throw new FetchProblem(`client ${isCertificate ? 'certificate' : 'key'} not usable`);
}

// To parse the default roots takes 25 ms, and many issuers may have the same files.
const recentContexts = new Map<string, tls.SecureContext>();
const maxRecent = 8;

/** Undefined: the default of Node, which loads its root certificates when they are first needed. */
function toSecureContext({ ca, client }: Trust): tls.SecureContext | undefined {
  if (ca === undefined && client === undefined) return undefined;
  const id = hash('sha256', JSON.stringify([ca && Buffer.from(ca).toString('latin1'), client?.cert, client?.key]));
  const known = recentContexts.get(id);
  if (known !== undefined) return known;
  const parsed = ca && parseCertificates(ca);
  if (parsed?.kind === 'problem')
    throw new FetchProblem(parsed.problem === noCertificate ? 'CA file without certificate' : 'CA file not readable');
  const context = tls.createSecureContext({
    minVersion: 'TLSv1.2',
    ...(ca !== undefined && { ca: [...rootsInForce(), Buffer.from(ca)] }),
    ...(client !== undefined && { cert: client.cert, key: client.key }),
  });
  if (recentContexts.size === maxRecent) recentContexts.clear();
  recentContexts.set(id, context);
  return context;
}

/** The root certificates of this process: from Node 22.15 on with those of NODE_EXTRA_CA_CERTS and --use-system-ca, else Node's own. */
export function rootsInForce(
  node: { readonly rootCertificates: readonly string[]; getCACertificates?(type: 'default'): readonly string[] } = tls,
): readonly string[] {
  return node.getCACertificates?.('default') ?? node.rootCertificates;
}
