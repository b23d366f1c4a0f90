// What must agree between the objects of an overlay, its configuration and its bootstrap, which no schema and no lint of one of them sees.
import { dirname } from 'node:path';
import {
  at,
  type Container,
  containerOf,
  containersOf,
  isSelected,
  listAt,
  type Manifest,
  nameOf,
  ofKind,
  type Pod,
  podsOf,
  type Selector,
  type Source,
} from '../../../lab/manifest.ts';
import type { Config } from '../../../src/config/schema.ts';
import { isLoopback, parseListenAddress, type TcpAddress } from '../../../src/text/listen-address.ts';

export interface Overlay {
  readonly manifests: readonly Manifest[];
  readonly config: Config;
  /** The files of Envoy by their names; none where a control plane configures it. */
  readonly envoy: Readonly<Record<string, unknown>>;
}

/** Ports of Istio's injected sidecar: HBONE, health and metrics. */
const meshPorts = [15008, 15021, 15090];
/** Metadata services serve the credentials of their machine. */
const metadataAddresses = ['169.254.0.0/16', 'fe80::/10', 'fd00:ec2::/32'];
const monitoring = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }];
/** Of each Secret that k8s/make-trial-certificates.sh makes. */
const secretKeys = ['tls.crt', 'tls.key', 'ca.crt'];
const secrets = ['account-authz-tls', 'account-authz-client-tls'];

/** Each by the fact that it finds violated. */
export const relations: Readonly<Record<string, (overlay: Overlay) => readonly string[]>> = {
  'has its objects in one namespace, which enforces restricted': ({ manifests }) => {
    const [namespace] = ofKind(manifests, 'Namespace');
    const mode = namespace?.metadata.labels?.['pod-security.kubernetes.io/enforce'];
    const inside = manifests.filter(({ kind }) => kind !== 'Namespace' && kind !== 'GatewayClass');
    const strays = inside.filter(({ metadata }) => metadata.namespace !== namespace?.metadata.name);
    return mode === 'restricted' ? strays.map(nameOf) : [`${mode}`];
  },

  'selects pods with each selector': ({ manifests }) =>
    manifests
      .filter(each => selectorsIn(each).some(selector => selected(manifests, selector).length === 0))
      .map(nameOf),

  'leads each Service, monitor and probe to a port of a container': ({ manifests }) => [
    ...ofKind(manifests, 'Service', 'PodMonitor')
      .filter(manifest => {
        const [selector = {}] = selectorsIn(manifest);
        const ports = [...listAt(manifest.spec, 'ports'), ...listAt(manifest.spec, 'podMetricsEndpoints')];
        const targets = ports.map(port => at(port, 'targetPort') ?? at(port, 'port'));
        return !selected(manifests, selector).every(pod => targets.every(port => portOf(containersOf(pod), port)));
      })
      .map(nameOf),
    ...eachContainer(manifests, container => {
      const probes = [container.startupProbe, container.readinessProbe, container.livenessProbe];
      const ports = probes.flatMap(probe => at(probe?.httpGet ?? probe?.tcpSocket, 'port') ?? []);
      return ports.filter(port => portOf([container], port) === undefined);
    }),
  ],

  'declares the ports at which its containers can be reached': overlay =>
    eachContainer(overlay.manifests, container => {
      const reached = listeningOf(overlay, container).filter(({ host }) => !isLoopback(host));
      const declared = (container.ports ?? []).map(({ containerPort }) => containerPort);
      const [ports, all] = [reached.map(({ port }) => port).sort(), declared.sort()];
      return String(ports) === String(all) ? [] : [`${ports}`];
    }),

  'calls on loopback only where a container of the pod listens': overlay =>
    podsOf(overlay.manifests).flatMap(pod => {
      const listening = containersOf(pod).flatMap(each => listeningOf(overlay, each).map(({ port }) => String(port)));
      const keys = overlay.config.issuers.flatMap(({ jwksUrl, discoveryUrl }) => jwksUrl ?? discoveryUrl ?? []);
      const called = [
        ...(containerOf(pod, 'account-authz') === undefined ? [] : keys.map(url => new URL(url).host)),
        ...(containerOf(pod, 'envoy') === undefined ? [] : Object.values(clustersOf(overlay.envoy))),
        ...ofKind(overlay.manifests, 'ServiceEntry').map(({ spec }) => `127.0.0.1:${at(spec, 'ports', 0, 'number')}`),
      ];
      const isAnswered = (address: string): boolean =>
        address === overlay.config.listen || listening.includes(address.split(':').at(-1) ?? '');
      return called.filter(address => isLocal(address) && !isAnswered(address));
    }),

  // With a ClusterIP, Envoy would see one host: no retry at another pod, no health check of each. Envoy Gateway needs one: it
  // rejects a policy whose service has no ready pod, if it reaches it by its pods.
  'calls account-authz in other pods through its Service': ({ manifests, envoy }) => {
    const service = ofKind(manifests, 'Service').find(({ metadata }) => metadata.name === 'account-authz');
    const address = clustersOf(envoy)['account-authz'] ?? 'by a control plane';
    if (service === undefined) return address.startsWith('by ') || isLocal(address) ? [] : [address];
    const isHeadless = at(service.spec, 'clusterIP') === 'None';
    const isByGateway = ofKind(manifests, 'Gateway').length > 0;
    const isCalled = isByGateway || address === `account-authz:${at(service.spec, 'ports', 0, 'port')}`;
    return isCalled && isHeadless !== isByGateway ? [] : [address];
  },

  'lets nobody past Envoy to the app': ({ manifests }) =>
    podsOf(manifests)
      .filter(pod => containerOf(pod, 'envoy') !== undefined)
      .filter(pod => !isLocal(optionOf(containerOf(pod, 'app'), '--listen') ?? ''))
      .map(({ name }) => name),

  // kube-router, and so k3s, looks for a name in `containers` alone, not in native sidecars.
  'names ports in network policies that a container listens at': ({ manifests }) =>
    ofKind(manifests, 'NetworkPolicy').flatMap(policy => {
      const isMesh = ofKind(manifests, 'ServiceEntry').length > 0;
      const ports = listAt(policy.spec, 'ingress').flatMap(rule => listAt(rule, 'ports').map(each => at(each, 'port')));
      const isKnown = (port: unknown): boolean =>
        (isMesh && meshPorts.includes(Number(port))) ||
        selected(manifests, at(policy.spec, 'podSelector')).every(pod =>
          portOf(typeof port === 'number' ? containersOf(pod) : pod.spec.containers, port),
        );
      return ports.filter(port => !isKnown(port)).map(port => `${nameOf(policy)} ${port}`);
    }),

  'lets in what Services lead to, and only the namespace monitoring to the metrics': ({ manifests, config }) =>
    podsOf(manifests).flatMap(pod => {
      const policies = ofKind(manifests, 'NetworkPolicy').filter(({ spec }) => selects(at(spec, 'podSelector'), pod));
      const rules = policies.flatMap(({ spec }) => listAt(spec, 'ingress'));
      const numberOf = (port: unknown): number | undefined => portOf(containersOf(pod), port);
      const lettingIn = (number: number | undefined): readonly unknown[] =>
        rules.filter(rule => listAt(rule, 'ports').some(each => numberOf(at(each, 'port')) === number));
      const services = ofKind(manifests, 'Service').filter(each => selectorsIn(each).some(one => selects(one, pod)));
      const targets = services.flatMap(({ spec }) =>
        listAt(spec, 'ports').map(port => numberOf(at(port, 'targetPort'))),
      );
      const admin = containerOf(pod, 'account-authz') === undefined ? [] : [Number(config.admin.split(':').at(-1))];
      return [
        ...(policies.length === 1 ? [] : [`${pod.name}: ${policies.length} policies`]),
        ...targets.filter(port => lettingIn(port).length === 0).map(port => `${pod.name} ${port}`),
        ...admin.filter(
          port => JSON.stringify(lettingIn(port).map(rule => at(rule, 'from'))) !== JSON.stringify([monitoring]),
        ),
      ].map(String);
    }),

  'keeps pods that may call the Internet from metadata services': ({ manifests }) =>
    ofKind(manifests, 'NetworkPolicy')
      .filter(({ spec }) => {
        const blocks = listAt(spec, 'egress').flatMap(rule =>
          listAt(rule, 'to').flatMap(peer => at(peer, 'ipBlock') ?? []),
        );
        const kept = blocks.flatMap(block => listAt(block, 'except'));
        return blocks.length > 0 && !metadataAddresses.every(address => kept.includes(address));
      })
      .map(nameOf),

  'mounts the files that a container reads, and no others': overlay =>
    podsOf(overlay.manifests).flatMap(pod =>
      containersOf(pod).flatMap(container => {
        const [reads, mounted] = [pathsReadBy(overlay, container), mountedPaths(overlay, pod, container)];
        const other = [
          ...reads.filter(path => !mounted.includes(path)),
          ...mounted.filter(path => !reads.includes(path)),
        ];
        return other.map(path => `${container.name} ${path}`);
      }),
    ),

  // Readiness waits for the first keys. Liveness must not: an outage of the authentication service would end every pod.
  'ends no account-authz because keys are missing': ({ manifests }) =>
    eachContainer(manifests, ({ name, startupProbe, readinessProbe, livenessProbe }) => {
      const paths = [startupProbe, readinessProbe, livenessProbe].map(probe => probe?.httpGet?.path);
      return name === 'account-authz' && String(paths) !== '/livez,/readyz,/livez' ? [`${paths}`] : [];
    }),

  'loses no pod while it rolls or a node is drained': ({ manifests }) =>
    ofKind(manifests, 'Deployment')
      .filter(({ metadata: { name }, spec }) => {
        const named = (kind: string): unknown =>
          ofKind(manifests, kind).find(({ metadata }) => metadata.name === name)?.spec;
        const least = at(named('HorizontalPodAutoscaler'), 'minReplicas') ?? at(spec, 'replicas');
        // The demo has its authentication service, with keys of its own, in the pod.
        const isOne = at(spec, 'template', 'spec', 'containers', 'authentication-service') !== undefined;
        const isKept = at(named('PodDisruptionBudget'), 'maxUnavailable') === 1;
        return (
          !isKept || at(spec, 'strategy', 'rollingUpdate', 'maxUnavailable') !== 0 || (Number(least) < 2 && !isOne)
        );
      })
      .map(nameOf),

  'refers to objects that it has, or to the trial certificates': ({ manifests }) => {
    const known = [...manifests.map(nameOf), ...secrets.map(name => `Secret/${name}`)];
    return manifests.flatMap(({ spec }) => referencesIn(spec)).filter(name => !known.includes(name));
  },

  // Istio's Envoy drops every counter that no pattern of this annotation matches as a whole.
  'keeps the counters of a mesh that the alerts read': ({ manifests }) =>
    ofKind(manifests, 'ServiceEntry').flatMap(({ spec }) => {
      const [annotation] = podsOf(manifests).map(each => each.annotations['sidecar.istio.io/statsInclusionRegexps']);
      const cluster = `cluster.outbound|${at(spec, 'ports', 0, 'number')}||${at(spec, 'hosts', 0)};.upstream`;
      const all = ['http.inbound_0.0.0.0_8000;.ext_authz.error', `${cluster}_rq_timeout`, `${cluster}_cx_connect_fail`];
      return all.filter(
        counter => !annotation?.split(',').some(pattern => new RegExp(`^(?:${pattern})$`).test(counter)),
      );
    }),
};

function selects(selector: unknown, { labels }: Pod): boolean {
  return isSelected(labels, selector as Selector);
}

function selected(manifests: readonly Manifest[], selector: unknown): readonly Pod[] {
  return podsOf(manifests).filter(pod => selects(selector, pod));
}

function selectorsIn({ kind, spec }: Manifest): readonly unknown[] {
  const rules = [...listAt(spec, 'ingress'), ...listAt(spec, 'egress')];
  const peers = rules.flatMap(rule => [...listAt(rule, 'from'), ...listAt(rule, 'to')]);
  const own = peers.filter(peer => at(peer, 'namespaceSelector') === undefined);
  return [
    kind === 'Service' ? { matchLabels: at(spec, 'selector') } : at(spec, 'selector'),
    at(spec, 'podSelector'),
    ...[at(spec, 'workloadSelector', 'labels')].map(matchLabels => matchLabels && { matchLabels }),
    ...listAt(spec, 'template', 'spec', 'topologySpreadConstraints').map(each => at(each, 'labelSelector')),
    ...own.map(peer => at(peer, 'podSelector')),
  ].filter(each => each !== undefined);
}

function eachContainer(
  manifests: readonly Manifest[],
  problems: (of: Container) => readonly unknown[],
): readonly string[] {
  const all = podsOf(manifests).flatMap(pod => containersOf(pod).map(container => ({ pod, container })));
  return all.flatMap(({ pod, container }) => problems(container).map(each => `${pod.name}/${container.name}: ${each}`));
}

function portOf(containers: readonly Container[], port: unknown): number | undefined {
  const ports = containers.flatMap(container => container.ports ?? []);
  return ports.find(({ name, containerPort }) => name === port || containerPort === port)?.containerPort;
}

function optionOf(container: Container | undefined, name: string): string | undefined {
  const { args = [] } = container ?? {};
  return args.includes(name) ? args[args.indexOf(name) + 1] : undefined;
}

/** By its arguments, the configuration or the bootstrap. */
function listeningOf({ config, envoy }: Overlay, container: Container): readonly TcpAddress[] {
  const bootstrap = envoy['envoy.yaml'];
  const listeners = [at(bootstrap, 'admin'), ...listAt(bootstrap, 'static_resources', 'listeners')];
  const own: Readonly<Record<string, readonly string[]>> = {
    'account-authz': [config.listen, config.admin],
    envoy: listeners.map(listener => addressText(at(listener, 'address'))),
  };
  const options = ['--listen', '--health'].flatMap(name => optionOf(container, name) ?? []);
  const addresses = (own[container.name] ?? options).map(parseListenAddress);
  return addresses.filter(address => address.kind === 'tcp');
}

/** The address of each cluster, by its name. */
function clustersOf(envoy: Overlay['envoy']): Readonly<Record<string, string>> {
  const endpoint = ['load_assignment', 'endpoints', 0, 'lb_endpoints', 0, 'endpoint', 'address'];
  const clusters = listAt(envoy['envoy.yaml'], 'static_resources', 'clusters');
  return Object.fromEntries(clusters.map(each => [at(each, 'name'), addressText(at(each, ...endpoint))]));
}

/** Envoy's core.v3.Address in the notation of the configuration. */
function addressText(address: unknown): string {
  const path = at(address, 'pipe', 'path');
  if (path !== undefined) return `unix:${path}`;
  return `${at(address, 'socket_address', 'address')}:${at(address, 'socket_address', 'port_value')}`;
}

function isLocal(address: string): boolean {
  const parsed = parseListenAddress(address);
  return parsed.kind === 'unix' || (parsed.kind === 'tcp' && isLoopback(parsed.host));
}

/** Files of ConfigMaps and Secrets, and the folders that containers share. */
function mountedPaths({ manifests }: Overlay, { spec }: Pod, { volumeMounts = [] }: Container): readonly string[] {
  const keysOf = ({ name }: Source): readonly string[] =>
    Object.keys(manifests.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === name)?.data ?? {});
  return volumeMounts.flatMap(({ name, mountPath }) => {
    const { configMap, secret, projected, emptyDir } = spec.volumes?.find(each => each.name === name) ?? {};
    if (emptyDir !== undefined) return [mountPath];
    const own = secret === undefined ? {} : { secret: { ...secret, name: secret.secretName } };
    const sources = [{ ...(configMap && { configMap }), ...own }, ...(projected?.sources ?? [])];
    return sources.flatMap(source => {
      const keys = source.configMap === undefined ? secretKeys : keysOf(source.configMap);
      const from = source.configMap ?? source.secret;
      const items = from?.items ?? (from === undefined ? [] : keys.map(key => ({ key, path: key })));
      return items.filter(({ key }) => keys.includes(key)).map(({ path }) => `${mountPath}/${path}`);
    });
  });
}

function pathsReadBy({ config, envoy }: Overlay, container: Container): readonly string[] {
  const folderOf = (address: string): string[] =>
    address.startsWith('unix:') ? [dirname(address.slice('unix:'.length))] : [];
  if (container.name === 'account-authz') {
    const { certFile, keyFile, clientCaFile } = config.tls ?? {};
    const files = [optionOf(container, '--config'), certFile, keyFile, clientCaFile, config.revocation?.file];
    return [...files.filter(file => file !== undefined), ...folderOf(config.listen)];
  }
  const bootstrap = optionOf(container, '--config-path');
  if (bootstrap === undefined) return [];
  const named = JSON.stringify(envoy).matchAll(/"(?:filename|path_config_source":\{"path)":"([^"]+)"/g);
  const sockets = Object.values(clustersOf(envoy)).flatMap(folderOf);
  return [...new Set([bootstrap, ...Array.from(named, ([, path = '']) => path), ...sockets])];
}

/** `Kind/name` of everything that a spec names: each `kind` with a `name`, and what is named by a field of its own. */
function referencesIn(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  const [kind, name, classed] = [at(value, 'kind'), at(value, 'name'), at(value, 'gatewayClassName')];
  const [account] = [at(value, 'serviceAccountName')];
  return [
    ...(typeof kind === 'string' && typeof name === 'string' ? [`${kind}/${name}`] : []),
    ...(classed === undefined ? [] : [`GatewayClass/${classed}`]),
    ...(account === undefined ? [] : [`ServiceAccount/${account}`]),
    ...Object.values(value).flatMap(referencesIn),
  ];
}
