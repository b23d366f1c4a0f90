// Finds listeners, clusters, routes and endpoints in a bootstrap or in dumps of running Envoys (envoy.admin.v3.ConfigDump).
import { isLocal, readAddress } from './cluster.ts';
import type { ProtoValue } from './proto-value.ts';

/** What one Envoy runs with. */
export interface Resources {
  /** envoy.config.bootstrap.v3.Bootstrap; in a dump it repeats static listeners and clusters. */
  readonly bootstrap: ProtoValue | undefined;
  readonly isDump: boolean;
  readonly listeners: readonly ProtoValue[];
  readonly clusters: readonly ProtoValue[];
  /** Where the listeners are, or are missing. */
  readonly place: ProtoValue;
  /** envoy.config.bootstrap.v3.Admin. */
  readonly admin: ProtoValue;
  /** Where listeners come from that are not in the file. */
  readonly discovery: readonly ProtoValue[];
  /** envoy.config.route.v3.RouteConfiguration from a control plane. */
  readonly routes: ByName;
  /** envoy.config.endpoint.v3.ClusterLoadAssignment from a control plane. */
  readonly endpoints: ByName;
  /** Those of the file itself: envoy.extensions.transport_sockets.tls.v3.Secret. */
  readonly secrets: ByName;
  /** envoy.config.core.v3.TypedExtensionConfig of an HTTP filter from a control plane. */
  readonly filters: ByName;
}

export type ByName = ReadonlyMap<string | undefined, ProtoValue>;

// `egctl` prints a dump for each namespace and pod.
const maxWrappers = 3;
const maxDumps = 500;

/** The resources of each dump in the file, or of the bootstrap if it has none. */
export function readResources(root: ProtoValue): readonly Resources[] {
  const all = findDumps(root, maxWrappers);
  if (all.length > maxDumps) root.cannotBeJudged(`has more than ${maxDumps} dumps`);
  const dumps = all.slice(0, maxDumps);
  return dumps.length > 0 ? dumps.map(readDump) : [readBootstrap(root)];
}

/** All that this Envoy runs with, each part once, without what is for outbound traffic. */
export function partsOf(resources: Resources | undefined): readonly ProtoValue[] {
  if (resources === undefined) return [];
  const { isDump, bootstrap, listeners, clusters, routes, filters } = resources;
  if (!isDump) return bootstrap === undefined ? [] : [bootstrap];
  const inbound = listeners.filter(each => !isOutbound(each, isDump));
  const others = bootstrap?.present('admin', 'tracing', 'stats_config', 'stats_sinks') ?? [];
  return [...others, ...inbound, ...clusters, ...routes.values(), ...filters.values()];
}

/** Whether a mesh leads what the service sends to it, and no other machine reaches it. The gateways of Istio have the direction too. */
export function isOutbound(listener: ProtoValue, isDump: boolean): boolean {
  if (listener.field('traffic_direction').choice({ OUTBOUND: 2 }) !== 2) return false;
  const isBound = [listener, listener.field('deprecated_v1')].every(
    each => each.field('bind_to_port').flag() !== false,
  );
  return !isBound || (isDump && listener.field('use_original_dst').flag() === true) || !isReachable(listener);
}

/** Whether other machines can connect to it. */
export function isReachable(listener: ProtoValue): boolean {
  if (listener.present('internal_listener', 'api_listener').length > 0) return false;
  const addresses = [listener, ...listener.items('additional_addresses')].map(each => each.field('address'));
  return !addresses.map(readAddress).every(isLocal);
}

function findDumps(value: ProtoValue, depth: number): readonly ProtoValue[] {
  if (!value.isMapping) return [];
  if (value.entry('configs').items().some(isSection)) return [value];
  return depth === 0 ? [] : value.entries().flatMap(each => findDumps(each, depth - 1));
}

function isSection(value: ProtoValue): boolean {
  return value.isMapping && value.any().type.startsWith('envoy.admin.');
}

function readBootstrap(root: ProtoValue): Resources {
  const resources = root.field('static_resources');
  return {
    bootstrap: root,
    isDump: false,
    listeners: resources.items('listeners'),
    clusters: resources.items('clusters'),
    place: resources.field('listeners'),
    admin: root.field('admin'),
    discovery: root.field('dynamic_resources').present('lds_config', 'lds_resources_locator'),
    routes: none,
    endpoints: none,
    secrets: byName(resources.items('secrets'), 'name'),
    filters: none,
  };
}

const none: ByName = new Map();

function readDump(dump: ProtoValue): Resources {
  const configs = dump.field('configs');
  const sections = (name: string) => configs.items().filter(each => isSection(each) && each.any().type.endsWith(name));
  const among = (name: string, lists: readonly string[], inner: string) =>
    sections(name).flatMap(section => lists.flatMap(list => section.items(list)).map(each => each.field(inner)));
  const [bootstrap] = sections('.BootstrapConfigDump').map(section => section.field('bootstrap'));
  const states = sections('.ListenersConfigDump').flatMap(section =>
    section.items('dynamic_listeners').flatMap(each => [each.field('active_state'), each.field('warming_state')]),
  );
  const clusterLists = ['static_clusters', 'dynamic_active_clusters', 'dynamic_warming_clusters'];
  return {
    bootstrap,
    isDump: true,
    listeners: [
      ...among('.ListenersConfigDump', ['static_listeners'], 'listener'),
      ...states.map(each => each.field('listener')),
    ].filter(({ isPresent }) => isPresent),
    clusters: among('.ClustersConfigDump', clusterLists, 'cluster').filter(({ isPresent }) => isPresent),
    place: configs,
    admin: (bootstrap ?? dump).field('admin'),
    discovery: [],
    routes: byName(among('.RoutesConfigDump', ['dynamic_route_configs'], 'route_config'), 'name'),
    endpoints: byName(among('.EndpointsConfigDump', ['dynamic_endpoint_configs'], 'endpoint_config'), 'cluster_name'),
    secrets: byName(bootstrap?.items('static_resources', 'secrets') ?? [], 'name'),
    filters: byName(among('.EcdsConfigDump', ['ecds_filters'], 'ecds_filter'), 'name'),
  };
}

function byName(values: readonly ProtoValue[], field: string): ByName {
  return new Map(values.filter(({ isPresent }) => isPresent).map(each => [each.field(field).text(), each]));
}
