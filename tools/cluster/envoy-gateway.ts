// The overlay envoy-gateway as real pods, without its controller: what Envoy Gateway would tell its Envoy (egctl translates the overlay), in
// an Envoy of our own in front of the overlay's account-authz and app.
import { stringify } from 'yaml';
import { type Manifest, parseManifests } from '../../lab/manifest.ts';
import { staticBootstrap } from './static-bootstrap.ts';
import { filtersOf, refusedOf, translate, withAddress } from './translated.ts';

const tls = '/etc/envoy-tls';
const checked = 'securitypolicy/subscriptions/subscriptions/extauth/0';
const proxied = 'httproute/subscriptions/subscriptions/rule/0';
/** Cluster to the name and the port of the Service of its endpoints. */
const services = {
  [checked]: ['account-authz.subscriptions.svc.cluster.local', 9191],
  [proxied]: ['subscriptions.subscriptions.svc.cluster.local', 80],
} as const;

/** `manifests` are those of the overlay, `secrets` the two of docs/deploy/envoy-gateway.md, `programs` the folder with egctl. */
export async function gatewayManifests(
  manifests: string,
  secrets: readonly object[],
  programs: string,
): Promise<string> {
  const overlay = parseManifests(manifests);
  const dump = await translate(programs, [...overlay.map(withAddress), ...(secrets as readonly Manifest[])]);
  const refused = refusedOf(dump);
  if (refused.length > 0) throw new Error(`Envoy Gateway refuses the overlay: ${refused[0]}`);
  const bootstrap = staticBootstrap(dump, filtersOf(dump), {
    port: 8080,
    adminPort: 9901,
    endpoints: { [checked]: 1, [proxied]: 2 },
    secrets: {
      'subscriptions/account-authz-client-tls': { chain: `${tls}/tls.crt`, key: `${tls}/tls.key` },
      'account-authz/subscriptions-ca': { ca: `${tls}/ca.crt` },
    },
  });
  // Custom kinds need the controller, and so does the network policy that names its namespace.
  const known = overlay.filter(({ apiVersion }) =>
    /^(v1|apps\/v1|policy\/v1|autoscaling\/v2)$/.test(String(apiVersion)),
  );
  return [...known, ...gateway(JSON.stringify(inCluster(bootstrap)))].map(each => stringify(each)).join('---\n');
}

/** Addresses of Services in the place of those of one machine; the listener on every address. */
function inCluster(bootstrap: unknown): unknown {
  return JSON.parse(JSON.stringify(bootstrap), (_key, value) => {
    const {
      name,
      type,
      socket_address: socket,
    } = (value ?? {}) as {
      name?: string;
      type?: string;
      socket_address?: { port_value: number };
    };
    if (type === 'STATIC' && name !== undefined) return { ...value, type: 'STRICT_DNS' };
    const service = Object.values(services)[Number(socket?.port_value) - 1];
    if (service !== undefined) return { socket_address: { address: service[0], port_value: service[1] } };
    return socket?.port_value === 8080 ? { socket_address: { address: '0.0.0.0', port_value: 8080 } } : value;
  });
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
  const spec = {
    securityContext: {
      runAsNonRoot: true,
      runAsUser: 65_532,
      fsGroup: 65_532,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [container],
    volumes: [
      { name: 'bootstrap', configMap: { name: 'gateway' } },
      { name: 'tls', secret: { secretName: 'account-authz-client-tls', defaultMode: 0o440 } },
    ],
  };
  return [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'envoy.json': bootstrap } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: { replicas: 1, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { selector: labels, ports: [{ port: 80, targetPort: 8080 }] },
    },
  ];
}
