// Finds where the issuer of a token publishes its keys, and verifies the token with them. Asks by the rules of key URLs.
import { type FetchResult, fetchDocument } from '../../http/fetch.ts';
import type { ProxySettings } from '../../http/proxy.ts';
import { memberOf } from '../../json/strict-json.ts';
import { parseDocument, parseKeySet, type VerificationKey } from '../../keys/jwks.ts';
import { parseDiscovery } from '../../keys/key-source.ts';
import { findTokenKey } from '../../keys/token-key.ts';
import { quotedPrintable } from '../../text/printable.ts';
import { type Problem, problem } from '../../text/problem.ts';
import { keyUrlProblem } from '../../text/url.ts';
import type { CompactJws } from '../../token/compact.ts';
import { isSignedBy } from '../../token/signature.ts';

export interface KeySource {
  readonly kind: 'discoveryUrl' | 'jwksUrl';
  readonly url: string;
  /** Where it is not the metadata of the issuer itself. */
  readonly remark?: string;
}

export interface FoundKeys {
  /** A problem where nobody says where the keys are. */
  readonly source: KeySource | Problem;
  /** The key that verifies the token, or why it is not verified. */
  readonly verified: { readonly kind: 'key'; readonly key: VerificationKey; readonly url: string } | Problem;
}

const timeoutMs = 5000;

/** `from`: whose metadata is asked; the issuer, if not given. */
export async function findKeys(
  jws: CompactJws,
  token: string,
  {
    issuer,
    from = issuer,
    proxy,
  }: { readonly issuer: string; readonly from?: string | undefined; readonly proxy: ProxySettings },
): Promise<FoundKeys> {
  const get = (url: string): Promise<FetchResult> => fetchDocument({ url, proxy }, AbortSignal.timeout(timeoutMs));
  const unasked = keyUrlProblem(from);
  if (unasked !== undefined) return unfound(`${quotedPrintable(from, 256)} is not asked: it ${unasked}`);
  const problems: string[] = [];
  const found: (KeySource & { readonly jwksUri: string })[] = [];
  for (const url of metadataUrls(from)) {
    const metadata = await readMetadata(await get(url), url);
    if (metadata.kind === 'problem') {
      problems.push(`${url}: ${metadata.problem}`);
      continue;
    }
    const { jwksUri } = metadata;
    if (metadata.issuer === issuer) {
      found.unshift({ kind: 'discoveryUrl', url, jwksUri });
      break;
    }
    const theirs = quotedPrintable(metadata.issuer, 256);
    found.push({
      kind: 'jwksUrl',
      url: jwksUri,
      jwksUri,
      remark: `${url} is the metadata of another issuer, ${theirs}`,
    });
  }
  const [first] = found;
  if (first === undefined) return unfound(problems.join('; '));
  const { jwksUri, ...source } = first;
  return { source, verified: await verify(await get(jwksUri), jwksUri) };

  async function verify(document: FetchResult, url: string): Promise<FoundKeys['verified']> {
    if (document.kind !== 'document')
      return problem(`${url}: ${document.kind === 'problem' ? document.problem : 'status 304'}`);
    const set = await parseKeySet(document.bytes, [jws.alg], { mediaType: document.mediaType });
    if (set.kind === 'problem') return problem(`${url}: ${set.problem}`);
    const key = findTokenKey(set, jws);
    if (key.kind === 'none') return problem(`${url}: ${key.detail}`);
    const cryptoKey = key.key.cryptoKeyFor(jws.alg);
    const isSigned = cryptoKey !== undefined && (await isSignedBy(cryptoKey, jws.alg, token));
    return isSigned
      ? { kind: 'key', key: key.key, url }
      : problem(`the key of the token in ${url} does not verify its signature`);
  }
}

function unfound(why: string): FoundKeys {
  return { source: problem(why), verified: problem(`no keys were found: ${why}`) };
}

/** OpenID Connect Discovery section 4, then RFC 8414 section 3.1, and as section 5 says servers do: the same name at the end. */
function metadataUrls(issuer: string): readonly string[] {
  const [, origin = '', path = ''] = /^(https?:\/\/[^/?]*)([^?]*)/.exec(issuer) ?? [];
  const own = path.replace(/\/$/, '');
  const name = '/.well-known/oauth-authorization-server';
  return [
    ...new Set([
      `${origin}${own}/.well-known/openid-configuration`,
      `${origin}${name}${own}`,
      `${origin}${own}${name}`,
    ]),
  ];
}

async function readMetadata(
  document: FetchResult,
  url: string,
): Promise<{ readonly kind: 'metadata'; readonly issuer: string; readonly jwksUri: string } | Problem> {
  if (document.kind === 'notModified') return problem('status 304');
  if (document.kind === 'problem') return document;
  const json = parseDocument(document.bytes, document.mediaType);
  if (json.kind === 'problem') return json;
  const issuer = memberOf(json.value, 'issuer');
  if (typeof issuer !== 'string') return problem('no issuer');
  const jwksUri = parseDiscovery(document, { url, issuer, allowHttp: false });
  return typeof jwksUri === 'string' ? { kind: 'metadata', issuer, jwksUri } : jwksUri;
}
