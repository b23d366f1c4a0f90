// The policy in the order of its checks: `admit` runs before the token is verified, `authorize` after. `token/` verifies signature and
// claims between the two.
import { type AccountPlaces, accountsNamed } from './account.ts';
import { refuseAmbiguousHeaders } from './ambiguous-headers.ts';
import { type BearerToken, parseBearerToken, refuseAmbiguousAuthorization } from './bearer.ts';
import type { DetailOf } from './checks.ts';
import type { Decision } from './decision.ts';
import { parseRequestTarget } from './path.ts';
import type { Identity, Principal } from './principal.ts';
import { type Refusal, refusal } from './refusal.ts';
import type { RequestFacts } from './request-facts.ts';
import { configuredRoles, type Roles, roleAllows } from './role.ts';
import { everyAccountSegmentIs, permitsRole, type RouteMatch } from './route.ts';
import { matchRoutes, type RouteTree } from './route-tree.ts';

export interface Policy {
  readonly routes: RouteTree;
  readonly roles: Roles;
  /** Allowed applications; undefined allows all. */
  readonly apps: ReadonlySet<string> | undefined;
  readonly accountPlaces: AccountPlaces;
  /** Lower case. */
  readonly identityPrefix: string;
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
  const ambiguousHeader = refuseAmbiguousHeaders(policy.identityPrefix, policy.accountPlaces, facts.headers);
  if (ambiguousHeader !== undefined) return refused(ambiguousHeader);
  const named = accountsNamed(policy.accountPlaces, facts, target.query);
  if ('kind' in named) return refused(named);

  const match = matchRoutes(policy.routes, target);
  if (match.kind === 'refusal') return refused(match);

  const token = parseBearerToken(authorization);
  if (typeof token !== 'string') return refused(token, match.route);
  const { method } = facts;
  return { route: match.route, outcome: { kind: 'admitted', method, match, otherAccounts: named, token } };
}

/** `principal` is for the log and Envoy, also of a refused request. */
export interface Authorization {
  readonly decision: Decision;
  readonly principal: Principal;
}

/** The checks that need the verified token: application, role, account (403 each). */
export function authorize(policy: Policy, request: AdmittedRequest, identity: Identity): Authorization {
  const { role, problem } = chooseRole(policy, request, identity.role);
  const refused = refuseApp(policy, identity);
  if (problem !== undefined) {
    return { decision: refused ?? refusal('role_forbidden', problem), principal: withRole(identity, role) };
  }
  const principal = withRole(identity, role);
  return { decision: refused ?? refuseAccount(request, identity) ?? { kind: 'allow', principal }, principal };
}

function withRole<Role extends string | undefined>({ uid, app, acc, iss }: Identity, role: Role) {
  return { uid, app, acc, role, iss };
}

type RoleProblem = DetailOf<'role_forbidden'>;
type RoleChoice =
  | { readonly role: string; readonly problem: undefined }
  | { readonly role: string | undefined; readonly problem: RoleProblem };

/** Of several roles, the first in the order of the configuration that passes all checks, or else most of them. */
function chooseRole(policy: Policy, request: AdmittedRequest, claimed: Identity['role']): RoleChoice {
  if (typeof claimed === 'string') return { role: claimed, problem: roleProblem(policy, request, claimed) };
  let best: RoleChoice = { role: undefined, problem: roleProblems[0] };
  for (const role of configuredRoles(policy.roles, claimed)) {
    const problem = roleProblem(policy, request, role);
    if (problem === undefined) return { role, problem };
    if (roleProblems.indexOf(problem) > roleProblems.indexOf(best.problem)) best = { role, problem };
  }
  return best;
}

/** In the order of the checks. */
const roleProblems = [
  'the role is not one of roles',
  'the role may not use this method',
  'the route is narrowed to other roles',
] as const satisfies readonly RoleProblem[];

function roleProblem({ roles }: Policy, { method, match }: AdmittedRequest, role: string): RoleProblem | undefined {
  if (!roles.has(role)) return 'the role is not one of roles';
  if (!roleAllows(roles, role, method)) return 'the role may not use this method';
  return permitsRole(match, role) ? undefined : 'the route is narrowed to other roles';
}

function refuseApp({ apps }: Policy, { app }: Identity): Refusal | undefined {
  if (apps === undefined || apps.has(app)) return undefined;
  return refusal('app_forbidden', 'the application is not one of apps');
}

function refuseAccount({ match, otherAccounts }: AdmittedRequest, { acc }: Identity): Refusal | undefined {
  if (everyAccountSegmentIs(match, acc) && otherAccounts.every(account => account === acc)) return undefined;
  return refusal('account_mismatch', 'the request names another account than the token');
}
