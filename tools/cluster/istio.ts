// What only a mesh has: calls between its workloads over mutual TLS, ports that no policy opens, and a policy that istiod cannot carry out.
import { inEachPod, shownHeaders } from './answers.ts';
import { kubectl, podsOf, until } from './kubectl.ts';
import { type Answer, askProgram } from './load.ts';
import { type ClusterRun, oneOf } from './run.ts';

const path = '/api/subscriptions/accounts';

/** After the steps of every deployment, with a token of user-alice in the account acme. */
export async function meshSteps(run: ClusterRun, token: string): Promise<void> {
  const authorization = `Bearer ${token}`;
  await callsOverMutualTls(run, authorization);
  await inEachPod(run, 'the port of the health probes', '403', async url => {
    const probes = new URL('/healthz', url);
    probes.port = '8001';
    return String((await run.load.ask(probes.href)).status);
  });
  await unknownProvider(run, authorization);
}

/** The caller is the app of a pod: Istio's Envoy in its pod sends what it asks. */
async function callsOverMutualTls(run: ClusterRun, authorization: string): Promise<void> {
  const { namespace, labels, service, workload } = run.deployed;
  const caller = await oneOf(podsOf(namespace, labels));
  const ask = async (account: string): Promise<Answer> => {
    const url = `http://${service.name}.${namespace}.svc.cluster.local${path}/${account}`;
    const headers = { authorization, 'x-auth-uid': 'root', 'x-auth-role': 'admin' };
    const node = ['/nodejs/bin/node', '-e', askProgram, url, JSON.stringify(headers)];
    return JSON.parse(await kubectl(['exec', '-n', namespace, caller.name, '-c', 'app', '--', ...node]));
  };
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

/** The CUSTOM policy names a provider that the mesh does not have. */
async function unknownProvider(run: ClusterRun, authorization: string): Promise<void> {
  const { namespace, labels, port } = run.deployed;
  const answeredByAll = (status: number): Promise<true> =>
    until(`${status} from every pod`, 60, async () => {
      const pods = await podsOf(namespace, labels);
      const answers = await Promise.all(
        pods.map(({ address }) => run.load.ask(`http://${address}:${port}${path}/acme`, { authorization })),
      );
      return answers.every(answer => answer.status === status) ? true : undefined;
    });
  const name = (provider: string): Promise<string> => {
    const patch = JSON.stringify({ spec: { provider: { name: provider } } });
    return kubectl(['patch', 'authorizationpolicy', '-n', namespace, 'account-authz', '--type=merge', '-p', patch]);
  };
  await name('nobody');
  const isGood = await answeredByAll(403).catch(() => false);
  await name('account-authz');
  await answeredByAll(200);
  run.add({
    what: 'a policy with a provider that the mesh does not have',
    expected: '403 for everything',
    measured: isGood ? '403 for everything' : 'something was allowed',
    isGood,
  });
}
