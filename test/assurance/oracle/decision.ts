// The oracle: the answer that the contract requires for a request. Written only from its text, without code of src/.
import type { IssuerKeys } from './issuer-keys.ts';
import type { CheckMessage } from './message.ts';
import { type RequestFinding, readRequest, routesOf } from './request.ts';
import { isRevoked } from './revocation.ts';
import type { Settings } from './settings.ts';
import { type Identity as Claimed, verifyToken } from './token.ts';

export type Reason =
  | 'allowed'
  | 'request_invalid'
  | 'token_missing'
  | 'token_invalid'
  | 'token_expired'
  | 'token_revoked'
  | 'role_forbidden'
  | 'app_forbidden'
  | 'account_mismatch'
  | 'route_unknown'
  | 'keys_unavailable';

export type Refused = Exclude<Reason, 'allowed'>;

/** The identity for one request. */
export interface Identity extends Omit<Claimed, 'role'> {
  /** Absent if the token has a list of roles and `roles` names none of them. */
  readonly role?: string;
}

export interface Decision {
  readonly reason: Reason;
  /** Refusals that the contract permits as well. */
  readonly alsoPermitted: readonly Refused[];
  /** The identity of the verified token, also if the request is refused afterwards. */
  readonly identity: Identity | undefined;
  /** The headers of the request, lower-case name → values. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
}

/** The methods that `*` stands for. */
const usualMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** `keys`: by issuer; `now`: seconds since the epoch. */
export function decide(
  message: CheckMessage,
  settings: Settings,
  keys: ReadonlyMap<string, IssuerKeys>,
  now: number,
): Decision {
  const request = readRequest(message, settings);
  const { headers } = request;
  if ('kind' in request) return { reason: 'request_invalid', alsoPermitted: [], identity: undefined, headers };
  const open: Refused[] = request.mayBeInvalid ? ['request_invalid'] : [];
  const { reason, alsoPermitted = [], identity } = applyPolicy(request, settings, keys, now);
  return { reason, alsoPermitted: [...open, ...alsoPermitted], identity, headers };
}

interface Verdict {
  readonly reason: Reason;
  readonly alsoPermitted?: readonly Refused[];
  readonly identity?: Identity;
}

// The order of checks: grammar of the request, route, presence of a token, the token, then revocation, app, role, account.
function applyPolicy(
  request: RequestFinding,
  settings: Settings,
  keys: ReadonlyMap<string, IssuerKeys>,
  now: number,
): Verdict {
  const routes = routesOf(request.segments, settings);
  if (routes.length === 0) return { reason: 'route_unknown' };

  // The scheme's case does not matter; exactly one space; another scheme, or no token after `Bearer`: token_missing.
  const { authorization } = request;
  if (!/^bearer(?![!#$%&'*+.^_`|~0-9a-z-])/i.test(authorization)) return { reason: 'token_missing' };
  const afterScheme = authorization.slice('bearer'.length);
  if (afterScheme === '') return { reason: 'token_missing' };
  // Without a space after the scheme: another scheme, or an invalid token of this one (security-cases.md H-006).
  if (!afterScheme.startsWith(' ')) return { reason: 'token_missing', alsoPermitted: ['token_invalid'] };
  const found = verifyToken(afterScheme.slice(1), settings, keys, now);
  if (found.kind === 'refused') return found;

  // Of an array, the roles that `roles` names count, in the order of `roles`. Allowed if one and the same role may use the method and
  // every matching route permits it; the first such role is the one in the answer.
  const { role: claimed, ...rest } = found.identity;
  const known =
    typeof claimed === 'string' ? [claimed] : Object.keys(settings.roles).filter(name => claimed.includes(name));
  const withMethod = known.filter(name => mayUse(name, request.method, settings));
  const permitted = withMethod.filter(name => routes.every(({ roles }) => roles === undefined || roles.includes(name)));
  // docs/explain.md: if no role is permitted, the first of those that pass the most checks.
  const role = permitted[0] ?? withMethod[0] ?? known[0];
  const identity: Identity = role === undefined ? rest : { ...rest, role };

  if (isRevoked(settings.revoked, found, now)) return { reason: 'token_revoked', identity };
  if (!settings.apps.includes('*') && !settings.apps.includes(identity.app))
    return { reason: 'app_forbidden', identity };
  if (permitted.length === 0) return { reason: 'role_forbidden', identity };
  const accounts = [...request.accounts, ...routes.flatMap(route => route.accounts)];
  if (accounts.some(account => account !== identity.acc)) return { reason: 'account_mismatch', identity };
  return { reason: 'allowed', identity };
}

function mayUse(role: string, method: string, settings: Settings): boolean {
  const methods = Object.entries(settings.roles).find(([name]) => name === role)?.[1] ?? [];
  return methods.includes(method) || (methods.includes('*') && usualMethods.includes(method));
}
