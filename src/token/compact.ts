// Parses a compact JWS strictly, before anything verifies its signature.
import type { DetailOf } from '../authz/checks.ts';
import { type Refusal, refusal } from '../authz/refusal.ts';
import { isJsonObject, memberOf, parseStrictJson } from '../json/strict-json.ts';

export interface CompactJws {
  readonly kind: 'compact';
  readonly alg: string;
  /** Absent if the header has none, as the next three. */
  readonly kid: string | undefined;
  readonly x5t: string | undefined;
  readonly x5tS256: string | undefined;
  readonly typ: string | undefined;
  readonly payload: Readonly<Record<string, unknown>>;
}

const compactGrammar = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)$/;

// Members that change what is verified, or that name or contain a key (RFC 7515 section 4.1, RFC 7516 section 4.1.3,
// RFC 7797): a token must not choose its key. `jku`, `x5u`, `x5c` and unknown members are ignored and never fetched; a thumbprint tells
// keys of the issuer apart.
const refusedMembers = ['crit', 'b64', 'zip', 'jwk'] as const;

export function parseCompactJws(token: string): CompactJws | Refusal {
  const [, headerText = '', payloadText = '', signature = ''] = compactGrammar.exec(token) ?? [];
  if (headerText === '' || ![headerText, payloadText, signature].every(isCanonical)) return invalid(misuseIn(token));
  const header = parseStrictJson(Buffer.from(headerText, 'base64url'));
  if (header.kind === 'problem') return invalid(`header: ${header.problem}`);
  if (!isJsonObject(header.value)) return invalid('header: not an object');
  for (const member of refusedMembers) {
    if (Object.hasOwn(header.value, member)) return invalid(`header: ${member} is not accepted`);
  }
  const [alg, kid, typ] = [memberOf(header.value, 'alg'), memberOf(header.value, 'kid'), memberOf(header.value, 'typ')];
  const [x5t, x5tS256] = [memberOf(header.value, 'x5t'), memberOf(header.value, 'x5t#S256')];
  if (typeof alg !== 'string') return invalid('header: alg is not a string');
  if (kid !== undefined && (typeof kid !== 'string' || kid === ''))
    return invalid('header: kid is not a non-empty string');
  if (typ !== undefined && typeof typ !== 'string') return invalid('header: typ is not a string');

  const payload = parseStrictJson(Buffer.from(payloadText, 'base64url'));
  if (payload.kind === 'problem') return invalid(`payload: ${payload.problem}`);
  if (!isJsonObject(payload.value)) return invalid('payload: not an object');
  return { kind: 'compact', alg, kid, x5t: textOrNone(x5t), x5tS256: textOrNone(x5tS256), typ, payload: payload.value };
}

function textOrNone(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

// What clients send by mistake, each seen in the field.
const misuses: readonly (readonly [form: RegExp, detail: DetailOf<'token_invalid'>])[] = [
  [/^["']/, 'the token is in quotes'],
  [/^bearer /i, 'Bearer twice'],
  [/^(?:bearer|jwt|token)[ :=]/i, 'another word before the token'],
  [
    /^(?:null|undefined|nil|none|nan|true|false|(?:access[_-]?)?token|\[object \w+\]|your[-_].*|[$%]?[{(<].*[)}>]|[$%]\w+)$/i,
    'a word in the place of the token',
  ],
  [/^ZXlK/, 'a token in base64 once more'],
  [/^v\d\.(?:local|public)\./, 'a PASETO, no JWT'],
  [/\.\.\.$/, 'a token without its last segment'],
];

/** Of a text that is not three segments in canonical base64url. */
function misuseIn(token: string): DetailOf<'token_invalid'> {
  const [, known] = misuses.find(([form]) => form.test(token)) ?? [];
  if (known !== undefined) return known;
  const segments = token.split('.');
  const [headerText = '', , signature = ''] = segments;
  const header = parseStrictJson(Buffer.from(headerText, 'base64url'));
  const isJwt = header.kind === 'value' && isJsonObject(header.value);
  // One that was cut in its header has no JSON any more.
  if (segments.length === 1 && !isJwt && !token.startsWith('eyJ')) return 'an opaque token, no JWT';
  if (!/^[A-Za-z0-9._~+/=-]+$/.test(token)) return 'not three base64url segments';
  const alg = isJwt ? memberOf(header.value, 'alg') : undefined;
  // RFC 7516 section 7.1; not two tokens in one, whose algorithm is one of signatures (RFC 7518 section 3.1).
  if (segments.length === 5 && !(typeof alg === 'string' && /^(?:[HRPE]S\d|Ed)/.test(alg))) return 'an encrypted token';
  if (/[+/=]/.test(token)) return 'segments in base64, not base64url';
  if (segments.length > 3) return `${segments.length} segments, not the three of a signed JWT`;
  if (compactGrammar.test(token)) return 'a segment is not canonical base64url';
  if (signature !== '') return 'not three base64url segments';
  if (!isJwt && segments.length > 1) return 'an opaque token, no JWT';
  // RFC 7519 section 6.1.
  const isUnsigned = segments.length > 1 && typeof alg === 'string' && alg.toLowerCase() === 'none';
  return isUnsigned ? 'an unsigned token' : 'a token without its last segment';
}

// RFC 4648 section 3.5: pad bits must be zero. Otherwise several texts decode to the same bytes, and one signature fits several tokens.
// Only the last character has pad bits; a length of 1 modulo 4 is invalid.
function isCanonical(segment: string): boolean {
  const over = segment.length % 4;
  const last = segment.slice(-1);
  return over === 0 || (over === 2 && 'AQgw'.includes(last)) || (over === 3 && 'AEIMQUYcgkosw048'.includes(last));
}

function invalid(detail: DetailOf<'token_invalid'>): Refusal {
  return refusal('token_invalid', detail);
}
