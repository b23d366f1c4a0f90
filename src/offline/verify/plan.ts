// Plans the requests that show whether a gateway does what a configuration says. Pure: sends nothing. Every request is a GET.
import { literalStart, type RouteTemplate, toRouteTemplate } from '../../authz/route-template.ts';
import type { Config } from '../../config/schema.ts';
import { type PlaceEntry, placeEntries } from '../../envoy-config/account-places.ts';
import type { GivenToken } from './given-token.ts';
import { type PlannedHosts, planHosts } from './planned-hosts.ts';

/** What the request is to show. */
type Purpose =
  | { readonly kind: 'unmatched path' | 'path outside the grammar' | 'public path' }
  | { readonly kind: 'no token' | 'false signature' | 'own account' }
  | { readonly kind: 'other account'; readonly place: Pick<PlaceEntry, 'name' | 'unseen'> };

export interface PlannedRequest {
  readonly purpose: Purpose;
  /** For people. It has templates in the place of what the token says. */
  readonly name: string;
  readonly target: string;
  /** Value of the Host header. */
  readonly host: string;
  /** Account headers. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Value of the Authorization header. */
  readonly authorization: string | undefined;
}

interface Plan {
  /** In the order to send them. */
  readonly requests: readonly PlannedRequest[];
  /** Names of those that exceed the limit. */
  readonly omitted: readonly string[];
}

export interface PlanOptions {
  readonly config: Pick<Config, 'routes' | 'public' | 'account'>;
  /** Host and port of the gateway, as the Host header has them. */
  readonly host: string;
  /** A token with a false signature for each issuer. */
  readonly falseTokens: readonly string[];
  readonly token: GivenToken | undefined;
}

export const maxRequests = 50;

/** Stands for every account and parameter, and is a label of a host. */
const mark = 'account-authz-verify';

const sendingOrder: readonly Purpose['kind'][] = [
  'unmatched path',
  'path outside the grammar',
  'public path',
  'no token',
  'false signature',
  'other account',
  'own account',
];

/** A route of the configuration. */
interface PlannedRoute {
  readonly template: RouteTemplate;
  /** Its path, with the parameter of the account by name. */
  readonly name: string;
  /** A path that it matches, for this account. */
  pathFor(account: string): string;
}

/** The name of a request has these words after its path, the kind of its purpose by default. */
type Draft = Pick<PlannedRequest, 'purpose' | 'target'> & Partial<PlannedRequest> & { readonly words?: string };

export function planRequests({ config, host, falseTokens, token }: PlanOptions): Plan {
  const { account } = config;
  const routes = config.routes.map(({ path }) => toPlannedRoute(path, account.parameter));
  const [first] = routes;
  const hosts = planHosts(account, host, mark);
  const request = createRequests(host);
  const withToken = token && requestsWithToken(token, account, host, hosts);
  const ownAccounts = withToken === undefined ? [] : routes.map(withToken.ownAccount);
  const byImportance = [
    request({ purpose: { kind: 'unmatched path' }, target: `/${mark}/no/route` }),
    request({ purpose: { kind: 'path outside the grammar' }, target: `${openStart(routes)}/${mark}%2Fslash` }),
    ...routes.map(route => request(noToken(route))),
    ...(config.public ?? []).map(({ path }) =>
      request({ purpose: { kind: 'public path' }, target: literalStart(toRouteTemplate(path)) }),
    ),
    ...hosts.others.flatMap(each =>
      first === undefined ? [] : [request({ ...noToken(first), host: each, words: `no token, host ${each}` })],
    ),
    ...ownAccounts.slice(0, 1),
    // The false token of every issuer once, that of the first one on every route.
    ...routes.flatMap((route, i) =>
      falseTokens.slice(0, i === 0 ? undefined : 1).map((each, issuer) => request(falseSignature(route, each, issuer))),
    ),
    ...(withToken === undefined ? [] : placeEntries(account).flatMap(place => withToken.otherAccounts(place, routes))),
    ...ownAccounts.slice(1),
    ...routes
      .filter(({ template }) => template.subtree)
      .map(route =>
        request({ ...noToken(route), target: `${route.pathFor(mark)}/${mark}`, name: `${route.name}/${mark}` }),
      ),
  ];
  const sent = byImportance.slice(0, maxRequests);
  return {
    requests: sendingOrder.flatMap(kind => sent.filter(({ purpose }) => purpose.kind === kind)),
    omitted: byImportance.slice(maxRequests).map(({ name }) => name),
  };
}

function createRequests(host: string): (draft: Draft) => PlannedRequest {
  return ({ purpose, target, name = target, words = purpose.kind, ...more }) => ({
    ...{ purpose, target, host, headers: [], authorization: undefined, ...more },
    name: `GET ${name}, ${words}`,
  });
}

function noToken({ name, pathFor }: PlannedRoute): Draft {
  return { purpose: { kind: 'no token' }, target: pathFor(mark), name };
}

function falseSignature({ name, pathFor }: PlannedRoute, falseToken: string, issuer: number): Draft {
  return {
    purpose: { kind: 'false signature' },
    target: pathFor(mark),
    name,
    authorization: `Bearer ${falseToken}`,
    ...(issuer > 0 && { words: `false signature, issuer ${issuer + 1}` }),
  };
}

function requestsWithToken(
  { authorization, accounts }: GivenToken,
  account: Config['account'],
  gateway: string,
  hosts: PlannedHosts,
) {
  const [own] = accounts;
  const other = absentFrom(accounts);
  const host = own === undefined ? gateway : hosts.forAccount(own);
  const request = createRequests(host);

  function ownAccount(route: PlannedRoute): PlannedRequest {
    const { template, name, pathFor } = route;
    const draft = { purpose: { kind: 'own account' }, target: pathFor(own ?? mark), name, authorization } as const;
    if (own === undefined) return request({ ...draft, words: 'the token' });
    // A token of several accounts must name one.
    const mustName = accounts.length > 1 && !hasAccount(template);
    const [naming] = placeEntries(account).flatMap(place => place.naming(addressable(route, own), own) ?? []);
    return request({ ...draft, ...(mustName && naming) });
  }

  /** None for a token without an account. */
  function otherAccounts(place: PlaceEntry, routes: readonly PlannedRoute[]): readonly PlannedRequest[] {
    if (own === undefined) return [];
    return routes.flatMap(route => {
      const named = place.naming(addressable(route, own), other);
      if (named === undefined) return [];
      const purpose = { kind: 'other account', place } as const;
      const words = `another account in ${place.name}`;
      return [request({ purpose, target: route.pathFor(own), name: route.name, authorization, ...named, words })];
    });
  }

  function addressable({ template, pathFor }: PlannedRoute, account: string) {
    return {
      target: pathFor(account),
      host,
      headers: [],
      targetFor: hasAccount(template) ? pathFor : undefined,
    };
  }

  return { ownAccount, otherAccounts };
}

function toPlannedRoute(text: string, parameter: string): PlannedRoute {
  const template = toRouteTemplate(text, parameter);
  const pathFor = (account: string): string => {
    const values = { account, any: mark };
    return `/${template.segments.map(each => (each.kind === 'literal' ? each.value : values[each.kind])).join('/')}`;
  };
  return { template, name: pathFor(`:${parameter}`), pathFor };
}

function hasAccount({ segments }: RouteTemplate): boolean {
  return segments.some(({ kind }) => kind === 'account');
}

/** The start that Envoy routes by: the literal part of a template that covers more than itself. */
function openStart(routes: readonly PlannedRoute[]): string {
  const starts = routes.map(({ template }) => ({
    covers: template.subtree || template.segments.some(({ kind }) => kind !== 'literal'),
    path: literalStart(template).replace(/\/$/, ''),
  }));
  return (starts.find(({ covers, path }) => covers && path !== '') ?? starts[0])?.path ?? '';
}

function absentFrom(accounts: readonly string[]): string {
  let name = mark;
  for (let i = 2; accounts.includes(name); i += 1) name = `${mark}-${i}`;
  return name;
}
