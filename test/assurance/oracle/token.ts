// Verifies a bearer token, by the contract, "Grammar of a token": returns its identity or the reason of the refusal.
import { findKey, type IssuerKeys, proves } from './issuer-keys.ts';
import { isObject, type Json, type JsonObject, readJson } from './json.ts';
import type { IssuedToken } from './revocation.ts';
import type { IssuerSettings, Settings } from './settings.ts';

export interface Identity {
  readonly uid: string;
  readonly app: string;
  readonly acc: string;
  /** One role or a list, as in the token. */
  readonly role: string | readonly string[];
  readonly iss: string;
}

export type TokenFinding =
  | ({ readonly kind: 'identity' } & IssuedToken)
  | { readonly kind: 'refused'; readonly reason: TokenReason; readonly alsoPermitted: readonly TokenReason[] };

export type TokenReason = 'token_invalid' | 'token_expired' | 'keys_unavailable';

const invalid: TokenFinding = { kind: 'refused', reason: 'token_invalid', alsoPermitted: [] };

/** `keys`: by issuer; `now`: seconds since the epoch. */
export function verifyToken(
  token: string,
  settings: Settings,
  keys: ReadonlyMap<string, IssuerKeys>,
  now: number,
): TokenFinding {
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
  if (['crit', 'b64', 'zip', 'jwk', 'jku', 'x5u'].some(member => header.has(member))) return invalid;
  const alg = header.get('alg');
  const kid = header.get('kid');
  if (typeof alg !== 'string' || typeof kid !== 'string' || kid === '') return invalid;

  // The issuer is configured; only its own algorithms, token types and keys count.
  const issuer = settings.issuers.find(each => each.issuer === payload.get('iss'));
  const issuerKeys = issuer === undefined ? undefined : keys.get(issuer.issuer);
  if (issuer === undefined || issuerKeys === undefined) return invalid;
  if (!issuer.algorithms.includes(alg) || !isTypeAccepted(header.get('typ'), issuer.tokenTypes)) return invalid;

  // The signature.
  const found = findKey(issuerKeys, kid);
  // the contract bounds no kid, but says of memory that it stays bounded: the product knows that no key has such a name.
  if (found.kind === 'cannot tell') {
    return { kind: 'refused', reason: 'keys_unavailable', alsoPermitted: kid.length > 256 ? ['token_invalid'] : [] };
  }
  if (found.kind === 'no such key') return invalid;
  if (!proves(alg, found, `${segments[0]}.${segments[1]}`, signature)) return invalid;

  // Audience and claims.
  if (!isForUs(payload.get('aud'), issuer.audiences) || payload.has('cnf')) return invalid;
  const identity = identityOf(payload, issuer);
  if (identity === undefined) return invalid;

  // Times, expiry last.
  const tolerance = settings.clockToleranceSeconds;
  const [exp, nbf, iat] = [payload.get('exp'), payload.get('nbf'), payload.get('iat')];
  if (!isTime(exp) || !(nbf === undefined || isTime(nbf)) || !(iat === undefined || isTime(iat))) return invalid;
  if (nbf !== undefined && nbf > now + tolerance) return invalid;
  if (iat !== undefined && (iat > now + tolerance || iat > exp)) return invalid;
  const lifetime = iat === undefined ? exp - now : exp - iat;
  if (lifetime > settings.maxLifetimeSeconds) return invalid;
  if (now >= exp + tolerance) return { kind: 'refused', reason: 'token_expired', alsoPermitted: [] };
  const jti = payload.get('jti');
  return { kind: 'identity', identity, iat, jti: typeof jti === 'string' ? jti : undefined };
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

function identityOf(payload: JsonObject, issuer: IssuerSettings): Identity | undefined {
  const uid = textOf(claimIn(payload, issuer.claims.uid), issuer);
  const app = textOf(claimIn(payload, issuer.claims.app), issuer);
  const acc = textOf(claimIn(payload, issuer.claims.acc), issuer);
  const role = roleOf(claimIn(payload, issuer.claims.role), issuer);
  if (uid === undefined || app === undefined || acc === undefined || role === undefined) return undefined;
  if (![uid, app].every(isFieldText)) return undefined;
  if (!/^[A-Za-z0-9._~-]{1,128}$/.test(acc) || acc === '.' || acc === '..') return undefined;
  return { uid, app, acc, role, iss: issuer.issuer };
}

// A name without a leading `/` is a top-level member, byte for byte; one with it a JSON Pointer (RFC 6901) into the payload,
// own members and array indices only.
function claimIn(payload: JsonObject, name: string): Json | undefined {
  if (!name.startsWith('/')) return payload.get(name);
  let value: Json | undefined = payload;
  for (const part of name.split('/').slice(1)) {
    const key = part.replace(/~[01]/g, each => (each === '~0' ? '~' : '/'));
    if (isObject(value)) value = value.get(key);
    else if (Array.isArray(value)) value = value.find((_, index) => String(index) === key);
    else return undefined;
  }
  return value;
}

// A string, or an array of 1 to 100 strings.
function roleOf(value: Json | undefined, issuer: IssuerSettings): string | readonly string[] | undefined {
  if (!Array.isArray(value)) {
    const role = textOf(value, issuer);
    return role !== undefined && isFieldText(role) ? role : undefined;
  }
  const roles = value.filter(each => typeof each === 'string');
  return roles.length === value.length && roles.length >= 1 && roles.length <= 100 ? roles : undefined;
}

function textOf(value: Json | undefined, issuer: IssuerSettings): string | undefined {
  if (typeof value === 'string') return value;
  const isDigits = typeof value === 'number' && /^(?:0|[1-9][0-9]*)$/.test(Object.is(value, -0) ? '-0' : String(value));
  return isDigits && issuer.allowIntegerClaims && Number.isSafeInteger(value) ? String(value) : undefined;
}

// 1 to 128 visible ASCII characters without space, comma, semicolon and double quote.
function isFieldText(text: string): boolean {
  const isVisible = [...text].every(char => char > ' ' && char <= '~' && char !== ',' && char !== ';' && char !== '"');
  return text.length >= 1 && text.length <= 128 && isVisible;
}

function isTime(value: Json | undefined): value is number {
  return typeof value === 'number' && Math.abs(value) !== Number.POSITIVE_INFINITY;
}
