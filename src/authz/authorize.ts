// The policy in the order of its checks: `admit` runs before the token is verified, `authorize` after. `token/` verifies signature and
// claims between the two.
import { type AccountPlaces, accountsNamed } from './account.ts';
import { type BearerToken, parseBearerToken, refuseAmbiguousAuthorization } from './bearer.ts';
import type { Decision } from './decision.ts';
import { parseRequestTarget } from './path.ts';
import type { Principal } from './principal.ts';
import { type Refusal, refusal } from './refusal.ts';
import type { RequestFacts } from './request-facts.ts';
import { type RoleMethods, roleAllows } from './role.ts';
import { everyAccountSegmentIs, permitsRole, type RouteMatch } from './route.ts';
import { matchRoutes, type RouteTree } from './route-tree.ts';

export interface Policy {
  readonly routes: RouteTree;
  readonly roles: RoleMethods;
  /** Allowed applications; undefined allows all. */
  readonly apps: ReadonlySet<string> | undefined;
  readonly accountPlaces: AccountPlaces;
}

/** A valid request on a known route, with a token that is not verified yet. */
export interface AdmittedRequest {
  readonly kind: 'admitted';
  readonly method: string;
  readonly match: RouteMatch;
  /** Accounts in headers and query; those of the path are in `match`. */
  readonly otherAccounts: readonly string[];
  readonly token: BearerToken;
}

/** `route` is for the log, also of a refused request. */
export interface Admission {
  readonly route: string | undefined;
  readonly outcome: AdmittedRequest | Refusal;
}

// RFC 9110 section 9.1 makes methods case-sensitive; all registered ones but two experimental ones are upper-case letters.
const methodGrammar = /^[A-Z]{1,32}$/;

/** The checks that need no token: grammar of the request (400), route (404), presence of a token (401). */
export function admit(policy: Policy, facts: RequestFacts): Admission {
  const refused = (outcome: Refusal, route?: string): Admission => ({ route, outcome });

  if (facts.contradiction !== undefined) return refused(refusal('request_invalid', facts.contradiction));
  if (!methodGrammar.test(facts.method)) return refused(refusal('request_invalid', 'method outside the grammar'));
  const target = parseRequestTarget(facts.target);
  if (target.kind === 'refusal') return refused(target);
  const authorization = facts.headers.get('authorization') ?? [];
  const ambiguity = refuseAmbiguousAuthorization(authorization);
  if (ambiguity !== undefined) return refused(ambiguity);
  const named = accountsNamed(policy.accountPlaces, facts, target.query);
  if ('kind' in named) return refused(named);

  const match = matchRoutes(policy.routes, target.segments);
  if (match.kind === 'refusal') return refused(match);

  const token = parseBearerToken(authorization);
  if (typeof token !== 'string') return refused(token, match.route);
  const { method } = facts;
  return { route: match.route, outcome: { kind: 'admitted', method, match, otherAccounts: named, token } };
}

/** The checks that need the verified token: application, role, account (403 each). */
export function authorize(policy: Policy, request: AdmittedRequest, principal: Principal): Decision {
  if (policy.apps !== undefined && !policy.apps.has(principal.app)) {
    return refusal('app_forbidden', 'the application is not one of apps');
  }
  if (!policy.roles.has(principal.role)) return refusal('role_forbidden', 'the role is not one of roles');
  if (!roleAllows(policy.roles, principal.role, request.method)) {
    return refusal('role_forbidden', 'the role may not use this method');
  }
  if (!permitsRole(request.match, principal.role)) {
    return refusal('role_forbidden', 'the route is narrowed to other roles');
  }
  if (
    !everyAccountSegmentIs(request.match, principal.acc) ||
    !request.otherAccounts.every(account => account === principal.acc)
  ) {
    return refusal('account_mismatch', 'the request names another account than the token');
  }
  return { kind: 'allow', principal };
}
