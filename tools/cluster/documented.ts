// The kubectl commands of the operations guide, the runbooks and the pages on logs, run on real pods as a reader copies them.
import { setTimeout as delay } from 'node:timers/promises';
import { allPages, commandsOf } from '../../lab/document.ts';
import { hasMetrics, kubectl, podsOf, until } from './kubectl.ts';
import type { ClusterRun } from './run.ts';
import { type Outcome, type Shell, startShell } from './shell.ts';

const exampleId = '6f1c2d6e-8d1f-4a55-9a1e-0d6a54a1c0de';

const followed = /^docs\/(operations|explain|envoy-access-log|shadow-mode|runbooks\/Account\w+)\.md$/;

/** pages.ts deploys and rolls; the rest needs the Prometheus operator, or the other one of mesh and gateway. */
const elsewhere = /egctl|kubectl apply|rollout|gatewayclass/;
const top = /kubectl .*top /;

/** For a deployment in the namespace `subscriptions`, whose names the pages have. */
export async function documentedSteps(run: ClusterRun): Promise<void> {
  const id = await refusedRequest(run);
  const shell = await startShell();
  const isMesh = run.deployed.name === 'istio';
  const isMeasured = await hasMetrics();
  if (isMeasured) await untilMeasured(run);
  try {
    for (const { path, blocks } of allPages()) {
      if (!followed.test(path)) continue;
      const commands = blocks.flatMap(block => commandsOf(block) ?? []);
      const chosen = commands.filter(
        text => text.includes('kubectl') && !elsewhere.test(text) && (isMeasured || !top.test(text)),
      );
      // A mesh has no container of ours for Envoy, and only a mesh has Istio's.
      const known = chosen.filter(text => !(isMesh ? / -c envoy |:9901/ : /istio-proxy/).test(text));
      if (known.length > 0) await runPage(run, shell, path, known, id);
    }
  } finally {
    await shell.stop();
  }
}

async function runPage(run: ClusterRun, shell: Shell, path: string, commands: readonly string[], id: string) {
  const outcomes: Outcome[] = [];
  // The whole id, and not a part of it, which another line may have in another field.
  for (const text of commands)
    outcomes.push(await shell.run(text.replaceAll(exampleId, id).replaceAll(exampleId.slice(0, 6), id)));
  const measured = outcomes.map(each => `exit ${each.code}, ${linesOf(each)} lines`).join('; ');
  const isGood = outcomes.every((outcome, index) => isAsExpected(commands[index] ?? '', outcome));
  run.add({ what: `the commands of ${path}`, expected: 'exit 0; 3 of explain for a refusal', measured, isGood });
}

function isAsExpected(command: string, outcome: Outcome): boolean {
  if (command.includes('account-authz explain')) return outcome.code === 3;
  // Both logs have the line of a refused request, Envoy's a second later.
  return outcome.code === 0 && (!command.startsWith('id=') || linesOf(outcome) === 2);
}

function linesOf({ stdout }: Outcome): number {
  return stdout.split('\n').filter(line => line !== '').length;
}

/** The metrics API knows a pod only some time after its start. */
function untilMeasured({ deployed: { namespace, labels } }: ClusterRun): Promise<string> {
  const command = ['top', 'pod', '-n', namespace, '-l', labels];
  return until('the metrics of every pod', 180, async () => {
    const pods = await podsOf(namespace, labels);
    const lines = await kubectl(command);
    return pods.every(({ name }) => lines.includes(name)) ? lines : undefined;
  });
}

/** The request id in its body, once Envoy has had time to write its line. */
async function refusedRequest({ deployed, load }: ClusterRun): Promise<string> {
  const [pod] = await podsOf(deployed.namespace, deployed.labels);
  const { text } = await load.ask(`http://${pod?.address}:${deployed.port}/api/subscriptions`);
  await delay(1500);
  return JSON.parse(text).request_id;
}
