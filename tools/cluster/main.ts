// `npm run cluster`: deploys the product as real pods on the cluster of $KUBECONFIG, puts them under load, and restarts, kills and changes
// what can be. Prints each row, writes docs/dev/cluster.md with --page, and exits with 0 only if every row is as expected.
//   npm run cluster -- [--only NAME]… [--page] [--keep] [--egctl FOLDER] [--istio] [--envoy-gateway] [--network-policies] [--namespace NAME]
// With --egctl, the folder of that program, what Envoy Gateway makes of its overlay runs too. With --istio the overlay for Istio does: the
// cluster has Istio, with injection and with k8s/overlays/istio/mesh-config.yaml in its mesh configuration, and istioctl is on the path. With
// --envoy-gateway the page for Envoy Gateway is followed: the cluster has its controller, which takes an EnvoyPatchPolicy, the addresses of its
// Services can be reached from here, and egctl is on the path.
// With --network-policies the network plugin enforces them, and envoy-sidecar and service show who reaches what.
// Where the cluster has the metrics API, `kubectl top` and the autoscalers are tried as well.
// Needs kubectl, openssl, and in the cluster the two images of docs/deploy/README.md and Envoy's. The nodes must be Linux.
import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { release } from 'node:os';
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
import { documentedSteps } from './documented.ts';
import { gatewayManifests } from './envoy-gateway.ts';
import { meshSteps } from './istio.ts';
import { apply, hasMetrics, kubectl, podsOf } from './kubectl.ts';
import { startClusterLoad } from './load.ts';
import { networkPolicySteps } from './network-policies.ts';
import { type NodeAgent, startNodeAgent } from './node-agent.ts';
import { type PageSection, pageSections, pageSteps } from './pages.ts';
import { lineOf, pageWith, type Row, sectionOf } from './report.ts';
import { restartSteps } from './restarts.ts';
import { authzPods, type ClusterRun, measure, settle } from './run.ts';

const image = 'ghcr.io/account-authz/account-authz-demo:0.1.0';
const page = new URL('../../docs/dev/cluster.md', import.meta.url);

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    page: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    egctl: { type: 'string' },
    istio: { type: 'boolean', default: false },
    'envoy-gateway': { type: 'boolean', default: false },
    'network-policies': { type: 'boolean', default: false },
    namespace: { type: 'string', default: 'account-authz-cluster' },
  },
});
const sections = [...deploymentNames, ...pageSections];
const all = sections
  .filter(name => name !== 'envoy-gateway' || options.egctl !== undefined)
  .filter(name => (name !== 'istio' && name !== 'pages of istio') || options.istio)
  .filter(name => name !== 'pages of envoy-gateway' || options['envoy-gateway']);
const chosen = (options.only ?? all).map(name => {
  const found = sections.find(each => each === name);
  if (found === undefined) throw new Error(`--only ${name}: one of ${sections.join(', ')}`);
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
  for (const name of chosen) {
    if (isPageSection(name)) await pageSteps(name, { authentication, add: adderFor(name) });
    else await runDeployment(name, agent, authentication);
    // A run takes half an hour: what there is survives its end.
    if (options.page) {
      const section = sectionOf(
        rows.filter(({ deployment }) => deployment === name),
        await surroundings(),
      );
      const before = await readFile(page, 'utf8').catch(() => '');
      await writeFile(page, pageWith(before, new Map([[name, section]]), sections));
    }
  }
} finally {
  if (!options.keep) await kubectl(['delete', 'namespace', toolNamespace, agentNamespace, '--wait=false']);
}
const bad = rows.filter(({ isGood }) => !isGood);
say(`${rows.length} rows, ${bad.length} not as expected`);
process.exitCode = bad.length === 0 ? 0 : 1;

function isPageSection(name: DeploymentName | PageSection): name is PageSection {
  return pageSections.some(each => each === name);
}

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
    const authorities = await createAuthorities();
    await deploy(deployed, authentication, add, await certificateSecrets(deployed.namespace, authorities));
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
      if (name === 'istio') {
        await documentedSteps(run);
        await meshSteps(run, token);
      }
      if (name === 'envoy-sidecar') {
        await documentedSteps(run);
        await changeSteps(run);
        await outageSteps(run);
      }
      if (name === 'service') {
        await documentedSteps(run);
        await certificateStep(run, authorities);
      }
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
  let manifests = await manifestsOf(name, authentication);
  if (namespace === 'subscriptions') await kubectl(['apply', '-f', 'k8s/base/namespace.yaml']);
  if (name === 'service' || name === 'envoy-gateway') await apply(certificates);
  if (name === 'envoy-gateway') manifests = await gatewayManifests(manifests, certificates, options.egctl ?? '');
  if (hasRevocationList(name))
    await apply([
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'account-authz-revocation', namespace },
        data: { 'revoked.jsonl': '' },
      },
    ]);
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
    const peaks = await Promise.all(pods.map(pod => run.agent.memoryPeak(pod, container)));
    const limit = pods[0]?.memoryLimits.get(container);
    const peak = Math.max(...peaks) / 1024 ** 2;
    run.add({
      what: `memory peak of ${container}'s cgroup`,
      expected: 'below its limit',
      measured: `${peak.toFixed(0)} MiB, of ${limit} MiB`,
      isGood: limit !== undefined && peak < limit,
    });
  }
}

async function surroundings() {
  const version = JSON.parse(await kubectl(['version', '-o', 'json'])).serverVersion.gitVersion;
  const { items } = JSON.parse(await kubectl(['get', 'nodes', '-o', 'json']));
  const { containerRuntimeVersion } = items[0].status.nodeInfo;
  const cpus = items[0].status.capacity.cpu;
  const { version: product } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'));
  const git = (...args: string[]): string => execFileSync('git', args, { encoding: 'utf8' }).trim();
  return {
    commit: `${git('rev-parse', '--short', 'HEAD')} (${product})`,
    date: new Date().toISOString().slice(0, 10),
    kubernetes: version,
    nodes: `${items.length} node with ${cpus} CPUs, ${containerRuntimeVersion}, Linux ${release()}`,
  };
}
