// Parses the claims of a token with a valid signature. Expiry is checked last.
import type { DetailOf } from '../authz/checks.ts';
import type { Identity } from '../authz/principal.ts';
import { type Refusal, refusal } from '../authz/refusal.ts';
import { memberOf } from '../json/strict-json.ts';
import { parseBinding } from './binding.ts';
import { type CompiledSource, readSource } from './claim-source.ts';
import { describeClaim, type IdentityRules, parseIdentity } from './identity-claims.ts';

/** What the tokens of an issuer must contain. */
export interface ClaimRules extends IdentityRules {
  readonly aud: CompiledSource;
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
  /** The SHA-256 of the client certificate that the token is bound to, in base64url. */
  readonly certificate: string | undefined;
  readonly identity: Identity;
}

type Payload = Readonly<Record<string, unknown>>;

/** Checks issuer, audience, identity fields, the form of the binding and the types of the times. */
export function parseClaims(payload: Payload, rules: ClaimRules): Claims | Refusal {
  if (memberOf(payload, 'iss') !== rules.issuer) return invalid('iss is not the issuer');
  if (!namesAudience(payload, rules)) {
    return refusal('token_invalid', 'aud names none of audiences', describeClaim(payload, rules.aud));
  }
  const times = parseTimes(payload);
  if ('kind' in times) return times;
  const identity = parseIdentity(payload, rules);
  if ('kind' in identity) return identity;
  const certificate = parseBinding(memberOf(payload, 'cnf'));
  if (typeof certificate === 'object') return certificate;
  return { kind: 'claims', identity, certificate, ...times };
}

/** Runs per request, also for a cached token. `now` is wall time in seconds. */
export function checkTimes(times: TokenTimes, rules: TimeRules, now: number): Refusal | undefined {
  const { exp, nbf, iat } = times;
  const latest = now + rules.clockToleranceSeconds;
  if (iat !== undefined && iat > latest)
    return refusal('token_invalid', 'iat is in the future', `issued ${seconds(iat - now)} from now${checkClock}`);
  if (iat !== undefined && iat > exp) return refusal('token_invalid', 'iat is after exp', `by ${seconds(iat - exp)}`);
  const life = exp - (iat ?? now);
  if (life > rules.maxLifetimeSeconds)
    return refusal('token_invalid', 'lives longer than maxLifetimeSeconds', `it lives ${seconds(life)}`);
  if (nbf !== undefined && nbf > latest)
    return refusal('token_invalid', 'nbf is in the future', `valid ${seconds(nbf - now)} from now${checkClock}`);
  // RFC 7519 section 4.1.4: not accepted on or after exp.
  if (now < exp + rules.clockToleranceSeconds) return undefined;
  const issued = iat === undefined ? '' : `, issued ${seconds(now - iat)} ago`;
  return refusal('token_expired', 'exp has passed', `expired ${seconds(now - exp)} ago${issued}${checkClock}`);
}

const checkClock = ': check this clock if every token fails';

function seconds(count: number): string {
  return `${Math.round(count)} s`;
}

function namesAudience(payload: Payload, { aud, audiences }: ClaimRules): boolean {
  const value = readSource(payload, aud);
  if (typeof value === 'string') return audiences.has(value);
  return value !== undefined && !('problem' in value) && value.some(each => audiences.has(each));
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
