// Reads a key set from its source: a JWKS URL, the JWKS URL of a discovery document, or a file.
// Returns bytes or a problem within one total timeout. jwks.ts parses the bytes.
import { loadRegularFile, type UnreadableFile } from '../files/bounded-file.ts';
import { isJsonObject, memberOf, parseBoundedJson } from '../json/strict-json.ts';
import { keyUrlProblem } from '../text/key-url.ts';
import { type Problem, problem } from '../text/problem.ts';
import { isLoopbackUrl } from '../text/url.ts';
import { createDeferred } from './deferred.ts';
import type { FetchSlots } from './fetch-slots.ts';
import { documentBounds, maxKeySetBytes } from './jwks.ts';
import { type Authorities, hasAll, loadAuthorities } from './key-authorities.ts';
import type { KeyConnectionFiles } from './key-connection.ts';
import type { ProxySettings } from './key-socket.ts';
import type { GetKeyDocument, KeyDocument } from './key-transport.ts';

/** Where keys come from. Exactly one of the three is set. */
interface KeyLocation {
  readonly jwksUrl?: string | undefined;
  readonly discoveryUrl?: string | undefined;
  readonly jwksFile?: string | undefined;
}

export interface IssuerKeySettings extends KeyLocation, KeyConnectionFiles {
  readonly issuer: string;
  readonly algorithms: readonly string[];
}

/** For a conditional request (RFC 9110 section 13.1.2). */
export interface Validator {
  readonly url: string;
  readonly etag: string;
}

type KeySetDocument =
  | { readonly kind: 'body'; readonly bytes: Uint8Array; readonly validator: Validator | undefined }
  | { readonly kind: 'notModified' };

/** `authorities` are those of caFile when the fetch began. */
export type SourceResult = (KeySetDocument & { readonly authorities: Authorities }) | Problem;

type ValidatorFor = (authorities: Authorities) => Validator | undefined;

export interface KeySource {
  /** `validatorFor` gives what a 304 under these authorities may confirm. Never rejects. Settles as soon as the signal aborts. */
  read(signal: AbortSignal, validatorFor: ValidatorFor): Promise<SourceResult>;
}

interface KeySourceOptions {
  /** The issuer counts with a discoveryUrl only: the metadata must be its own. */
  readonly settings: IssuerKeySettings;
  readonly timeoutMs: number;
  readonly proxy: ProxySettings;
  readonly getDocument: GetKeyDocument;
  readonly slots: FetchSlots;
}

/** Issuers with the same key have the same keys: location, algorithms, and with discovery the issuer that the metadata must name. */
export function locationKey({ issuer, jwksUrl, discoveryUrl, jwksFile, algorithms }: IssuerKeySettings): string {
  const named = discoveryUrl === undefined ? undefined : issuer;
  return JSON.stringify([jwksUrl, discoveryUrl, named, jwksFile, algorithms.toSorted()]);
}

/** Throws if no source is set, which the configuration does not allow. */
export function createKeySource({ settings, timeoutMs, proxy, ...io }: KeySourceOptions): KeySource {
  const { issuer, jwksUrl, discoveryUrl, jwksFile, caFile, clientCertFile, clientKeyFile } = settings;
  if (jwksFile !== undefined) return createFileSource(jwksFile, timeoutMs);
  const url = jwksUrl ?? discoveryUrl;
  if (url === undefined) throw new Error('an issuer without a key source');
  const { host } = new URL(url);
  let isRetry = false;

  const readOnce = (signal: AbortSignal, validatorFor: ValidatorFor): Promise<SourceResult> =>
    withinTime(timeoutMs, signal, async limited => {
      const authorities = await loadAuthorities(caFile);
      if ('kind' in authorities) return authorities;
      const get: GetDocument = (from, etag) =>
        io.getDocument({ url: from, etag, caFile, clientCertFile, clientKeyFile, proxy }, limited);
      const location = jwksUrl ?? (await readDiscovery(get, url, issuer));
      if (typeof location !== 'string') return location;
      const document = await readKeySet(get, location, validatorFor(authorities));
      if (document.kind === 'problem') return document;
      // Only a fetch begun after the change counts.
      return hasAll(await loadAuthorities(caFile), authorities)
        ? { ...document, authorities }
        : problem('CA withdrawn');
    });

  return {
    async read(signal, validatorFor) {
      const slot = { host, isRetry, signal };
      const result = (await io.slots.run(slot, () => readOnce(signal, validatorFor))) ?? problem('stopped');
      isRetry = result.kind === 'problem';
      return result;
    },
  };
}

type GetDocument = (url: string, etag?: string) => Promise<KeyDocument>;

async function readKeySet(
  get: GetDocument,
  url: string,
  validator: Validator | undefined,
): Promise<KeySetDocument | Problem> {
  const document = await get(url, validator?.url === url ? validator.etag : undefined);
  if (document.kind !== 'body') return document;
  const { bytes, etag } = document;
  return { kind: 'body', bytes, validator: etag === undefined ? undefined : { url, etag } };
}

async function readDiscovery(get: GetDocument, url: string, issuer: string): Promise<string | Problem> {
  const document = await get(url);
  if (document.kind === 'problem') return problem(`discovery: ${document.problem}`);
  if (document.kind === 'notModified') return problem('discovery: status 304');
  return parseDiscovery(document.bytes, url, issuer);
}

/** The jwks_uri of metadata from this URL (OpenID Connect Discovery section 3, RFC 8414), which must be of this issuer. Never throws. */
export function parseDiscovery(bytes: Uint8Array, url: string, issuer: string): string | Problem {
  const json = parseBoundedJson(bytes, documentBounds);
  if (json.kind === 'problem') return problem(`discovery: ${json.problem}`);
  const metadata = json.value;
  if (!isJsonObject(metadata)) return problem('discovery: not an object');
  // RFC 8414 section 3.3: metadata of another issuer must not be used.
  if (memberOf(metadata, 'issuer') !== issuer) return problem('discovery: issuer differs');
  const jwksUri = memberOf(metadata, 'jwks_uri');
  if (typeof jwksUri !== 'string') return problem('discovery: no jwks_uri');
  if (keyUrlProblem(jwksUri) !== undefined) return problem('discovery: jwks_uri refused');
  // Plain http is allowed for loopback only, and only a document from loopback may point there.
  const isPlain = new URL(jwksUri).protocol === 'http:';
  if (isPlain && !isLoopbackUrl(url)) return problem('discovery: jwks_uri refused');
  return jwksUri;
}

function createFileSource(path: string, timeoutMs: number): KeySource {
  return {
    read: signal => withinTime(timeoutMs, signal, () => readKeyFile(path).catch(() => problem(fileProblems.other))),
  };
}

async function readKeyFile(path: string): Promise<SourceResult> {
  const content = await loadRegularFile(path, maxKeySetBytes);
  if (content.kind === 'problem') return problem(fileProblems[content.reason]);
  return { kind: 'body', bytes: content.bytes, validator: undefined, authorities: [] };
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
