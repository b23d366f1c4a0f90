// Pods that are rolled, deleted, evicted, and containers that are killed or hang, under load.
import { setTimeout as delay } from 'node:timers/promises';
import { kubectl, podsOf, until, untilSettled } from './kubectl.ts';
import {
  authzPods,
  type ClusterRun,
  livenessKills,
  measure,
  noAnswer,
  oneOf,
  only,
  seconds,
  settle,
  untilRestarted,
} from './run.ts';

const unavailable = only(/^503 /);
const unavailableOrRefused = only(
  /^503 |^0 in |ECONNREFUSED|ECONNRESET|socket hang up|NGHTTP2|no answer in time|closed|aborted/,
);

export async function restartSteps(run: ClusterRun): Promise<void> {
  const { workload, authz } = run.deployed;
  for (const each of new Set([workload, authz.workload]))
    for (const turn of ['first', 'second'])
      await rollStep(run, `rolling restart of ${each}, the ${turn}`, 'restart', each);
  if (run.deployed.name === 'envoy-sidecar' || run.deployed.name === 'service')
    await rollStep(run, 'rollout undo', 'undo', authz.workload);
  if (authz.replicas > 1) await deleteAndEvict(run);
  await killAuthz(run);
  await killEnvoy(run);
  // One replica, so that nobody else can answer. Behind a service of its own, another instance does.
  const isAlone = authz.workload === workload && run.deployed.replicas > 1;
  if (isAlone) await scale(run, 1);
  // New pods, so that no back-off of the crashes so far delays the next restart.
  await rollout(run, 'restart', authz.workload);
  await untilSettled(run.deployed.namespace, authz.labels, authz.workload === workload ? 1 : authz.replicas);
  for (const resumes of [true, false]) await hang(run, resumes);
  if (isAlone) await scale(run, run.deployed.replicas);
  if (authz.workload !== workload) await away(run);
}

/** A service of its own can be away altogether. */
async function away(run: ClusterRun): Promise<void> {
  const { namespace, authz } = run.deployed;
  const scaleTo = (replicas: number): Promise<string> =>
    kubectl(['scale', '-n', namespace, `deployment/${authz.workload}`, `--replicas=${replicas}`]);
  await measure(run, {
    what: 'account-authz is scaled to 0, and back after 20 s',
    expected: '503 for everything while no pod is there',
    allows: window => unavailable(window) && window.longestGapSeconds >= 20,
    measured: noAnswer,
    async act() {
      await scaleTo(0);
      await untilSettled(namespace, authz.labels, 0);
      await delay(20_000);
      await scaleTo(authz.replicas);
      await settle(run);
      return { measured: '' };
    },
  });
}

async function scale({ deployed }: ClusterRun, replicas: number): Promise<void> {
  await kubectl(['scale', '-n', deployed.namespace, `deployment/${deployed.workload}`, `--replicas=${replicas}`]);
  await untilSettled(deployed.namespace, deployed.labels, replicas);
}

/** `restart` and `undo` replace every pod of the Deployment. */
async function rollout(run: ClusterRun, kind: 'restart' | 'undo', workload: string): Promise<void> {
  const at = ['-n', run.deployed.namespace, `deployment/${workload}`];
  await kubectl(['rollout', kind, ...at]);
  await kubectl(['rollout', 'status', ...at, '--timeout=240s']);
}

function rollStep(run: ClusterRun, what: string, kind: 'restart' | 'undo', workload: string): Promise<void> {
  return measure(run, {
    what,
    expected: 'nothing lost',
    async act() {
      const startMs = performance.now();
      await rollout(run, kind, workload);
      await settle(run);
      return { measured: seconds((performance.now() - startMs) / 1000) };
    },
  });
}

async function deleteAndEvict(run: ClusterRun): Promise<void> {
  const { namespace, labels, authz } = run.deployed;
  const withApp = run.deployed.replicas > 1 ? [{ who: 'app', which: labels }] : [];
  const alone = authz.labels === labels ? [] : [{ who: 'account-authz', which: authz.labels }];
  for (const { who, which } of [...withApp, ...alone]) {
    for (const how of ['deleted', 'evicted']) {
      await measure(run, {
        what: `a pod with ${who} is ${how}`,
        expected: 'nothing lost',
        async act() {
          const { name } = await oneOf(podsOf(namespace, which));
          const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
          const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`;
          if (how === 'deleted') await kubectl(['delete', 'pod', '-n', namespace, name, '--wait=true']);
          else await kubectl(['create', '--raw', path, '-f', '-'], JSON.stringify(eviction));
          await until(`${name} to be gone`, 90, async () =>
            (await podsOf(namespace, which)).every(pod => pod.name !== name) ? true : undefined,
          );
          await settle(run);
          return { measured: '' };
        },
      });
    }
  }
}

async function killAuthz(run: ClusterRun): Promise<void> {
  const hasOthers = run.deployed.authz.workload !== run.deployed.workload;
  const repeats = run.deployed.name !== 'istio waypoint';
  const isOnly = run.deployed.replicas === 1;
  const crashes = run.deployed.name === 'envoy-sidecar' ? 3 : 1;
  const expectedOfKill = hasOthers
    ? `nothing lost${repeats ? '' : ' but the checks that it held'}`
    : `503 in this pod while it is away${isOnly ? '; refused without a ready pod' : ''}`;
  const pod = await oneOf(authzPods(run));
  for (let crash = 1; crash <= crashes; crash += 1) {
    await measure(run, {
      what: `SIGKILL to account-authz${crashes > 1 ? `, crash ${crash} of one pod` : ''}`,
      expected: expectedOfKill,
      allows: hasOthers && repeats ? undefined : isOnly ? unavailableOrRefused : unavailable,
      measured: noAnswer,
      async act() {
        const [before] = (await authzPods(run)).filter(({ name }) => name === pod.name);
        if (before === undefined) throw new Error(`${pod.name} is gone`);
        await run.agent.signal(before, 'account-authz', 'SIGKILL');
        return { measured: await untilRestarted(run, before, 'account-authz') };
      },
    });
  }
}

async function killEnvoy(run: ClusterRun): Promise<void> {
  await measure(run, {
    what: `SIGKILL to ${run.deployed.envoy === 'envoy' ? 'Envoy' : run.deployed.envoy}`,
    expected: 'what it held, and what comes to this pod while it is away',
    allows: unavailableOrRefused,
    async act() {
      const pod = await oneOf(podsOf(run.deployed.namespace, run.deployed.labels));
      await run.agent.signal(pod, run.deployed.envoy, 'SIGKILL');
      return { measured: await untilRestarted(run, pod, run.deployed.envoy) };
    },
  });
}

/** A process that hangs is found by its liveness probe; it may wake up before SIGTERM, or never. */
async function hang(run: ClusterRun, resumes: boolean): Promise<void> {
  const hasOthers = run.deployed.authz.workload !== run.deployed.workload;
  let away = 0;
  await measure(run, {
    what: `account-authz hangs (SIGSTOP)${resumes ? ' until its liveness probe has failed (SIGCONT)' : ' for good'}${hasOthers ? '' : ', one replica'}`,
    expected: hasOthers ? 'nothing lost but checks in flight' : 'no answer for no longer than account-authz is away',
    allows: window => unavailableOrRefused(window) && window.longestGapSeconds <= (hasOthers ? 2 : away + 1),
    measured: noAnswer,
    async act() {
      const pod = await oneOf(authzPods(run));
      const kills = await livenessKills(run, pod, 'account-authz');
      const startMs = performance.now();
      await run.agent.signal(pod, 'account-authz', 'SIGSTOP');
      await until('a liveness kill', 90, async () =>
        (await livenessKills(run, pod, 'account-authz')) > kills ? true : undefined,
      );
      const killSeconds = (performance.now() - startMs) / 1000;
      // Where the event came late, the kubelet has killed it by now.
      if (resumes) await run.agent.signal(pod, 'account-authz', 'SIGCONT').catch(() => undefined);
      await untilRestarted(run, pod, 'account-authz');
      away = (performance.now() - startMs) / 1000;
      // What a drain left behind in Envoy would show later.
      await delay(20_000);
      await untilSettled(
        run.deployed.namespace,
        run.deployed.authz.labels,
        hasOthers ? run.deployed.authz.replicas : 1,
      );
      return {
        measured: `away for ${seconds(away)}, of which ${seconds(killSeconds)} until the liveness probe had failed`,
      };
    },
  });
}
