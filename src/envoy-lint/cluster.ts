// Reads a cluster of the bootstrap: its hosts, and whether account-authz listens there.
import { isLoopback, isSameListener, parseListenAddress } from '../address/listen-address.ts';
import type { ProtoValue } from './proto-value.ts';

type Endpoint =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'unknown' };

export interface Cluster {
  readonly name: string;
  readonly value: ProtoValue;
  /** One per address in the file, also for a DNS name of several hosts. */
  readonly endpoints: readonly Endpoint[];
  /** The place of the first address. */
  readonly place: ProtoValue;
}

const protocolOptions = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';

export function readCluster(value: ProtoValue): Cluster {
  const assignment = value.field('load_assignment');
  const hosts = assignment.items('endpoints', 'lb_endpoints').map(each => each.field('endpoint', 'address'));
  const name = value.field('name').text() ?? '';
  return { name, value, endpoints: hosts.map(readAddress), place: hosts[0] ?? assignment };
}

export function readProtocolOptions({ value }: Cluster): readonly ProtoValue[] {
  const options = value.field('typed_extension_protocol_options').entries();
  return options.map(each => each.any()).flatMap(({ type, message }) => (type === protocolOptions ? [message] : []));
}

/** An envoy.config.core.v3.Address. */
export function readAddress(address: ProtoValue): Endpoint {
  const path = address.field('pipe', 'path').text();
  if (path !== undefined) return { kind: 'unix', path };
  const host = address.field('socket_address', 'address').text();
  const port = address.field('socket_address', 'port_value').number();
  return host === undefined || port === undefined
    ? { kind: 'unknown' }
    : { kind: 'tcp', host: host.toLowerCase(), port };
}

/** Whether it can only be on this machine or in this pod. */
export function isLocal(endpoint: Endpoint): boolean {
  return endpoint.kind === 'tcp' ? isLoopback(endpoint.host) : endpoint.kind === 'unix';
}

/** Whether a host of the cluster is the address that account-authz listens on; undefined if the file does not tell. */
export function isAt(cluster: Cluster, listen: string): boolean | undefined {
  const own = parseListenAddress(listen);
  if (own.kind === 'problem' || cluster.endpoints.length === 0 || !cluster.endpoints.every(isLocal)) return undefined;
  // Any free port, or an address that is not reachable as loopback.
  const hosts = ['0.0.0.0', '::'];
  if (own.kind === 'tcp' && (own.port === 0 || !(isLoopback(own.host) || hosts.includes(own.host)))) return undefined;
  return cluster.endpoints.some(each => isSameEndpoint(each, own));
}

export function isSameEndpoint(one: Endpoint, other: Endpoint): boolean {
  return one.kind !== 'unknown' && other.kind !== 'unknown' && isSameListener(one, other);
}
