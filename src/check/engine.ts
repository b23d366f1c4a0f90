// Decides one request by the policy and the token verification of one configuration. The server and `explain` share it.
import { isDeepStrictEqual } from 'node:util';
import { compileAccountParameters } from '../authz/account-query.ts';
import { admit, authorize, type Policy } from '../authz/authorize.ts';
import type { Decision } from '../authz/decision.ts';
import type { Principal } from '../authz/principal.ts';
import { refusal } from '../authz/refusal.ts';
import type { RequestFacts } from '../authz/request-facts.ts';
import { compileRoles } from '../authz/role.ts';
import { compileRoutes } from '../authz/route-tree.ts';
import type { Config, IssuerConfig } from '../config/schema.ts';
import type { VerificationKey } from '../keys/jwks.ts';
import type { RevocationList } from '../revocation/revocation-list.ts';
import { toClaimPaths } from '../token/claims.ts';
import { createVerifiedTokens, type VerifiedTokens } from '../token/verified-tokens.ts';
import {
  createTokenVerifier,
  type IssuerKeys,
  normalizeTokenType,
  type TrustedIssuer,
  type Verification,
} from '../token/verifier.ts';

/** A decision, and what the log and the metrics report about it. */
export interface CheckResult {
  readonly decision: Decision;
  /** The template that the path matched. */
  readonly route: string | undefined;
  /** Set once the token is verified, even if the request is refused later. */
  readonly principal: Principal | undefined;
  readonly kid: string | undefined;
  readonly cache: 'hit' | 'miss' | undefined;
}

export interface Engine {
  /** Synchronous when the result is already known, as for a cached token. Throws and rejects only on an internal error. */
  decide(facts: RequestFacts): CheckResult | Promise<CheckResult>;
  cachedTokens(): number;
}

/** The cache of verified tokens, and the settings that they were verified with. */
export interface TokenMemory {
  readonly issuers: Config['issuers'];
  readonly maxTokens: number;
  readonly verifiedTokens: VerifiedTokens<VerificationKey>;
}

/**
 * Reuses the cache of the previous configuration if it still has all issuers of that one, with the same token rules. Keys need no
 * comparison: a cached token is valid only while the key object that verified it is in use.
 */
export function createTokenMemory({ issuers, cache }: Config, before?: TokenMemory): TokenMemory {
  const { maxTokens } = cache;
  const canReuse =
    before?.maxTokens === maxTokens &&
    before.issuers.every(known => issuers.some(issuer => verifiesAlike(issuer, known)));
  return { issuers, maxTokens, verifiedTokens: canReuse ? before.verifiedTokens : createVerifiedTokens(maxTokens) };
}

// The settings that decide whether a token is valid, except its key and what is checked per request, such as its times.
function verifiesAlike(one: IssuerConfig, other: IssuerConfig): boolean {
  const rulesOf = ({ issuer, audiences, claims, allowIntegerClaims, algorithms, tokenTypes }: IssuerConfig) => ({
    issuer,
    audiences,
    claims,
    allowIntegerClaims,
    algorithms,
    tokenTypes,
  });
  return isDeepStrictEqual(rulesOf(one), rulesOf(other));
}

// A signature takes 20 to 200 µs of a thread. With more in flight, a new one would miss Envoy's timeout of the check.
const maxSignatures = 2000;

export function createEngine(options: {
  readonly config: Config;
  /** One per issuer of the configuration, by `iss`. */
  readonly keyRings: ReadonlyMap<string, IssuerKeys>;
  /** From `createTokenMemory` for this configuration; by default a new one. */
  readonly memory?: TokenMemory;
  /** Asked for each verified token, so that a reload takes effect at once; undefined without a list. */
  readonly revocations?: () => RevocationList | undefined;
  /** Wall time in seconds since the epoch. */
  readonly now: () => number;
}): Engine {
  const { config, keyRings, revocations = () => undefined, now } = options;
  const policy = toPolicy(config);
  const { verifiedTokens } = options.memory ?? createTokenMemory(config);
  const verifier = createTokenVerifier({
    issuers: new Map(config.issuers.map(issuer => [issuer.issuer, toTrustedIssuer(issuer, keyRings)])),
    times: config.token,
    maxBytes: config.token.maxBytes,
    verifiedTokens,
    maxSignatures,
    now,
  });
  return {
    decide(facts) {
      const { route, outcome } = admit(policy, facts);
      if (outcome.kind === 'refusal') {
        return { decision: outcome, route, principal: undefined, kid: undefined, cache: undefined };
      }
      const decideVerified = ({ outcome: claims, kid, cache }: Verification): CheckResult => {
        if (claims.kind === 'refusal') return { decision: claims, route, principal: undefined, kid, cache };
        const { decision: authorized, principal } = authorize(policy, outcome, claims.identity);
        const revokedBy = revocations()?.find({ ...claims.identity, jti: claims.jti, iat: claims.iat }, now());
        const decision =
          revokedBy === undefined
            ? authorized
            : refusal('token_revoked', `the revocation list has an entry for ${revokedBy}`);
        return { decision, route, principal, kid, cache };
      };
      const verification = verifier.verify(outcome.token);
      return verification instanceof Promise ? verification.then(decideVerified) : decideVerified(verification);
    },
    cachedTokens: () => verifiedTokens.size(),
  };
}

function toPolicy(config: Config): Policy {
  return {
    routes: compileRoutes(config.routes, config.account.parameter),
    roles: compileRoles(config.roles),
    apps: config.apps.includes('*') ? undefined : new Set(config.apps),
    accountPlaces: { headers: config.account.headers, query: compileAccountParameters(config.account.query) },
    identityPrefix: config.identityHeaders,
  };
}

function toTrustedIssuer(config: IssuerConfig, keyRings: ReadonlyMap<string, IssuerKeys>): TrustedIssuer {
  const keys = keyRings.get(config.issuer);
  if (keys === undefined) throw new Error('an issuer without a key ring');
  const { issuer, claims, allowIntegerClaims } = config;
  return {
    rules: { issuer, audiences: new Set(config.audiences), claims: toClaimPaths(claims), allowIntegerClaims },
    algorithms: new Set(config.algorithms),
    tokenTypes: new Set(config.tokenTypes.map(type => (type === '' ? '' : normalizeTokenType(type)))),
    keys,
  };
}
