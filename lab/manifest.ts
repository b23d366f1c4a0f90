// Reads Kubernetes manifests: the fields of pods that tests and tools read, and access to all others by their path.
import { parseAllDocuments } from 'yaml';

export type Labels = Readonly<Record<string, string>>;

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Labels };
  readonly spec?: unknown;
  readonly automountServiceAccountToken?: boolean;
  readonly data?: Readonly<Record<string, string>>;
}

export interface Selector {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly { readonly key: string; readonly operator: string }[];
}

export interface Pod {
  /** The name of the Deployment that creates the pod. */
  readonly name: string;
  readonly labels: Labels;
  readonly annotations: Labels;
  readonly spec: PodSpec;
}

export interface PodSpec {
  readonly serviceAccountName: string;
  readonly automountServiceAccountToken?: boolean;
  readonly enableServiceLinks?: boolean;
  readonly terminationGracePeriodSeconds: number;
  readonly securityContext?: SecurityContext & { readonly fsGroup?: number };
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
  readonly volumes?: readonly Volume[];
}

export interface Container {
  readonly name: string;
  readonly image: string;
  readonly restartPolicy?: string;
  readonly args?: readonly string[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number; readonly hostPort?: number }[];
  readonly volumeMounts?: readonly VolumeMount[];
  readonly startupProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly lifecycle?: { readonly preStop?: Hook };
  readonly resources?: { readonly requests?: Labels; readonly limits?: Labels };
  readonly securityContext?: SecurityContext;
  readonly terminationMessagePolicy?: string;
}

export interface VolumeMount {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly?: boolean;
  readonly subPath?: string;
}

export interface SecurityContext {
  readonly runAsNonRoot?: boolean;
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
  readonly privileged?: boolean;
  readonly allowPrivilegeEscalation?: boolean;
  readonly readOnlyRootFilesystem?: boolean;
  readonly capabilities?: { readonly add?: readonly string[]; readonly drop?: readonly string[] };
  readonly seccompProfile?: { readonly type: string };
  readonly procMount?: string;
}

export interface Probe {
  readonly terminationGracePeriodSeconds?: number;
  readonly httpGet?: { readonly path: string; readonly port: string | number; readonly host?: string };
  readonly tcpSocket?: { readonly host?: string };
}

export interface Hook {
  readonly sleep?: { readonly seconds: number };
  readonly exec?: { readonly command: readonly string[] };
  readonly httpGet?: { readonly host?: string };
}

/** What is mounted of a ConfigMap or a Secret; without `items`, every key by its name. */
export interface Source {
  readonly name: string;
  readonly items?: readonly { readonly key: string; readonly path: string }[];
}

export interface Volume {
  readonly name: string;
  readonly configMap?: Source;
  readonly secret?: { readonly secretName: string; readonly items?: Source['items'] };
  readonly projected?: { readonly sources: readonly { readonly configMap?: Source; readonly secret?: Source }[] };
  readonly emptyDir?: object;
}

export function parseManifests(yaml: string): Manifest[] {
  return parseAllDocuments(yaml).map(document => {
    if (document.errors.length > 0) throw new Error(document.errors.join('\n'));
    return document.toJS();
  });
}

/** `Kind/name`, as kubectl prints it. */
export function nameOf({ kind, metadata }: Manifest): string {
  return `${kind}/${metadata.name}`;
}

export function ofKind(manifests: readonly Manifest[], ...kinds: readonly string[]): readonly Manifest[] {
  return manifests.filter(({ kind }) => kinds.includes(kind));
}

export function podsOf(manifests: readonly Manifest[]): Pod[] {
  return ofKind(manifests, 'Deployment').map(({ metadata, spec }) => {
    const { template } = spec as { template: { metadata: Omit<Pod, 'name' | 'spec'>; spec: PodSpec } };
    return {
      name: metadata.name,
      labels: template.metadata.labels,
      annotations: template.metadata.annotations ?? {},
      spec: template.spec,
    };
  });
}

/** In start order: the sidecars first. */
export function containersOf({ spec }: Pod): readonly Container[] {
  return [...(spec.initContainers ?? []), ...spec.containers];
}

export function containerOf(pod: Pod, name: string): Container | undefined {
  return containersOf(pod).find(container => container.name === name);
}

/** The data of the ConfigMap with this name, without the hash of kustomize. */
export function configMapOf(
  manifests: readonly Manifest[],
  name: string,
): Readonly<Record<string, string>> | undefined {
  return ofKind(manifests, 'ConfigMap').find(({ metadata }) => withoutHash(metadata.name) === name)?.data;
}

function withoutHash(name: string): string {
  return name.replace(/-[a-z0-9]{10}$/, '');
}

/** An empty selector, which means every pod, selects none here. */
export function isSelected(labels: Labels, { matchLabels = {}, matchExpressions = [] }: Selector): boolean {
  return (
    Object.keys(matchLabels).length + matchExpressions.length > 0 &&
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator }) => operator === 'Exists' && Object.hasOwn(labels, key))
  );
}

/** The value at a path; a name in the place of an index selects the item of a list with that name. */
export function at(within: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((value, key) => {
    if (Array.isArray(value) && typeof key === 'string') return value.find(item => item.name === key);
    return typeof value === 'object' && value !== null ? (value as Record<string | number, unknown>)[key] : undefined;
  }, within);
}

export function listAt(within: unknown, ...path: readonly (string | number)[]): readonly unknown[] {
  const found = at(within, ...path);
  return Array.isArray(found) ? found : [];
}
