// `npm run cluster`: deploys the product as real pods on the cluster of $KUBECONFIG, puts them under load, and restarts, kills and changes
// what can be. Prints each row, and exits with 0 only if every row is as expected.
//   npm run cluster -- [--only NAME]… [--keep] [--istio] [--network-policies] [--namespace NAME]
// With --istio the overlay for Istio runs too, and a gateway and a waypoint with the check: the cluster has Istio with injection, ambient mode
// and the Gateway API, its mesh configuration gets what `render istio` prints, and istioctl is on the path.
// With --network-policies the network plugin enforces them, and envoy-sidecar and service show who reaches what.
// Where the cluster has the metrics API, `kubectl top` and the autoscalers are tried as well.
// Needs kubectl, and in the cluster the two images of docs/deploy/README.md and Envoy's. The nodes must be Linux.
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Order } from '../../lab/load.ts';
import { answerSteps, quickstartToken } from './answers.ts';
import { type Authentication, startAuthentication } from './authentication.ts';
import { autoscalingSteps } from './autoscaling.ts';
import { certificateSecrets, certificateStep, changeSteps, createAuthorities, outageSteps } from './changes.ts';
import {
  type Deployed,
  type DeploymentName,
  deploymentNames,
  describeDeployment,
  hasRevocationList,
  manifestsOf,
} from './deployments.ts';
import { gatewaySteps, meshSteps } from './istio.ts';
import { apply, hasMetrics, kubectl, podsOf } from './kubectl.ts';
import { startClusterLoad } from './load.ts';
import { networkPolicySteps } from './network-policies.ts';
import { type NodeAgent, startNodeAgent } from './node-agent.ts';
import { restartSteps } from './restarts.ts';
import { authzPods, type ClusterRun, lineOf, measure, type Row, settle } from './run.ts';

const image = 'ghcr.io/account-authz/account-authz-demo:0.1.0';

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    keep: { type: 'boolean', default: false },
    istio: { type: 'boolean', default: false },
    'network-policies': { type: 'boolean', default: false },
    namespace: { type: 'string', default: 'account-authz-cluster' },
  },
});
const all = deploymentNames.filter(name => !name.startsWith('istio') || options.istio);
const chosen = (options.only ?? all).map(name => {
  const found = deploymentNames.find(each => each === name);
  if (found === undefined) throw new Error(`--only ${name}: one of ${deploymentNames.join(', ')}`);
  return found;
});

/** Each pod of the quickstart has an authentication service with keys of its own, so a token does not outlive its pod. */
const refusedOrders: readonly Order[] = [
  { path: '/api/subscriptions', status: 401 },
  { path: '/api/subscriptions/accounts/acme', token: 'no.such.token', status: 401 },
];

/** For the load and the authentication service; the agents of the nodes have one beside it, because they are not restricted. */
const toolNamespace = options.namespace;
const agentNamespace = `${toolNamespace}-agent`;
const rows: Row[] = [];
const startMs = performance.now();
const say = (text: string): void => {
  process.stdout.write(`${((performance.now() - startMs) / 1000).toFixed(0).padStart(5)} s  ${text}\n`);
};

// Those of a run before may still be on their way out.
await kubectl(['delete', 'namespace', toolNamespace, agentNamespace, '--ignore-not-found', '--wait=true']);
const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
await apply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: toolNamespace, labels } }]);
const agent = await startNodeAgent(agentNamespace, image);
const authentication = await startAuthentication(toolNamespace, image);
try {
  for (const name of chosen) await runDeployment(name, agent, authentication);
} finally {
  if (!options.keep) await kubectl(['delete', 'namespace', toolNamespace, agentNamespace, '--wait=false']);
}
const bad = rows.filter(({ isGood }) => !isGood);
say(`${rows.length} rows, ${bad.length} not as expected`);
process.exitCode = bad.length === 0 ? 0 : 1;

function adderFor(deployment: string): ClusterRun['add'] {
  say(deployment);
  return row => {
    rows.push({ deployment, ...row });
    say(lineOf({ deployment, ...row }));
  };
}

async function runDeployment(name: DeploymentName, agent: NodeAgent, authentication: Authentication): Promise<void> {
  const deployed = describeDeployment(name);
  const add = adderFor(name);
  await kubectl(['delete', 'namespace', deployed.namespace, '--ignore-not-found', '--wait=true']);
  try {
    const authorities = createAuthorities();
    await deploy(deployed, authentication, add, certificateSecrets(deployed.namespace, authorities));
    const isQuickstart = name === 'quickstart';
    const token = isQuickstart ? await quickstartToken(deployed.namespace) : await authentication.sign({});
    const service = { ...deployed.service, namespace: deployed.namespace };
    const orders = isQuickstart ? refusedOrders : ordersFor(token);
    const load = await startClusterLoad({ namespace: toolNamespace, image, service, orders });
    const run: ClusterRun = { deployed, load, agent, authentication, add };
    try {
      await answerSteps(run, token);
      const isSidecarOrService = name === 'envoy-sidecar' || name === 'service';
      if (isSidecarOrService && options['network-policies'])
        await networkPolicySteps(run, { namespace: toolNamespace, image });
      if (name === 'istio') await meshSteps(run, token);
      if (name === 'istio gateway' || name === 'istio waypoint') await gatewaySteps(run, token);
      if (name === 'envoy-sidecar') {
        await changeSteps(run);
        await outageSteps(run);
      }
      if (name === 'service') await certificateStep(run, authorities);
      if (isSidecarOrService && (await hasMetrics())) await autoscalingSteps(run);
      await steadySteps(run);
      await restartSteps(run);
    } finally {
      await load.stop();
    }
  } catch (error) {
    add({ what: 'the run', expected: 'ends', measured: String(error), isGood: false });
  } finally {
    if (!options.keep) await kubectl(['delete', 'namespace', deployed.namespace, '--ignore-not-found', '--wait=true']);
  }
}

async function deploy(
  deployed: Deployed,
  authentication: Authentication,
  add: ClusterRun['add'],
  certificates: readonly object[],
): Promise<void> {
  const { name, namespace } = deployed;
  const manifests = await manifestsOf(name, authentication);
  if (namespace === 'subscriptions') await kubectl(['create', 'namespace', namespace, '--save-config']);
  if (name === 'service') await apply(certificates);
  const list = ['account-authz-revocation', '--from-literal=revoked.jsonl='];
  if (hasRevocationList(name)) await kubectl(['create', 'configmap', '-n', namespace, ...list]);
  const beforeMs = performance.now();
  const warnings = await apply(manifests);
  await settle({ deployed });
  const measured = `ready after ${((performance.now() - beforeMs) / 1000).toFixed(1)} s; warnings of the API server: ${warnings.length}`;
  add({ what: 'deployed', expected: 'every pod ready; no warning', measured, isGood: warnings.length === 0 });
}

/** An allow and two refusals in turn, which only a working account-authz gives. */
function ordersFor(token: string): readonly Order[] {
  return [
    { path: '/api/subscriptions/accounts/acme', token, status: 200 },
    { path: '/api/subscriptions', token, status: 200 },
    { path: '/api/subscriptions/accounts/globex', token, status: 403 },
    { path: '/api/subscriptions', status: 401 },
  ];
}

/** Before a restart sets the peaks back. */
async function steadySteps(run: ClusterRun): Promise<void> {
  const { namespace, labels, envoy } = run.deployed;
  await measure(run, {
    what: 'steady for 20 s',
    expected: 'nothing lost',
    act: () => delay(20_000, { measured: '' }),
  });
  for (const container of ['account-authz', envoy]) {
    const pods = container === envoy ? await podsOf(namespace, labels) : await authzPods(run);
    const all = await Promise.all(pods.map(pod => run.agent.memory(pod, container)));
    const peak = Math.max(...all.map(each => each.peak));
    const limit = Math.min(...all.map(each => each.limit));
    run.add({
      what: `memory peak of ${container}'s cgroup`,
      expected: 'below its limit',
      measured: `${peak.toFixed(0)} MiB, of ${limit} MiB`,
      isGood: peak < limit && limit <= 1024,
    });
  }
}
