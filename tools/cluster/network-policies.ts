// The network policies of the overlays, on a cluster whose network plugin enforces them: who reaches which port, and what a pod may call.
import { apply, kubectl, podsOf, programPod, until, untilSettled } from './kubectl.ts';
import { authzPods, type ClusterRun, oneOf } from './run.ts';

/** ADDRESS PORT: `node -e` in a pod; prints whether a TCP connection comes about. */
const connectProgram = `
const [host, port] = process.argv.slice(1);
const socket = require('node:net').connect({ host, port, timeout: 3000 });
const end = text => { console.log(text); process.exit(); };
socket.once('connect', () => end('open')).once('timeout', () => end('closed')).once('error', () => end('closed'));
`;

interface Caller {
  readonly what: string;
  /** kubectl's name for it, with namespace and container. */
  readonly at: readonly string[];
}

interface Way {
  readonly from: Caller;
  readonly what: string;
  readonly address: string;
  readonly port: number;
  readonly expected: 'open' | 'closed';
}

export interface PolicyTools {
  readonly namespace: string;
  readonly image: string;
}

const monitoring = 'monitoring';

/** For envoy-sidecar and service. */
export async function networkPolicySteps(run: ClusterRun, tools: PolicyTools): Promise<void> {
  const { namespace, labels, authz } = run.deployed;
  const hadMonitoring = await kubectl(['get', 'namespace', monitoring]).then(
    () => true,
    () => false,
  );
  if (!hadMonitoring) await apply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: monitoring } }]);
  const program = "import { createServer } from 'node:net'; createServer().listen(9192);";
  await apply(programPod({ name: 'scraper', namespace: monitoring, image: tools.image, program }));
  try {
    const [open] = await untilSettled(monitoring, 'app=scraper', 1);
    const [workload, decider] = [await oneOf(podsOf(namespace, labels)), await oneOf(authzPods(run))];
    const stranger = { what: 'another namespace', at: ['-n', tools.namespace, 'deployment/load'] };
    const scraper = { what: 'the namespace monitoring', at: ['-n', monitoring, 'deployment/scraper'] };
    const app = { what: 'the app', at: ['-n', namespace, workload.name, '-c', 'app'] };
    const issuer = `authentication.${tools.namespace}.svc.cluster.local`;
    const ways: Way[] = [
      { from: stranger, what: 'Envoy', address: workload.address, port: 8080, expected: 'open' },
      { from: stranger, what: 'the health of the app', address: workload.address, port: 8001, expected: 'closed' },
      { from: stranger, what: 'the metrics', address: decider.address, port: 9192, expected: 'closed' },
      { from: scraper, what: 'the metrics', address: decider.address, port: 9192, expected: 'open' },
      { from: app, what: 'another port of another pod', address: open?.address ?? '', port: 9192, expected: 'closed' },
    ];
    const asked = { what: 'the port for checks', address: decider.address, port: 9191 };
    if (authz.workload !== run.deployed.workload)
      ways.push(
        { ...asked, from: stranger, expected: 'closed' },
        { ...asked, from: app, expected: 'open' },
        { from: app, what: 'the authentication service', address: issuer, port: 443, expected: 'closed' },
      );
    else ways.push({ from: app, what: 'the authentication service', address: issuer, port: 443, expected: 'open' });
    for (const way of ways) await wayStep(run, way);
  } finally {
    await kubectl(['delete', '-n', monitoring, 'deployment/scraper', 'secret/scraper']);
    if (!hadMonitoring) await kubectl(['delete', 'namespace', monitoring, '--wait=false']);
  }
}

/** Policies are in force a moment after a pod has its address. */
async function wayStep(run: ClusterRun, { from, what, address, port, expected }: Way): Promise<void> {
  const node = ['/nodejs/bin/node', '-e', connectProgram, address, String(port)];
  const connect = async (): Promise<string> => (await kubectl(['exec', ...from.at, '--', ...node])).trim();
  const measured = await until('the policy in force', 20, async () =>
    (await connect()) === expected ? expected : undefined,
  ).catch(connect);
  const isGood = measured === expected;
  run.add({ what: `network policy: from ${from.what} to ${what}, port ${port}`, expected, measured, isGood });
}
