// Facts of a request → decision: the policy and the token verification of one configuration, joined. The server and `explain` share it.
import { isDeepStrictEqual } from 'node:util';
import { compileAccountParameters } from './authz/account-query.ts';
import { admit, authorize, type Policy } from './authz/authorize.ts';
import type { Decision } from './authz/decision.ts';
import type { Principal } from './authz/principal.ts';
import type { RequestFacts } from './authz/request-facts.ts';
import { compileRoles } from './authz/role.ts';
import { parseRouteTemplate } from './authz/route-template.ts';
import type { Config, IssuerConfig } from './config/schema.ts';
import type { KeyRing } from './keys/key-ring.ts';
import { createVerifiedTokens, type VerifiedTokens } from './token/verified-tokens.ts';
import {
  createTokenVerifier,
  type IssuerKey,
  normalizeTokenType,
  type TrustedIssuer,
  type Verification,
} from './token/verifier.ts';

/** A decision and what was learned on the way to it. */
export interface Judgement {
  readonly decision: Decision;
  /** The template that the path matched. */
  readonly route: string | undefined;
  /** Set once the token is verified, also where the request is refused later. */
  readonly principal: Principal | undefined;
  readonly kid: string | undefined;
  readonly cache: 'hit' | 'miss' | undefined;
}

export interface Engine {
  /** At once where nothing has to be waited for, as with a known token. Throws and rejects only on a fault. */
  judge(facts: RequestFacts): Judgement | Promise<Judgement>;
  cachedTokens(): number;
}

/** The tokens that were verified, and what they were verified by. */
export interface TokenMemory {
  readonly issuers: Config['issuers'];
  readonly maxTokens: number;
  readonly verifiedTokens: VerifiedTokens<IssuerKey>;
}

/**
 * Goes on with the memory of the configuration before where all its issuers are still there and verify as they did. The keys need
 * no comparison: a token is known only as long as the very key that verified it is in use.
 */
export function createTokenMemory({ issuers, cache }: Config, before?: TokenMemory): TokenMemory {
  const { maxTokens } = cache;
  const goesOn =
    before?.maxTokens === maxTokens &&
    before.issuers.every(known => issuers.some(issuer => verifiesAlike(issuer, known)));
  return { issuers, maxTokens, verifiedTokens: goesOn ? before.verifiedTokens : createVerifiedTokens(maxTokens) };
}

// All that decides over a token but its key and what is judged again for each request, such as the times.
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

// A signature takes 20 to 200 µs of a thread. Beyond this many in flight, Envoy's timeout would end before a further one is verified.
const maxSignatures = 2000;

export function createEngine(options: {
  readonly config: Config;
  /** By issuer; one for each issuer of the configuration. */
  readonly keyRings: ReadonlyMap<string, KeyRing>;
  /** Made for this configuration; a new one if not given. */
  readonly memory?: TokenMemory;
  /** Wall time in seconds since the epoch. */
  readonly now: () => number;
}): Engine {
  const { config, keyRings, now } = options;
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
    judge(facts) {
      const { route, outcome } = admit(policy, facts);
      if (outcome.kind === 'refusal') {
        return { decision: outcome, route, principal: undefined, kid: undefined, cache: undefined };
      }
      const judgeVerified = ({ outcome: claims, kid, cache }: Verification): Judgement => {
        if (claims.kind === 'refusal') return { decision: claims, route, principal: undefined, kid, cache };
        const { principal } = claims;
        return { decision: authorize(policy, outcome, principal), route, principal, kid, cache };
      };
      const verification = verifier.verify(outcome.token);
      return verification instanceof Promise ? verification.then(judgeVerified) : judgeVerified(verification);
    },
    cachedTokens: () => verifiedTokens.size(),
  };
}

function toPolicy(config: Config): Policy {
  return {
    routes: config.routes.map(({ path, roles }) => {
      const template = parseRouteTemplate(path);
      if (template.kind === 'problem') throw new Error(`a route that the configuration let pass: ${template.problem}`);
      return { template, roles: roles === undefined ? undefined : new Set(roles) };
    }),
    roles: compileRoles(config.roles),
    apps: config.apps.includes('*') ? undefined : new Set(config.apps),
    accountPlaces: { headers: config.account.headers, query: compileAccountParameters(config.account.query) },
  };
}

function toTrustedIssuer(config: IssuerConfig, keyRings: ReadonlyMap<string, KeyRing>): TrustedIssuer {
  const keys = keyRings.get(config.issuer);
  if (keys === undefined) throw new Error('an issuer without a key ring');
  const { issuer, claims, allowIntegerClaims } = config;
  return {
    rules: { issuer, audiences: new Set(config.audiences), claims, allowIntegerClaims },
    algorithms: new Set(config.algorithms),
    tokenTypes: new Set(config.tokenTypes.map(type => (type === '' ? '' : normalizeTokenType(type)))),
    keys,
  };
}
