// Derives from the rendered manifests of a Deployment what a kubelet does: containers in start order, their probes and hooks,
// and their mounted files. The rehearsal runs exactly what is applied.
import { parseAllDocuments } from 'yaml';

export interface PodPlan {
  readonly graceSeconds: number;
  /** In start order: sidecars one after the other, then the others together. */
  readonly containers: readonly PlannedContainer[];
  readonly volumes: readonly PlannedVolume[];
  /** The address that the Service routes to. */
  readonly servicePort: number;
}

export interface PlannedContainer {
  readonly name: string;
  readonly kind: 'sidecar' | 'app';
  readonly image: string;
  readonly args: readonly string[];
  readonly mounts: readonly { readonly volume: string; readonly path: string }[];
  readonly startup?: PlannedProbe | undefined;
  readonly readiness?: PlannedProbe | undefined;
  readonly liveness?: PlannedProbe | undefined;
  readonly preStop: PlannedHook;
}

export type PlannedHook =
  | { readonly kind: 'none' }
  | { readonly kind: 'sleep'; readonly seconds: number }
  | { readonly kind: 'exec'; readonly command: readonly string[] };

export interface PlannedProbe {
  readonly target:
    | { readonly kind: 'http'; readonly path: string; readonly port: number }
    | { readonly kind: 'tcp'; readonly port: number };
  readonly initialDelaySeconds: number;
  readonly periodSeconds: number;
  readonly timeoutSeconds: number;
  readonly failureThreshold: number;
  readonly successThreshold: number;
}

export interface PlannedVolume {
  readonly name: string;
  /** The files of a ConfigMap; none for an emptyDir. */
  readonly files: Readonly<Record<string, string>>;
}

// The fields that the rehearsal reads, by their API names.

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec?: unknown;
  readonly data?: Readonly<Record<string, string>>;
}

interface PodSpec {
  readonly terminationGracePeriodSeconds?: number;
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
  readonly volumes?: readonly { name: string; configMap?: { name: string }; emptyDir?: object }[];
}

interface Container {
  readonly name: string;
  readonly image: string;
  readonly restartPolicy?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[];
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
  readonly startupProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly lifecycle?: { readonly preStop?: Hook };
}

interface Hook {
  readonly sleep?: { readonly seconds: number };
  readonly exec?: { readonly command: readonly string[] };
}

interface Probe {
  readonly httpGet?: { readonly path: string; readonly port: string | number };
  readonly tcpSocket?: { readonly port: string | number };
  readonly initialDelaySeconds?: number;
  readonly periodSeconds?: number;
  readonly timeoutSeconds?: number;
  readonly failureThreshold?: number;
  readonly successThreshold?: number;
}

/** Throws if the manifests use a feature that the rehearsal does not implement. */
export function parsePodPlan(yaml: string): PodPlan {
  const manifests = parseAllDocuments(yaml).map((document): Manifest => document.toJS());
  const [deployment, ...more] = manifests.filter(({ kind }) => kind === 'Deployment');
  if (deployment === undefined || more.length > 0) throw new Error('a rehearsal is of one Deployment');
  const pod = (deployment.spec as { template: { spec: PodSpec } }).template.spec;
  const initContainers = pod.initContainers ?? [];
  for (const { name, restartPolicy } of initContainers) {
    if (restartPolicy !== 'Always') throw new Error(`${name} is an init container that is no sidecar`);
  }
  return {
    graceSeconds: pod.terminationGracePeriodSeconds ?? 30,
    containers: [
      ...initContainers.map(container => toContainer(container, 'sidecar')),
      ...pod.containers.map(container => toContainer(container, 'app')),
    ],
    volumes: (pod.volumes ?? []).map(volume => ({ name: volume.name, files: filesOf(volume, manifests) })),
    servicePort: servicePort(manifests, [...initContainers, ...pod.containers]),
  };
}

function toContainer(container: Container, kind: PlannedContainer['kind']): PlannedContainer {
  if (container.command !== undefined) throw new Error(`${container.name} has a command of its own`);
  const toProbeOf = (probe: Probe | undefined): PlannedProbe | undefined => probe && toProbe(container, probe);
  return {
    name: container.name,
    kind,
    image: container.image,
    args: container.args ?? [],
    mounts: (container.volumeMounts ?? []).map(({ name, mountPath }) => ({ volume: name, path: mountPath })),
    startup: toProbeOf(container.startupProbe),
    readiness: toProbeOf(container.readinessProbe),
    liveness: toProbeOf(container.livenessProbe),
    preStop: toHook(container),
  };
}

function toHook({ name, lifecycle }: Container): PlannedHook {
  const hook = lifecycle?.preStop;
  if (hook === undefined) return { kind: 'none' };
  if (hook.sleep !== undefined) return { kind: 'sleep', seconds: hook.sleep.seconds };
  if (hook.exec !== undefined) return { kind: 'exec', command: hook.exec.command };
  throw new Error(`${name} has a preStop hook of an unknown kind`);
}

// Defaults of the API.
function toProbe(container: Container, probe: Probe): PlannedProbe {
  return {
    target: toTarget(container, probe),
    initialDelaySeconds: probe.initialDelaySeconds ?? 0,
    periodSeconds: probe.periodSeconds ?? 10,
    timeoutSeconds: probe.timeoutSeconds ?? 1,
    failureThreshold: probe.failureThreshold ?? 3,
    successThreshold: probe.successThreshold ?? 1,
  };
}

function toTarget(container: Container, { httpGet, tcpSocket }: Probe): PlannedProbe['target'] {
  if (httpGet !== undefined) return { kind: 'http', path: httpGet.path, port: portOf([container], httpGet.port) };
  if (tcpSocket !== undefined) return { kind: 'tcp', port: portOf([container], tcpSocket.port) };
  throw new Error(`${container.name} has a probe of an unknown kind`);
}

function portOf(containers: readonly Container[], port: string | number): number {
  if (typeof port === 'number') return port;
  const named = containers.flatMap(({ ports = [] }) => ports).find(({ name }) => name === port);
  if (named === undefined) throw new Error(`no container has the port ${port}`);
  return named.containerPort;
}

function filesOf(
  { name, configMap, emptyDir }: NonNullable<PodSpec['volumes']>[number],
  manifests: readonly Manifest[],
): Readonly<Record<string, string>> {
  if (emptyDir !== undefined) return {};
  const found = manifests.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === configMap?.name);
  if (found?.data === undefined) throw new Error(`the volume ${name} is neither an emptyDir nor of a ConfigMap here`);
  return found.data;
}

function servicePort(manifests: readonly Manifest[], containers: readonly Container[]): number {
  const service = manifests.find(({ kind }) => kind === 'Service');
  const [port] = (service?.spec as { ports: { targetPort: string | number }[] } | undefined)?.ports ?? [];
  if (port === undefined) throw new Error('no Service leads to the pods');
  return portOf(containers, port.targetPort);
}
