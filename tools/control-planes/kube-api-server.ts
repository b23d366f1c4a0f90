// A real kube-apiserver on loopback, with its etcd: no kubelet, no controllers. Programs: etcd, kube-apiserver, kubectl.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePorts } from '../../lab/free-ports.ts';

export interface KubeApiServer {
  readonly kubeconfig: string;
  /** Runs kubectl; its output, and whether it exited with 0. */
  kubectl(args: readonly string[], input?: string): Promise<Outcome>;
  /** Like `kubectl`, but throws on a failure. */
  must(args: readonly string[], input?: string): Promise<string>;
  stop(): Promise<void>;
}

export interface Outcome {
  readonly ok: boolean;
  readonly output: string;
}

export async function startKubeApiServer(programs: string): Promise<KubeApiServer> {
  const directory = await mkdtemp(join(tmpdir(), 'kube-'));
  const [etcdPort = 0, peerPort = 0, port = 0] = await freePorts(3);
  const children: ChildProcess[] = [];
  const start = (program: string, args: readonly string[]): void => {
    const child = spawn(join(programs, program), args, { stdio: 'ignore' });
    process.once('exit', () => child.kill('SIGKILL'));
    children.push(child);
  };
  const file = (name: string): string => join(directory, name);
  const token = randomBytes(16).toString('hex');
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  await writeFile(file('sa.key'), privateKey.export({ type: 'pkcs1', format: 'pem' }));
  await writeFile(file('tokens.csv'), `${token},admin,admin,system:masters\n`, { mode: 0o600 });
  await writeFile(file('kubeconfig'), JSON.stringify(kubeconfig(port, token)), { mode: 0o600 });
  start('etcd', [
    ...['--data-dir', file('etcd'), '--unsafe-no-fsync', '--log-level', 'error'],
    ...['--listen-client-urls', local(etcdPort), '--advertise-client-urls', local(etcdPort)],
    ...['--listen-peer-urls', local(peerPort), '--initial-advertise-peer-urls', local(peerPort)],
    ...['--initial-cluster', `default=${local(peerPort)}`],
  ]);
  start('kube-apiserver', [
    ...['--etcd-servers', local(etcdPort), '--bind-address', '127.0.0.1', '--advertise-address', '127.0.0.1'],
    ...['--secure-port', String(port), '--cert-dir', file('certificates'), '--endpoint-reconciler-type', 'none'],
    ...['--service-cluster-ip-range', '10.0.0.0/24', '--authorization-mode', 'RBAC'],
    ...['--token-auth-file', file('tokens.csv'), '--disable-admission-plugins', 'ServiceAccount'],
    ...['--service-account-issuer', 'https://kubernetes.default.svc', '--service-account-key-file', file('sa.key')],
    ...['--service-account-signing-key-file', file('sa.key')],
  ]);
  const kubectl = (args: readonly string[], input = ''): Promise<Outcome> =>
    new Promise(resolve => {
      const command = ['--kubeconfig', file('kubeconfig'), ...args];
      const child = execFile(join(programs, 'kubectl'), command, { maxBuffer: 1 << 26 }, (error, stdout, stderr) =>
        resolve({ ok: error === null, output: stdout + stderr }),
      );
      child.stdin?.end(input);
    });
  const stop = async (): Promise<void> => {
    for (const child of children.reverse()) {
      const ended = new Promise(resolve => child.once('exit', resolve));
      child.kill('SIGTERM');
      await Promise.race([ended, delay(10_000).then(() => child.kill('SIGKILL'))]);
    }
    await rm(directory, { recursive: true, force: true });
  };
  const deadline = performance.now() + 120_000;
  while (!(await kubectl(['get', 'namespace', 'default'])).ok) {
    if (performance.now() > deadline) throw new Error('kube-apiserver is not ready after 120 s');
    await delay(500);
  }
  return {
    kubeconfig: file('kubeconfig'),
    kubectl,
    async must(args, input) {
      const { ok, output } = await kubectl(args, input);
      if (!ok) throw new Error(`kubectl ${args.join(' ')}:\n${output}`);
      return output;
    },
    stop,
  };
}

function local(port: number): string {
  return `http://127.0.0.1:${port}`;
}

function kubeconfig(port: number, token: string): unknown {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: `https://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'u', user: { token } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
}
