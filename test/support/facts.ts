// Request facts and policies for tests of the pure policy: valid by default; every part can be replaced.
import { compileAccountParameters } from '../../src/authz/account-query.ts';
import type { Policy } from '../../src/authz/authorize.ts';
import { type Account, type AllowedPrincipal, isAccount } from '../../src/authz/principal.ts';
import type { RequestFacts } from '../../src/authz/request-facts.ts';
import { compileRoles } from '../../src/authz/role.ts';
import type { RouteDefinition } from '../../src/authz/route.ts';
import { compileRoutes } from '../../src/authz/route-tree.ts';

export function facts(
  changes: {
    method?: string;
    target?: string;
    headers?: Record<string, string | string[]>;
    contradiction?: RequestFacts['contradiction'];
  } = {},
): RequestFacts {
  const headers = { authorization: 'Bearer h.p.s', ...changes.headers };
  return {
    method: changes.method ?? 'GET',
    target: changes.target ?? '/api/subscriptions/acct1',
    headers: new Map(Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value : [value]])),
    contradiction: changes.contradiction,
  };
}

export function route(path: string, roles?: readonly string[]): RouteDefinition {
  return { path, roles };
}

export function policy(
  changes: {
    routes?: readonly RouteDefinition[];
    roles?: Record<string, string[]>;
    apps?: readonly string[];
    headers?: readonly string[];
    query?: readonly string[];
  } = {},
): Policy {
  return {
    routes: compileRoutes(changes.routes ?? [route('/api/subscriptions/:account_id/*')]),
    roles: compileRoles(changes.roles ?? { owner: ['*'], member: ['GET', 'HEAD'] }),
    apps: changes.apps === undefined ? undefined : new Set(changes.apps),
    accountPlaces: { headers: changes.headers ?? [], query: compileAccountParameters(changes.query ?? []) },
    identityPrefix: 'x-auth-',
  };
}

export function principal(
  changes: { uid?: string; app?: string; acc?: string; role?: string; iss?: string } = {},
): AllowedPrincipal {
  return {
    uid: 'u-1',
    app: 'web',
    role: 'owner',
    iss: 'https://idp.test',
    ...changes,
    acc: account(changes.acc ?? 'acct1'),
  };
}

export function account(text: string): Account {
  if (!isAccount(text, true)) throw new Error('not an account');
  return text;
}
