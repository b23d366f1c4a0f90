// Reads a cluster of the bootstrap: its hosts, and whether account-authz listens there.
import { isIP } from 'node:net';
import { posix } from 'node:path';
import { isLoopback, isUnspecified, type ListenAddress, toListenAddress } from '../../text/listen-address.ts';
import { protocolOptions } from '../envoy-settings/authz-cluster.ts';
import { memoized } from './memoized.ts';
import type { ProtoValue } from './proto-value.ts';

export interface Cluster {
  readonly name: string;
  readonly value: ProtoValue;
  /**
   * One per address in the file, also for a DNS name of several hosts; undefined if the lint cannot read it. None for a cluster that goes
   * where the connection went: a dump shows what clients have connected to so far, such as the address of the pod.
   */
  readonly endpoints: readonly (ListenAddress | undefined)[];
  /** The `addressKey` of each endpoint. */
  readonly keys: ReadonlySet<string>;
  /** Whether a client chooses the host of its request. */
  readonly isChosenByRequest: boolean;
  /** Whether it forwards a connection to the address and port that the client connected to. */
  readonly keepsDestination: boolean;
  /** Whether a control plane says where it leads, and the file does not. */
  readonly isElsewhere: boolean;
  /** The place of the first address. */
  readonly place: ProtoValue;
  /** Whether the metadata of each host chooses one of `transport_socket_matches`. */
  readonly choosesSocket: boolean;
  /** By which TLS contexts may name their authorities. */
  readonly secrets: ByName;
  /** The clusters that an aggregate cluster chooses from. */
  readonly members: readonly string[];
}

type ByName = ReadonlyMap<string | undefined, ProtoValue>;
/** Of the Resources of a file. */
type Parts = { readonly clusters: readonly ProtoValue[]; readonly endpoints: ByName; readonly secrets: ByName };

const aggregate = 'envoy.extensions.clusters.aggregate.v3.ClusterConfig';

/** An aggregate of more, perhaps of aggregates, counts as one that may lead anywhere: following each of many such chains takes too long. */
const maxMembers = 64;
// Of all aggregates together.
const maxHosts = 1_000_000;

/** An aggregate cluster has the hosts of its members too. */
export function readClusters(resources: Parts): ReadonlyMap<string, Cluster> {
  const plain = new Map(resources.clusters.map(each => readCluster(each, resources)).map(each => [each.name, each]));
  let hosts = 0;
  const whole = (cluster: Cluster): Cluster => {
    const reached = new Set([cluster]);
    for (const { members, endpoints } of reached) {
      hosts += endpoints.length;
      if (members.length + reached.size > maxMembers || hosts > maxHosts)
        return { ...cluster, isChosenByRequest: true };
      for (const name of members) reached.add(plain.get(name) ?? cluster);
    }
    return {
      ...cluster,
      endpoints: [...reached].flatMap(({ endpoints }) => endpoints),
      keys: new Set([...reached].flatMap(({ keys }) => [...keys])),
      isChosenByRequest: [...reached].some(({ isChosenByRequest }) => isChosenByRequest),
      members: [...reached].slice(1).map(({ name }) => name),
    };
  };
  return new Map([...plain].map(([name, each]) => [name, each.members.length === 0 ? each : whole(each)]));
}

function readCluster(value: ProtoValue, { endpoints: known, secrets }: Parts): Cluster {
  const service = value.field('eds_cluster_config', 'service_name');
  const discovered = known.get((service.isPresent ? service : value.field('name')).text());
  const assignment = discovered ?? value.field('load_assignment');
  const hosts = assignment.items('endpoints', 'lb_endpoints').map(each => each.field('endpoint'));
  const choosesSocket = (each: ProtoValue) =>
    each.field('metadata', 'filter_metadata').entry('envoy.transport_socket_match').isPresent;
  const places = hosts
    .flatMap(host => [host, ...host.items('additional_addresses')])
    .map(each => each.field('address'));
  const name = value.field('name').text() ?? '';
  const { type: customType, message: custom } = value.field('cluster_type', 'typed_config').any();
  const originalDestination = value.field('original_dst_lb_config');
  const isNamed = ['use_http_header', 'metadata_key'].some(each => originalDestination.field(each).isPresent);
  const isOriginalDestination = value.field('type').choice({ ORIGINAL_DST: 4 }) === 4;
  const endpoints = isOriginalDestination ? [] : places.map(readAddress);
  return {
    name,
    value,
    endpoints,
    keys: new Set(endpoints.flatMap(each => (each === undefined ? [] : addressKey(each)))),
    isChosenByRequest: customType.includes('.dynamic_forward_proxy.') || isNamed,
    keepsDestination: isOriginalDestination && !originalDestination.isPresent,
    isElsewhere: value.field('eds_cluster_config').isPresent && discovered === undefined,
    place: places[0] ?? assignment,
    choosesSocket:
      hosts.length > 0 &&
      assignment
        .items('endpoints')
        .every(each => choosesSocket(each) || each.items('lb_endpoints').every(choosesSocket)),
    secrets,
    members: customType === aggregate ? custom.items('clusters').map(each => each.text() ?? '') : [],
  };
}

// RFC 6761 section 6.3, and what distributions write into /etc/hosts.
const namesOfLoopback = /^(?:ip6-)?(?:localhost|loopback)[46]?(?:\.localdomain[46]?)?$|\.localhost$/;

/**
 * Equal for addresses that lead to the same server: every address of this machine is one, since servers mostly listen on all of them; a name
 * may end in a dot, and that of a Service in `.svc.cluster.local`.
 */
export function addressKey(address: ListenAddress): string {
  if (address.kind === 'unix') return `unix:${posix.normalize(address.path)}`;
  const name = address.host.toLowerCase().replace(/\.$/, '');
  const url = `http://${isIP(name) === 6 ? `[${name}]` : name}/`;
  // A number such as 127.1 is an address to a resolver too.
  const host = URL.canParse(url) ? new URL(url).hostname.replace(/^\[(.*)\]$/, '$1') : name;
  const [, high = '', low = ''] = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(host) ?? [];
  const bytes = [high, low].flatMap(part => [Number.parseInt(part, 16) >> 8, Number.parseInt(part, 16) & 255]);
  const plain = high === '' ? host : bytes.join('.');
  const isOwn = isLoopback(plain) || isUnspecified(plain) || namesOfLoopback.test(plain);
  return `${isOwn ? 'localhost' : plain.replace(/(?:\.svc)?(?:\.cluster\.local)?$/, '')}:${address.port}`;
}

/** Whether a key leads to one of these servers; Kubernetes finds `api` of the same namespace under `api.shop` too. */
export function createKeyFinder(keys: Iterable<string>): (key: string) => boolean {
  const bare = (key: string): string => key.replace(/^([a-z][\w-]*)\.[\w.-]*:/, '$1:');
  const all = new Set(keys);
  const bares = new Set([...all].map(bare));
  return key => all.has(key) || all.has(bare(key)) || bares.has(key);
}

export function readProtocolOptions(cluster: Cluster | undefined): readonly ProtoValue[] {
  return cluster === undefined ? [] : optionsOf(cluster);
}

// Hundreds of checks may ask through one cluster with 100,000 hosts.
const optionsOf = memoized(({ value }: Cluster) =>
  value
    .field('typed_extension_protocol_options')
    .entries()
    .map(each => each.any())
    .flatMap(({ type, message }) => (type === protocolOptions ? [message] : [])),
);
const areLocal = memoized((endpoints: Cluster['endpoints']) => endpoints.every(isLocal));
const leadElsewhere = memoized((endpoints: Cluster['endpoints']) => endpoints.some(isElsewhere));

/** An envoy.config.core.v3.Address. */
export function readAddress(address: ProtoValue): ListenAddress | undefined {
  const path = address.field('pipe', 'path').text();
  if (path !== undefined) return { kind: 'unix', path };
  const host = address.field('socket_address', 'address').text();
  const at = address.field('socket_address', 'port_value');
  const port = at.number();
  if (port !== undefined && !(Number.isInteger(port) && port >= 0 && port <= 65_535)) at.cannotBeJudged('is no port');
  return host === undefined || port === undefined ? undefined : { kind: 'tcp', host: host.toLowerCase(), port };
}

/** Whether it can only be on this machine or in this pod. */
export function isLocal(endpoint: ListenAddress | undefined): boolean {
  return endpoint?.kind === 'tcp' ? isLoopback(endpoint.host) : endpoint?.kind === 'unix';
}

/** Whether a host of the cluster is the address that account-authz listens on; undefined if the file does not tell. */
export function isAt(cluster: Cluster | undefined, listen: string): boolean | undefined {
  const own = toListenAddress(listen);
  const endpoints = cluster?.endpoints ?? [];
  if (endpoints.length === 0 || !areLocal(endpoints)) return undefined;
  const isRemote = own.kind === 'tcp' && isOtherHost(own.host);
  // Any free port, or a name that may be one of this machine. Another IP address is not reachable as loopback.
  if (own.kind === 'tcp' && (own.port === 0 || (isRemote && isIP(own.host) === 0))) return undefined;
  if (isRemote) return false;
  return cluster?.keys.has(addressKey(own));
}

/** Whether account-authz listens for this machine only and a host of the cluster is the IP address of another one. */
export function leadsElsewhere(cluster: Cluster | undefined, listen: string): boolean {
  return isLocal(toListenAddress(listen)) && leadElsewhere(cluster?.endpoints ?? []);
}

// A name may be one of this machine.
function isElsewhere(endpoint: ListenAddress | undefined): boolean {
  return endpoint?.kind === 'tcp' && isIP(endpoint.host) !== 0 && isOtherHost(endpoint.host);
}

// Connecting to the unspecified address reaches this machine.
function isOtherHost(host: string): boolean {
  return !isLoopback(host) && !isUnspecified(host);
}
