// What manifests say of each other: every name that stands for something else has it, and every selector selects.
import {
  type Container,
  containerOf,
  containersOf,
  isSelected,
  type Manifest,
  nameOf,
  ofKind,
  type Pod,
  podsOf,
  type Selector,
  type Volume,
} from './manifest.ts';

/** The Secrets that an operator makes: docs/deploy/ tells how. */
export const operatorsSecrets = ['account-authz-tls', 'account-authz-client-tls'];

export function referenceProblems(manifests: readonly Manifest[]): string[] {
  return [
    ...namespaceProblems(manifests),
    ...podsOf(manifests).flatMap(pod => podProblems(manifests, pod)),
    ...selectorProblems(manifests),
    ...serviceProblems(manifests),
    ...autoscalerProblems(manifests),
    ...policyPortProblems(manifests),
  ];
}

const clusterWide = ['Namespace', 'GatewayClass'];

function namespaceProblems(manifests: readonly Manifest[]): string[] {
  const [namespace, ...more] = manifests.filter(({ kind }) => kind === 'Namespace');
  if (namespace === undefined || more.length > 0) return ['there must be one Namespace'];
  const level = (mode: string): string | undefined => namespace.metadata.labels?.[`pod-security.kubernetes.io/${mode}`];
  const strangers = manifests.filter(
    ({ kind, metadata }) => !clusterWide.includes(kind) && metadata.namespace !== namespace.metadata.name,
  );
  return [
    ...(['enforce', 'warn', 'audit'].every(mode => level(mode) === 'restricted')
      ? []
      : ['Namespace is not restricted']),
    ...strangers.map(each => `${nameOf(each)} is in another namespace`),
  ];
}

function podProblems(manifests: readonly Manifest[], pod: Pod): string[] {
  const { spec } = pod;
  const containers = containersOf(pod);
  const volumes = spec.volumes ?? [];
  const volumeNames = volumes.map(({ name }) => name);
  const mounts = containers.flatMap(container => container.volumeMounts ?? []);
  const ports = containers.flatMap(container => container.ports ?? []);
  const accounts = manifests.filter(({ kind }) => kind === 'ServiceAccount').map(({ metadata }) => metadata.name);
  const problems = [
    ...mounts.filter(({ name }) => !volumeNames.includes(name)).map(({ name }) => `mounts ${name}, which is no volume`),
    ...volumeNames.filter(name => !mounts.some(mount => mount.name === name)).map(name => `does not mount ${name}`),
    ...mounts
      .filter(mount => mount.subPath !== undefined || mount.subPathExpr !== undefined)
      .map(({ name }) => `mounts a part of ${name}, which is never updated`),
    ...volumes.flatMap(volume => sourceProblems(manifests, volume)),
    ...containers.flatMap(container => nestedMounts(container)),
    ...repeated(ports.map(({ name }) => name)).map(name => `has two ports ${name}`),
    ...repeated(ports.map(({ containerPort }) => containerPort)).map(port => `has the port ${port} twice`),
    ...containers.flatMap(container => probePortProblems(container)),
    ...containers.flatMap(container =>
      repeated((container.env ?? []).map(({ name }) => name)).map(name => `sets ${name} twice in ${container.name}`),
    ),
    ...(accounts.includes(spec.serviceAccountName) ? [] : ['has no service account of its own']),
    ...(spec.topologySpreadConstraints ?? [])
      .filter(({ labelSelector }) => !isSelected(pod.labels, labelSelector))
      .map(() => 'is spread away from other pods'),
  ];
  return problems.map(problem => `${pod.name} ${problem}`);
}

function sourceProblems(manifests: readonly Manifest[], volume: Volume): string[] {
  const { configMap, secret, projected } = volume;
  const configMaps = [configMap?.name, ...(projected?.sources ?? []).map(source => source.configMap?.name)];
  const secrets = [secret?.secretName, ...(projected?.sources ?? []).map(source => source.secret?.name)];
  const known = manifests.filter(({ kind }) => kind === 'ConfigMap').map(({ metadata }) => metadata.name);
  return [
    ...configMaps.filter(name => name !== undefined && !known.includes(name)).map(name => `lacks ConfigMap ${name}`),
    ...secrets
      .filter(name => name !== undefined && !operatorsSecrets.includes(name))
      .map(name => `lacks Secret ${name}`),
  ];
}

// The place of the inner one would have to be made in a volume that nobody may write to.
function nestedMounts(container: Container): string[] {
  const paths = (container.volumeMounts ?? []).map(({ mountPath }) => mountPath);
  return paths
    .filter(path => paths.some(other => other !== path && path.startsWith(`${other}/`)))
    .map(path => `mounts ${path} inside another mount`);
}

function probePortProblems(container: Container): string[] {
  const known = (container.ports ?? []).flatMap(({ name, containerPort }) => [name, containerPort]);
  return [container.startupProbe, container.readinessProbe, container.livenessProbe]
    .map(probe => probe?.httpGet?.port ?? probe?.tcpSocket?.port ?? probe?.grpc?.port)
    .filter(port => port !== undefined && !known.includes(port))
    .map(port => `probes ${container.name} at ${port}, which is no port of it`);
}

function selectorProblems(manifests: readonly Manifest[]): string[] {
  const pods = podsOf(manifests);
  const all: (readonly [Manifest, Selector])[] = [
    ...ofKind(manifests, 'Service').map(each => [each, { matchLabels: each.spec.selector }] as const),
    ...ofKind(manifests, 'PodDisruptionBudget').map(each => [each, each.spec.selector] as const),
    ...ofKind(manifests, 'NetworkPolicy').map(each => [each, each.spec.podSelector] as const),
    ...ofKind(manifests, 'PodMonitor').map(each => [each, each.spec.selector] as const),
    ...ofKind(manifests, 'AuthorizationPolicy').map(each => [each, each.spec.selector] as const),
    ...ofKind(manifests, 'EnvoyFilter').map(
      each => [each, { matchLabels: each.spec.workloadSelector.labels }] as const,
    ),
  ];
  const own = ofKind(manifests, 'Deployment').filter(
    ({ spec }) => !isSelected(spec.template.metadata.labels, spec.selector),
  );
  return [
    ...own.map(each => `${nameOf(each)} does not select its own pods`),
    ...all
      .filter(([, selector]) => !pods.some(({ labels }) => isSelected(labels, selector)))
      .map(([each]) => `${nameOf(each)} selects no pod`),
    ...pods
      .filter(
        ({ labels }) => !ofKind(manifests, 'NetworkPolicy').some(each => isSelected(labels, each.spec.podSelector)),
      )
      .map(({ name }) => `no NetworkPolicy for ${name}`),
    ...pods
      .filter(
        ({ labels }) => !ofKind(manifests, 'PodDisruptionBudget').some(each => isSelected(labels, each.spec.selector)),
      )
      .map(({ name }) => `no PodDisruptionBudget for ${name}`),
  ];
}

function serviceProblems(manifests: readonly Manifest[]): string[] {
  return ofKind(manifests, 'Service').flatMap(service => {
    const pods = podsOf(manifests).filter(({ labels }) => isSelected(labels, { matchLabels: service.spec.selector }));
    return service.spec.ports
      .filter(({ targetPort }) => !pods.every(pod => hasPort(pod, targetPort)))
      .map(({ targetPort }) => `${nameOf(service)} leads to ${targetPort}, which its pods do not have`);
  });
}

function autoscalerProblems(manifests: readonly Manifest[]): string[] {
  return ofKind(manifests, 'HorizontalPodAutoscaler').flatMap(autoscaler => {
    const { scaleTargetRef, metrics } = autoscaler.spec;
    const target = ofKind(manifests, 'Deployment').find(({ metadata }) => metadata.name === scaleTargetRef.name);
    const pod = podsOf(manifests).find(({ name }) => name === scaleTargetRef.name);
    if (target === undefined || pod === undefined) return [`${nameOf(autoscaler)} scales nothing`];
    const missing = metrics.filter(
      ({ containerResource }) =>
        containerResource !== undefined && containerOf(pod, containerResource.container) === undefined,
    );
    return [
      ...(target.spec.replicas === undefined ? [] : [`${nameOf(autoscaler)} and ${nameOf(target)} both set replicas`]),
      ...missing.map(() => `${nameOf(autoscaler)} measures a container that is not there`),
    ];
  });
}

/** Ports that Istio's injection adds. */
const injectedPorts = [15_008, 15_021, 15_090];

function policyPortProblems(manifests: readonly Manifest[]): string[] {
  const ports = [
    ...ofKind(manifests, 'NetworkPolicy').flatMap(policy =>
      (policy.spec.ingress ?? [])
        .flatMap(rule => rule.ports ?? [])
        .map(({ port }) => ({ policy, port, selector: policy.spec.podSelector })),
    ),
    ...ofKind(manifests, 'PodMonitor').flatMap(policy =>
      policy.spec.podMetricsEndpoints.map(({ port }) => ({ policy, port, selector: policy.spec.selector })),
    ),
  ];
  return ports
    .filter(({ port }) => !injectedPorts.includes(Number(port)))
    .filter(
      ({ port, selector }) =>
        !podsOf(manifests)
          .filter(({ labels }) => isSelected(labels, selector))
          .every(pod => hasPort(pod, port)),
    )
    .map(({ policy, port }) => `${nameOf(policy)} names the port ${port}, which its pods do not have`);
}

function hasPort(pod: Pod, port: string | number): boolean {
  return containersOf(pod).some(container =>
    (container.ports ?? []).some(({ name, containerPort }) => name === port || containerPort === port),
  );
}

function repeated<T>(items: readonly T[]): T[] {
  return items.filter((item, index) => items.indexOf(item) !== index);
}
