// kubectl for the cluster runs: one call, waiting for a state, pods and their containers, port-forwards. The cluster is that of $KUBECONFIG.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

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
  /** In MiB, by the name of the container; those that have one. */
  readonly memoryLimits: ReadonlyMap<string, number>;
}

interface ContainerSpec {
  readonly name: string;
  readonly resources?: { readonly limits?: { readonly memory?: string } };
}

interface PodObject {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly spec: {
    readonly nodeName?: string;
    readonly initContainers?: readonly ContainerSpec[];
    readonly containers: readonly ContainerSpec[];
  };
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
    memoryLimits: new Map(
      [...(spec.initContainers ?? []), ...spec.containers].flatMap(({ name, resources }) => {
        const [, count, unit] = /^(\d+)(Mi|Gi)$/.exec(resources?.limits?.memory ?? '') ?? [];
        return unit === undefined ? [] : [[name, Number(count) * (unit === 'Gi' ? 1024 : 1)] as const];
      }),
    ),
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

export interface PortForward {
  readonly url: string;
  stop(): void;
}

/** To a port of a pod, also one on its loopback. */
export async function forward(namespace: string, target: string, port: number): Promise<PortForward> {
  const child = spawn('kubectl', ['port-forward', '-n', namespace, target, `:${port}`], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const stop = (): void => {
    process.off('exit', stop);
    child.kill();
  };
  process.once('exit', stop);
  child.stdout.setEncoding('utf8');
  const failed = once(child, 'exit').then(() => Promise.reject(new Error(`port-forward to ${target} ended`)));
  failed.catch(() => undefined);
  for (let text = ''; ; ) {
    const [chunk] = (await Promise.race([once(child.stdout, 'data'), failed])) as [string];
    text += chunk;
    const [, local] = /127\.0\.0\.1:(\d+) ->/.exec(text) ?? [];
    if (local !== undefined) {
      child.stdout.resume();
      return { url: `http://127.0.0.1:${local}`, stop };
    }
  }
}

const hardened = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
};

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
  const labels = { app: name };
  const securityContext = {
    runAsNonRoot: true,
    runAsUser: 65_532,
    seccompProfile: { type: 'RuntimeDefault' },
    sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '0' }],
  };
  const container = {
    name,
    image,
    imagePullPolicy: 'IfNotPresent',
    command: ['/nodejs/bin/node', '/program/main.mjs'],
    securityContext: hardened,
    resources: { requests: { cpu: '100m', memory: '128Mi' } },
    volumeMounts: [{ name: 'program', mountPath: '/program' }],
  };
  const stringData = { 'main.mjs': program, ...files };
  return [
    { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, stringData },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            securityContext,
            automountServiceAccountToken: false,
            enableServiceLinks: false,
            terminationGracePeriodSeconds: 1,
            containers: [container],
            volumes: [{ name: 'program', secret: { secretName: name } }],
          },
        },
      },
    },
  ];
}
