// A configuration, a revocation list, a certificate and an authentication service that change under load, in running pods.
import { testCertificate } from '../../lab/test-certificate.ts';
import { apply, askFrom, kubectl, type PodState, podsOf, until } from './kubectl.ts';
import { authzPods, type ClusterRun, measure, seconds, settle } from './run.ts';

/** For the overlay envoy-sidecar, whose configuration has a stable name here. */
export async function changeSteps(run: ClusterRun): Promise<void> {
  const { authentication, deployed } = run;
  const { namespace } = deployed;
  const [other, revoked] = await Promise.all([
    authentication.sign({ app: 'other-app' }),
    authentication.sign({ jti: 'to-be-revoked' }),
  ]);
  const configOf = async (): Promise<string> =>
    JSON.parse(await kubectl(['get', 'configmap', '-n', namespace, 'account-authz-config', '-o', 'json'])).data[
      'config.yaml'
    ];
  const original = await configOf();
  const configure = (text: string): Promise<string> =>
    patchMap(namespace, 'account-authz-config', { 'config.yaml': text });

  await measure(run, {
    what: 'the configuration changes (apps), and the kubelet is told by an annotation',
    expected: 'in force in every pod, nothing lost',
    async act() {
      await configure(`${original}apps: [web-app]\n`);
      return { measured: `in force after ${seconds(await untilAnswered(run, other, 403))}` };
    },
  });
  await measure(run, {
    what: 'the configuration becomes bad (unknown key)',
    expected: 'refused and counted by every pod, nothing lost',
    async act() {
      await configure(`${original}apps: [web-app]\nnonsense: 1\n`);
      const after = await untilEachPod(run, async pod =>
        /config_reloads_total\{result="failure"} [1-9]/.test(await pageOf(run, pod, '9192/metrics')),
      );
      return { measured: `counted after ${seconds(after)}` };
    },
  });
  await measure(run, {
    what: 'the old configuration comes back',
    expected: 'in force in every pod, nothing lost',
    async act() {
      await configure(original);
      return { measured: `in force after ${seconds(await untilAnswered(run, other, 200))}` };
    },
  });
  await measure(run, {
    what: 'a token is revoked, as docs/revocation.md says',
    expected: '401 in every pod, nothing else lost',
    async act() {
      await patchMap(namespace, 'account-authz-revocation', { 'revoked.jsonl': '{"jti":"to-be-revoked"}\n' });
      return { measured: `in force after ${seconds(await untilAnswered(run, revoked, 401))}` };
    },
  });
}

/** The certificate of account-authz and that of its callers, each by the same authority as before. */
export async function certificateStep(run: ClusterRun, authorities: Authorities): Promise<void> {
  const { namespace, labels } = run.deployed;
  await measure(run, {
    what: 'the certificates of account-authz and of its callers are renewed',
    expected: 'picked up by both, nothing lost',
    async act() {
      const before = await renewals(run);
      await apply(certificateSecrets(namespace, authorities));
      for (const kind of [labels, run.deployed.authz.labels]) await touch(namespace, kind);
      const startMs = performance.now();
      const logged = await untilEachPod(run, async ({ name }) => {
        const log = await kubectl(['logs', '-n', namespace, name, '-c', 'account-authz', '--tail=-1']);
        return log.includes('"tls files reloaded"');
      });
      await until('a new client certificate in Envoy', 120, async () => {
        const counts = await renewals(run);
        return before.every((count, index) => Number(counts[index]) > count) ? true : undefined;
      });
      const all = (performance.now() - startMs) / 1000;
      return { measured: `account-authz after ${seconds(logged)}, Envoy after ${seconds(all)}` };
    },
  });
}

export interface Authorities {
  readonly server: ReturnType<typeof testCertificate>;
  readonly client: ReturnType<typeof testCertificate>;
}

export function createAuthorities(): Authorities {
  const authority = (name: string) => testCertificate({ name, isAuthority: true, addresses: [] });
  return { server: authority('servers of a cluster run'), client: authority('callers of a cluster run') };
}

/** New certificates of both sides, as the Secrets of docs/deploy/service.md. */
export function certificateSecrets(namespace: string, { server, client }: Authorities): readonly object[] {
  const secret = (name: string, dnsName: string, own: Authorities['server'], peers: Authorities['server']): object => {
    const { cert, key } = testCertificate({ name: dnsName, dnsNames: [dnsName], addresses: [], authority: own });
    return {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace },
      type: 'kubernetes.io/tls',
      data: { 'tls.crt': base64(cert), 'tls.key': base64(key), 'ca.crt': base64(peers.cert) },
    };
  };
  return [
    secret('account-authz-tls', 'account-authz', server, client),
    secret('account-authz-client-tls', 'envoy', client, server),
  ];
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

export async function outageSteps(run: ClusterRun): Promise<void> {
  const { namespace, workload, labels, replicas } = run.deployed;
  await measure(run, {
    what: 'the authentication service goes away, and a rollout begins meanwhile',
    expected: 'nothing lost; the old pods stay ready, the new one does not become ready',
    async act() {
      const old = new Set((await podsOf(namespace, labels)).map(({ name }) => name));
      await run.authentication.scale(0);
      await kubectl(['rollout', 'restart', '-n', namespace, `deployment/${workload}`]);
      const rollout = ['rollout', 'status', '-n', namespace, `deployment/${workload}`, '--timeout=30s'];
      const isOver = await kubectl(rollout).then(
        () => true,
        () => false,
      );
      const pods = await podsOf(namespace, labels);
      const ready = [true, false].map(isOld => {
        const those = pods.filter(({ name }) => old.has(name) === isOld);
        return `${those.filter(({ isReady }) => isReady).length} of ${those.length}`;
      });
      return {
        measured: `ready after 30 s: ${ready[0]} old pods, ${ready[1]} new`,
        isGood: !isOver && String(ready) === `${replicas} of ${replicas},0 of 1`,
      };
    },
  });
  await measure(run, {
    what: 'the authentication service comes back',
    expected: 'the rollout completes, nothing lost',
    async act() {
      const startMs = performance.now();
      await run.authentication.scale(1);
      await kubectl(['rollout', 'status', '-n', namespace, `deployment/${workload}`, '--timeout=240s']);
      await settle(run);
      return { measured: `complete after ${seconds((performance.now() - startMs) / 1000)}` };
    },
  });
}

async function patchMap(namespace: string, name: string, data: Readonly<Record<string, string>>): Promise<string> {
  await kubectl(['patch', 'configmap', '-n', namespace, name, '--type=merge', '-p', JSON.stringify({ data })]);
  return touch(namespace, 'account-authz/mode');
}

/** A change of a pod's annotation makes its kubelet look at the volumes at once, and not only about once a minute. */
function touch(namespace: string, labels: string): Promise<string> {
  return kubectl(['annotate', 'pods', '-n', namespace, '-l', labels, `touched=${Date.now()}`, '--overwrite']);
}

async function untilEachPod(run: ClusterRun, holds: (pod: PodState) => Promise<boolean>): Promise<number> {
  const startMs = performance.now();
  await until('the change in every pod', 120, async () => {
    const all = await Promise.all((await authzPods(run)).map(holds));
    return all.length > 0 && all.every(each => each) ? true : undefined;
  });
  return (performance.now() - startMs) / 1000;
}

function untilAnswered(run: ClusterRun, token: string, status: number): Promise<number> {
  const path = '/api/subscriptions/accounts/acme';
  return untilEachPod(run, async ({ address }) => {
    const url = `http://${address}:${run.deployed.port}${path}`;
    return (await run.load.ask(url, { authorization: `Bearer ${token}` })).status === status;
  });
}

/** What a port of a pod's loopback shows. */
async function pageOf({ deployed }: ClusterRun, { name }: PodState, page: string): Promise<string> {
  return (await askFrom(['-n', deployed.namespace, name, '-c', 'app'], `http://127.0.0.1:${page}`)).text;
}

/** For each pod of the workload: how often Envoy has taken certificates from its files. */
async function renewals(run: ClusterRun): Promise<readonly number[]> {
  const pods = await podsOf(run.deployed.namespace, run.deployed.labels);
  const stats = await Promise.all(pods.map(pod => pageOf(run, pod, '9901/stats?filter=ssl_context_update_by_sds')));
  return stats.map(each => Number(/: (\d+)/.exec(each)?.[1] ?? 0));
}
