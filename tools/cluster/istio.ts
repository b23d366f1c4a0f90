// What only a mesh has: calls between its workloads over mutual TLS, ports that no policy opens, policies that check nothing, and the dump of a pod.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { loadConfig } from '../../src/config/load.ts';
import { lintEnvoy } from '../../src/toolkit/lint/lint.ts';
import { inEachPod, shownHeaders } from './answers.ts';
import { askFrom, kubectl, podsOf, until } from './kubectl.ts';
import { type ClusterRun, oneOf } from './run.ts';

const path = '/api/subscriptions/accounts';

/** After the steps of every deployment, with a token of user-alice in the account acme. */
export async function meshSteps(run: ClusterRun, token: string): Promise<void> {
  const authorization = `Bearer ${token}`;
  await callsOverMutualTls(run, authorization);
  await onPort(run, 'the port of the health probes', 8001, '/healthz', '403');
  await onPort(run, 'the metrics of account-authz', 9192, '/metrics', '200');
  await dumpStep(run);
  await policySteps(run, authorization);
}

/** With the check at a gateway or a waypoint. */
export async function gatewaySteps(run: ClusterRun, token: string): Promise<void> {
  const authorization = `Bearer ${token}`;
  // As a waypoint of Istio's own build shows it: istio#59781.
  const twice = 'application/json; charset=utf-8,application/json; charset=utf-8';
  const headers = { authorization, 'content-type': twice };
  await inEachPod(run, 'a content type shown twice, and the account in the query', '200; 403', async url => {
    const accounts = ['acme', 'globex'].map(each => `${url}/api/subscriptions?account_id=${each}`);
    const answers = await Promise.all(accounts.map(each => run.load.ask(each, headers)));
    return answers.map(({ status }) => status).join('; ');
  });
  await policySteps(run, authorization);
}

async function policySteps(run: ClusterRun, authorization: string): Promise<void> {
  const elsewhere = [{ to: [{ operation: { paths: ['/elsewhere'] } }] }];
  await changedPolicy(run, authorization, 'a policy that selects no request for the check', { rules: elsewhere });
  const provider = { name: 'nobody' };
  await changedPolicy(run, authorization, 'a policy with a provider that the mesh does not have', { provider });
}

function onPort(run: ClusterRun, what: string, port: number, path: string, expected: string): Promise<void> {
  return inEachPod(run, what, expected, async url => {
    const { hostname } = new URL(url);
    return String((await run.load.ask(`http://${hostname}:${port}${path}`)).status);
  });
}

/** What istioctl dumps from a pod, as docs/deploy/istio.md says. */
async function dumpStep({ deployed, add }: ClusterRun): Promise<void> {
  const { name } = await oneOf(podsOf(deployed.namespace, deployed.labels));
  const dump = ['proxy-config', 'all', `${name}.${deployed.namespace}`, '-o', 'json'];
  const { stdout } = await promisify(execFile)('istioctl', dump, { maxBuffer: 1 << 26 });
  const loaded = await loadConfig('k8s/overlays/istio/config.yaml', { readsNamedFiles: false });
  if (loaded.kind !== 'config') throw new Error('the configuration of the overlay is not valid');
  const rules = lintEnvoy(JSON.parse(stdout), loaded.config).problems.map(({ rule }) => rule);
  const measured = [...new Set(rules)].join(', ') || 'no finding';
  add({
    what: 'the lint of what istioctl dumps from a pod',
    expected: 'no finding',
    measured,
    isGood: rules.length === 0,
  });
}

/** The caller is the app of a pod: Istio's Envoy in its pod sends what it asks. */
async function callsOverMutualTls(run: ClusterRun, authorization: string): Promise<void> {
  const { namespace, labels, service, workload } = run.deployed;
  const caller = await oneOf(podsOf(namespace, labels));
  const url = `http://${service.name}.${namespace}.svc.cluster.local${path}`;
  const headers = { authorization, 'x-auth-uid': 'root', 'x-auth-role': 'admin' };
  const ask = (account: string) =>
    askFrom(['-n', namespace, caller.name, '-c', 'app'], `${url}/${account}`, { headers });
  const { text } = await ask('acme');
  const seen = shownHeaders(text, /^x-auth-(uid|role)$|^x-forwarded-client-cert$/);
  const identity = `spiffe://cluster.local/ns/${namespace}/sa/${workload}`;
  const measured = [
    /x-auth-uid: [^,]*/.exec(seen)?.[0],
    /x-auth-role: [^,]*/.exec(seen)?.[0],
    seen.includes(`URI=${identity}`) ? `the certificate of ${identity}` : 'no certificate',
    (await ask('globex')).status,
  ].join('; ');
  const expected = `x-auth-uid: user-alice; x-auth-role: owner; the certificate of ${identity}; 403`;
  run.add({
    what: "from a pod of the mesh, over the mesh's mutual TLS, with forged headers: what the app sees, and another account",
    expected,
    measured,
    isGood: measured === expected,
  });
}

/** The CUSTOM policy with a change of its specification refuses a good token too; with its own again, it allows it. */
async function changedPolicy(run: ClusterRun, authorization: string, what: string, change: object): Promise<void> {
  const { namespace, labels, entryLabels = labels, port } = run.deployed;
  const answeredByAll = (status: number): Promise<true> =>
    until(`${status} from every pod`, 60, async () => {
      const pods = await podsOf(namespace, entryLabels);
      const answers = await Promise.all(
        pods.map(({ address }) => run.load.ask(`http://${address}:${port}${path}/acme`, { authorization })),
      );
      return answers.every(answer => answer.status === status) ? true : undefined;
    });
  const name = run.deployed.name === 'istio' ? 'account-authz' : 'edge-account-authz';
  const policy = ['authorizationpolicy', '-n', namespace, name];
  const set = (spec: object): Promise<string> =>
    kubectl(['patch', ...policy, '--type=merge', '-p', JSON.stringify({ spec })]);
  const { spec } = JSON.parse(await kubectl(['get', ...policy, '-o', 'json']));
  await set(change);
  const isGood = await answeredByAll(403).catch(() => false);
  await set(spec);
  await answeredByAll(200);
  const measured = isGood ? '403 for everything' : 'something was allowed';
  run.add({ what, expected: '403 for everything', measured, isGood });
}
