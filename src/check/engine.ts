// Decides one request by the policy and the token verification of one configuration. The server and `explain` share it.
import { isDeepStrictEqual } from 'node:util';
import { admit, authorize, type Decision, type Policy } from '../authz/authorize.ts';
import { challenged } from '../authz/challenge.ts';
import { compileIssuerAccounts } from '../authz/issuer-accounts.ts';
import { claimedNamesOf, compilePermissions, grantTemplates } from '../authz/permission.ts';
import { compilePlaces, toAccountGrammar } from '../authz/places/places.ts';
import type { AccountGrammar, Principal, SignedIdentity } from '../authz/principal.ts';
import { refusal } from '../authz/refusal.ts';
import type { RequestFacts } from '../authz/request-facts.ts';
import { compileRoutes } from '../authz/route-tree.ts';
import { compileTokenPlaces } from '../authz/token-places.ts';
import type { Config, IssuerConfig } from '../config/schema.ts';
import type { VerificationKey } from '../keys/jwks.ts';
import type { ListUnavailable } from '../revocation/fetched-list.ts';
import type { RevocationList } from '../revocation/revocation-list.ts';
import { resourcePath } from '../text/url.ts';
import { compileSource } from '../token/claim-source.ts';
import type { ClaimRules } from '../token/claims.ts';
import { compileClaimSources } from '../token/identity-claims.ts';
import { createVerifiedTokens, type VerifiedTokens } from '../token/verified-tokens.ts';
import {
  createIssuerFinder,
  createTokenVerifier,
  type IssuerKeys,
  normalizeTokenType,
  type Verification,
} from '../token/verifier.ts';

/** A decision, and what the log and the metrics report about it. */
export interface CheckResult {
  readonly decision: Decision;
  /** The template that the path matched. */
  readonly route: string | undefined;
  /** Set once the token is verified, even if the request is refused later. */
  readonly principal: Principal | undefined;
  /** What a refused token says, if its signature is verified. For the log only. */
  readonly signed: SignedIdentity | undefined;
  readonly kid: string | undefined;
  readonly cache: 'hit' | 'miss' | undefined;
}

export interface Engine {
  /** Synchronous when the result is already known, as for a cached token. Throws and rejects only on an internal error. */
  decide(facts: RequestFacts): CheckResult | Promise<CheckResult>;
  cachedTokens(): number;
}

/** The cache of verified tokens, and the settings that decide what it holds. */
export interface TokenMemory {
  readonly kept: KeptSettings;
  readonly verifiedTokens: VerifiedTokens<VerificationKey>;
}

type KeptSettings = ReturnType<typeof toKeptSettings>;

/**
 * Reuses the cache of the previous configuration if a token that it holds would be read alike now. New issuers change nothing; keys need
 * no comparison: a cached token is valid only while the key object that verified it is in use.
 */
export function createTokenMemory(config: Config, before?: TokenMemory): TokenMemory {
  const kept = toKeptSettings(config);
  const canReuse = before !== undefined && keepsAll(kept, before.kept);
  return { kept, verifiedTokens: canReuse ? before.verifiedTokens : createVerifiedTokens(kept.maxTokens) };
}

function keepsAll({ issuers, ...others }: KeptSettings, { issuers: known, ...before }: KeptSettings): boolean {
  return (
    isDeepStrictEqual(others, before) && known.every(one => issuers.some(issuer => isDeepStrictEqual(issuer, one)))
  );
}

// The settings of an issuer that decide whether a token is valid and what it says, except its keys and what is checked per request.
function toKeptSettings({ cache, account, roles, scopes, issuers, forwardClaims = {} }: Config) {
  return {
    maxTokens: cache.maxTokens,
    grammar: toAccountGrammar(account),
    // Names alone, in their order, and what tokens call each: a token's roles and scopes are kept by name.
    roles: Array.from(roles, ([name, entry]) => [name, ...claimedNamesOf(name, entry)]),
    scopes: scopes && [...scopes.keys()],
    // In their order too: a token's are kept by it.
    forwardClaims: Object.entries(forwardClaims),
    issuers: issuers.map(({ issuer, audiences, claims, accounts, allowIntegerClaims, algorithms, tokenTypes }) => ({
      issuer,
      audiences,
      claims,
      accounts,
      allowIntegerClaims,
      algorithms,
      tokenTypes,
    })),
  };
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
  readonly revocations?: () => RevocationList | ListUnavailable | undefined;
  /** Wall time in seconds since the epoch. */
  readonly now: () => number;
}): Engine {
  const { config, keyRings, revocations = () => undefined, now } = options;
  const policy = toPolicy(config);
  const grammar = toAccountGrammar(config.account);
  const { verifiedTokens } = options.memory ?? createTokenMemory(config);
  const verifier = createTokenVerifier({
    issuers: createIssuerFinder(
      config.issuers.map(issuer => {
        const keys = keyRings.get(issuer.issuer);
        if (keys === undefined) throw new Error('an issuer without a key ring');
        const algorithms = new Set(issuer.algorithms);
        const tokenTypes = new Set(issuer.tokenTypes.map(type => (type === '' ? '' : normalizeTokenType(type))));
        return { rules: toClaimRules(issuer, policy, grammar, config.forwardClaims), algorithms, tokenTypes, keys };
      }),
      grammar,
    ),
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
        return { ...nothingKnown, decision: outcome, route };
      }
      const decideVerified = ({ outcome: claims, signed, kid, cache }: Verification): CheckResult => {
        if (claims.kind === 'refusal')
          return { decision: challenged(policy, outcome, claims), route, principal: undefined, signed, kid, cache };
        const { identity, iat } = claims;
        const { decision, principal } = authorize(policy, outcome, identity, acc => {
          const { uid, app, iss, jti, sid } = identity;
          const list = revocations();
          if (list === undefined) return undefined;
          if ('kind' in list) return refusal('revocation_unavailable', list.detail);
          return list.find({ uid, app, acc, iss, jti, sid, iat }, now());
        });
        const answered = decision.kind === 'refusal' ? challenged(policy, outcome, decision) : decision;
        return { decision: answered, route, principal, signed: undefined, kid, cache };
      };
      const verification = verifier.verify(outcome.token, facts);
      return verification instanceof Promise ? verification.then(decideVerified) : decideVerified(verification);
    },
    cachedTokens: () => verifiedTokens.size(),
  };
}

const nothingKnown = { principal: undefined, signed: undefined, kid: undefined, cache: undefined } as const;

/** The pure policy of a configuration. */
export function toPolicy(config: Config): Policy {
  const { routes, roles, scopes, apps, account, token, identityHeaders, protectedResource } = config;
  return {
    identityPrefix: identityHeaders,
    routes: compileRoutes(routes, account.parameter, grantTemplates(roles, scopes)),
    roles: compilePermissions(roles),
    scopes: scopes && compilePermissions(scopes),
    apps: apps.includes('*') ? undefined : new Set(apps),
    places: compilePlaces(account),
    tokenPlaces: compileTokenPlaces(token),
    resource: protectedResource && {
      path: resourcePath(protectedResource.resource),
      scopes: protectedResource.scopes && new Set(protectedResource.scopes),
    },
  };
}

/** What the tokens of an issuer must contain. */
export function toClaimRules(
  { issuer, audiences, claims, accounts, allowIntegerClaims }: IssuerConfig,
  { roles, scopes }: Pick<Policy, 'roles' | 'scopes'>,
  grammar: AccountGrammar,
  forwardClaims: Config['forwardClaims'] = {},
): ClaimRules {
  return {
    ...compileClaimSources(claims, allowIntegerClaims),
    forwarded: Object.values(forwardClaims).map(text => compileSource(text, false)),
    issuer,
    // Without a source: of an issuer with a key set of its own, which has the name of its account alone.
    account: claims.acc === undefined ? accounts[0] : undefined,
    audiences: new Set(audiences),
    roles,
    scopes,
    accounts: compileIssuerAccounts(accounts),
    grammar,
  };
}
