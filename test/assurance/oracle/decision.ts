// The oracle: the answer that the contract requires for a request. Written only from its text, without code of src/.
import type { IssuerKeys } from './issuer-keys.ts';
import type { CheckMessage } from './message.ts';
import { type RequestFinding, readRequest } from './request.ts';
import { matchesExactly, type Route, routesOf } from './request-path.ts';
import { isRevoked } from './revocation.ts';
import type { PermissionTable, Settings } from './settings.ts';
import { type Claims, verifyToken } from './token.ts';
import { isForeignPage } from './token-place.ts';

export type Reason =
  | 'allowed'
  | 'request_invalid'
  | 'token_missing'
  | 'token_invalid'
  | 'token_expired'
  | 'token_revoked'
  | 'account_required'
  | 'role_forbidden'
  | 'scope_forbidden'
  | 'origin_forbidden'
  | 'app_forbidden'
  | 'account_mismatch'
  | 'route_unknown'
  | 'keys_unavailable'
  | 'revocation_unavailable';

export type Refused = Exclude<Reason, 'allowed'>;

/** The identity for one request, as far as it is known. */
export interface Identity {
  readonly uid: string;
  readonly app: string;
  readonly acc?: string;
  readonly role?: string;
  readonly iss: string;
  readonly actor?: string;
}

export interface Decision {
  readonly reason: Reason;
  /** Refusals that the contract permits as well. */
  readonly alsoPermitted: readonly Refused[];
  /** The identity of the verified token, also if the request is refused afterwards. */
  readonly identity: Identity | undefined;
  /** Of an allow. */
  readonly forwarded?: Claims['forwarded'];
  /** The scopes of which one would allow the request, in the order of `scopes`: "on a 401 of a known route the same". */
  readonly scopes: readonly string[];
  /** Whether a route of the request lies under the path of `resource`. */
  readonly isOfResource: boolean;
  /** What the upstream gets as `cookie`; undefined: what was sent. */
  readonly cookie: string | undefined;
  /** What it gets as `sec-websocket-protocol`, likewise. */
  readonly subprotocols?: string | undefined;
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
  if ('kind' in request)
    return {
      reason: 'request_invalid',
      alsoPermitted: [],
      identity: undefined,
      scopes: [],
      isOfResource: false,
      cookie: undefined,
      headers,
    };
  const open: Refused[] = request.mayBeInvalid ? ['request_invalid'] : [];
  const { reason, alsoPermitted = [], identity, forwarded = [] } = applyPolicy(request, settings, keys, now);
  return {
    reason,
    alsoPermitted: [...open, ...alsoPermitted],
    identity,
    forwarded,
    ...challengeOf(request, settings),
    cookie: request.place.cookie,
    subprotocols: request.place.subprotocols,
    headers,
  };
}

interface Verdict {
  readonly reason: Reason;
  readonly alsoPermitted?: readonly Refused[];
  readonly identity?: Identity;
  readonly forwarded?: Claims['forwarded'];
}

// Challenge: `scope` and the routes on which it names the metadata.
function challengeOf(request: RequestFinding, settings: Settings): Pick<Decision, 'scopes' | 'isOfResource'> {
  const routes = routesOf(request.segments, settings);
  const { scopes: table = {}, resource } = settings;
  const path = resource?.replace(/^https:\/\/[^/?]+/, '').replace(/\/?(?:\?.*)?$/, '') ?? '';
  const starts = routes.map(({ start }) => start);
  return {
    scopes: Object.keys(table).filter(name => chosen([name], table, 'scopes', request, routes).isPermitted),
    isOfResource: resource !== undefined && starts.some(start => `${start}/`.startsWith(`${path}/`)),
  };
}

// The order of checks: grammar of the request, host and route, presence of a token, the token, then revocation, app, account, role, scope.
function applyPolicy(
  request: RequestFinding,
  settings: Settings,
  keys: ReadonlyMap<string, IssuerKeys>,
  now: number,
): Verdict {
  const routes = routesOf(request.segments, settings);
  if (!request.isHostKnown || routes.length === 0) return { reason: 'route_unknown' };

  const { token } = request.place;
  // Without a space after the scheme: another scheme, or an invalid token of this one (H-006).
  if (token === undefined) {
    const isOpen =
      settings.from.includes('authorization') && /^bearer[^!#$%&'*+.^_`|~0-9a-z-]/i.test(request.authorization);
    return { reason: 'token_missing', alsoPermitted: isOpen ? ['token_invalid'] : [] };
  }
  // The scheme's case does not matter; one space or more; no token after `Bearer`: token_missing.
  const text = 'text' in token ? token.text : token.authorization.slice('bearer'.length).replace(/^ +/, '');
  if (text === '') return { reason: 'token_missing' };
  const isOfPage = 'text' in token && token.isOfPage;
  if (isOfPage && isForeignPage(request.method, request.headers, settings.origins))
    return { reason: 'origin_forbidden' };
  const found = verifyToken(text, request.certificate, settings, keys, now);
  if (found.kind === 'refused') return found;

  const { claims, iat } = found;
  const addressed = addressedAccount(
    new Set([...request.accounts, ...routes.flatMap(route => route.accounts)]),
    claims.accounts,
  );
  const acc = addressed.kind === 'account' ? addressed.acc : undefined;
  const roles = acc === undefined ? [] : claims.rolesFor(acc);
  const role = roles === undefined ? undefined : chosen(roles, settings.roles, 'roles', request, routes);
  const identity = identityOf(claims, addressed, role?.name);

  // "A list that was not confirmed makes what it would decide undecidable."
  if (settings.isListMissing) return { reason: 'revocation_unavailable', identity };
  if (isRevoked(settings.revoked, { ...claims, acc, iat }, now)) return { reason: 'token_revoked', identity };
  if (!settings.apps.includes('*') && !settings.apps.includes(claims.app)) return { reason: 'app_forbidden', identity };
  if (addressed.kind !== 'account') return { reason: addressed.kind, identity };
  if (role === undefined) return { reason: 'token_invalid', identity };
  if (!role.isPermitted) return { reason: 'role_forbidden', identity };
  const allowed = { reason: 'allowed', identity, forwarded: claims.forwarded } as const;
  if (settings.scopes === undefined) return allowed;
  const scopes = claims.scopesFor(addressed.acc);
  if (scopes === undefined) return { reason: 'token_invalid', identity };
  return chosen(scopes, settings.scopes, 'scopes', request, routes).isPermitted
    ? allowed
    : { reason: 'scope_forbidden', identity };
}

type Addressed =
  | { readonly kind: 'account'; readonly acc: string }
  | { readonly kind: 'account_required' | 'account_mismatch'; readonly only: string | undefined };

// "The addressed account: the one that the request names; two different names are account_mismatch. If it names none, the token's account
// where it has exactly one, else account_required. A token without any account left is account_mismatch too."
function addressedAccount(named: ReadonlySet<string>, accounts: readonly string[]): Addressed {
  const [only] = accounts.length === 1 ? accounts : [];
  const [name, ...others] = named;
  if (accounts.length === 0 || others.length > 0) return { kind: 'account_mismatch', only };
  if (name === undefined)
    return only === undefined ? { kind: 'account_required', only } : { kind: 'account', acc: only };
  return accounts.includes(name) ? { kind: 'account', acc: name } : { kind: 'account_mismatch', only };
}

// "On account_required and account_mismatch there is no role in log and metadata, and acc only where exactly one account is left."
function identityOf({ uid, app, iss, actor }: Claims, addressed: Addressed, role: string | undefined): Identity {
  const acc = addressed.kind === 'account' ? addressed.acc : addressed.only;
  return {
    uid,
    app,
    iss,
    ...(acc === undefined ? {} : { acc }),
    ...(role === undefined || addressed.kind !== 'account' ? {} : { role }),
    ...(actor === undefined ? {} : { actor }),
  };
}

interface Chosen {
  readonly name: string | undefined;
  readonly isPermitted: boolean;
}

// Of several, those that the table names count, in its order. Allowed if one and the same may use the method on this path and is left by
// every matching route; the first such one is the one in the answer.
function chosen(
  names: readonly string[],
  table: PermissionTable,
  kind: 'roles' | 'scopes',
  { method, segments }: RequestFinding,
  routes: readonly Route[],
): Chosen {
  const entries = Object.entries(table).filter(([, entry]) => entry.names.some(name => names.includes(name)));
  const known = entries.map(([key]) => key);
  const withMethod = entries.flatMap(([key, { grants }]) => (mayUse(grants, method, segments) ? [key] : []));
  const permitted = withMethod.filter(name => routes.every(route => route[kind]?.includes(name) ?? true));
  // docs/explain.md: if none is permitted, the first of those that pass the most checks.
  return { name: permitted[0] ?? withMethod[0] ?? known[0], isPermitted: permitted.length > 0 };
}

// "A grant is a method, or a method, a space and a template: then the role may use the method only where the template matches the path
// (whole segments, literals byte for byte, parameters any one segment). `'*'` is a method here too. Grants add up."
function mayUse(grants: readonly string[], method: string, segments: readonly string[]): boolean {
  return grants.some(grant => {
    const [granted = '', template] = grant.split(' ');
    const isMethod = granted === method || (granted === '*' && usualMethods.includes(method));
    return isMethod && (template === undefined || matchesExactly(template, segments));
  });
}
