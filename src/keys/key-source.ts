// Reads a key set from its source: a JWKS URL, the JWKS URL of a discovery document, or a file.
// Returns bytes or a problem within one total timeout. jwks.ts parses the bytes.

import { createDeferred } from '../deferred.ts';
import { loadRegularFile, type UnreadableFile } from '../files/bounded-file.ts';
import { isJsonObject, memberOf, parseBoundedJson } from '../json/strict-json.ts';
import { isLoopbackUrl, keyUrlProblem } from '../text/key-url.ts';
import type { FetchSlots } from './fetch-slots.ts';
import { documentBounds, maxKeySetBytes } from './jwks.ts';
import type { KeyConnectionFiles } from './key-connection.ts';
import type { CreateKeyTransport, GetAnchors, GetDocument, ProxySettings } from './key-transport.ts';
import type { Anchors } from './key-trust.ts';
import type { FetchProblem } from './network-problem.ts';

/** Where keys come from. Exactly one of the three is set. */
export interface KeyPlace {
  readonly jwksUrl?: string | undefined;
  readonly discoveryUrl?: string | undefined;
  readonly jwksFile?: string | undefined;
}

export interface IssuerKeySettings extends KeyPlace, KeyConnectionFiles {
  readonly issuer: string;
  readonly algorithms: readonly string[];
}

/** For a conditional request (RFC 9110 section 13.1.2). */
export interface Validator {
  readonly url: string;
  readonly etag: string;
  readonly metadataIssuer: string | undefined;
}

export type SourceResult =
  | {
      readonly kind: 'body';
      readonly bytes: Uint8Array;
      readonly validator: Validator | undefined;
      /** Of a discovery document. */
      readonly metadataIssuer: string | undefined;
      readonly anchors: Anchors;
    }
  | { readonly kind: 'notModified'; readonly anchors: Anchors }
  | FetchProblem;

export interface KeySource {
  readonly kind: 'jwksUrl' | 'discoveryUrl' | 'jwksFile';
  /** The URL or path as configured. */
  readonly place: string;
  /** Never rejects. Settles as soon as the signal aborts. */
  read(signal: AbortSignal, validator: Validator | undefined): Promise<SourceResult>;
}

export interface KeySourceOptions {
  readonly place: KeyPlace & KeyConnectionFiles;
  /** The metadata of a discovery document must be of one of them. */
  readonly issuers: readonly string[];
  readonly timeoutMs: number;
  readonly proxy: ProxySettings;
  readonly createTransport: CreateKeyTransport;
  readonly slots: FetchSlots;
}

/** Throws if no source is set, which the configuration does not allow. */
export function createKeySource({ place, issuers, timeoutMs, proxy, ...io }: KeySourceOptions): KeySource {
  const { jwksUrl, discoveryUrl, jwksFile, caFile, clientCertFile, clientKeyFile } = place;
  if (jwksFile !== undefined) return createFileSource(jwksFile, timeoutMs);
  const url = jwksUrl ?? discoveryUrl;
  if (url === undefined) throw new Error('an issuer without a key source');
  const transport = io.createTransport({ caFile, clientCertFile, clientKeyFile, proxy, timeoutMs });
  const { host } = new URL(url);
  let isRetry = false;

  const readOnce = (signal: AbortSignal, validator: Validator | undefined): Promise<SourceResult> =>
    withinTime(timeoutMs, signal, limited =>
      transport.use(limited, async (get, anchors) => {
        if (jwksUrl !== undefined) return readKeySet(get, anchors, { jwksUri: jwksUrl, issuer: undefined }, validator);
        const metadata = await readDiscovery(get, url, issuers);
        return metadata.kind === 'problem' ? metadata : readKeySet(get, anchors, metadata, validator);
      }),
    );

  return {
    kind: jwksUrl === undefined ? 'discoveryUrl' : 'jwksUrl',
    place: url,
    async read(signal, validator) {
      const slot = { host, isRetry, signal };
      const result = (await io.slots.run(slot, () => readOnce(signal, validator))) ?? problem('stopped');
      isRetry = result.kind === 'problem';
      return result;
    },
  };
}

/** What says where the key set is. */
interface Metadata {
  readonly jwksUri: string;
  /** Undefined without a discovery document. */
  readonly issuer: string | undefined;
}

async function readKeySet(
  get: GetDocument,
  getAnchors: GetAnchors,
  { jwksUri: url, issuer: metadataIssuer }: Metadata,
  validator: Validator | undefined,
): Promise<SourceResult> {
  // Metadata that names another issuer than before: other selections need the document.
  const isSame = validator?.url === url && validator.metadataIssuer === metadataIssuer;
  const document = await get(url, isSame ? validator.etag : undefined);
  if (document.kind === 'problem') return document;
  const anchors = await getAnchors();
  if (document.kind === 'notModified') return { kind: 'notModified', anchors };
  const { bytes, etag } = document;
  const next = etag === undefined ? undefined : { url, etag, metadataIssuer };
  return { kind: 'body', bytes, validator: next, metadataIssuer, anchors };
}

async function readDiscovery(
  get: GetDocument,
  url: string,
  issuers: readonly string[],
): Promise<DiscoveredMetadata | FetchProblem> {
  const document = await get(url);
  if (document.kind === 'problem') return problem(`discovery: ${document.problem}`);
  if (document.kind === 'notModified') return problem('discovery: status 304');
  return parseDiscovery(document.bytes, url, issuers);
}

interface DiscoveredMetadata extends Metadata {
  readonly kind: 'metadata';
  readonly issuer: string;
}

/** The metadata from this URL (OpenID Connect Discovery section 3, RFC 8414), which must be of one of these issuers. Never throws. */
export function parseDiscovery(
  bytes: Uint8Array,
  url: string,
  issuers: readonly string[],
): DiscoveredMetadata | FetchProblem {
  const json = parseBoundedJson(bytes, documentBounds);
  if (json.kind === 'problem') return problem(`discovery: ${json.problem}`);
  const metadata = json.value;
  if (!isJsonObject(metadata)) return problem('discovery: not an object');
  // RFC 8414 section 3.3: metadata of another issuer must not be used.
  const named = memberOf(metadata, 'issuer');
  const issuer = issuers.find(each => each === named);
  if (issuer === undefined) return problem('discovery: issuer differs');
  const jwksUri = memberOf(metadata, 'jwks_uri');
  if (typeof jwksUri !== 'string') return problem('discovery: no jwks_uri');
  if (keyUrlProblem(jwksUri) !== undefined) return problem('discovery: jwks_uri refused');
  // Plain http is allowed for loopback only, and only a document from loopback may point there.
  const isPlain = new URL(jwksUri).protocol === 'http:';
  if (isPlain && !isLoopbackUrl(url)) return problem('discovery: jwks_uri refused');
  return { kind: 'metadata', issuer, jwksUri };
}

function createFileSource(path: string, timeoutMs: number): KeySource {
  return {
    kind: 'jwksFile',
    place: path,
    read: signal => withinTime(timeoutMs, signal, () => readKeyFile(path).catch(() => problem(fileProblems.other))),
  };
}

async function readKeyFile(path: string): Promise<SourceResult> {
  const content = await loadRegularFile(path, maxKeySetBytes);
  if (content.kind === 'problem') return problem(fileProblems[content.reason]);
  return { kind: 'body', bytes: content.bytes, validator: undefined, metadataIssuer: undefined, anchors: [] };
}

const fileProblems: Readonly<Record<UnreadableFile['reason'], string>> = {
  missing: 'no such file',
  'not regular': 'not a regular file',
  denied: 'file not readable',
  'too large': 'body too large',
  other: 'file error',
};

/** One timeout for all of `work`. Does not wait for work that ignores its signal. */
async function withinTime(
  timeoutMs: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<SourceResult>,
): Promise<SourceResult> {
  const controller = new AbortController();
  const ended = createDeferred<SourceResult>();
  const end = (word: string): void => {
    ended.resolve(problem(word));
    controller.abort();
  };
  const abort = (): void => end('stopped');
  const timer = setTimeout(end, timeoutMs, 'timed out').unref();
  signal.addEventListener('abort', abort);
  if (signal.aborted) abort();
  try {
    return await Promise.race([ended.promise, work(controller.signal)]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}

function problem(word: string): FetchProblem {
  return { kind: 'problem', problem: word };
}
