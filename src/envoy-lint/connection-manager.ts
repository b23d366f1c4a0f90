// An HTTP connection manager of the bootstrap: its filter chains, and where its routes lead.
import type { RouteTemplate } from '../authz/route-template.ts';
import { type Endpoint, isLocal, readAddress } from './cluster.ts';
import { type FilterChain, readFilterChain } from './http-filter.ts';
import type { ProtoValue } from './proto-value.ts';
import { findRouted, type RouteMatch, readRouteMatch } from './route-match.ts';

export interface Listener {
  readonly value: ProtoValue;
  /** Whether requests from other machines come in here. */
  readonly isPublic: boolean;
  readonly managers: readonly ConnectionManager[];
  /** The clusters to which it forwards bytes, whatever is in them. */
  readonly tcpTargets: readonly { readonly place: ProtoValue; readonly cluster: string | undefined }[];
  /** What comes from a control plane. */
  readonly dynamic: readonly ProtoValue[];
}

export interface ConnectionManager {
  readonly value: ProtoValue;
  readonly listener: { readonly isPublic: boolean };
  readonly routes: ProtoValue;
  /** The main chain, then those of upgrades that have one of their own. */
  readonly chains: readonly FilterChain[];
  /** Everything that leads to a cluster. */
  readonly targets: readonly RouteTarget[];
  /** Matches of routes to a cluster of which nobody can tell which paths they take. */
  readonly unjudgedMatches: readonly ProtoValue[];
  readonly dynamic: readonly ProtoValue[];
}

export interface RouteTarget {
  /** The route or the weighted cluster of a route. */
  readonly place: ProtoValue;
  /** envoy.config.route.v3.RouteAction. */
  readonly action: ProtoValue;
  /** What may hold settings of it, from the widest to the narrowest. */
  readonly scopes: readonly ProtoValue[];
  /** Undefined where the request decides. */
  readonly cluster: string | undefined;
  /** A protected path that it gets; undefined if it gets none. */
  readonly protectedPath: string | undefined;
  /** The same with another spelling of a protected path. */
  readonly lookAlikePath: string | undefined;
  /** Whether it takes any path that is left over. */
  readonly isCatchAll: boolean;
}

const managerType = 'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';
const mobileManagerType =
  'envoy.extensions.filters.network.http_connection_manager.v3.EnvoyMobileHttpConnectionManager';
const tcpProxyType = 'envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy';
const outbound = 2;
const leftOver = ['/', '/left-over/by-all-others'] as const;

export function readListener(value: ProtoValue, protectedRoutes: readonly RouteTemplate[]): Listener {
  const isPublic = isReachable(value);
  const chains = [...value.field('filter_chains').items(), value.field('default_filter_chain')];
  const filters = chains.flatMap(chain => chain.field('filters').items());
  const typed = filters.map(filter => filter.field('typed_config').any());
  const managers = [...typed, value.field('api_listener').field('api_listener').any()].flatMap(({ type, message }) => {
    if (type === managerType) return [message];
    return type === mobileManagerType ? [message.field('config')] : [];
  });
  return {
    value,
    isPublic,
    managers: managers.map(each => readManager(each, { isPublic }, protectedRoutes)),
    tcpTargets: typed.flatMap(({ type, message }) => (type === tcpProxyType ? readTcpTargets(message) : [])),
    dynamic: filters.map(filter => filter.field('config_discovery')).filter(({ isPresent }) => isPresent),
  };
}

function isReachable(listener: ProtoValue): boolean {
  if (listener.field('internal_listener').isPresent || listener.field('api_listener').isPresent) return false;
  if (listener.field('traffic_direction').choice({ OUTBOUND: outbound }) === outbound) return false;
  const addresses = [
    listener.field('address'),
    ...listener
      .field('additional_addresses')
      .items()
      .map(each => each.field('address')),
  ];
  return !addresses.map((address): Endpoint => readAddress(address)).every(isLocal);
}

function readTcpTargets(proxy: ProtoValue): Listener['tcpTargets'] {
  const weighted = proxy.field('weighted_clusters').field('clusters').items();
  const places = weighted.length > 0 ? weighted.map(each => each.field('name')) : [proxy.field('cluster')];
  return places.map(place => ({ place, cluster: place.text() }));
}

function readManager(
  value: ProtoValue,
  listener: { readonly isPublic: boolean },
  protectedRoutes: readonly RouteTemplate[],
): ConnectionManager {
  const upgrades = value
    .field('upgrade_configs')
    .items()
    .filter(each => each.field('filters').items().length > 0);
  const chains = [
    readFilterChain(value.field('http_filters')),
    ...upgrades.map(each => readFilterChain(each.field('filters'), each.field('upgrade_type').text() ?? '')),
  ];
  const routes = value.field('route_config');
  const hosts = routes.field('virtual_hosts').items();
  const dynamic = [
    value.field('rds'),
    value.field('scoped_routes'),
    routes.field('vhds'),
    ...hosts.map(host => host.field('matcher')),
    ...chains.flatMap(chain => chain.filters.map(filter => filter.value.field('config_discovery'))),
  ].filter(({ isPresent }) => isPresent);
  const targets = hosts.flatMap(host => readTargets(routes, host, protectedRoutes));
  const unjudgedMatches = hosts
    .flatMap(host => host.field('routes').items())
    .filter(route => route.field('route').isPresent)
    .flatMap(route => readRouteMatch(route.field('match'))?.unjudged ?? []);
  return { value, listener, routes, chains, targets, unjudgedMatches, dynamic };
}

function readTargets(
  routes: ProtoValue,
  host: ProtoValue,
  protectedRoutes: readonly RouteTemplate[],
): readonly RouteTarget[] {
  const earlier: RouteMatch[] = [];
  return host
    .field('routes')
    .items()
    .flatMap(route => {
      const match = readRouteMatch(route.field('match'));
      if (match === undefined) return [];
      const action = route.field('route');
      const reach = () => ({
        protectedPath: findRouted(protectedRoutes, 'exact', match, earlier),
        lookAlikePath: findRouted(protectedRoutes, 'other case', match, earlier),
        isCatchAll: leftOver.every(path => match.takes(path)),
      });
      const targets = action.isPresent ? readActionTargets(route, action, [routes, host, route], reach()) : [];
      earlier.push(match);
      return targets;
    });
}

function readActionTargets(
  route: ProtoValue,
  action: ProtoValue,
  scopes: readonly ProtoValue[],
  reach: Pick<RouteTarget, 'protectedPath' | 'lookAlikePath' | 'isCatchAll'>,
): readonly RouteTarget[] {
  const weighted = action.field('weighted_clusters').field('clusters').items();
  if (weighted.length === 0)
    return [{ place: route, action, scopes, cluster: action.field('cluster').text(), ...reach }];
  return weighted.map(each => ({
    place: each,
    action,
    scopes: [...scopes, each],
    cluster: each.field('name').text(),
    ...reach,
  }));
}
