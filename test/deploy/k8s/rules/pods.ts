// Pods: containers start and stop in an order that loses no request, and the number of replicas matches the other objects.
import { existsSync } from 'node:fs';
import { envoyVersions } from '../../../../lab/envoy.ts';
import { defaultConfigFile } from '../../../../src/commands/command.ts';
import { version } from '../../../../src/package.ts';
import { at, type Facts, problemsOf, type Rules } from '../facts.ts';
import { type Container, containerOf, containersOf, nameOf, ofKind, type Pod, podsOf } from '../manifest.ts';

const project = new URL('../../../../', import.meta.url);
/** From the Dockerfile. */
const user = 65_532;
const sidecars = ['account-authz', 'envoy', 'drain'];
const authzImage = `ghcr.io/account-authz/account-authz:${version}`;
/** Until SIGTERM, which a first process ignores unless it listens for it. */
const waits =
  "/nodejs/bin/node --eval process.once('SIGTERM', () => process.exit()); setInterval(() => undefined, 1e9)";
const envoyAdmin = 'http://127.0.0.1:9901';

export function podProblems(facts: Facts): string[] {
  const pods = podsOf(facts.manifests);
  return problemsOf([
    [pods.some(pod => containerOf(pod, 'account-authz') !== undefined), 'no pod has an account-authz'],
    ...pods.flatMap(pod => [
      ...startRules(pod),
      ...stopRules(facts, pod),
      ...containersOf(pod).flatMap(container => containerRules(facts, pod, container)),
      ...countRules(facts, pod),
    ]),
    ...autoscalerRules(facts),
  ]);
}

// A plain container starts with all others; a sidecar stops after the containers that follow it.
function startRules(pod: Pod): Rules {
  const native = (pod.spec.initContainers ?? []).map(({ name }) => name);
  const plain = pod.spec.containers.map(({ name }) => name);
  return [
    [native.every(name => sidecars.includes(name)), `${pod.name} waits for a container that never ends`],
    [
      (pod.spec.initContainers ?? []).every(each => each.restartPolicy === 'Always'),
      `${pod.name} has a sidecar that is none`,
    ],
    [native.length < 2 || native[0] !== 'envoy', `account-authz is not the first of ${pod.name}`],
    [pod.spec.securityContext?.fsGroup === user, `${pod.name} gives its files to another group`],
    [new Set([...native, ...plain]).size === native.length + plain.length, `${pod.name} has a container twice`],
  ];
}

function waitOf({ lifecycle }: Container): number {
  const { sleep, exec } = lifecycle?.preStop ?? {};
  return sleep?.seconds ?? Number(exec?.command.at(-1) ?? 0);
}

function stopRules({ config, bootstrap, manifests }: Facts, pod: Pod): Rules {
  const longest = Math.max(...containersOf(pod).map(waitOf));
  const [app, authz, envoy] = ['app', 'account-authz', 'envoy'].map(name => containerOf(pod, name));
  const native = pod.spec.initContainers ?? [];
  const hooks = containersOf(pod).flatMap(each => each.lifecycle?.preStop?.exec?.command.join(' ') ?? []);
  const isDrained = envoy !== undefined;
  const drain = `/nodejs/bin/node /app/dist/main.js drain --envoy-admin ${envoyAdmin} --seconds`;
  // A plain account-authz would end once the connections are closed, before the app.
  const canDrain = [...native, ...containersOf(pod).filter(({ name }) => name === 'drain')].some(
    ({ image, lifecycle }) => image === authzImage && lifecycle?.preStop?.exec !== undefined,
  );
  const isMeshed = manifests.some(({ kind }) => kind === 'EnvoyFilter');
  const admin = at(bootstrap, 'admin', 'address', 'socket_address');
  return [
    [
      pod.spec.terminationGracePeriodSeconds >= longest + config.shutdown.graceSeconds + 5,
      `${pod.name} is killed before it has stopped`,
    ],
    // Without a wait in preStop they would exit while requests still arrive: wait longer than endpoint removal takes.
    [app === undefined || waitOf(app) === 15, 'the app stops before its callers know'],
    [envoy === undefined || waitOf(envoy) === 15, 'Envoy stops before its callers know'],
    [
      authz === undefined || isMeshed || (isDrained && native.includes(authz)) || waitOf(authz) >= 10,
      'account-authz stops before its callers know',
    ],
    [
      isDrained ? canDrain && hooks.join() === `${drain} ${waitOf(envoy)}` : hooks.length === 0,
      'Envoy is not drained, or by a container that cannot drain it',
    ],
    [
      !isDrained || (at(admin, 'address') === '127.0.0.1' && at(admin, 'port_value') === 9901),
      'drain finds no admin of Envoy',
    ],
    // A liveness restart runs preStop: what the drain told Envoy must be taken back.
    [
      authz === undefined || authz.args?.includes('--envoy-admin') === (authz.lifecycle?.preStop?.exec !== undefined),
      'account-authz does not take back its drain, or one of somebody else',
    ],
  ];
}

function optionOf({ args = [] }: Container, name: string): string | undefined {
  return args.includes(name) ? args[args.indexOf(name) + 1] : undefined;
}

function containerRules(facts: Facts, pod: Pod, container: Container): Rules {
  const who = `${pod.name}/${container.name}`;
  const { startupProbe, securityContext = {}, env = [], volumeMounts = [], ports = [] } = container;
  const context = { ...pod.spec.securityContext, ...securityContext };
  const paths = volumeMounts.map(({ mountPath }) => mountPath);
  return [
    // Kubernetes defaults: every 10 s, three times.
    [
      (startupProbe?.periodSeconds ?? 10) * (startupProbe?.failureThreshold ?? 3) >= 30,
      `${who} has too little time to start`,
    ],
    [
      container.livenessProbe === undefined || (container.livenessProbe.timeoutSeconds ?? 1) >= 2,
      `${who} is killed for being slow`,
    ],
    // Otherwise a container that hangs gets the grace period of its pod before it is killed.
    [
      !['account-authz', 'envoy'].includes(container.name) ||
        container.livenessProbe?.terminationGracePeriodSeconds === 5,
      `${who} is away longer than it hangs`,
    ],
    [
      context.runAsUser === user && context.runAsGroup === user,
      `${who} runs as another user than its image and its socket have`,
    ],
    [new Set(env.map(({ name }) => name)).size === env.length, `${who} sets a variable twice`],
    [new Set(ports.map(({ name }) => name)).size === ports.length, `${who} has two ports of one name`],
    [
      volumeMounts.every(each => each.subPath === undefined && each.subPathExpr === undefined),
      `${who} mounts what is never updated`,
    ],
    // The mount point of the inner volume would have to be created in a read-only volume.
    [
      !paths.some(path => paths.some(other => path !== other && path.startsWith(`${other}/`))),
      `${who} mounts in a mount`,
    ],
    [
      (pod.spec.volumes ?? []).length === new Set((pod.spec.volumes ?? []).map(({ name }) => name)).size,
      `${pod.name} has a volume twice`,
    ],
    [
      volumeMounts.every(({ name }) => pod.spec.volumes?.some(volume => volume.name === name)),
      `${who} mounts no volume`,
    ],
    ...programRules(facts, who, container),
  ];
}

const parts: Readonly<Record<string, string>> = { app: 'upstream', 'authentication-service': 'authentication-service' };

function programRules({ bootstrap }: Facts, who: string, container: Container): Rules {
  const { name, image, args = [] } = container;
  if (name === 'account-authz')
    return [
      [image === authzImage, `${who} is not the image of ${version}`],
      [
        args.join(' ').replace(` --envoy-admin ${envoyAdmin}`, '') === `serve --config ${defaultConfigFile}`,
        `${who} is given another command`,
      ],
    ];
  if (name === 'drain')
    return [
      [image === authzImage, `${who} is not the image of ${version}`],
      [container.command?.join(' ') === waits, `${who} does something else than wait`],
    ];
  if (name === 'envoy') {
    const options = [
      '--config-path /etc/envoy/envoy.yaml',
      '--concurrency 2',
      '--disable-hot-restart',
      '--file-flush-interval-msec 1000',
    ];
    const heap = at(bootstrap, 'overload_manager', 'resource_monitors', 'envoy.resource_monitors.fixed_heap');
    const heapBytes = Number(at(heap, 'typed_config', 'max_heap_size_bytes'));
    const limit = bytesOf(container.resources?.limits?.memory);
    return [
      [
        envoyVersions.some(each => image === `docker.io/envoyproxy/envoy:distroless-v${each}`),
        `${who} is no Envoy that was tried`,
      ],
      [args.join(' ') === options.join(' '), `${who} is given another command`],
      [heapBytes <= 0.8 * limit && heapBytes > 0.5 * limit, `${who} has a heap that does not fit its limit`],
      [container.livenessProbe?.httpGet === undefined, `the liveness probe of ${who} fails during a drain`],
    ];
  }
  const [file, part, ...options] = args;
  const isBehindEnvoy = bootstrap !== undefined && name === 'app';
  return [
    [image === `ghcr.io/account-authz/account-authz-demo:${version}`, `${who} is not the image of ${version}`],
    [
      file !== undefined && file !== '' && existsSync(new URL(file, project)),
      `${who} runs ${file}, which is not there`,
    ],
    [part !== undefined && part === parts[name], `${who} is another part of the demo`],
    [
      options.every((option, i) => i % 2 === 1 || ['--listen', '--health'].includes(option)),
      `${who} has options that it does not know`,
    ],
    [
      optionOf(container, '--listen')?.startsWith('127.0.0.1:') === (isBehindEnvoy || name !== 'app'),
      `${who} can be reached past Envoy, or not at all`,
    ],
  ];
}

export function bytesOf(quantity: unknown): number {
  const [, count, unit] = /^(\d+)([KMG]i)$/.exec(String(quantity)) ?? [];
  return Number(count) * 1024 ** (['Ki', 'Mi', 'Gi'].indexOf(unit ?? '') + 1);
}

function countRules({ manifests }: Facts, pod: Pod): Rules {
  const [deployment] = ofKind(manifests, 'Deployment').filter(({ metadata }) => metadata.name === pod.name);
  const scaled = ofKind(manifests, 'HorizontalPodAutoscaler').some(({ spec }) => spec.scaleTargetRef.name === pod.name);
  const budgets = ofKind(manifests, 'PodDisruptionBudget').filter(({ metadata }) => metadata.name === pod.name);
  // Each replica of the demo's authentication service generates its own keys.
  const least = containerOf(pod, 'authentication-service') === undefined ? 2 : 1;
  const replicas = deployment?.spec.replicas;
  return [
    [
      scaled ? replicas === undefined : Number(replicas) >= least,
      `${pod.name} has no number of replicas of its own, or a second one`,
    ],
    [least !== 1 || replicas === 1, `${pod.name} has keys of its own in each replica`],
    [
      at(deployment?.spec, 'strategy', 'rollingUpdate', 'maxUnavailable') === 0,
      `${pod.name} loses a pod while it is rolled`,
    ],
    [Number(at(deployment?.spec, 'strategy', 'rollingUpdate', 'maxSurge')) > 0, `${pod.name} cannot be rolled`],
    [
      budgets.every(
        ({ spec }) => at(spec, 'maxUnavailable') === 1 && at(spec, 'unhealthyPodEvictionPolicy') === 'AlwaysAllow',
      ),
      `the budget of ${pod.name} lets too many go, or none that is broken`,
    ],
  ];
}

function autoscalerRules({ manifests }: Facts): Rules {
  return ofKind(manifests, 'HorizontalPodAutoscaler').flatMap((autoscaler): Rules => {
    const { scaleTargetRef, metrics, minReplicas, maxReplicas } = autoscaler.spec;
    const pod = podsOf(manifests).find(({ name }) => name === scaleTargetRef.name);
    const who = nameOf(autoscaler);
    return [
      [pod !== undefined && autoscaler.metadata.name === pod.name, `${who} scales nothing, or has the name of another`],
      [minReplicas >= 2 && maxReplicas > minReplicas, `${who} does not scale`],
      [metrics.length > 0, `${who} measures nothing`],
      ...metrics.flatMap(({ type, containerResource, resource }): Rules => {
        const measured = containerResource ?? resource;
        const container =
          pod === undefined ? undefined : containerOf(pod, containerResource?.container ?? 'account-authz');
        return [
          [type === (containerResource === undefined ? 'Resource' : 'ContainerResource'), `${who} measures nothing`],
          [
            measured?.name === 'cpu' && container?.resources?.requests?.cpu !== undefined,
            `${who} measures what is not there`,
          ],
          [
            measured?.target.type === 'AverageValue' && measured.target.averageValue !== undefined,
            `${who} has no target`,
          ],
          [
            containerResource !== undefined || pod?.spec.containers.length === 1,
            `${who} measures other containers too`,
          ],
        ];
      }),
    ];
  });
}
