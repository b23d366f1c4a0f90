// A cluster of the bootstrap: its hosts, and whether they are where account-authz listens.
import { isLoopback, isSameListener, parseListenAddress } from '../address/listen-address.ts';
import type { ProtoValue } from './proto-value.ts';

export type Endpoint =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'unknown' };

export interface Cluster {
  readonly name: string;
  readonly value: ProtoValue;
  /** Those that are written down; a name stands for as many hosts as it has. */
  readonly endpoints: readonly Endpoint[];
  /** Where the first of them is written. */
  readonly place: ProtoValue;
}

export function readCluster(value: ProtoValue): Cluster {
  const assignment = value.field('load_assignment');
  const hosts = assignment
    .field('endpoints')
    .items()
    .flatMap(locality => locality.field('lb_endpoints').items())
    .map(each => each.field('endpoint').field('address'));
  return {
    name: value.field('name').text() ?? '',
    value,
    endpoints: hosts.map(readAddress),
    place: hosts[0] ?? assignment,
  };
}

/** An envoy.config.core.v3.Address. */
export function readAddress(address: ProtoValue): Endpoint {
  const pipe = address.field('pipe').field('path').text();
  if (pipe !== undefined) return { kind: 'unix', path: pipe };
  const socket = address.field('socket_address');
  const host = socket.field('address').text();
  const port = socket.field('port_value').number();
  if (host === undefined || port === undefined) return { kind: 'unknown' };
  return { kind: 'tcp', host: host.toLowerCase(), port };
}

/** Whether only this machine, or this pod, can be meant. */
export function isLocal(endpoint: Endpoint): boolean {
  switch (endpoint.kind) {
    case 'tcp':
      return isLoopback(endpoint.host);
    case 'unix':
      return true;
    case 'unknown':
      return false;
  }
}

/** Whether a host of the cluster is the address that account-authz listens on. Undefined: not to be told from here. */
export function isAt(cluster: Cluster, listen: string): boolean | undefined {
  const own = parseListenAddress(listen);
  if (own.kind === 'problem' || cluster.endpoints.length === 0 || !cluster.endpoints.every(isLocal)) return undefined;
  // Any free port, or an address of this machine under which loopback cannot be reached.
  if (own.kind === 'tcp' && (own.port === 0 || !(isLoopback(own.host) || isWildcard(own.host)))) return undefined;
  return cluster.endpoints.some(each => each.kind !== 'unknown' && isSameListener(each, own));
}

export function isSameEndpoint(one: Endpoint, other: Endpoint): boolean {
  return one.kind !== 'unknown' && other.kind !== 'unknown' && isSameListener(one, other);
}

function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}
