// Plans the requests that show whether a gateway does what a configuration says. Pure: sends nothing. Every request is a GET.
import { type HostEntry, isAccountLabel } from '../../authz/places/host-place.ts';
import { literalStart, type RouteTemplate, toRouteTemplate } from '../../authz/route-template.ts';
import type { Config } from '../../config/schema.ts';
import { hostEntries, type PlaceEntry, placeEntries } from '../../headers/account-places.ts';
import type { GivenToken } from './tokens.ts';

/** What a request is to show, in the order in which they are sent. */
const kinds = [
  'unmatched path',
  'path outside the grammar',
  'public path',
  'below a public path',
  'admin of Envoy',
  'no token',
  'false signature',
  'other account',
  'own account',
] as const;

export interface PlannedRequest {
  readonly kind: (typeof kinds)[number];
  /** For people. It has templates in the place of what the token says. */
  readonly name: string;
  readonly target: string;
  /** Value of the Host header. */
  readonly host: string;
  /** Account headers. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Value of the Authorization header. */
  readonly authorization?: string;
  /** Where it names another account. */
  readonly place?: Pick<PlaceEntry, 'unseen'>;
  /** Envoy serves it without asking account-authz. */
  readonly isOpen?: boolean;
  /** The target of a planned path of nonsense, which must be answered alike. */
  readonly beside?: string;
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

/** The check that is not called for a route is what most gateways lack: as many routes are asked first. */
const firstRoutes = 24;

/** Stands for every account and parameter, and is a label of a host. */
const mark = 'account-authz-verify';

/** A route of the configuration. */
interface PlannedRoute {
  readonly template: RouteTemplate;
  /** Its path, with the parameter of the account by name. */
  readonly name: string;
  /** A path that it matches, for this account. */
  pathFor(account: string): string;
}

/** Words follow the path in the name of a request: the kind if not given. */
type Draft = Partial<PlannedRequest> & { readonly words?: string };
type Make = (kind: PlannedRequest['kind'], target: string, draft?: Draft) => PlannedRequest;

/** In the order to send them; `omitted` are those that exceed the limit. */
export function planRequests({ config, host, falseTokens, token }: PlanOptions): {
  readonly requests: readonly PlannedRequest[];
  readonly omitted: readonly PlannedRequest[];
} {
  const { account } = config;
  const routes = config.routes.map(({ path }) => toPlannedRoute(path, account.parameter));
  const hosts = planHosts(account, host);
  const make: Make = (kind, target, { name = target, words = kind, ...more } = {}) => {
    return { kind, target, host, headers: [], ...more, name: `GET ${name}, ${words}` };
  };
  const noToken = (draft: Draft, { name, pathFor }: PlannedRoute) =>
    make('no token', pathFor(mark), { name, ...draft });
  const plainRoutes = routes.map(route => noToken({}, route));
  const [ownAccounts, otherAccounts] = token === undefined ? [[], []] : withToken(token, account, routes, hosts, make);
  const byImportance = [
    make('unmatched path', `/${mark}/no/route`),
    make('path outside the grammar', `${openStart(routes)}/${mark}%2Fslash`),
    make('admin of Envoy', '/envoy/ready'),
    ...plainRoutes.slice(0, firstRoutes),
    ...inTurn([
      inTurn((config.public ?? []).map(each => publicPaths(each, routes, token?.accounts[0] ?? mark, make))),
      ownAccounts,
      // The false token of every issuer once, that of the first one on every route.
      routes.flatMap(({ name, pathFor }, i) =>
        falseTokens.slice(0, i === 0 ? undefined : 1).map((each, issuer) => {
          const words = issuer === 0 ? undefined : { words: `false signature, issuer ${issuer + 1}` };
          return make('false signature', pathFor(mark), { name, authorization: `Bearer ${each}`, ...words });
        }),
      ),
      otherAccounts,
      hosts.others.flatMap(each =>
        routes.slice(0, 1).map(route => noToken({ host: each, words: `no token, host ${each}` }, route)),
      ),
      plainRoutes.slice(firstRoutes),
      routes
        .filter(({ template }) => template.subtree)
        .map(({ name, pathFor }) => make('no token', `${pathFor(mark)}/${mark}`, { name: `${name}/${mark}` })),
    ]),
  ];
  const sent = byImportance.slice(0, maxRequests);
  return {
    requests: kinds.flatMap(kind => sent.filter(each => each.kind === kind)),
    omitted: byImportance.slice(maxRequests),
  };
}

/** One of each list in turn, so that none crowds out another. */
function inTurn<Item>(lists: readonly (readonly Item[])[]): readonly Item[] {
  const length = Math.max(0, ...lists.map(list => list.length));
  return Array.from({ length }, (_, i) => lists.flatMap(list => list.slice(i, i + 1))).flat();
}

/** Of a subtree also what a rewrite may lead to the protected API or to Envoy's admin interface, each path after its nonsense. */
function publicPaths(
  { path, methods }: NonNullable<Config['public']>[number],
  routes: readonly PlannedRoute[],
  account: string,
  make: Make,
): readonly PlannedRequest[] {
  const template = toRouteTemplate(path);
  const start = literalStart(template);
  const isOpen = methods.includes('GET');
  const itself = make('public path', start, { isOpen });
  if (!template.subtree || !isOpen) return [itself];
  const nonsense = (below: string): string => `${start}/${mark}${'/x'.repeat(below.split('/').length - 2)}`;
  const tailOf = (text: string, from: number): string =>
    `/${text
      .split('/')
      .slice(from + 1)
      .join('/')}`;
  // Without their first segments too: a rewrite may put these before the path.
  const below = new Map(
    routes.flatMap(route =>
      route.template.segments.flatMap(({ kind }, i) =>
        i === 0 || kind === 'literal' ? [[tailOf(route.pathFor(account), i), tailOf(route.name, i)] as const] : [],
      ),
    ),
  );
  const words = `below public ${path}`;
  const [first = [], ...others] = Array.from(below, ([target, name]) => [
    make('public path', nonsense(target), { isOpen }),
    make('below a public path', `${start}${target}`, { name: `${start}${name}`, words, beside: nonsense(target) }),
  ]);
  const admin = ['/ready', '/../ready', '/envoy/ready'].map(each => make('admin of Envoy', `${start}${each}`));
  const all = [itself, ...first, ...admin, ...others.flat()];
  return all.filter(({ target }, i) => all.findIndex(each => each.target === target) === i);
}

function withToken(
  { authorization, accounts }: GivenToken,
  account: Config['account'],
  routes: readonly PlannedRoute[],
  hosts: ReturnType<typeof planHosts>,
  make: Make,
): readonly [own: readonly PlannedRequest[], other: readonly PlannedRequest[]] {
  const [own] = accounts;
  const places = placeEntries(account);
  if (own === undefined) {
    const words = 'the token';
    return [routes.map(({ name, pathFor }) => make('own account', pathFor(mark), { name, authorization, words })), []];
  }
  const host = hosts.forAccount(own);
  const naming = (place: PlaceEntry, { template, pathFor }: PlannedRoute, named: string): Draft | undefined =>
    place.naming(
      { target: pathFor(own), host, headers: [], targetFor: hasAccount(template) ? pathFor : undefined },
      named,
    );
  const ownAccounts = routes.map(route => {
    // A token of several accounts must name one.
    const mustName = accounts.length > 1 && !hasAccount(route.template);
    const [named] = mustName ? places.flatMap(place => naming(place, route, own) ?? []) : [];
    return make('own account', route.pathFor(own), { name: route.name, host, authorization, ...named });
  });
  const other = absentFrom(accounts);
  const otherAccounts = places.flatMap(place =>
    routes.flatMap(route => {
      const named = naming(place, route, other);
      if (named === undefined) return [];
      const words = `another account in ${place.name}`;
      return make('other account', route.pathFor(own), {
        name: route.name,
        host,
        authorization,
        ...named,
        place,
        words,
      });
    }),
  );
  return [ownAccounts, otherAccounts];
}

/** The entry of account.hosts for the gateway, or undefined if none matches. */
export function hostEntryOf(account: Config['account'], hostname: string): HostEntry | undefined {
  const parent = hostname.slice(hostname.indexOf('.'));
  const entries = hostEntries(account);
  return (
    entries.find(entry => entry.kind === 'literal' && entry.host === hostname) ??
    entries.find(entry => entry.kind === 'account' && entry.parent === parent)
  );
}

/** Values of the Host header. `gateway` is its own one, with its port. */
function planHosts(account: Config['account'], gateway: string) {
  const port = /:[0-9]+$/.exec(gateway)?.[0] ?? '';
  const own = hostEntryOf(account, gateway.slice(0, gateway.length - port.length).toLowerCase());
  const hostOf = (entry: HostEntry, label = mark): string =>
    `${entry.kind === 'literal' ? entry.host : `${label}${entry.parent}`}${port}`;
  const entries = hostEntries(account);
  return {
    /** One for each entry but the gateway's. */
    others: entries.map(entry => hostOf(entry)).filter(host => own === undefined || host !== hostOf(own)),
    /** The gateway's, unless that names an account: then one that names this account, or none. */
    forAccount(name: string): string {
      if (own?.kind !== 'account') return gateway;
      if (isAccountLabel(name)) return hostOf(own, name);
      const literal = entries.find(({ kind }) => kind === 'literal');
      return literal === undefined ? gateway : hostOf(literal);
    },
  };
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
