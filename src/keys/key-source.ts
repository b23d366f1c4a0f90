// Reads a key set from its source: a JWKS URL, the JWKS URL of a discovery document, or a file.
// Returns bytes or a problem within one total timeout. jwks.ts parses the bytes.
import { loadRegularFile } from '../files/bounded-file.ts';
import {
  type ConnectionFiles,
  connectionFiles,
  createGet,
  type ReadDocument,
  type SourceSettings,
  withinTime,
} from '../http/document-source.ts';
import { type FetchResult, maxDocumentBytes } from '../http/fetch.ts';
import { isJsonObject } from '../json/strict-json.ts';
import { printable, quotedPrintable } from '../text/printable.ts';
import { type Problem, problem } from '../text/problem.ts';
import { isLoopbackUrl, keyUrlProblem } from '../text/url.ts';
import { parseDocument } from './jwks.ts';

export interface IssuerKeySettings extends ConnectionFiles {
  readonly issuer: string;
  readonly algorithms: readonly string[];
  /** Where keys come from. Exactly one of the three is set. */
  readonly jwksUrl?: string | undefined;
  readonly discoveryUrl?: string | undefined;
  readonly jwksFile?: string | undefined;
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
  return settings.jwksFile === undefined ? connectionFiles(settings) : [settings.jwksFile];
}

/** Throws if no source is set, which the configuration does not allow. */
export function createSource(issuerSettings: IssuerKeySettings, settings: SourceSettings): ReadDocument {
  const { issuer, jwksUrl, discoveryUrl, jwksFile, allowHttp = false } = issuerSettings;
  const { timeoutMs } = settings;
  if (jwksFile !== undefined) return signal => withinTime(timeoutMs, signal, () => readKeyFile(jwksFile));
  const configured = jwksUrl ?? discoveryUrl;
  if (configured === undefined) throw new Error('an issuer without a key source');
  const get = createGet(issuerSettings, configured, settings);

  async function discover(url: string, signal: AbortSignal): Promise<string | Problem> {
    const document = await get(url, undefined, signal);
    const found = document.kind === 'document' ? parseDiscovery(document, { url, issuer, allowHttp }) : document;
    if (typeof found === 'string') return found;
    return problem(`discovery: ${found.kind === 'problem' ? found.problem : 'status 304'}`);
  }

  /** Nobody finds this address in the configuration. */
  function ofKeysOfMetadata(url: string, keys: FetchResult): FetchResult {
    const { origin, pathname } = new URL(url);
    const place = `jwks_uri ${printable(origin + pathname, maxShownIssuer)}`;
    if (keys.kind === 'document') return { ...keys, place };
    const isSent = issuerSettings.bearerTokenFile === undefined || origin === new URL(configured ?? url).origin;
    const unsent = isSent ? '' : ' (bearerTokenFile is not sent there)';
    return keys.kind === 'problem' ? problem(`${place}: ${keys.problem}${unsent}`) : keys;
  }

  return (signal, validator) =>
    withinTime(timeoutMs, signal, async limited => {
      const url = jwksUrl ?? (await discover(configured, limited));
      if (typeof url !== 'string') return url;
      const keys = await get(url, validator, limited);
      return jwksUrl === undefined ? ofKeysOfMetadata(url, keys) : keys;
    });
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
