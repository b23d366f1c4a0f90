// Request facts and policies for tests of the pure policy: valid by default; every part can be replaced.
import type { Policy } from '../../src/authz/authorize.ts';
import { compileIssuerAccounts } from '../../src/authz/issuer-accounts.ts';
import { compilePermissions } from '../../src/authz/permission.ts';
import { compilePlaces } from '../../src/authz/places/places.ts';
import { type Account, type AllowedPrincipal, type Identity, isAccount } from '../../src/authz/principal.ts';
import { refusal } from '../../src/authz/refusal.ts';
import type { RequestFacts } from '../../src/authz/request-facts.ts';
import { compileRoutes, type RouteDefinition } from '../../src/authz/route-tree.ts';
import { compileTokenPlaces, type TokenSettings } from '../../src/authz/token-places.ts';

export function facts(
  changes: {
    method?: string;
    target?: string;
    host?: string;
    headers?: Record<string, string | string[]>;
    certificate?: string;
    contradiction?: RequestFacts['contradiction'];
  } = {},
): RequestFacts {
  const headers = { authorization: 'Bearer h.p.s', ...changes.headers };
  return {
    method: changes.method ?? 'GET',
    target: changes.target ?? '/api/subscriptions/acct1',
    host: changes.host ?? '',
    headers: new Map(Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value : [value]])),
    certificate: changes.certificate ?? '',
    contradiction: changes.contradiction,
  };
}

export function route(path: string, roles?: readonly string[], scopes?: readonly string[]): RouteDefinition {
  return { path, roles, scopes };
}

export function policy(
  changes: {
    routes?: readonly RouteDefinition[];
    roles?: Record<string, string[]>;
    scopes?: Record<string, string[]> | undefined;
    apps?: readonly string[];
    headers?: readonly string[];
    query?: readonly string[];
    hosts?: readonly string[];
    dots?: boolean;
    lower?: boolean;
    token?: Partial<TokenSettings>;
    resource?: Policy['resource'];
  } = {},
): Policy {
  const tableOf = (methods: Record<string, string[]>) => compilePermissions(new Map(Object.entries(methods)));
  return {
    routes: compileRoutes(changes.routes ?? [route('/api/subscriptions/:account_id/*')]),
    roles: tableOf(changes.roles ?? { owner: ['*'], member: ['GET', 'HEAD'] }),
    scopes: changes.scopes && tableOf(changes.scopes),
    apps: changes.apps === undefined ? undefined : new Set(changes.apps),
    places: compilePlaces({
      headers: changes.headers ?? [],
      query: changes.query ?? [],
      hosts: changes.hosts,
      parameter: 'account_id',
      dots: changes.dots ?? false,
      case: changes.lower === true ? 'lower' : 'exact',
    }),
    tokenPlaces: compileTokenPlaces({ forward: false, from: ['authorization'], ...changes.token }),
    identityPrefix: 'x-auth-',
    resource: changes.resource,
  };
}

export function principal(
  changes: {
    uid?: string;
    app?: string;
    acc?: string;
    role?: string;
    scope?: string;
    actor?: string;
    iss?: string;
  } = {},
): AllowedPrincipal {
  return {
    uid: 'u-1',
    app: 'web',
    role: 'owner',
    scope: undefined,
    actor: undefined,
    iss: 'https://idp.test',
    jti: undefined,
    sid: undefined,
    ...changes,
    acc: account(changes.acc ?? 'acct1'),
  };
}

/** What a token says: one account, unless `accounts` names several or none. */
export function identity(
  changes: {
    uid?: string;
    app?: string;
    acc?: string;
    accounts?: readonly string[];
    issuerAccounts?: readonly string[];
    /** A text is a list of one. */
    role?: Identity['role'] | string;
    scope?: Identity['scope'];
    actor?: string;
    forwarded?: Identity['forwarded'];
    iss?: string;
    jti?: string;
    sid?: string;
  } = {},
): Identity {
  const { acc = 'acct1', accounts, issuerAccounts = ['*'], role = 'owner', ...others } = changes;
  const several = accounts === undefined ? account(acc) : new Set(accounts.map(account));
  return {
    uid: 'u-1',
    app: 'web',
    accounts:
      accounts?.length === 0
        ? refusal('account_mismatch', 'the token has no account that its issuer may speak for')
        : several,
    issuerAccounts: compileIssuerAccounts(issuerAccounts),
    role: typeof role === 'string' ? [role] : role,
    scope: [],
    otherScopes: undefined,
    forwarded: [],
    actor: undefined,
    iss: 'https://idp.test',
    jti: undefined,
    sid: undefined,
    ...others,
  };
}

export function account(text: string): Account {
  if (!isAccount(text, { dots: true, lower: false })) throw new Error('not an account');
  return text;
}
