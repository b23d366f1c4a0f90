// Parses the claims of a token with a valid signature. Expiry is checked last.
import type { DetailOf } from '../authz/checks.ts';
import type { Identity } from '../authz/principal.ts';
import { type Refusal, refusal } from '../authz/refusal.ts';
import { memberOf } from '../json/strict-json.ts';
import { type IdentityRules, parseIdentity } from './identity-claims.ts';

/** What the tokens of an issuer must contain. */
export interface ClaimRules extends IdentityRules {
  readonly audiences: ReadonlySet<string>;
}

export interface TimeRules {
  readonly clockToleranceSeconds: number;
  readonly maxLifetimeSeconds: number;
}

/** NumericDate values (RFC 7519 section 2): seconds since the epoch, fractions allowed. */
interface TokenTimes {
  readonly exp: number;
  readonly nbf: number | undefined;
  readonly iat: number | undefined;
}

export interface Claims extends TokenTimes {
  readonly kind: 'claims';
  readonly identity: Identity;
}

type Payload = Readonly<Record<string, unknown>>;

/** Checks issuer, audience, key binding, identity fields and the types of the times. `checkTimes` compares the times with now. */
export function parseClaims(payload: Payload, rules: ClaimRules): Claims | Refusal {
  if (memberOf(payload, 'iss') !== rules.issuer) return invalid('iss is not the issuer');
  if (!namesAudience(memberOf(payload, 'aud'), rules.audiences)) return invalid('aud names none of audiences');
  // RFC 7800: the sender of such a token must also prove possession of a key, which a plain bearer request does not.
  if (Object.hasOwn(payload, 'cnf')) return invalid('cnf: bound to a key, not a plain bearer token');

  const times = parseTimes(payload);
  if ('kind' in times) return times;
  const identity = parseIdentity(payload, rules);
  if ('kind' in identity) return identity;
  const { exp, nbf, iat } = times;
  return { kind: 'claims', identity, exp, nbf, iat };
}

/** Runs per request, also for a cached token. `now` is wall time in seconds. */
export function checkTimes(times: TokenTimes, rules: TimeRules, now: number): Refusal | undefined {
  const { exp, nbf, iat } = times;
  const latest = now + rules.clockToleranceSeconds;
  if (iat !== undefined && iat > latest) return invalid('iat is in the future');
  if (iat !== undefined && iat > exp) return invalid('iat is after exp');
  if (exp - (iat ?? now) > rules.maxLifetimeSeconds) return invalid('lives longer than maxLifetimeSeconds');
  if (nbf !== undefined && nbf > latest) return invalid('nbf is in the future');
  // RFC 7519 section 4.1.4: not accepted on or after exp.
  if (now >= exp + rules.clockToleranceSeconds) return refusal('token_expired', 'exp has passed');
  return undefined;
}

function namesAudience(aud: unknown, audiences: ReadonlySet<string>): boolean {
  if (typeof aud === 'string') return audiences.has(aud);
  if (!Array.isArray(aud) || !aud.every(each => typeof each === 'string')) return false;
  return aud.some(each => audiences.has(each));
}

function parseTimes(payload: Payload): TokenTimes | Refusal {
  const exp = memberOf(payload, 'exp');
  const nbf = memberOf(payload, 'nbf');
  const iat = memberOf(payload, 'iat');
  if (!isTime(exp)) return invalid('exp is not a time');
  if (nbf !== undefined && !isTime(nbf)) return invalid('nbf is not a time');
  if (iat !== undefined && !isTime(iat)) return invalid('iat is not a time');
  return { exp, nbf, iat };
}

function isTime(value: unknown): value is number {
  return Number.isFinite(value);
}

function invalid(detail: DetailOf<'token_invalid'>): Refusal {
  return refusal('token_invalid', detail);
}
