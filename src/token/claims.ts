// Parses the claims of a token with a valid signature. Expiry is checked last.
import type { DetailOf } from '../authz/checks.ts';
import { type Identity, isAccount, isIdentityField } from '../authz/principal.ts';
import { type Refusal, refusal } from '../authz/refusal.ts';
import { type JsonPath, parsePath, valueAt } from '../json/json-pointer.ts';
import { memberOf } from '../json/strict-json.ts';
import { type ClaimSource, textOf } from './claim-source.ts';

/** Where the payload has each identity field. */
export type ClaimPaths = Readonly<Record<'uid' | 'app' | 'acc' | 'role', JsonPath>>;

/** What the tokens of an issuer must contain. */
export interface ClaimRules {
  readonly issuer: string;
  readonly audiences: ReadonlySet<string>;
  readonly claims: ClaimPaths;
  readonly allowIntegerClaims: boolean;
}

export interface TimeRules {
  readonly clockToleranceSeconds: number;
  readonly maxLifetimeSeconds: number;
}

/** NumericDate values (RFC 7519 section 2): seconds since the epoch, fractions allowed. */
export interface TokenTimes {
  readonly exp: number;
  readonly nbf: number | undefined;
  readonly iat: number | undefined;
}

export interface Claims extends TokenTimes {
  readonly kind: 'claims';
  readonly identity: Identity;
  /** A safe integer as its digits. Undefined if it is absent, of another type, or longer than a revocation list can name: it is kept for each cached token. */
  readonly jti: string | undefined;
}

export const maxIdLength = 1024;

type Payload = Readonly<Record<string, unknown>>;

export function toClaimPaths(names: Readonly<Record<keyof ClaimPaths, ClaimSource>>): ClaimPaths {
  const { uid, app, acc, role } = names;
  return { uid: toClaimPath(uid), app: toClaimPath(app), acc: toClaimPath(acc), role: toClaimPath(role) };
}

function toClaimPath(source: ClaimSource): JsonPath {
  const path = parsePath(textOf(source));
  if (path === undefined) throw new Error('the configuration has an invalid JSON Pointer');
  return path;
}

/** Checks issuer, audience, key binding, identity fields and the types of the times. `checkTimes` compares the times with now. */
export function parseClaims(payload: Payload, rules: ClaimRules): Claims | Refusal {
  if (memberOf(payload, 'iss') !== rules.issuer) return invalid('iss is not the issuer');
  if (!namesAudience(memberOf(payload, 'aud'), rules.audiences)) return invalid('aud names none of audiences');
  // RFC 7800: the sender of such a token must also prove possession of a key, which a plain bearer request does not.
  if (Object.hasOwn(payload, 'cnf')) return invalid('cnf: bound to a key, not a plain bearer token');

  const times = parseTimes(payload);
  if ('kind' in times) return times;
  const uid = identityField(payload, rules, 'uid');
  if (typeof uid !== 'string') return uid;
  const app = identityField(payload, rules, 'app');
  if (typeof app !== 'string') return app;
  const acc = identityField(payload, rules, 'acc');
  if (typeof acc !== 'string') return acc;
  if (!isAccount(acc, true)) return invalid('acc is outside the grammar');
  const role = parseRole(payload, rules);
  if (typeof role !== 'string' && 'kind' in role) return role;
  const { exp, nbf, iat } = times;
  const jti = idOf(payload);
  return { kind: 'claims', identity: { uid, app, acc, role, iss: rules.issuer }, jti, exp, nbf, iat };
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

function idOf(payload: Payload): string | undefined {
  const claim = memberOf(payload, 'jti');
  // RFC 7519 section 4.1.7 wants a string. Some issuers number their tokens.
  const jti = Number.isSafeInteger(claim) ? String(claim) : claim;
  return typeof jti === 'string' && jti.length <= maxIdLength ? jti : undefined;
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

const maxRoles = 100;

function parseRole(payload: Payload, rules: ClaimRules): Identity['role'] | Refusal {
  const value = valueAt(payload, rules.claims.role);
  if (!Array.isArray(value)) return identityField(payload, rules, 'role');
  const roles: readonly unknown[] = value;
  if (roles.length === 0 || roles.length > maxRoles || !roles.every(isString)) {
    return invalid('role is not a list of 1 to 100 strings');
  }
  // Other strings cannot be a configured role.
  return roles.filter(isIdentityField);
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}

function identityField(payload: Payload, rules: ClaimRules, field: keyof ClaimPaths): string | Refusal {
  const value = valueAt(payload, rules.claims[field]);
  if (typeof value === 'number') {
    if (!rules.allowIntegerClaims) return invalid(`${field} is a number and allowIntegerClaims is off`);
    // Beyond the safe integers, JSON parsing reads two texts as one number, so two accounts could become one.
    if (!Number.isSafeInteger(value) || value < 0 || Object.is(value, -0))
      return invalid(`${field} is not a safe integer`);
    return String(value);
  }
  if (typeof value !== 'string') return invalid(`${field} is missing or not a string`);
  return isIdentityField(value) ? value : invalid(`${field} is outside the grammar`);
}

function invalid(detail: DetailOf<'token_invalid'>): Refusal {
  return refusal('token_invalid', detail);
}
