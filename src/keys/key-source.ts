// Reads a key set from its source: a JWKS URL, the JWKS URL of a discovery document, or a file.
// Returns bytes or a problem within one total timeout. jwks.ts parses the bytes.
import { loadRegularFile } from '../files/bounded-file.ts';
import {
  type FetchFiles,
  type FetchRequest,
  type FetchResult,
  fetchDocument,
  maxDocumentBytes,
  type Validator,
} from '../http/fetch.ts';
import { isJsonObject } from '../json/strict-json.ts';
import { quotedPrintable } from '../text/printable.ts';
import { type Problem, problem } from '../text/problem.ts';
import { isLoopbackUrl, keyUrlProblem } from '../text/url.ts';
import { parseDocument } from './jwks.ts';

export interface IssuerKeySettings extends FetchFiles {
  readonly issuer: string;
  readonly algorithms: readonly string[];
  /** Where keys come from. Exactly one of the three is set. */
  readonly jwksUrl?: string | undefined;
  readonly discoveryUrl?: string | undefined;
  readonly jwksFile?: string | undefined;
  /** Sent to the configured URL and others of its origin, never elsewhere. */
  readonly bearerTokenFile?: string | undefined;
  /** Whether a key URL may be http to any host. Defaults to false. */
  readonly allowHttp?: boolean | undefined;
}

const maxShownIssuer = 256;

/** Issuers with the same key have the same keys: source, algorithms, and with discovery the issuer that the metadata must name. */
export function locationKey({ issuer, jwksUrl, discoveryUrl, jwksFile, algorithms }: IssuerKeySettings): string {
  const named = discoveryUrl === undefined ? undefined : issuer;
  return JSON.stringify([jwksUrl, discoveryUrl, named, jwksFile, algorithms.toSorted()]);
}

/** The files that are read for each refresh: a change of one is a reason for it. */
export function sourceFiles(settings: IssuerKeySettings): readonly string[] {
  const { jwksFile, caFile, clientCertFile, clientKeyFile, bearerTokenFile } = settings;
  const files = jwksFile === undefined ? [caFile, clientCertFile, clientKeyFile, bearerTokenFile] : [jwksFile];
  return files.filter(file => file !== undefined);
}

/**
 * Returns a function that reads the source. It never rejects, settles as soon as the signal aborts, and accepts a 304 only with a validator.
 * Throws if no source is set, which the configuration does not allow.
 */
export function createSource(
  settings: IssuerKeySettings,
  { timeoutMs, proxy, lookup }: Pick<FetchRequest, 'proxy' | 'lookup'> & { readonly timeoutMs: number },
): (signal: AbortSignal, validator: Validator | undefined) => Promise<FetchResult> {
  const { issuer, jwksUrl, discoveryUrl, jwksFile, bearerTokenFile, allowHttp = false } = settings;
  if (jwksFile !== undefined) return signal => withinTime(timeoutMs, signal, () => readKeyFile(jwksFile));
  const configured = jwksUrl ?? discoveryUrl;
  if (configured === undefined) throw new Error('an issuer without a key source');
  const { origin } = new URL(configured);

  async function get(url: string, validator: Validator | undefined, signal: AbortSignal): Promise<FetchResult> {
    const isOwn = bearerTokenFile !== undefined && new URL(url).origin === origin;
    const bearerToken = isOwn ? await loadBearerToken(bearerTokenFile) : undefined;
    if (typeof bearerToken === 'object') return bearerToken;
    return fetchDocument({ ...settings, url, validator, bearerToken, proxy, lookup }, signal);
  }

  async function discover(url: string, signal: AbortSignal): Promise<string | Problem> {
    const document = await get(url, undefined, signal);
    const found = document.kind === 'document' ? parseDiscovery(document, { url, issuer, allowHttp }) : document;
    if (typeof found === 'string') return found;
    return problem(`discovery: ${found.kind === 'problem' ? found.problem : 'status 304'}`);
  }

  return (signal, validator) =>
    withinTime(timeoutMs, signal, async limited => {
      const url = jwksUrl ?? (await discover(configured, limited));
      if (typeof url !== 'string') return url;
      return get(url, validator, limited);
    });
}

/** RFC 6750 section 2.1. A line end after it does not belong to it. */
async function loadBearerToken(file: string): Promise<string | Problem> {
  const loaded = await loadRegularFile(file);
  if (loaded.kind === 'problem') return problem('bearer token file not readable');
  const token = Buffer.from(loaded.bytes).toString('latin1').trim();
  return /^[A-Za-z0-9._~+/-]+=*$/.test(token) ? token : problem('bearer token file without a token');
}

/** The jwks_uri of metadata (OpenID Connect Discovery section 3, RFC 8414), which must be of this issuer. Never throws. */
export function parseDiscovery(
  { bytes, mediaType }: Pick<Extract<FetchResult, { kind: 'document' }>, 'bytes' | 'mediaType'>,
  from: { readonly url: string; readonly issuer: string; readonly allowHttp: boolean },
): string | Problem {
  const json = parseDocument(bytes, mediaType);
  if (json.kind === 'problem') return json;
  const metadata = json.value;
  if (!isJsonObject(metadata)) return problem('not an object');
  const { issuer, jwks_uri: jwksUri, keys } = metadata;
  if (Array.isArray(keys)) return problem('not metadata: a key set, which jwksUrl reads');
  // RFC 8414 section 3.3: metadata of another issuer must not be used.
  if (issuer !== from.issuer) {
    const theirs = typeof issuer === 'string' ? quotedPrintable(issuer, maxShownIssuer) : 'not a string';
    const ours = quotedPrintable(from.issuer, maxShownIssuer);
    return problem(`the issuer of the metadata is ${theirs}, not ${ours} (jwksUrl needs no metadata)`);
  }
  if (typeof jwksUri !== 'string') return problem('no jwks_uri');
  const refused = keyUrlProblem(jwksUri, from.allowHttp);
  if (refused !== undefined) return problem(`jwks_uri ${refused}`);
  // Plain http to loopback is for documents that come from there.
  const isPlain = new URL(jwksUri).protocol === 'http:';
  if (isPlain && isLoopbackUrl(jwksUri) && !isLoopbackUrl(from.url)) return problem('jwks_uri must not be on loopback');
  return jwksUri;
}

async function readKeyFile(path: string): Promise<FetchResult> {
  const content = await loadRegularFile(path, maxDocumentBytes);
  return content.kind === 'problem' ? content : { ...content, kind: 'document' };
}

/** One timeout for all of `work`. Does not wait for work that ignores its signal. */
async function withinTime(
  timeoutMs: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<FetchResult>,
): Promise<FetchResult> {
  const controller = new AbortController();
  return new Promise(resolve => {
    const end = (result: FetchResult): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      resolve(result);
      controller.abort();
    };
    const stop = (): void => end(problem('stopped'));
    const timer = setTimeout(end, timeoutMs, problem('timed out')).unref();
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
    else work(controller.signal).then(end, () => end(problem('internal error')));
  });
}
