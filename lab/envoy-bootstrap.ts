// The bootstrap of Envoy for tests and the demo: the shipped envoy.yaml, or what `render envoy` prints, with other addresses and edits.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Document, isMap, isSeq, parseDocument } from 'yaml';
import { runCommand } from './command.ts';

export interface BootstrapOptions {
  /** The text of the bootstrap; default: envoy.yaml. */
  readonly bootstrap?: string;
  /** `HOST:PORT` or `unix:PATH`; default: as shipped. Several are endpoints of one cluster. */
  readonly authz?: string | readonly string[];
  /** Port of the service behind Envoy on 127.0.0.1; default: as shipped. */
  readonly upstream?: number;
  /** Ports to listen on, on 127.0.0.1; default: free ones. */
  readonly listener?: number;
  readonly ready?: number;
  readonly admin?: number;
  /** Edits the bootstrap last, for tests of one setting. */
  readonly edit?: (bootstrap: Document) => void;
}

const projectDirectory = fileURLToPath(new URL('../', import.meta.url));

/** The shipped configuration, bound to loopback and the given ports, as a value for `--config-yaml`. */
export async function envoyBootstrap(options: BootstrapOptions = {}): Promise<string> {
  const bootstrap = parseDocument(options.bootstrap ?? (await readFile(join(projectDirectory, 'envoy.yaml'), 'utf8')));
  const setAddress = (path: readonly (string | number)[], address: unknown): void =>
    bootstrap.setIn([...path, 'address'], address);
  setAddress(['admin'], tcpAddress(options.admin ?? 0));
  setAddress(place(bootstrap, 'listeners', 'public'), tcpAddress(options.listener ?? 0));
  setAddress(place(bootstrap, 'listeners', 'readiness'), tcpAddress(options.ready ?? 0));
  if (options.authz !== undefined) setEndpoints(bootstrap, 'account-authz', [options.authz].flat().map(toAddress));
  if (options.upstream !== undefined) {
    const { static_resources: resources } = bootstrap.toJS() as { static_resources: { clusters: { name: string }[] } };
    for (const { name } of resources.clusters.filter(each => each.name.startsWith('upstream')))
      setEndpoints(bootstrap, name, [tcpAddress(options.upstream)]);
  }
  options.edit?.(bootstrap);
  return JSON.stringify(bootstrap.toJS());
}

/** The bootstrap that `render envoy` makes for the example configuration with these options. */
export async function renderedEnvoy(...options: readonly string[]): Promise<string> {
  return renderedEnvoyOf(join(projectDirectory, 'config.example.yaml'), options);
}

/** The bootstrap that `render envoy` makes for a configuration file with these options. */
export async function renderedEnvoyOf(file: string, options: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand('render', ['envoy', '--config', file, ...options]);
  if (code !== 0 || stderr !== '') throw new Error(stderr);
  return stdout;
}

/** Path of the typed configuration of the public listener's connection manager. */
export function connectionManagerPath(bootstrap: Document): (string | number)[] {
  return [...place(bootstrap, 'listeners', 'public'), 'filter_chains', 0, 'filters', 0, 'typed_config'];
}

/** Path of the typed configuration of an HTTP filter of the public listener. */
export function httpFilterPath(bootstrap: Document, name: string): (string | number)[] {
  const filters = [...connectionManagerPath(bootstrap), 'http_filters'];
  return [...filters, indexOfNamed(bootstrap, filters, name), 'typed_config'];
}

export function clusterPath(bootstrap: Document, name: string): (string | number)[] {
  return place(bootstrap, 'clusters', name);
}

/** Path of the upstream protocol options. */
export function upstreamProtocolPath(bootstrap: Document): (string | number)[] {
  const options = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
  return [...clusterPath(bootstrap, 'upstream'), 'typed_extension_protocol_options', options, 'explicit_http_config'];
}

function place(bootstrap: Document, kind: 'listeners' | 'clusters', name: string): (string | number)[] {
  const list = ['static_resources', kind];
  return [...list, indexOfNamed(bootstrap, list, name)];
}

function indexOfNamed(bootstrap: Document, list: readonly (string | number)[], name: string): number {
  const items = bootstrap.getIn(list);
  const index = isSeq(items) ? items.items.findIndex(item => isMap(item) && item.get('name') === name) : -1;
  if (index === -1) throw new Error(`envoy.yaml has no ${name} in ${list.join('.')}`);
  return index;
}

function setEndpoints(bootstrap: Document, cluster: string, addresses: readonly unknown[]): void {
  const endpoints = addresses.map(address => ({ endpoint: { address } }));
  bootstrap.setIn(
    [...place(bootstrap, 'clusters', cluster), 'load_assignment', 'endpoints'],
    [{ lb_endpoints: endpoints }],
  );
}

function toAddress(text: string): unknown {
  if (text.startsWith('unix:')) return { pipe: { path: text.slice('unix:'.length) } };
  return tcpAddress(Number(text.slice(text.lastIndexOf(':') + 1)), text.slice(0, text.lastIndexOf(':')));
}

function tcpAddress(port: number, address = '127.0.0.1'): unknown {
  return { socket_address: { address, port_value: port } };
}
