// Verifies a bearer token, by the contract, "Grammar of a token": returns what it says or the reason of the refusal.
import { createHash } from 'node:crypto';
import { findKey, type IssuerKeys, proves } from './issuer-keys.ts';
import { isObject, type Json, type JsonObject, readJson } from './json.ts';
import type { FieldSource, IssuerSettings, ListSource, Settings } from './settings.ts';

/** What a verified token says. */
export interface Claims {
  readonly uid: string;
  readonly app: string;
  readonly iss: string;
  readonly actor: string | undefined;
  readonly jti: string | undefined;
  readonly sid: string | undefined;
  /** Name after the prefix, and value. */
  readonly forwarded: readonly (readonly [name: string, value: string])[];
  /** Those that the issuer may speak for, different ones. */
  readonly accounts: readonly string[];
  /** Undefined: `token_invalid`. */
  rolesFor(acc: string): readonly string[] | undefined;
  scopesFor(acc: string): readonly string[] | undefined;
}

export type TokenFinding =
  | { readonly kind: 'verified'; readonly claims: Claims; readonly iat: number | undefined }
  | { readonly kind: 'refused'; readonly reason: TokenReason; readonly alsoPermitted: readonly TokenReason[] };

export type TokenReason = 'token_invalid' | 'token_expired' | 'keys_unavailable';

type Refused = Extract<TokenFinding, { readonly kind: 'refused' }>;

const invalid: Refused = { kind: 'refused', reason: 'token_invalid', alsoPermitted: [] };

/** A token of which all but its times is known to be good. */
interface Signed {
  readonly kind: 'signed';
  readonly claims: Claims;
  readonly payload: JsonObject;
}

// By configuration, as most requests of a comparison bring a token that was read before.
const read = new WeakMap<Settings, Map<string, Signed | Refused>>();

/** `keys`: by issuer, always the same for these settings; `now`: seconds since the epoch. */
export function verifyToken(
  token: string,
  certificate: string,
  settings: Settings,
  keys: ReadonlyMap<string, IssuerKeys>,
  now: number,
): TokenFinding {
  const known = read.get(settings) ?? new Map<string, Signed | Refused>();
  read.set(settings, known);
  const found = known.get(token) ?? readToken(token, settings, keys);
  known.set(token, found);
  if (found.kind === 'refused') return found;

  // "Accepted where the check shows the client's certificate and its SHA-256 is that; any other cnf, another certificate or none: token_invalid."
  const { claims, payload } = found;
  if (payload.has('cnf') && !isBoundTo(payload.get('cnf'), certificate)) return invalid;

  // Times, expiry last.
  const tolerance = settings.clockToleranceSeconds;
  const [exp, nbf, iat] = [payload.get('exp'), payload.get('nbf'), payload.get('iat')];
  if (!isTime(exp) || !(nbf === undefined || isTime(nbf)) || !(iat === undefined || isTime(iat))) return invalid;
  if (nbf !== undefined && nbf > now + tolerance) return invalid;
  if (iat !== undefined && (iat > now + tolerance || iat > exp)) return invalid;
  const lifetime = iat === undefined ? exp - now : exp - iat;
  if (lifetime > settings.maxLifetimeSeconds) return invalid;
  if (now >= exp + tolerance) return { kind: 'refused', reason: 'token_expired', alsoPermitted: [] };
  return { kind: 'verified', claims, iat };
}

function readToken(token: string, settings: Settings, keys: ReadonlyMap<string, IssuerKeys>): Signed | Refused {
  // Only the length decides.
  if (Buffer.byteLength(token) > settings.maxBytes) return invalid;

  // Compact JWS: three segments of canonical base64url.
  const segments = token.split('.');
  const bytes = segments.map(bytesOf);
  const [headerBytes, payloadBytes, signature] = bytes;
  if (segments.length !== 3 || headerBytes === undefined || payloadBytes === undefined || signature === undefined) {
    return invalid;
  }
  const header = readJson(headerBytes);
  const payload = readJson(payloadBytes);
  if (!isObject(header) || !isObject(payload)) return invalid;
  if (['crit', 'b64', 'zip', 'jwk'].some(member => header.has(member))) return invalid;
  const alg = header.get('alg');
  const kid = header.get('kid');
  if (typeof alg !== 'string') return invalid;
  if (kid !== undefined && (typeof kid !== 'string' || kid === '')) return invalid;

  // The issuer is configured; only its own algorithms, token types and keys count.
  const iss = payload.get('iss');
  const { issuer, account } = typeof iss === 'string' ? issuerOf(iss, settings) : {};
  const issuerKeys = issuer === undefined ? undefined : keys.get(issuer.hasOwnKeySets ? String(iss) : issuer.issuer);
  if (issuer === undefined || issuerKeys === undefined) return invalid;
  if (!issuer.algorithms.includes(alg) || !isTypeAccepted(header.get('typ'), issuer.tokenTypes)) return invalid;

  // The signature.
  const [x5t, x5tS256] = ['x5t', 'x5t#S256'].map(name => {
    const value = header.get(name);
    return typeof value === 'string' ? value : undefined;
  });
  const found = findKey(issuerKeys, { alg, kid, x5t, x5tS256 });
  // the contract bounds no kid, but says of memory that it stays bounded: the product knows that no key has such a name.
  if (found.kind === 'cannot tell') {
    const alsoPermitted = `${kid}`.length > 256 ? (['token_invalid'] as const) : [];
    return { kind: 'refused', reason: 'keys_unavailable', alsoPermitted };
  }
  if (found.kind === 'no such key') return invalid;
  if (!proves(alg, found, `${segments[0]}.${segments[1]}`, signature)) return invalid;

  // Audience and claims.
  if (!isForUs(claimIn(payload, issuer.claims.aud, undefined), issuer.audiences)) return invalid;
  const claims = claimsOf(payload, { ...issuer, issuer: String(iss) }, account, settings);
  return claims === undefined ? invalid : { kind: 'signed', claims, payload };
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const values = new Map([...alphabet].map((char, value) => [char.charCodeAt(0), value]));

// RFC 4648 section 5 without padding: six bits per character, unused bits at the end are zero (section 3.5).
function bytesOf(segment: string): Buffer | undefined {
  if (segment === '') return undefined;
  const bytes = Buffer.alloc(Math.floor((segment.length * 6) / 8));
  let bits = 0;
  let held = 0;
  let at = 0;
  for (let i = 0; i < segment.length; i += 1) {
    const value = values.get(segment.charCodeAt(i));
    if (value === undefined) return undefined;
    held = (held << 6) | value;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes[at] = held >> bits;
      at += 1;
      held &= (1 << bits) - 1;
    }
  }
  return bits === 6 || held !== 0 ? undefined : bytes;
}

// RFC 7515 section 4.1.9: a media type, so its case does not matter, and `application/` may be left out before a name without
// a slash. A listed "" means absent, nothing else.
function isTypeAccepted(typ: Json | undefined, accepted: readonly string[]): boolean {
  if (typ === undefined) return accepted.includes('');
  if (typeof typ !== 'string' || typ === '') return false;
  const full = (type: string): string => asciiLower(type.includes('/') ? type : `application/${type}`);
  return accepted.some(type => type !== '' && full(type) === full(typ));
}

function asciiLower(text: string): string {
  return text.replace(/[A-Z]/g, letter => letter.toLowerCase());
}

function isForUs(aud: Json | undefined, audiences: readonly string[]): boolean {
  // RFC 7519 section 4.1.3: one text, or an array of texts.
  if (typeof aud === 'string') return audiences.includes(aud);
  if (!Array.isArray(aud)) return false;
  return aud.every(each => typeof each === 'string') && aud.some(each => audiences.includes(each));
}

// RFC 8705 section 3.1. Of a chain the first.
function isBoundTo(cnf: Json | undefined, certificate: string): boolean {
  if (!isObject(cnf) || [...cnf.keys()].join() !== 'x5t#S256') return false;
  let pem: string;
  try {
    pem = decodeURIComponent(certificate);
  } catch {
    return false;
  }
  const [before, body] = pem.split(/-----(?:BEGIN|END) CERTIFICATE-----/);
  if (before !== '' || body === undefined || !/^[A-Za-z0-9+/=\s]+$/.test(body)) return false;
  return cnf.get('x5t#S256') === createHash('sha256').update(body, 'base64').digest('base64url');
}

/** "It stands for an account in the grammar of accounts (as a label: that of hosts), and the token's account is the one that stands there." */
function issuerOf(iss: string, settings: Settings): { readonly issuer?: IssuerSettings; readonly account?: string } {
  for (const issuer of settings.issuers) {
    const [before = '', after] = issuer.issuer.split('{acc}');
    if (after === undefined) {
      if (issuer.issuer === iss) return { issuer };
      continue;
    }
    const account = iss.slice(before.length, iss.length - after.length);
    if (`${before}${account}${after}` !== iss || !isAccountName(account, settings)) continue;
    if (before.endsWith('://') && !/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(account)) continue;
    // "An `iss` without a key set of its own is token_invalid and never fetched."
    if (issuer.hasOwnKeySets && !issuer.accounts.includes(account)) continue;
    return { issuer, account };
  }
  return {};
}

function claimsOf(
  payload: JsonObject,
  issuer: IssuerSettings,
  account: string | undefined,
  settings: Settings,
): Claims | undefined {
  const { claims } = issuer;
  // "The first that the token has counts, that is an own member that is not null and not an empty string."
  const isThere = (source: string): boolean =>
    ![undefined, null, ''].some(each => claimIn(payload, source, undefined) === each);
  const text = (written: FieldSource): string | undefined => {
    const source = typeof written === 'string' ? written : written.find(isThere);
    if (source === undefined) return undefined;
    const found = textOf(claimIn(payload, source, undefined), issuer);
    return found !== undefined && isFieldText(found) ? found : undefined;
  };
  const uid = text(claims.uid);
  const app = text(claims.app);
  const accounts = accountsOf(payload, issuer, account, settings);
  if (uid === undefined || app === undefined || accounts === undefined) return undefined;
  // Optional in the token.
  const hasActor = claims.actor !== undefined && claimIn(payload, claims.actor, undefined) !== undefined;
  const actor = hasActor ? text(claims.actor ?? '') : undefined;
  if (hasActor && actor === undefined) return undefined;

  // "A missing claim: role_forbidden." A pointer with `{acc}` is judged later, in the role or scope check.
  const roleText = sourceText(claims.role);
  const isRoleOfAccount = hasAccount(roleText);
  if (!isRoleOfAccount) {
    const role = claimIn(payload, roleText, undefined);
    if (role !== undefined && namesOf(role, claims.role, undefined, issuer) === undefined) return undefined;
  }
  const isScopeRead = settings.scopes !== undefined;
  if (isScopeRead && !hasAccount(claims.scope) && scopesFor(payload, issuer, '') === undefined) return undefined;
  const [jti, sid] = [payload.get('jti'), payload.get('sid')];
  return {
    uid,
    app,
    iss: issuer.issuer,
    actor,
    accounts,
    forwarded: Object.entries(settings.forwardClaims).flatMap(([name, source]) => {
      const sent = forwardedText(claimIn(payload, source, undefined));
      return sent === undefined ? [] : [[name, sent] as const];
    }),
    jti: typeof jti === 'string' ? jti : Number.isSafeInteger(jti) ? String(jti) : undefined,
    sid: typeof sid === 'string' ? sid : undefined,
    rolesFor: acc => {
      const value = claimIn(payload, roleText, acc);
      return value === undefined ? [] : namesOf(value, claims.role, acc, issuer);
    },
    scopesFor: acc => (isScopeRead ? scopesFor(payload, issuer, acc) : []),
  };
}

// "An array, `keysOf` or `wordsOf` gives several, counted as different names, at most 1,000 before anything is ignored."
function accountsOf(
  payload: JsonObject,
  issuer: IssuerSettings,
  account: string | undefined,
  settings: Settings,
): readonly string[] | undefined {
  const source = issuer.claims.acc;
  const value = claimIn(payload, sourceText(source), undefined);
  // "`!` before it takes those accounts away, wherever it stands."
  const named = (entry: string, name: string): boolean =>
    entry.endsWith('*') ? name.startsWith(entry.slice(0, -1)) : Buffer.from(name).equals(Buffer.from(entry));
  const covered = (name: string): boolean =>
    issuer.accounts.some(entry => !entry.startsWith('!') && named(entry, name)) &&
    !issuer.accounts.some(entry => entry.startsWith('!') && named(entry.slice(1), name));
  // "Such an issuer speaks for that account alone, `accounts` still bounds it."
  if (account !== undefined) return covered(account) ? [account] : [];
  if (typeof source === 'string' && !Array.isArray(value)) {
    const name = textOf(value, issuer);
    if (name === undefined || !isAccountName(name, settings)) return undefined;
    return covered(name) ? [name] : [];
  }
  const names = value === undefined ? undefined : listOf(value, source, issuer);
  if (names === undefined) return undefined;
  const different = new Set(names);
  if (different.size > 1000) return undefined;
  return [...different].filter(name => isAccountName(name, settings) && covered(name));
}

/** "A to Z in an account that a request names is read as a to z." */
export function asNamed(account: string, { lower }: Settings): string {
  return lower ? asciiLower(account) : account;
}

/** The grammar of accounts. */
export function isAccountName(name: string, { dots, lower }: Settings): boolean {
  // "A token's account with an upper-case letter is outside the grammar."
  if (lower && /[A-Z]/.test(name)) return false;
  if (!dots) return /^[A-Za-z0-9_~-]{1,128}$/.test(name);
  return /^[A-Za-z0-9._~-]{1,128}$/.test(name) && name !== '.' && name !== '..';
}

function scopesFor(payload: JsonObject, issuer: IssuerSettings, acc: string): readonly string[] | undefined {
  const value = claimIn(payload, issuer.claims.scope, acc);
  if (value === undefined) return [];
  if (typeof value === 'string') return namesOf(value, { wordsOf: '' }, acc, issuer);
  return Array.isArray(value) ? namesOf(value, '', acc, issuer) : undefined;
}

/** `acc`: undefined while the addressed account is unknown; then only the types count. Undefined: `token_invalid`. */
function namesOf(
  value: Json,
  source: ListSource,
  acc: string | undefined,
  issuer: IssuerSettings,
): readonly string[] | undefined {
  if (typeof source === 'string' && !Array.isArray(value)) {
    // A string is one role.
    const role = textOf(value, issuer);
    return role === undefined ? undefined : [role];
  }
  let names = listOf(value, source, issuer);
  if (typeof source !== 'string' && 'having' in source && isObject(value)) {
    const counts = (each: Json): boolean => acc !== undefined && isObject(each) && each.has(acc);
    names = [...value].filter(([, each]) => counts(each)).map(([name]) => name);
  }
  return names !== undefined && names.length <= 250 ? names : undefined;
}

/** The names of a list in the form of the source; undefined if it has another form. */
function listOf(value: Json, source: ListSource, issuer: IssuerSettings): readonly string[] | undefined {
  if (typeof source === 'string') {
    if (!Array.isArray(value)) return undefined;
    // "With allowIntegerClaims, members of lists may be such integers too."
    const members = value.map(each => textOf(each, issuer));
    return members.every(each => each !== undefined) ? members : undefined;
  }
  if ('keysOf' in source) return isObject(value) ? [...value.keys()] : undefined;
  if (typeof value !== 'string') return undefined;
  const words = value === '' ? [] : value.split(source.by ?? ' ');
  return words.includes('') ? undefined : words;
}

function sourceText(source: ListSource): string {
  if (typeof source === 'string') return source;
  return 'keysOf' in source ? source.keysOf : source.wordsOf;
}

function hasAccount(source: string): boolean {
  return source.startsWith('/') && source.split('/').includes('{acc}');
}

// A name without a leading `/` is a top-level member, byte for byte; one with it a JSON Pointer (RFC 6901) into the payload, own members
// and array indices only. A whole segment `{acc}` is the own member of an object named like the account, put in after the split.
function claimIn(payload: JsonObject, source: string, acc: string | undefined): Json | undefined {
  if (!source.startsWith('/')) return payload.get(source);
  let value: Json | undefined = payload;
  for (const part of source.split('/').slice(1)) {
    const isAccount = part === '{acc}' && acc !== undefined;
    const key = isAccount ? acc : part.replace(/~[01]/g, each => (each === '~0' ? '~' : '/'));
    if (isObject(value)) value = value.get(key);
    else if (Array.isArray(value) && !isAccount) value = value.find((_, index) => String(index) === key);
    else return undefined;
  }
  return value;
}

function textOf(value: Json | undefined, issuer: IssuerSettings): string | undefined {
  if (typeof value === 'string') return value;
  const isDigits = typeof value === 'number' && /^(?:0|[1-9][0-9]*)$/.test(Object.is(value, -0) ? '-0' : String(value));
  return isDigits && issuer.allowIntegerClaims && Number.isSafeInteger(value) ? String(value) : undefined;
}

// "A string of 1 to 256 visible ASCII characters and inner single spaces, a safe integer or a boolean."
function forwardedText(value: Json | undefined): string | undefined {
  if (typeof value === 'boolean' || (typeof value === 'number' && Number.isSafeInteger(value))) return `${value}`;
  if (typeof value !== 'string' || value.length > 256) return undefined;
  const isWord = (word: string): boolean => word !== '' && [...word].every(char => char > ' ' && char <= '~');
  return value.split(' ').every(isWord) ? value : undefined;
}

// 1 to 128 visible ASCII characters without space, comma, semicolon and double quote.
function isFieldText(text: string): boolean {
  const isVisible = [...text].every(char => char > ' ' && char <= '~' && char !== ',' && char !== ';' && char !== '"');
  return text.length >= 1 && text.length <= 128 && isVisible;
}

function isTime(value: Json | undefined): value is number {
  return typeof value === 'number' && Math.abs(value) !== Number.POSITIVE_INFINITY;
}
