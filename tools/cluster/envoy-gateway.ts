// The overlay envoy-gateway as real pods, without its controller: what Envoy Gateway would tell its Envoy (egctl translates the overlay), in
// an Envoy of our own in front of the overlay's account-authz and app.
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { at, listAt, type Manifest, parseManifests } from '../../lab/manifest.ts';

type Json = Record<string, unknown>;

const tls = '/etc/envoy-tls';
/** Cluster to the name and the port of the Service of its endpoints. */
const services = {
  'securitypolicy/subscriptions/subscriptions/extauth/0': ['account-authz.subscriptions.svc.cluster.local', 9191],
  'httproute/subscriptions/subscriptions/rule/0': ['subscriptions.subscriptions.svc.cluster.local', 80],
} as const;

/** `manifests` are those of the overlay, `secrets` the two of docs/deploy/envoy-gateway.md, `programs` the folder with egctl. */
export async function gatewayManifests(
  manifests: string,
  secrets: readonly object[],
  programs: string,
): Promise<string> {
  const overlay = parseManifests(manifests);
  // egctl uses the address of a Service, which the API server would assign.
  const addressed = overlay.map(each =>
    each.kind === 'Service' ? { ...each, spec: { ...(each.spec as object), clusterIP: '10.0.0.9' } } : each,
  );
  const bootstrap = JSON.stringify(staticBootstrap(await translate(programs, [...addressed, ...secrets])));
  // Custom kinds need the controller, and so does the network policy that names its namespace.
  const isKnown = ({ apiVersion }: Manifest): boolean => /^(v1|apps\/v1|policy\/v1|autoscaling\/v2)$/.test(apiVersion);
  return [...overlay.filter(isKnown), ...gateway(bootstrap)].map(each => stringify(each)).join('---\n');
}

/** What Envoy would be told; rejects if Envoy Gateway refuses an object. */
async function translate(programs: string, manifests: readonly object[]): Promise<unknown> {
  const directory = await mkdtemp(join(tmpdir(), 'egctl-'));
  try {
    const file = join(directory, 'manifests.yaml');
    await writeFile(file, manifests.map(each => stringify(each)).join('---\n'));
    const what = ['--from', 'gateway-api', '--to', 'gateway-api,xds', '--type', 'all', '--output', 'json'];
    const args = ['experimental', 'translate', ...what, '--file', file, '-n', 'subscriptions'];
    const { stdout } = await promisify(execFile)(join(programs, 'egctl'), args, { maxBuffer: 1 << 26 });
    const dump: unknown = JSON.parse(stdout);
    const refusals = nodesIn(dump).filter(({ status, reason }) => status === 'False' && reason !== 'NoConflicts');
    if (refusals.length > 0) throw new Error(`Envoy Gateway refuses the overlay: ${JSON.stringify(refusals[0])}`);
    return dump;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** The listener and the two clusters of a dump as one bootstrap, with Services and files where the controller would send addresses and keys. */
export function staticBootstrap(dump: unknown): unknown {
  const resources = nodesIn(dump);
  const named = (kind: string, name: string): Json => {
    const found = resources.map(node => node[kind] as Json | undefined).find(each => each?.name === name);
    if (found === undefined) throw new Error(`the dump has no ${kind} ${name}`);
    const { '@type': _type, ...rest } = structuredClone(found);
    return rest;
  };
  const listener = named('listener', 'subscriptions/subscriptions/http');
  const filters = listAt(listener, 'defaultFilterChain', 'filters');
  for (const node of nodesIn(filters)) {
    // Standard output may be a pipe, which Envoy's file logger cannot open.
    delete node.accessLog;
    if (node.rds === undefined) continue;
    node.routeConfig = named('routeConfig', String(at(node, 'rds', 'routeConfigName')));
    delete node.rds;
  }
  const clusters = Object.entries(services).map(([name, [address, port]]) => {
    const { edsClusterConfig: _eds, type: _type, lbPolicy: _policy, ...cluster } = named('cluster', name);
    const assignment = resources.map(node => node.endpointConfig as Json | undefined);
    const loadAssignment = structuredClone(assignment.find(each => each?.clusterName === name));
    for (const node of nodesIn(loadAssignment))
      if (node.endpoint !== undefined) node.endpoint = { address: tcp(address, port) };
    const { '@type': _own, ...generated } = loadAssignment ?? {};
    return { ...cluster, type: 'STRICT_DNS', loadAssignment: { ...generated, clusterName: name } };
  });
  for (const node of nodesIn(clusters)) withFiles(node);
  return {
    node: { id: 'gateway', cluster: 'gateway' },
    admin: { address: tcp('127.0.0.1', 9901) },
    static_resources: {
      listeners: [{ name: 'inbound', address: tcp('0.0.0.0', 8080), filter_chains: [{ filters }] }],
      clusters,
    },
  };
}

/** Puts the files of the Secret in the place of the control plane's SDS. */
function withFiles(node: Json): void {
  if (node.tlsCertificateSdsSecretConfigs !== undefined) {
    delete node.tlsCertificateSdsSecretConfigs;
    const [certificateChain, privateKey] = ['tls.crt', 'tls.key'].map(name => ({ filename: `${tls}/${name}` }));
    node.tlsCertificates = [{ certificateChain, privateKey }];
  }
  if (node.combinedValidationContext !== undefined) {
    const own = at(node, 'combinedValidationContext', 'defaultValidationContext');
    delete node.combinedValidationContext;
    node.validationContext = { ...Object(own), trustedCa: { filename: `${tls}/ca.crt` } };
  }
}

function tcp(address: string, port: number): Json {
  return { socket_address: { address, port_value: port } };
}

/** Every object in a document, the outer ones first. */
function nodesIn(value: unknown): Json[] {
  if (typeof value !== 'object' || value === null) return [];
  const inner = Object.values(value).flatMap(nodesIn);
  return Array.isArray(value) ? inner : [value as Json, ...inner];
}

function gateway(bootstrap: string): readonly object[] {
  const metadata = { name: 'gateway', namespace: 'subscriptions' };
  const labels = { app: 'gateway' };
  const container = {
    name: 'envoy',
    image: 'docker.io/envoyproxy/envoy:distroless-v1.40.0',
    args: ['--config-path', '/etc/envoy/envoy.json', '--concurrency', '2', '--disable-hot-restart'],
    readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 2 },
    resources: { limits: { memory: '512Mi' } },
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    volumeMounts: [
      { name: 'bootstrap', mountPath: '/etc/envoy' },
      { name: 'tls', mountPath: tls },
    ],
  };
  const seccompProfile = { type: 'RuntimeDefault' };
  const pod = {
    securityContext: { runAsNonRoot: true, runAsUser: 65_532, fsGroup: 65_532, seccompProfile },
    containers: [container],
    volumes: [
      { name: 'bootstrap', configMap: { name: 'gateway' } },
      { name: 'tls', secret: { secretName: 'account-authz-client-tls', defaultMode: 0o440 } },
    ],
  };
  const deployment = { replicas: 1, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: pod } };
  const service = { selector: labels, ports: [{ port: 80, targetPort: 8080 }] };
  return [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'envoy.json': bootstrap } },
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: deployment },
    { apiVersion: 'v1', kind: 'Service', metadata, spec: service },
  ];
}
