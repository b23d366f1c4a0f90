// Parses the claims of a token with a valid signature, and compares them with the time and the client. Expiry is checked last.
import { createHash } from 'node:crypto';
import type { DetailOf } from '../authz/checks.ts';
import type { Identity } from '../authz/principal.ts';
import { type Refusal, refusal } from '../authz/refusal.ts';
import type { RequestFacts } from '../authz/request-facts.ts';
import { isJsonObject, memberOf, nameOfType } from '../json/strict-json.ts';
import { type CompiledSource, readSource } from './claim-source.ts';
import { describeClaim, type IdentityRules, identityProblems, parseIdentity } from './identity-claims.ts';

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

/** Each thing that is wrong with a verified token, for a person who must mend all of them: what parseClaims and checkTimes find, and a missing role. */
export function claimProblems(payload: Payload, rules: ClaimRules, times: TimeRules, now: number): readonly Refusal[] {
  const parsed = parseTimes(payload);
  const late = 'kind' in parsed ? parsed : checkTimes(parsed, times, now);
  return [...identityProblems(payload, rules), ...(late?.reason === 'token_invalid' ? [late] : [])];
}

/** Runs per request, also for a cached token. `now` is wall time in seconds. */
export function checkTimes(times: TokenTimes, rules: TimeRules, now: number): Refusal | undefined {
  const { exp, nbf, iat } = times;
  const latest = now + rules.clockToleranceSeconds;
  if (iat !== undefined && iat > latest)
    return refusal('token_invalid', 'iat is in the future', `issued ${seconds(iat - now)} from now${checkClock}`);
  if (iat !== undefined && iat > exp) return refusal('token_invalid', 'iat is after exp', `by ${seconds(iat - exp)}`);
  const life = exp - (iat ?? now);
  if (life > rules.maxLifetimeSeconds) {
    const found = iat === undefined ? `it has no iat and expires in ${grouped(life)} s` : `it lives ${seconds(life)}`;
    return refusal('token_invalid', 'lives longer than maxLifetimeSeconds', found);
  }
  if (nbf !== undefined && nbf > latest)
    return refusal('token_invalid', 'nbf is in the future', `valid ${seconds(nbf - now)} from now${checkClock}`);
  // RFC 7519 section 4.1.4: not accepted on or after exp.
  if (now < exp + rules.clockToleranceSeconds) return undefined;
  const issued = iat === undefined ? '' : `, issued ${seconds(now - iat)} ago`;
  return refusal('token_expired', 'exp has passed', `expired ${seconds(now - exp)} ago${issued}${checkClock}`);
}

const checkClock = ': check this clock if every token fails';

function grouped(count: number): string {
  return Math.round(count).toLocaleString('en-US');
}

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
  if (exp === undefined) return invalid('there is no exp');
  if (!isTime(exp)) return noTime('exp', exp);
  if (nbf !== undefined && !isTime(nbf)) return noTime('nbf', nbf);
  if (iat !== undefined && !isTime(iat)) return noTime('iat', iat);
  return { exp, nbf, iat };
}

function noTime(name: 'exp' | 'nbf' | 'iat', value: unknown): Refusal {
  return refusal('token_invalid', `${name} is not a time`, `${name} is ${nameOfType(value)}`);
}

function isTime(value: unknown): value is number {
  return Number.isFinite(value);
}

function invalid(detail: DetailOf<'token_invalid'>): Refusal {
  return refusal('token_invalid', detail);
}

// Tokens that are bound to a client certificate (RFC 8705 section 3.1).

const thumbprintGrammar = /^[A-Za-z0-9_-]{43}$/;

/** The thumbprint in `cnf`; undefined without `cnf`. Only `x5t#S256` alone can be checked: any other key proves itself in other ways. */
export function parseBinding(cnf: unknown): string | undefined | Refusal {
  if (cnf === undefined) return undefined;
  const [[name, thumbprint] = [], ...others] = isJsonObject(cnf) ? Object.entries(cnf) : [];
  const isAlone = name === 'x5t#S256' && others.length === 0;
  if (isAlone && typeof thumbprint === 'string' && thumbprintGrammar.test(thumbprint)) return thumbprint;
  return refusal('token_invalid', 'cnf has not x5t#S256 alone');
}

/** The sender of a token, as far as a token can be bound to it. */
export type Client = Pick<RequestFacts, 'certificate'>;

export function checkBinding(thumbprint: string | undefined, client: Client): Refusal | undefined {
  if (thumbprint === undefined) return undefined;
  const shown = thumbprintOf(client.certificate);
  if (shown === undefined) return refusal('token_invalid', 'cnf names a certificate, and the check shows none');
  return shown === thumbprint
    ? undefined
    : refusal('token_invalid', 'cnf names another certificate than that of the client');
}

// Of a chain the first.
function thumbprintOf(certificate: string): string | undefined {
  const [, base64] =
    /^-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/.exec(decoded(certificate)) ?? [];
  return base64 && createHash('sha256').update(Buffer.from(base64, 'base64')).digest('base64url');
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}
