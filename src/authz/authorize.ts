// The policy in the order of its checks: `admit` runs before the token is verified, `authorize` after. `token/` verifies signature and
// claims between the two.
import { addressedAccount } from './account.ts';
import { refuseAmbiguousHeaders } from './ambiguous-headers.ts';
import { challenged, type ProtectedResource } from './challenge.ts';
import type { DetailOf } from './checks.ts';
import { parseRequestTarget } from './path.ts';
import {
  choosePermission,
  type Obstacle,
  type PermissionChoice,
  type PermissionKind,
  type Permissions,
} from './permission.ts';
import type { AccountPlace } from './places/place.ts';
import {
  type Account,
  type AllowedPrincipal,
  type Claimed,
  type ClaimedByAccount,
  type Identity,
  type Principal,
  toPrincipal,
  toUnaddressed,
} from './principal.ts';
import { type Refusal, refusal } from './refusal.ts';
import { nominatedNames, type RequestFacts } from './request-facts.ts';
import { matchRoutes, type RouteMatch, type RouteTree } from './route-tree.ts';
import { type BearerToken, type Rewrites, readToken, type TokenPlaces } from './token-places.ts';

export interface Policy {
  readonly routes: RouteTree;
  readonly roles: Permissions;
  /** Undefined: the scopes of a token are not looked at. */
  readonly scopes: Permissions | undefined;
  /** Allowed applications; undefined allows all. */
  readonly apps: ReadonlySet<string> | undefined;
  /** In the order in which they are read. */
  readonly places: readonly AccountPlace[];
  readonly tokenPlaces: TokenPlaces;
  /** Lower case. */
  readonly identityPrefix: string;
  /** Undefined without one. */
  readonly resource: ProtectedResource | undefined;
}

/** A valid request on a known route, with a token that is not verified yet. */
interface AdmittedRequest {
  readonly kind: 'admitted';
  readonly method: string;
  readonly match: RouteMatch;
  /** Every account that the request names, once for each place. */
  readonly accounts: readonly Account[];
  readonly token: BearerToken;
  readonly rewrites: Rewrites;
}

/** `route` is for the log, also of a refused request. */
interface Admission {
  readonly route: string | undefined;
  readonly outcome: AdmittedRequest | Refusal;
}

// RFC 9110 section 9.1 makes methods case-sensitive; all registered ones but two experimental ones are upper-case letters.
const methodGrammar = /^[A-Z]{1,32}$/;

/** The checks that need no token: grammar of the request (400), host and route (404), presence of a token (401). */
export function admit(policy: Policy, facts: RequestFacts): Admission {
  const refused = (outcome: Refusal, route?: string): Admission => ({ route, outcome });

  if (facts.contradiction !== undefined) return refused(refusal('request_invalid', facts.contradiction));
  if (!methodGrammar.test(facts.method)) return refused(refusal('request_invalid', 'method outside the grammar'));
  const target = parseRequestTarget(facts.target);
  if (target.kind === 'refusal') return refused(target);
  const reading = readToken(policy.tokenPlaces, facts.headers);
  if (reading.kind === 'refusal') return refused(reading);
  const ambiguousHeader = refuseAmbiguousHeaders(policy, facts.headers);
  if (ambiguousHeader !== undefined) return refused(ambiguousHeader);

  const match = matchRoutes(policy.routes, target);
  const request = { facts, query: target.query, match };
  let accounts: readonly Account[] = [];
  // All that makes a request invalid is found before a host or a route is unknown.
  let unknown: Refusal | undefined;
  for (const place of policy.places) {
    const named = place.read(request);
    if (!('kind' in named)) accounts = accounts.length === 0 ? named : [...accounts, ...named];
    else if (named.reason === 'request_invalid') return refused(named);
    else unknown ??= named;
  }
  if (unknown !== undefined) return refused(unknown);
  if (match.kind === 'refusal') return refused(match);

  const { token, isOfPage, rewrites } = reading;
  const { method } = facts;
  if (typeof token !== 'string') return refused(challenged(policy, { method, match }, token), match.route);
  const foreignPage = isOfPage ? refuseForeignPage(policy.tokenPlaces, facts) : undefined;
  if (foreignPage !== undefined) return refused(foreignPage, match.route);
  return { route: match.route, outcome: { kind: 'admitted', method, match, accounts, token, rewrites } };
}

const readingMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** A browser sends its cookies for any page that asks, so what changes anything, and a socket, must come from a page of `token.origins`. */
function refuseForeignPage({ origins }: TokenPlaces, { method, headers }: RequestFacts): Refusal | undefined {
  if (readingMethods.has(method) && !nominatedNames(headers).includes('upgrade')) return undefined;
  const [origin, ...others] = headers.get('origin') ?? [];
  if (origin === undefined) return refusal('origin_forbidden', 'no origin beside a token in a cookie or a subprotocol');
  if (others.length > 0) return refusal('origin_forbidden', 'more than one origin');
  return origins.has(origin) ? undefined : refusal('origin_forbidden', 'the origin is not one of token.origins');
}

interface Allow {
  readonly kind: 'allow';
  readonly principal: AllowedPrincipal;
  /** As the identity has them. */
  readonly forwarded: Identity['forwarded'];
  /** Without the token. Undefined: every header stays as it is. */
  readonly rewrites?: Rewrites;
}

export type Decision = Allow | Refusal;

/** A refusal is `deny` or `unavailable` by its reason. */
export type DecisionWord = 'allow' | 'deny' | 'unavailable';

/** `principal` is for the log and Envoy, also of a refused request. */
export interface Authorization {
  readonly decision: Decision;
  readonly principal: Principal;
}

/**
 * The checks that need the verified token: revocation (401, or 503 without a list that can tell), application, account, role and scope (403; 400 if the request must name
 * its account). `revokedBy` tells what revokes the token, which is about the addressed account if there is one.
 */
export function authorize(
  policy: Policy,
  request: AdmittedRequest,
  identity: Identity,
  revokedBy: (acc: Account | undefined) => string | Refusal | undefined,
): Authorization {
  const { app } = identity;
  const addressed = addressedAccount(request.accounts, identity);
  if (typeof addressed !== 'string') {
    const decision = refuseCaller(policy, app, revokedBy(undefined)) ?? addressed;
    return { decision, principal: toUnaddressed(identity) };
  }
  const role = choose(policy.roles, 'roles', request, claimedFor(identity.role, addressed));
  const scope = policy.scopes && choose(policy.scopes, 'scopes', request, claimedFor(identity.scope, addressed));
  const principal = toPrincipal(identity, addressed, role.name, scope?.name);
  const refused = refuseCaller(policy, app, revokedBy(addressed));
  if (refused !== undefined) return { decision: refused, principal };
  if (role.obstacle !== undefined) return { decision: refuseRole(role.obstacle), principal };
  if (scope?.obstacle !== undefined) return { decision: refuseScope(scope.obstacle, identity), principal };
  const { forwarded } = identity;
  const allowed = { kind: 'allow', principal: { ...principal, acc: addressed, role: role.name }, forwarded } as const;
  const { rewrites } = request;
  return { decision: rewrites.length === 0 ? allowed : { ...allowed, rewrites }, principal };
}

function refuseCaller({ apps }: Policy, app: string, revokedBy: string | Refusal | undefined): Refusal | undefined {
  if (typeof revokedBy === 'object') return revokedBy;
  if (revokedBy !== undefined) return refusal('token_revoked', `the revocation list has an entry for ${revokedBy}`);
  if (apps === undefined || apps.has(app)) return undefined;
  return refusal('app_forbidden', 'the application is not one of apps');
}

function claimedFor(claimed: Claimed | ClaimedByAccount, account: Account): Claimed | Refusal {
  return 'kind' in claimed ? (claimed.claimed.get(account) ?? []) : claimed;
}

type Choice = PermissionChoice | { readonly name: undefined; readonly obstacle: Refusal };

function choose(
  table: Permissions,
  kind: PermissionKind,
  { method, match }: AdmittedRequest,
  claimed: Claimed | Refusal,
): Choice {
  if ('kind' in claimed) return { name: undefined, obstacle: claimed };
  return choosePermission(table, kind, claimed, method, match);
}

const roleProblems = {
  unknown: 'the role is not one of roles',
  method: 'the role may not use this method',
  route: 'the route is narrowed to other roles',
} as const satisfies Readonly<Record<Obstacle, DetailOf<'role_forbidden'>>>;

function refuseRole(obstacle: Obstacle | Refusal): Refusal {
  return typeof obstacle === 'string' ? refusal('role_forbidden', roleProblems[obstacle]) : obstacle;
}

const scopeProblems = {
  unknown: 'the token has none of scopes',
  method: 'no scope of the token may use this method',
  route: 'the route is narrowed to other scopes',
} as const satisfies Readonly<Record<Obstacle, DetailOf<'scope_forbidden'>>>;

function refuseScope(obstacle: Obstacle | Refusal, { otherScopes }: Identity): Refusal {
  if (typeof obstacle !== 'string') return obstacle;
  return refusal('scope_forbidden', scopeProblems[obstacle], obstacle === 'unknown' ? otherScopes : undefined);
}
