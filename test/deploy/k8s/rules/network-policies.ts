// NetworkPolicies: each pod accepts and opens exactly the connections that the other objects imply.
import { isIP } from 'node:net';
import { isLoopback, parseListenAddress } from '../../../../src/text/listen-address.ts';
import { type Facts, problemsOf, type Rules } from '../facts.ts';
import {
  containerOf,
  containersOf,
  isSelected,
  nameOf,
  ofKind,
  type Peer,
  type Pod,
  type PolicyPort,
  podsOf,
  type Selector,
} from '../manifest.ts';
import { listeningOf, portNumber } from './listening.ts';

/** `WHO PROTOCOL/PORT`. */
type Flow = string;

const namespaceLabel = 'kubernetes.io/metadata.name';
const gatewayLabel = 'gateway.envoyproxy.io/owning-gateway';
const anywhere = 'anywhere';
const monitoring = 'the namespace monitoring';
const names = 'names';
const internet = ['the Internet over IPv4', 'the Internet over IPv6'];
/** Addresses for the machine itself only: metadata services, which serve its credentials. */
const metadataAddresses: Readonly<Record<string, readonly string[]>> = {
  '0.0.0.0/0': ['169.254.0.0/16'],
  '::/0': ['fe80::/10', 'fd00:ec2::/32'],
};

export function networkPolicyProblems(facts: Facts): string[] {
  const policies = ofKind(facts.manifests, 'NetworkPolicy');
  return problemsOf([
    ...policies.flatMap(
      ({ kind, metadata, spec }): Rules => [
        [spec.policyTypes.includes('Ingress'), `${kind}/${metadata.name} lets everything in`],
        [
          spec.policyTypes.includes('Egress') === (spec.egress !== undefined),
          `${kind}/${metadata.name} has egress by half`,
        ],
      ],
    ),
    ...podsOf(facts.manifests).flatMap(pod => podRules(facts, pod)),
  ]);
}

function podRules(facts: Facts, pod: Pod): Rules {
  const own = ofKind(facts.manifests, 'NetworkPolicy').filter(({ spec }) => isSelected(pod.labels, spec.podSelector));
  const accepted = own.flatMap(({ spec }) =>
    (spec.ingress ?? []).flatMap(({ from, ports }) =>
      flowsOf(facts, from, ports, port => policyPort(pod, port) ?? injected(facts, port)),
    ),
  );
  const sent = own.flatMap(({ spec }) =>
    (spec.egress ?? []).flatMap(({ to, ports }) => flowsOf(facts, to, ports, port => Number(port))),
  );
  const expected = incoming(facts, pod);
  const needed = outgoing(facts, pod);
  const isLimited = own.some(({ spec }) => spec.egress !== undefined);
  // The issuer of an overlay may be local, while one policy serves all overlays.
  const optional =
    containerOf(pod, 'account-authz') === undefined ? [] : [...nameFlows, ...internet.map(who => `${who} TCP/443`)];
  return [
    ...accepted.filter(flow => !expected.includes(flow)).map(flow => [false, `${pod.name} accepts ${flow}`] as const),
    ...expected
      .filter(flow => !accepted.includes(flow))
      .map(flow => [false, `${pod.name} does not accept ${flow}`] as const),
    ...sent
      .filter(flow => ![...needed, ...optional].includes(flow))
      .map(flow => [false, `${pod.name} may send to ${flow}`] as const),
    ...(isLimited ? needed : [])
      .filter(flow => !sent.includes(flow))
      .map(flow => [false, `${pod.name} may not send to ${flow}`] as const),
  ];
}

/** A network plugin may look for a name in `containers` only, not in native sidecars (kube-router; older Calico). */
function policyPort(pod: Pod, port: string | number): number | undefined {
  return portNumber(typeof port === 'number' ? pod : { ...pod, spec: { ...pod.spec, initContainers: [] } }, port);
}

const nameFlows = [`${names} UDP/53`, `${names} TCP/53`];

function flowsOf(
  facts: Facts,
  peers: readonly Peer[] = [],
  ports: readonly PolicyPort[] = [],
  numberOf: (port: string | number) => number | undefined,
): Flow[] {
  const who = peers.length === 0 ? [anywhere] : peers.map(peer => peerName(facts, peer));
  const where =
    ports.length === 0
      ? ['any port']
      : ports.map(({ protocol = 'TCP', port }) => `${protocol}/${numberOf(port) ?? port}`);
  return who.flatMap(each => where.map(port => `${each} ${port}`));
}

/** The pods or addresses that a peer selects; an unknown peer is named as written. */
function peerName({ manifests }: Facts, peer: Peer): string {
  const { podSelector, namespaceSelector, ipBlock } = peer;
  const written = JSON.stringify(peer);
  if (ipBlock !== undefined) {
    const { cidr, except = [] } = ipBlock;
    const kept = metadataAddresses[cidr]?.every(each => except.includes(each)) === true;
    return kept ? `the Internet over ${cidr.includes(':') ? 'IPv6' : 'IPv4'}` : written;
  }
  if (namespaceSelector === undefined) {
    const pods = podsOf(manifests).filter(({ labels }) => isSelected(labels, podSelector ?? {}));
    return pods.length === 0 ? written : pods.map(({ name }) => `pods of ${name}`).join(' and ');
  }
  const known: Readonly<Record<string, Peer>> = {
    [monitoring]: { namespaceSelector: labelled({ [namespaceLabel]: 'monitoring' }) },
    [names]: {
      namespaceSelector: labelled({ [namespaceLabel]: 'kube-system' }),
      podSelector: labelled({ 'k8s-app': 'kube-dns' }),
    },
    ...Object.fromEntries(ofKind(manifests, 'Gateway').map(gateway => [nameOf(gateway), proxiesOf(gateway.metadata)])),
  };
  return Object.entries(known).find(([, each]) => isSame(each, peer))?.[0] ?? written;
}

/** The proxies of a gateway, which Envoy Gateway runs in its own namespace. */
function proxiesOf({ name, namespace = '' }: { name: string; namespace?: string }): Peer {
  return {
    namespaceSelector: labelled({ [namespaceLabel]: 'envoy-gateway-system' }),
    podSelector: labelled({ [`${gatewayLabel}-name`]: name, [`${gatewayLabel}-namespace`]: namespace }),
  };
}

function labelled(matchLabels: Readonly<Record<string, string>>): Selector {
  return { matchLabels };
}

function isSame(one: unknown, other: unknown): boolean {
  const sorted = (_key: string, value: unknown): unknown =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value;
  return JSON.stringify(one, sorted) === JSON.stringify(other, sorted);
}

function isInjected({ manifests }: Facts): boolean {
  return manifests.some(
    ({ kind, metadata }) => kind === 'Namespace' && metadata.labels?.['istio-injection'] === 'enabled',
  );
}

/** Ports of Istio's injected sidecar: HBONE, health and metrics. */
const injectedPorts = { 15008: anywhere, 15021: anywhere, 15090: monitoring };

function injected(facts: Facts, port: string | number): number | undefined {
  return isInjected(facts) && Object.hasOwn(injectedPorts, port) ? Number(port) : undefined;
}

// The admin port is for metrics, a Service's port for its clients; the kubelet's probes need no rule.
function incoming(facts: Facts, pod: Pod): Flow[] {
  const { manifests, config } = facts;
  const admin = parseListenAddress(config.admin);
  const isChecked = containerOf(pod, 'account-authz') !== undefined;
  const services = ofKind(manifests, 'Service').filter(({ spec }) =>
    isSelected(pod.labels, { matchLabels: spec.selector }),
  );
  return [
    ...services.flatMap(({ metadata, spec }) =>
      spec.ports.flatMap(({ targetPort }) =>
        callersOf(facts, metadata.name).map(who => `${who} TCP/${portNumber(pod, targetPort) ?? targetPort}`),
      ),
    ),
    ...(isChecked && admin.kind === 'tcp' ? [`${monitoring} TCP/${admin.port}`] : []),
    ...(isChecked && isInjected(facts) ? Object.entries(injectedPorts).map(([port, who]) => `${who} TCP/${port}`) : []),
  ];
}

function callersOf(facts: Facts, service: string): string[] {
  const gateways = ofKind(facts.manifests, 'Gateway').map(nameOf);
  if (gateways.length > 0) return gateways;
  if (service !== 'account-authz') return [anywhere];
  return podsOf(facts.manifests)
    .filter(pod => containerOf(pod, 'envoy') !== undefined)
    .map(({ name }) => `pods of ${name}`);
}

function outgoing(facts: Facts, pod: Pod): Flow[] {
  const flows: Flow[] = [];
  if (containerOf(pod, 'envoy') !== undefined) {
    for (const { metadata, spec } of ofKind(facts.manifests, 'Service')) {
      const target = podsOf(facts.manifests).find(({ labels }) => isSelected(labels, { matchLabels: spec.selector }));
      if (metadata.name !== 'account-authz' || target === undefined) continue;
      // A policy sees the pod's port, not the Service's.
      flows.push(
        ...nameFlows,
        ...spec.ports.map(({ targetPort }) => `pods of ${target.name} TCP/${portNumber(target, targetPort)}`),
      );
    }
  }
  if (containerOf(pod, 'account-authz') !== undefined) flows.push(...keyFlows(facts));
  return [...new Set(flows)];
}

function keyFlows({ config }: Facts): Flow[] {
  return config.issuers.flatMap(issuer => {
    const url = issuer.jwksUrl ?? issuer.discoveryUrl;
    if (url === undefined) return [];
    const { hostname, port, protocol } = new URL(url);
    if (isLoopback(hostname)) return [];
    const number = port || (protocol === 'https:' ? 443 : 80);
    return [...(isIP(hostname) === 0 ? nameFlows : []), ...internet.map(who => `${who} TCP/${number}`)];
  });
}

/** An issuer on loopback is a container of the same pod. */
export function loopbackKeyProblems(facts: Facts): string[] {
  const pods = podsOf(facts.manifests).filter(pod => containerOf(pod, 'account-authz') !== undefined);
  return facts.config.issuers.flatMap(({ issuer, jwksUrl, discoveryUrl }) => {
    const urls = [jwksUrl, discoveryUrl, issuer].filter(url => url !== undefined && URL.canParse(url));
    const local = urls.map(url => new URL(String(url))).filter(({ hostname }) => isLoopback(hostname));
    const isServed = (port: string): boolean =>
      pods.every(pod =>
        containersOf(pod).some(each => listeningOf(facts, each).some(place => String(place.port) === port)),
      );
    return local.filter(({ port }) => !isServed(port)).map(({ port }) => `no container serves keys at port ${port}`);
  });
}
