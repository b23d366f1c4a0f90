// Reads a cluster of the bootstrap: its hosts, and whether account-authz listens there.
import { isIP } from 'node:net';
import {
  isLoopback,
  isSameListener,
  isUnspecified,
  type ListenAddress,
  toListenAddress,
} from '../../text/listen-address.ts';
import { protocolOptions } from '../authz-cluster.ts';
import type { ProtoValue } from './proto-value.ts';
import type { Resources } from './resources.ts';

export interface Cluster {
  readonly name: string;
  readonly value: ProtoValue;
  /**
   * One per address in the file, also for a DNS name of several hosts; undefined if the lint cannot read it. None for a cluster that goes
   * where the connection went: a dump shows what clients have connected to so far, such as the address of the pod.
   */
  readonly endpoints: readonly (ListenAddress | undefined)[];
  /** Whether a client chooses the host of its request. */
  readonly isChosenByRequest: boolean;
  /** Whether it forwards a connection to the address and port that the client connected to. */
  readonly keepsDestination: boolean;
  /** The place of the first address. */
  readonly place: ProtoValue;
}

export function readCluster(value: ProtoValue, { endpoints }: Pick<Resources, 'endpoints'>): Cluster {
  const service = value.field('eds_cluster_config', 'service_name');
  const discovered = endpoints.get((service.isPresent ? service : value.field('name')).text());
  const assignment = discovered ?? value.field('load_assignment');
  const hosts = assignment.items('endpoints', 'lb_endpoints').map(each => each.field('endpoint', 'address'));
  const name = value.field('name').text() ?? '';
  const isForwardProxy = value.field('cluster_type', 'typed_config').any().type.includes('.dynamic_forward_proxy.');
  const originalDestination = value.field('original_dst_lb_config');
  const readsHeader = originalDestination.field('use_http_header').flag() === true;
  const isOriginalDestination = value.field('type').choice({ ORIGINAL_DST: 4 }) === 4;
  return {
    ...{ name, value, endpoints: isOriginalDestination ? [] : hosts.map(readAddress), place: hosts[0] ?? assignment },
    isChosenByRequest: isForwardProxy || readsHeader,
    keepsDestination: isOriginalDestination && !originalDestination.isPresent,
  };
}

export function readProtocolOptions(cluster: Cluster | undefined): readonly ProtoValue[] {
  const options = cluster?.value.field('typed_extension_protocol_options').entries() ?? [];
  return options.map(each => each.any()).flatMap(({ type, message }) => (type === protocolOptions ? [message] : []));
}

/** An envoy.config.core.v3.Address. */
export function readAddress(address: ProtoValue): ListenAddress | undefined {
  const path = address.field('pipe', 'path').text();
  if (path !== undefined) return { kind: 'unix', path };
  const host = address.field('socket_address', 'address').text();
  const port = address.field('socket_address', 'port_value').number();
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
  if (endpoints.length === 0 || !endpoints.every(isLocal)) return undefined;
  const isRemote = own.kind === 'tcp' && isOtherHost(own.host);
  // Any free port, or a name that may be one of this machine. Another IP address is not reachable as loopback.
  if (own.kind === 'tcp' && (own.port === 0 || (isRemote && isIP(own.host) === 0))) return undefined;
  if (isRemote) return false;
  return endpoints.some(each => isSameEndpoint(each, own));
}

/** Whether account-authz listens for this machine only and every host of the cluster is the IP address of another one. */
export function isUnreachable(cluster: Cluster | undefined, listen: string): boolean {
  const endpoints = cluster?.endpoints ?? [];
  return isLocal(toListenAddress(listen)) && endpoints.length > 0 && endpoints.every(isElsewhere);
}

// A name may be one of this machine.
function isElsewhere(endpoint: ListenAddress | undefined): boolean {
  return endpoint?.kind === 'tcp' && isIP(endpoint.host) !== 0 && isOtherHost(endpoint.host);
}

// Connecting to the unspecified address reaches this machine.
function isOtherHost(host: string): boolean {
  return !isLoopback(host) && !isUnspecified(host);
}

export function isSameEndpoint(one: ListenAddress | undefined, other: ListenAddress | undefined): boolean {
  return one !== undefined && other !== undefined && isSameListener(one, other);
}
