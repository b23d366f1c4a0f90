// Types of the manifest fields that the tests read. The strict schemas check all other fields.
import { parseAllDocuments } from 'yaml';

export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Labels };
  spec?: unknown;
  automountServiceAccountToken?: boolean;
  data?: Record<string, string>;
}

export type Labels = Record<string, string>;

export interface Selector {
  matchLabels?: Labels;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

/** The known fields of the spec of each kind. */
export interface Specs {
  AuthorizationPolicy: {
    selector: Selector;
    action: string;
    provider?: { name: string };
    rules: { to: { operation: { paths?: string[]; ports?: string[]; methods?: string[] } }[] }[];
  };
  BackendTLSPolicy: { targetRefs: Reference[]; validation: { caCertificateRefs: Reference[]; hostname: string } };
  ClientTrafficPolicy: {
    targetRefs: Reference[];
    path: { escapedSlashesAction?: string; disableMergeSlashes?: boolean };
    headers: {
      withUnderscoresAction?: string;
      earlyRequestHeaders: { remove?: string[]; removeOnMatch?: { type: string; value: string }[] };
    };
  };
  Deployment: { replicas?: number; selector: Selector; template: PodTemplate };
  EnvoyFilter: {
    workloadSelector: { labels: Labels };
    configPatches: {
      applyTo: string;
      match: object;
      patch: { operation: string; value: { name?: string; typed_config: unknown } };
    }[];
  };
  EnvoyProxy: { routingType?: string; backendTLS: { clientCertificateRef: Reference; minVersion?: string } };
  Gateway: { gatewayClassName: string; infrastructure: { parametersRef: Reference } };
  HorizontalPodAutoscaler: {
    scaleTargetRef: { kind: string; name: string };
    minReplicas: number;
    maxReplicas: number;
    metrics: { type: string; containerResource?: Measured & { container: string }; resource?: Measured }[];
  };
  HTTPRoute: {
    parentRefs: Reference[];
    rules: { matches: { path: { type: string; value: string } }[]; backendRefs: Reference[] }[];
  };
  NetworkPolicy: {
    podSelector: Selector;
    policyTypes: string[];
    ingress?: { from?: Peer[]; ports?: PolicyPort[] }[];
    egress?: { to?: Peer[]; ports?: PolicyPort[] }[];
  };
  PodDisruptionBudget: { selector: Selector };
  PodMonitor: { selector: Selector; podMetricsEndpoints: { port: string; path: string }[] };
  SecurityPolicy: { targetRefs: Reference[]; extAuth: ExtAuth };
  Service: {
    clusterIP?: string;
    selector: Labels;
    ports: { name: string; port: number; targetPort: string | number; appProtocol?: string }[];
  };
  ServiceAccount: unknown;
  ServiceEntry: {
    hosts: string[];
    exportTo?: string[];
    location?: string;
    resolution: string;
    ports: { number: number; protocol: string }[];
    endpoints: { address: string }[];
  };
}

interface Measured {
  name: string;
  target: { type: string; averageValue?: string };
}

export interface Peer {
  podSelector?: Selector;
  namespaceSelector?: Selector;
  ipBlock?: { cidr: string; except?: string[] };
}

export interface PolicyPort {
  port: string | number;
  protocol?: string;
}

export interface Reference {
  kind: string;
  name: string;
  port?: number;
  sectionName?: string;
}

export interface ExtAuth {
  failOpen?: boolean;
  statusOnError?: number;
  timeout?: string;
  recomputeRoute?: boolean;
  headersToExtAuth?: string[];
  grpc?: { backendRefs: Reference[] };
}

export interface PodTemplate {
  metadata: { labels: Labels; annotations?: Labels };
  spec: PodSpec;
}

export interface PodSpec {
  serviceAccountName: string;
  automountServiceAccountToken?: boolean;
  enableServiceLinks?: boolean;
  terminationGracePeriodSeconds: number;
  securityContext?: SecurityContext & { fsGroup?: number };
  topologySpreadConstraints?: { labelSelector: Selector; topologyKey: string }[];
  initContainers?: Container[];
  containers: Container[];
  volumes?: Volume[];
  [field: string]: unknown;
}

export interface Container {
  name: string;
  image: string;
  restartPolicy?: string;
  command?: string[];
  args?: string[];
  env?: { name: string }[];
  ports?: { name: string; containerPort: number; hostPort?: number; protocol?: string }[];
  volumeMounts?: { name: string; mountPath: string; readOnly?: boolean; subPath?: string; subPathExpr?: string }[];
  startupProbe?: Probe;
  readinessProbe?: Probe;
  livenessProbe?: Probe;
  lifecycle?: { preStop?: { sleep?: { seconds: number }; exec?: { command: string[] }; httpGet?: { host?: string } } };
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> };
  securityContext?: SecurityContext;
  terminationMessagePolicy?: string;
}

export interface SecurityContext {
  runAsNonRoot?: boolean;
  runAsUser?: number;
  runAsGroup?: number;
  privileged?: boolean;
  allowPrivilegeEscalation?: boolean;
  readOnlyRootFilesystem?: boolean;
  capabilities?: { add?: string[]; drop?: string[] };
  seccompProfile?: { type: string };
  procMount?: string;
}

export interface Probe {
  periodSeconds?: number;
  timeoutSeconds?: number;
  failureThreshold?: number;
  terminationGracePeriodSeconds?: number;
  httpGet?: { path: string; port: string | number; host?: string };
  tcpSocket?: { port: string | number; host?: string };
  grpc?: { port: number };
  exec?: { command: string[] };
}

export interface Volume {
  name: string;
  configMap?: NamedKeys & { defaultMode?: number };
  secret?: { secretName: string; items?: KeyToPath[]; defaultMode?: number };
  projected?: { sources: { configMap?: NamedKeys; secret?: NamedKeys }[]; defaultMode?: number };
  emptyDir?: { medium?: string; sizeLimit?: string };
}

export interface NamedKeys {
  name: string;
  items?: KeyToPath[];
}

export interface KeyToPath {
  key: string;
  path: string;
}

export function parseManifests(yaml: string): Manifest[] {
  return parseAllDocuments(yaml).map(document => {
    if (document.errors.length > 0) throw new Error(document.errors.join('\n'));
    return document.toJS();
  });
}

export function ofKind<Kind extends keyof Specs>(
  manifests: readonly Manifest[],
  kind: Kind,
): (Manifest & { spec: Specs[Kind] })[] {
  return manifests.filter((each): each is Manifest & { spec: Specs[Kind] } => each.kind === kind);
}

/** `Kind/name`, as kubectl prints it. */
export function nameOf(manifest: Manifest): string {
  return `${manifest.kind}/${manifest.metadata.name}`;
}

export interface Pod {
  /** The name of the Deployment that creates the pod. */
  readonly name: string;
  readonly labels: Labels;
  readonly spec: PodSpec;
}

export function podsOf(manifests: readonly Manifest[]): Pod[] {
  return ofKind(manifests, 'Deployment').map(({ metadata, spec }) => ({
    name: metadata.name,
    labels: spec.template.metadata.labels,
    spec: spec.template.spec,
  }));
}

/** In start order: the sidecars first. */
export function containersOf({ spec }: Pod): Container[] {
  return [...(spec.initContainers ?? []), ...spec.containers];
}

export function containerOf(pod: Pod, name: string): Container | undefined {
  return containersOf(pod).find(container => container.name === name);
}

/** The data of the ConfigMap with this name, without the hash of kustomize. */
export function configMapOf(manifests: readonly Manifest[], name: string): Record<string, string> | undefined {
  return manifests.find(({ kind, metadata }) => kind === 'ConfigMap' && withoutHash(metadata.name) === name)?.data;
}

export function withoutHash(name: string): string {
  return name.replace(/-[a-z0-9]{10}$/, '');
}

/** All of ours have labels: an empty selector matches nothing here. */
export function isSelected(labels: Labels, { matchLabels = {}, matchExpressions = [] }: Selector): boolean {
  return (
    Object.keys(matchLabels).length + matchExpressions.length > 0 &&
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator }) => operator === 'Exists' && Object.hasOwn(labels, key))
  );
}
