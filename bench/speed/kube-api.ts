// A Kubernetes API and nothing behind it, for a peer that takes its policy from there only: etcd and kube-apiserver on loopback, with
// no kubelet, controller or scheduler. All that they write is in one folder.
import { generateKeyPair, randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Agent, request } from 'undici';
import { freePorts } from '../../test/support/envoy.ts';
import { type PinnedProcess, type ProgramCommand, startPinnedProcess } from './pinned-process.ts';

export interface KubeTools {
  readonly etcd: string;
  readonly apiServer: string;
}

export interface KubeApi {
  /** The path of a kubeconfig that may do everything. */
  readonly kubeconfig: string;
  /** Makes the object once the API knows its kind. `path`: of the collection. */
  create(path: string, object: object): Promise<void>;
  /** From now on it answers nothing and takes no CPU time. */
  freeze(): void;
  stop(): Promise<void>;
}

interface Ports {
  readonly api: number;
  readonly etcd: number;
  readonly etcdPeer: number;
}

interface KubeAnswer {
  /** 0 where there was none. */
  readonly status: number;
  readonly text: string;
}

const startLimitMs = 120_000;

export async function startKubeApi(tools: KubeTools, core: number | undefined, directory: string): Promise<KubeApi> {
  const [api = 0, etcd = 0, etcdPeer = 0] = await freePorts(3);
  const ports: Ports = { api, etcd, etcdPeer };
  const url = `https://127.0.0.1:${api}`;
  const token = randomBytes(16).toString('hex');
  const kubeconfig = join(directory, 'kubeconfig');
  await mkdir(directory, { recursive: true });
  await Promise.all([
    writeFile(join(directory, 'tokens.csv'), `${token},bench,bench,system:masters\n`, { mode: 0o600 }),
    writeFile(join(directory, 'service-accounts.pem'), await signingKey(), { mode: 0o600 }),
    writeFile(kubeconfig, JSON.stringify(kubeconfigOf(url, token, certificateIn(directory))), { mode: 0o600 }),
  ]);

  const programs: PinnedProcess[] = [];
  const beganMs = performance.now();
  let dispatcher: Agent | undefined;

  async function ask(method: 'GET' | 'POST', path: string, body?: object): Promise<KubeAnswer> {
    try {
      // The server makes its certificate itself before it listens.
      dispatcher ??= new Agent({ connect: { ca: await readFile(certificateIn(directory)) } });
      const { statusCode, body: answer } = await request(url + path, {
        method,
        dispatcher,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: body === undefined ? null : JSON.stringify(body),
      });
      return { status: statusCode, text: await answer.text() };
    } catch (error) {
      return { status: 0, text: error instanceof Error ? error.message : String(error) };
    }
  }

  /** Until it is no more one of the answers that pass by themselves. */
  async function askUntil(isPassing: (status: number) => boolean, ...asked: Parameters<typeof ask>): Promise<void> {
    for (;;) {
      const { status, text } = await ask(...asked);
      if (status >= 200 && status < 300) return;
      const ended = programs.find(program => program.hasEnded());
      if (ended !== undefined) throw new Error(`the Kubernetes API has ended:\n${ended.errors()}`);
      if (!isPassing(status) || performance.now() - beganMs > startLimitMs)
        throw new Error(`the Kubernetes API answers ${status} to ${asked[0]} ${asked[1]}: ${text.slice(0, 1000)}`);
      await delay(100);
    }
  }

  async function stop(): Promise<void> {
    await Promise.all(programs.map(program => program.stop()));
    await dispatcher?.destroy();
  }

  try {
    for (const command of [etcdCommand(tools.etcd, ports, directory), apiCommand(tools.apiServer, ports, directory)])
      programs.push(await startPinnedProcess(command, core));
    await askUntil(() => true, 'GET', '/readyz');
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    kubeconfig,
    // 404 until the API serves the kind, which is a while after its definition is there.
    create: (path, object) => askUntil(status => status === 0 || status === 404 || status >= 500, 'POST', path, object),
    freeze() {
      for (const program of programs) program.signal('SIGSTOP');
    },
    stop,
  };
}

function etcdCommand(command: string, { etcd, etcdPeer }: Ports, directory: string): ProgramCommand {
  const [clients, peers] = [`http://127.0.0.1:${etcd}`, `http://127.0.0.1:${etcdPeer}`];
  return {
    command,
    args: [
      `--data-dir=${join(directory, 'etcd')}`,
      '--unsafe-no-fsync',
      '--log-level=error',
      `--listen-client-urls=${clients}`,
      `--advertise-client-urls=${clients}`,
      `--listen-peer-urls=${peers}`,
      `--initial-advertise-peer-urls=${peers}`,
      `--initial-cluster=default=${peers}`,
    ],
  };
}

function apiCommand(command: string, { api, etcd }: Ports, directory: string): ProgramCommand {
  const key = join(directory, 'service-accounts.pem');
  return {
    command,
    args: [
      `--etcd-servers=http://127.0.0.1:${etcd}`,
      '--bind-address=127.0.0.1',
      '--advertise-address=127.0.0.1',
      `--secure-port=${api}`,
      `--cert-dir=${directory}`,
      '--endpoint-reconciler-type=none',
      '--service-cluster-ip-range=10.0.0.0/24',
      '--authorization-mode=AlwaysAllow',
      `--token-auth-file=${join(directory, 'tokens.csv')}`,
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${key}`,
      `--service-account-signing-key-file=${key}`,
    ],
  };
}

/** Where --cert-dir puts it. */
function certificateIn(directory: string): string {
  return join(directory, 'apiserver.crt');
}

async function signingKey(): Promise<string> {
  const { privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

function kubeconfigOf(server: string, token: string, certificateAuthority: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'bench', cluster: { server, 'certificate-authority': certificateAuthority } }],
    users: [{ name: 'bench', user: { token } }],
    contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench' } }],
    'current-context': 'bench',
  };
}
