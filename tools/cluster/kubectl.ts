// kubectl for the cluster runs: one call, waiting for a state, pods and their containers, requests from them. The cluster is that of $KUBECONFIG.
import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { parse } from 'yaml';

export interface ContainerStatus {
  readonly name: string;
  readonly ready: boolean;
  readonly restartCount: number;
  readonly containerID?: string;
  readonly state?: { readonly running?: { readonly startedAt: string } };
  readonly lastState?: { readonly terminated?: { readonly finishedAt: string } };
}

export interface PodState {
  readonly name: string;
  readonly node: string;
  readonly address: string;
  readonly isReady: boolean;
  readonly isTerminating: boolean;
  readonly containers: readonly ContainerStatus[];
}

interface PodObject {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly spec: { readonly nodeName?: string };
  readonly status: {
    readonly podIP?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
    readonly containerStatuses?: readonly ContainerStatus[];
  };
}

/** Standard output; `warnings` gets the lines of standard error. Rejects with standard error if the exit code is not 0. */
export function kubectl(args: readonly string[], input?: string, warnings: string[] = []): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile('kubectl', args, { maxBuffer: 32 * 1024 * 1024 }, (error, stdout, stderr) => {
      warnings.push(...stderr.split('\n').filter(line => line !== ''));
      if (error === null) resolve(stdout);
      else reject(new Error(`kubectl ${args.join(' ')}: ${stderr.trim()}`));
    });
    child.stdin?.end(input);
  });
}

/** Applies objects; the warnings, those of Pod Security among them. */
export async function apply(objects: string | readonly object[], namespace?: string): Promise<readonly string[]> {
  const text =
    typeof objects === 'string' ? objects : JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
  const warnings: string[] = [];
  await kubectl(['apply', '-f', '-', ...(namespace === undefined ? [] : ['-n', namespace])], text, warnings);
  return warnings.filter(line => line.startsWith('Warning:'));
}

/** Whether the cluster has the metrics API: `kubectl top` and autoscalers need it. */
export function hasMetrics(): Promise<boolean> {
  return kubectl(['get', '--raw', '/apis/metrics.k8s.io/v1beta1']).then(
    () => true,
    () => false,
  );
}

export async function podsOf(namespace: string, labels: string): Promise<readonly PodState[]> {
  const { items } = JSON.parse(await kubectl(['get', 'pods', '-n', namespace, '-l', labels, '-o', 'json']));
  return items.map(({ metadata, spec, status }: PodObject) => ({
    name: metadata.name,
    node: spec.nodeName ?? '',
    address: status.podIP ?? '',
    isReady: status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false,
    isTerminating: metadata.deletionTimestamp !== undefined,
    containers: [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])],
  }));
}

/** Polls until the result is not undefined. */
export async function until<Result>(
  what: string,
  seconds: number,
  look: () => Promise<Result | undefined>,
): Promise<Result> {
  const end = performance.now() + seconds * 1000;
  for (;;) {
    const result = await look().catch(() => undefined);
    if (result !== undefined) return result;
    if (performance.now() > end) throw new Error(`${what}: not within ${seconds} s`);
    await delay(300);
  }
}

/** Exactly so many pods, each of them ready and none of them on its way out. */
export function untilSettled(namespace: string, labels: string, replicas: number): Promise<readonly PodState[]> {
  return until(`${replicas} ready pods of ${labels} and no other`, 240, async () => {
    const pods = await podsOf(namespace, labels);
    const isSettled = pods.length === replicas && pods.every(pod => pod.isReady && !pod.isTerminating);
    return isSettled ? pods : undefined;
  });
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** URL OPTIONS: `node -e` in a pod. A port-forward would not do: it enters a pod on loopback, past the Envoy of a mesh. */
const askProgram = `
const [url, options] = process.argv.slice(1);
fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(10_000), ...JSON.parse(options) }).then(async answer => {
  const { status, headers } = answer;
  console.log(JSON.stringify({ status, headers: Object.fromEntries(headers), text: await answer.text() }));
});
`;

/** One request from a container that has Node; `at` is kubectl's name for it, with the namespace. */
export async function askFrom(at: readonly string[], url: string, options: RequestInit = {}): Promise<Answer> {
  const node = ['/nodejs/bin/node', '-e', askProgram, url, JSON.stringify(options)];
  return JSON.parse(await kubectl(['exec', ...at, '--', ...node]));
}

export interface ProgramPod {
  readonly name: string;
  readonly namespace: string;
  readonly image: string;
  /** JavaScript, run as one module. */
  readonly program: string;
  /** Further files beside the program, in /program. */
  readonly files?: Readonly<Record<string, string>>;
}

/** A Deployment of one pod that runs a program of these tests on the Node of the image, within Pod Security restricted. */
export function programPod({ name, namespace, image, program, files = {} }: ProgramPod): readonly object[] {
  const spec = parse(`
replicas: 1
selector: { matchLabels: { app: ${name} } }
template:
  metadata: { labels: { app: ${name} } }
  spec:
    securityContext:
      runAsNonRoot: true
      runAsUser: 65532
      seccompProfile: { type: RuntimeDefault }
      sysctls: [{ name: net.ipv4.ip_unprivileged_port_start, value: "0" }]
    automountServiceAccountToken: false
    enableServiceLinks: false
    terminationGracePeriodSeconds: 1
    containers:
      - name: ${name}
        image: ${image}
        imagePullPolicy: IfNotPresent
        command: [/nodejs/bin/node, /program/main.mjs]
        securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: [ALL] } }
        resources: { requests: { cpu: 100m, memory: 128Mi } }
        volumeMounts: [{ name: program, mountPath: /program }]
    volumes: [{ name: program, secret: { secretName: ${name} } }]
`);
  const metadata = { name, namespace };
  return [
    { apiVersion: 'v1', kind: 'Secret', metadata, stringData: { 'main.mjs': program, ...files } },
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec },
  ];
}
