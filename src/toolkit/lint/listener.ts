// Reads the listeners of the bootstrap and their HTTP connection managers: filter chains, and where the routes lead.
import type { RouteTemplate } from '../../authz/route-template.ts';
import type { Cluster } from './cluster.ts';
import { type FilterChain, readFilterChain } from './http-filter.ts';
import { memoized } from './memoized.ts';
import type { OwnedNames } from './owned-names.ts';
import type { ProtoValue } from './proto-value.ts';
import { isOutbound as isForOutbound, isReachable, type Resources } from './resources.ts';
import { type EnvoyRouteMatch, readRouteMatch } from './route-match.ts';
import { createLooks, findRouted, indexMatches, type ProtectedRoutes } from './routed-path.ts';

export interface Listener {
  readonly isOutbound: boolean;
  readonly managers: readonly ConnectionManager[];
  /** Where it forwards any bytes to. */
  readonly tcpTargets: readonly TcpTarget[];
  /** Settings that come from a control plane. */
  readonly dynamic: readonly ProtoValue[];
}

interface TcpTarget extends ForPorts {
  /** The name of the cluster. */
  readonly cluster: ProtoValue;
}

interface ForPorts {
  /** Whether other filter chains of the listener are for ports, and this one takes the connections to the others. */
  readonly isForOtherPorts: boolean;
}

export interface ConnectionManager extends ForPorts {
  readonly value: ProtoValue;
  /** Whether it accepts requests from other machines. */
  readonly isPublic: boolean;
  /** Whether it takes the requests that the service sends. */
  readonly isOutbound: boolean;
  readonly routes: ProtoValue;
  readonly hosts: readonly VirtualHost[];
  /** The main chain, then those of upgrades that have one of their own. */
  readonly chains: readonly FilterChain[];
  /** Everything that leads to a cluster. */
  readonly targets: readonly RouteTarget[];
  /** Those of them that get a protected path. */
  readonly protectedTargets: readonly RouteTarget[];
  /** The different `filterScopes` of these. */
  readonly protectedScopes: readonly (readonly ProtoValue[])[];
  /** Those of which no virtual host leads all paths to a cluster or a redirect. */
  readonly withoutWay: (templates: readonly RouteTemplate[]) => readonly RouteTemplate[];
  readonly dynamic: readonly ProtoValue[];
}

/** envoy.config.route.v3.VirtualHost. */
interface VirtualHost {
  readonly value: ProtoValue;
  /** In their order. */
  readonly routes: readonly HostRoute[];
}

export interface HostRoute {
  /** envoy.config.route.v3.Route. */
  readonly value: ProtoValue;
  readonly match: EnvoyRouteMatch;
  /** Whether Envoy answers its requests itself. */
  readonly isAnswered: boolean;
  /** What may contain its settings, from the widest to the narrowest, weighted clusters left out. */
  readonly scopes: readonly ProtoValue[];
  /** Those of them that have settings of filters. */
  readonly filterScopes: readonly ProtoValue[];
}

/** Its scopes end with the weighted cluster, if it is one. */
export interface RouteTarget extends Omit<HostRoute, 'value'> {
  /** envoy.config.route.v3.RouteAction. */
  readonly action: ProtoValue;
  /** The name of the cluster; undefined if the request chooses. */
  readonly cluster: string | undefined;
  /** Its place. */
  readonly at: ProtoValue;
  /** Undefined if it is not in the file. */
  readonly upstream: Cluster | undefined;
  readonly names: OwnedNames;
  /** A protected path that it gets; undefined if it gets none. */
  readonly protectedPath: string | undefined;
  /** The same for another spelling of a protected path. */
  readonly lookAlikePath: string | undefined;
}

const network = 'envoy.extensions.filters.network';
const managerType = `${network}.http_connection_manager.v3.HttpConnectionManager`;
const mobileManagerType = `${network}.http_connection_manager.v3.EnvoyMobileHttpConnectionManager`;
const tcpProxyType = `${network}.tcp_proxy.v3.TcpProxy`;

/** What a manager is judged with. */
interface ManagerContext {
  readonly protectedRoutes: ProtectedRoutes;
  readonly resources: Resources;
  readonly clusters: ReadonlyMap<string, Cluster>;
  readonly names: OwnedNames;
}

export function readListener(value: ProtoValue, context: ManagerContext): Listener {
  const isOutbound = isForOutbound(value, context.resources.isDump);
  const isPublic = !isOutbound && isReachable(value);
  // By which an Envoy of an ambient mesh calls others: a tunnel to another Envoy, `connect_originate` in Istio.
  const isInternal = value.field('internal_listener').isPresent;
  const chains = value.items('filter_chains');
  const hasPort = (chain: ProtoValue) => chain.field('filter_chain_match', 'destination_port').isPresent;
  // Envoy selects a chain by the port first. The default chain gets what no chain of a port takes.
  const isAnyForPort = chains.some(hasPort);
  const isForOtherPorts = (chain: ProtoValue) => isAnyForPort && !hasPort(chain);
  const filters = [
    ...chains.flatMap(chain =>
      chain.items('filters').map(filter => ({ filter, isForOtherPorts: isForOtherPorts(chain) })),
    ),
    ...value.items('default_filter_chain', 'filters').map(filter => ({ filter, isForOtherPorts: false })),
  ];
  const typed = [
    ...filters.map(each => ({ ...each, ...each.filter.field('typed_config').any() })),
    { isForOtherPorts: false, ...value.field('api_listener', 'api_listener').any() },
  ];
  return {
    isOutbound,
    managers: typed.flatMap(({ type, message, isForOtherPorts }) => {
      if (type !== managerType && type !== mobileManagerType) return [];
      const manager = type === managerType ? message : message.field('config');
      return [{ ...readManager(manager, context), isPublic, isOutbound, isForOtherPorts }];
    }),
    tcpTargets: typed
      .filter(
        ({ type, message }) => type === tcpProxyType && !(isInternal && message.field('tunneling_config').isPresent),
      )
      .flatMap(({ message, isForOtherPorts }) =>
        [
          message.field('cluster'),
          ...message.items('weighted_clusters', 'clusters').map(each => each.field('name')),
        ].map(cluster => ({ cluster, isForOtherPorts })),
      ),
    dynamic: filters.map(({ filter }) => filter.field('config_discovery')),
  };
}

// Each such chain is judged for each route, and each filter for each route with settings of its own.
const maxUpgrades = 16;
const maxPairs = 300_000;
// So many of each, however many others there are.
const minPairs = 300;
// Of all managers together.
const pairsIn = memoized((_: ManagerContext) => ({ left: 10 * maxPairs }));

function readManager(
  value: ProtoValue,
  context: ManagerContext,
): Omit<ConnectionManager, 'isPublic' | 'isOutbound' | keyof ForPorts> {
  const { resources } = context;
  const upgrades = value.items('upgrade_configs').filter(each => each.items('filters').length > 0);
  if (upgrades.length > maxUpgrades)
    value.field('upgrade_configs').cannotBeJudged(`has more than ${maxUpgrades} upgrades with filters of their own`);
  const chains = [
    readFilterChain(value.field('http_filters'), undefined, resources.filters),
    ...upgrades
      .slice(0, maxUpgrades)
      .map(each => readFilterChain(each.field('filters'), each.field('upgrade_type').text() ?? '', resources.filters)),
  ];
  const discovered = resources.routes.get(value.field('rds', 'route_config_name').text());
  const routes = discovered ?? value.field('route_config');
  const { hosts, targets, protectedTargets } = readRoutes(context)(routes);
  const dynamic = [
    ...(discovered === undefined ? [value.field('rds')] : []),
    value.field('scoped_routes'),
    routes.field('vhds'),
    ...hosts.map(host => host.value.field('matcher')),
    ...chains.flatMap(chain => chain.filters.flatMap(({ discovery }) => discovery ?? [])),
  ].filter(({ isPresent }) => isPresent);
  const look = createLooks(routes);
  // Made again for each: a file may have 150,000 virtual hosts.
  const withoutWay = (templates: readonly RouteTemplate[]) =>
    hosts.reduce<readonly RouteTemplate[]>((left, { routes: all }) => {
      if (all.every(({ isAnswered }) => isAnswered)) return left;
      if (!look(left.length)) return [];
      const { leadsOn } = indexMatches(left.length === 0 ? [] : all);
      return left.filter(each => !leadsOn(each));
    }, templates);
  const protectedScopes = [...new Set(protectedTargets.map(({ filterScopes }) => filterScopes))];
  const different = new Set(targets.map(({ filterScopes }) => filterScopes)).size + 1;
  const pairs = pairsIn(context);
  const room = Math.ceil(Math.max(minPairs, Math.min(maxPairs, pairs.left)) / different);
  for (const { value: list, filters } of chains)
    if (filters.length > room)
      list.cannotBeJudged('has more filters than the lint judges for so many routes with settings of filters');
  const judged = chains.map(chain => ({ ...chain, filters: chain.filters.slice(0, room) }));
  for (const { filters } of judged) pairs.left -= (different - 1) * filters.length;
  return { value, routes, hosts, chains: judged, targets, protectedTargets, protectedScopes, withoutWay, dynamic };
}

// For listeners with the same routes from a control plane: each judges all of them.
const maxShared = 150_000;

const readRoutes = memoized((context: ManagerContext) => {
  const known = new Map<ProtoValue, ReturnType<typeof readAllRoutes>>();
  let shared = 0;
  return (routes: ProtoValue) => {
    const found = known.get(routes) ?? readAllRoutes(routes, context);
    shared += known.has(routes) ? found.targets.length : 0;
    known.set(routes, found);
    if (shared <= maxShared) return found;
    routes.cannotBeJudged('has too many routes to be judged for each of its listeners');
    return { hosts: [], targets: [], protectedTargets: [] };
  };
});

function readAllRoutes(routes: ProtoValue, context: ManagerContext) {
  const outer = withFilters([], routes);
  const hosts = routes.items('virtual_hosts').map(host => readHost(routes, host, outer));
  const targets = hosts.flatMap(host => readTargets(host, context));
  return { hosts, targets, protectedTargets: targets.filter(({ protectedPath }) => protectedPath !== undefined) };
}

/** The same list where nothing is added, so that equal lists are found at once. */
function withFilters(scopes: readonly ProtoValue[], inner: ProtoValue): readonly ProtoValue[] {
  return inner.field('typed_per_filter_config').isPresent ? [...scopes, inner] : scopes;
}

function readHost(routes: ProtoValue, value: ProtoValue, outer: readonly ProtoValue[]): VirtualHost {
  const own = withFilters(outer, value);
  // Asking what is no mapping for a field reports it.
  const given = value.items('routes').filter(route => route.isMapping || route.field('match').isPresent);
  const all = given.map((route): HostRoute => {
    const match = readRouteMatch(route.field('match'));
    const isAnswered = route.present('route', 'redirect').length === 0;
    return { value: route, match, isAnswered, scopes: [routes, value, route], filterScopes: withFilters(own, route) };
  });
  return { value, routes: all };
}

function readTargets({ routes }: VirtualHost, context: ManagerContext): readonly RouteTarget[] {
  const { protectedRoutes, clusters, names } = context;
  const order = indexMatches(routes);
  return routes.flatMap(({ value, match, isAnswered, scopes, filterScopes }, place) => {
    const action = value.field('route');
    if (!action.isPresent) return [];
    const target = (at: ProtoValue, weight?: ProtoValue, isCopy = false): RouteTarget => {
      const cluster = at.text();
      return {
        match,
        isAnswered,
        action,
        // A copy of a checked request has been checked.
        protectedPath: isCopy ? undefined : protectedPath,
        lookAlikePath: isCopy ? undefined : lookAlikePath,
        scopes: weight === undefined ? scopes : [...scopes, weight],
        filterScopes: weight === undefined ? filterScopes : withFilters(filterScopes, weight),
        at,
        cluster,
        upstream: clusters.get(cluster ?? ''),
        names,
      };
    };
    const protectedPath = findRouted(protectedRoutes, 'exact', match, order, place);
    const lookAlikePath = findRouted(protectedRoutes, 'other case', match, order, place);
    const weighted = action.items('weighted_clusters', 'clusters');
    const mirrors = action.items('request_mirror_policies').map(each => target(each.field('cluster'), undefined, true));
    const targets =
      weighted.length === 0
        ? [target(action.field('cluster'))]
        : weighted.map(each => target(each.field('name'), each));
    return mirrors.length === 0 ? targets : [...targets, ...mirrors];
  });
}
