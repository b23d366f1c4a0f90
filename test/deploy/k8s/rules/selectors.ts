// Namespaces, labels and selectors: one namespace, each selector selects the intended pods, each label matches its selectors.
import { type Facts, problemsOf, type Rules } from '../facts.ts';
import {
  containerOf,
  containersOf,
  isSelected,
  type Manifest,
  nameOf,
  ofKind,
  type Pod,
  podsOf,
  type Selector,
} from '../manifest.ts';

const clusterWide = ['Namespace', 'GatewayClass'];
const nameLabel = 'app.kubernetes.io/name';
const spreadOver = ['topology.kubernetes.io/zone', 'kubernetes.io/hostname'];

export function selectorProblems({ manifests }: Facts): string[] {
  return problemsOf([
    ...namespaceRules(manifests),
    ...podsOf(manifests).flatMap(pod => podRules(manifests, pod)),
    ...selectorsOf(manifests).flatMap(([each, selector]) => selectorRules(manifests, each, selector)),
  ]);
}

function namespaceRules(manifests: readonly Manifest[]): Rules {
  const namespaces = manifests.filter(({ kind }) => kind === 'Namespace');
  const [namespace] = namespaces;
  const labels = namespace?.metadata.labels ?? {};
  const isMeshed = manifests.some(({ kind }) => kind === 'EnvoyFilter');
  return [
    [namespaces.length === 1, 'there must be one Namespace'],
    [
      labels['istio-injection'] === (isMeshed ? 'enabled' : undefined),
      'the mesh injects its proxy where it should not, or the reverse',
    ],
    ...['enforce', 'warn', 'audit'].map(
      mode =>
        [
          labels[`pod-security.kubernetes.io/${mode}`] === 'restricted',
          `Namespace does not ${mode} restricted`,
        ] as const,
    ),
    ...manifests.map(({ kind, metadata }) => [metadata.name !== undefined, `a ${kind} has no name`] as const),
    ...manifests
      .filter(({ kind }) => !clusterWide.includes(kind))
      .map(
        each =>
          [each.metadata.namespace === namespace?.metadata.name, `${nameOf(each)} is in another namespace`] as const,
      ),
  ];
}

function selectorsOf(manifests: readonly Manifest[]): (readonly [Manifest, Selector])[] {
  return [
    ...ofKind(manifests, 'Service').map(each => [each, { matchLabels: each.spec.selector }] as const),
    ...ofKind(manifests, 'PodDisruptionBudget').map(each => [each, each.spec.selector] as const),
    ...ofKind(manifests, 'NetworkPolicy').map(each => [each, each.spec.podSelector] as const),
    ...ofKind(manifests, 'PodMonitor').map(each => [each, each.spec.selector] as const),
    ...ofKind(manifests, 'AuthorizationPolicy').map(each => [each, each.spec.selector] as const),
    ...ofKind(manifests, 'EnvoyFilter').map(
      each => [each, { matchLabels: each.spec.workloadSelector.labels }] as const,
    ),
  ];
}

/** Kinds with one object per Deployment, named like it. */
const oneEach = ['Service', 'PodDisruptionBudget'];

function selectorRules(manifests: readonly Manifest[], each: Manifest, selector: Selector): Rules {
  const selected = podsOf(manifests).filter(({ labels }) => isSelected(labels, selector));
  const label = each.metadata.labels?.[nameLabel];
  return [
    [selected.length > 0, `${nameOf(each)} selects no pod`],
    [
      !oneEach.includes(each.kind) || selected.map(({ name }) => name).join() === each.metadata.name,
      `${nameOf(each)} is not named like the pods that it selects`,
    ],
    [each.kind !== 'Service' || label === each.metadata.name, `${nameOf(each)} is labelled with another name`],
    // It scrapes every account-authz, and nothing else.
    [
      each.kind !== 'PodMonitor' ||
        selected.length === podsOf(manifests).filter(pod => containerOf(pod, 'account-authz') !== undefined).length,
      `${nameOf(each)} does not select every account-authz`,
    ],
  ];
}

function podRules(manifests: readonly Manifest[], pod: Pod): Rules {
  const [deployment] = ofKind(manifests, 'Deployment').filter(({ metadata }) => metadata.name === pod.name);
  const selectedBy = (kind: string): number =>
    selectorsOf(manifests).filter(([each, selector]) => each.kind === kind && isSelected(pod.labels, selector)).length;
  const isChecker = containerOf(pod, 'account-authz') !== undefined;
  const mode = isChecker ? (containersOf(pod).length === 1 ? 'service' : 'sidecar') : undefined;
  const spread = pod.spec.topologySpreadConstraints ?? [];
  // The components patch the Deployment and the Service that carry it.
  const sidecar = [
    deployment,
    ...manifests.filter(({ kind, metadata }) => kind === 'Service' && metadata.name === pod.name),
  ];
  const isOurs = mode === 'service';
  return [
    [
      deployment !== undefined && isSelected(pod.labels, deployment.spec.selector),
      `${pod.name} does not select its own pods`,
    ],
    [
      pod.labels[nameLabel] === pod.name && deployment?.metadata.labels?.[nameLabel] === pod.name,
      `${pod.name} is labelled with another name`,
    ],
    [pod.labels['account-authz/mode'] === mode, `${pod.name} is not labelled with the mode ${mode}`],
    [
      sidecar.every(each => each?.metadata.labels?.['account-authz/sidecar'] === (isOurs ? undefined : 'true')),
      `${pod.name} is not what the components patch, or should not be`,
    ],
    [selectedBy('Service') === 1, `not one Service for ${pod.name}`],
    [selectedBy('NetworkPolicy') === 1, `not one NetworkPolicy for ${pod.name}`],
    [selectedBy('PodDisruptionBudget') === 1, `not one PodDisruptionBudget for ${pod.name}`],
    [spread.length > 0, `${pod.name} is not spread`],
    [
      spread.every(
        ({ labelSelector, topologyKey }) => isSelected(pod.labels, labelSelector) && spreadOver.includes(topologyKey),
      ),
      `${pod.name} has a topology spread for other pods`,
    ],
  ];
}
