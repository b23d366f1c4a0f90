// What all contenders share: cores, the image's Node, tokens, the issuer's key server, a folder; and a process on the servers' core.
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { freePorts } from '../lab/free-ports.ts';
import { startTestIssuer, type TestIssuer } from '../lab/test-issuer.ts';
import { authorizationService } from '../src/envoy/protocol.ts';
import { ask, cache, checkHeaders, project } from './load.ts';
import { audience, type BenchToken, checkCall, checkPath, createTokens, issuer, type Tokens } from './requests.ts';

const run = promisify(execFile);

export interface Workbench {
  readonly tokens: Tokens;
  readonly issuer: TestIssuer;
  readonly runtime: Runtime;
  /** undefined if processes cannot be pinned: no taskset, or one core. */
  readonly cores: { readonly server: number; readonly load: number } | undefined;
  /** The path of a new file, which is deleted with the workbench. */
  path(name: string): string;
  /** Writes such a file; its path. */
  file(name: string, content: string | Buffer): Promise<string>;
  /** A file for the generator: one Check call for each token of this set. */
  calls(name: TokenSet): Promise<string>;
  stop(): Promise<void>;
}

/** The image's Node, flags and environment, read from the Dockerfile; npm carries Node as a package. */
export interface Runtime {
  readonly node: string;
  readonly version: string;
  readonly flags: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** `known`, `forged`: one token; `rotation`: as many as the cache keeps; `new`: more; `large`: of 180 accounts. */
export type TokenSet = 'known' | 'forged' | 'rotation' | 'new' | 'large';

export interface TokenCounts {
  readonly rotation: number;
  readonly newTokens: number;
  readonly large: number;
}

export async function startWorkbench(counts: TokenCounts, flags?: readonly string[]): Promise<Workbench> {
  const hasTaskset = availableParallelism() > 1 && existsSync('/usr/bin/taskset');
  const cores = hasTaskset ? { server: 1, load: 0 } : undefined;
  const image = await imageRuntime(project);
  // Before it is pinned, which would sign on one core.
  const { rotation, newTokens, large } = counts;
  const tokens = await createTokens(rotation + newTokens, large);
  if (cores !== undefined) await pin(process.pid, cores.load);
  const [directory, keyServer] = await Promise.all([
    mkdtemp(join(tmpdir(), 'account-authz-bench-')),
    startTestIssuer({ keys: [tokens.publicJwk], metadata: { id_token_signing_alg_values_supported: ['RS256'] } }),
  ]);
  const runtime = { ...image, flags: flags ?? image.flags };
  // A start finds what V8 compiled, as in the image.
  await run(runtime.node, [...runtime.flags, join(project, 'dist', 'main.js'), 'serve', '--help'], {
    env: runtime.environment,
  });
  const { good, forged } = tokens;
  const sets: Readonly<Record<TokenSet, readonly BenchToken[]>> = {
    known: good.slice(0, 1),
    forged: [forged],
    rotation: good.slice(0, rotation),
    new: good.slice(rotation),
    large: tokens.large,
  };
  const write = async (name: string, content: string | Buffer): Promise<string> => {
    await writeFile(join(directory, name), content);
    return join(directory, name);
  };
  const files = new Map<TokenSet, Promise<string>>();
  return {
    tokens,
    issuer: keyServer,
    runtime,
    cores,
    path: name => join(directory, name),
    file: write,
    calls(name) {
      const file = files.get(name) ?? write(`${name}.bin`, Buffer.concat(sets[name].map(each => checkCall(each))));
      files.set(name, file);
      return file;
    },
    async stop() {
      await keyServer.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Moves a running process and all its threads. */
export async function pin(pid: number, core: number | undefined): Promise<void> {
  if (core !== undefined) await run('taskset', ['-a', '-p', '-c', String(core), String(pid)]);
}

/** The flags and the environment are those of a checkout's Dockerfile, with a folder of this machine for what V8 compiles. */
export async function imageRuntime(checkout: string): Promise<Runtime> {
  const dockerfile = await readFile(join(checkout, 'Dockerfile'), 'utf8');
  const last = (pattern: RegExp): string => [...dockerfile.matchAll(pattern)].at(-1)?.[1] ?? '';
  const [name, major] = [`node-${process.platform}-${process.arch}`, last(/^ARG RUNTIME_IMAGE=\S*\/nodejs(\d+)-/gm)];
  const folder = join(cache, `node-${major}`);
  const node = join(folder, 'node_modules', name, 'bin', 'node');
  if (!existsSync(node)) {
    await mkdir(folder, { recursive: true });
    const options = ['--no-save', '--no-package-lock', '--ignore-scripts', '--no-audit', '--no-fund'];
    await run('npm', ['install', '--prefix', folder, ...options, `${name}@${major}`]);
  }
  return {
    node,
    version: execFileSync(node, ['--version'], { encoding: 'utf8' }).trim(),
    flags: (JSON.parse(last(/^ENTRYPOINT (\[.*\])$/gm)) as readonly string[]).slice(1, -1),
    environment: {
      ...Object.fromEntries(
        last(/^ENV (.*)$/gm)
          .split(' ')
          .map(each => each.split('=', 2)),
      ),
      NODE_COMPILE_CACHE: join(cache, 'compile-cache'),
    },
  };
}

export interface Server {
  readonly pid: number;
  /** `HOST:PORT` or `unix:PATH`. */
  readonly address: string;
  /** From its spawn to its first answer. */
  readonly startMs: number;
  /** Of account-authz. */
  readonly checkout?: string;
  stop(): Promise<void>;
}

export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

/** On the servers' core, until it answers a good token. It is killed with this process. */
export async function startServer(bench: Workbench, address: string, started: ServerCommand): Promise<Server> {
  const { command, args, environment } = started;
  const core = bench.cores?.server;
  const [program, all] = core === undefined ? [command, args] : ['taskset', ['-c', String(core), command, ...args]];
  const spawnedMs = performance.now();
  // No environment but the image's: with NODE_EXTRA_CA_CERTS, say, Node keeps more certificates.
  const env = { PATH: process.env.PATH, ...environment };
  const child = spawn(program, all, { stdio: ['ignore', 'ignore', 'pipe'], env });
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-4000);
  });
  const exited = once(child, 'exit').then(() => process.off('exit', kill));
  const stop = async (): Promise<void> => {
    kill();
    await exited;
  };
  for (;;) {
    const answer = await askCheck(address, bench.tokens.good[0]).catch(() => undefined);
    if (answer?.code === 0) break;
    if (child.exitCode !== null || performance.now() - spawnedMs > 20_000) {
      await stop();
      throw new Error(`${command} gives no right answer:\n${errors}`);
    }
    await delay(2);
  }
  return { pid: child.pid ?? 0, address, startMs: performance.now() - spawnedMs, stop };
}

/** The code of an answer, its framed bytes, and its message. */
export async function askCheck(address: string, token: BenchToken | undefined, account?: string) {
  if (token === undefined) throw new Error('no token was made');
  const body = checkCall(token, account);
  const answer = await ask(address, { path: checkPath, headers: checkHeaders, body });
  const message = answer.body.subarray(5);
  const { status } = authorizationService.Check.responseDeserialize(message);
  return { code: status?.code ?? 0, framed: answer.body, message };
}

/** The policy, which the peers share. */
const policy = {
  routes: [
    { path: '/api/subscriptions/*' },
    { path: '/api/subscriptions/accounts/:account_id/*' },
    { path: '/api/subscriptions/accounts/:account_id/billing/*', roles: ['owner', 'admin'] },
  ],
  account: { headers: ['x-account-id'], query: ['account_id'] },
  roles: { owner: ['*'], admin: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'], member: ['GET', 'HEAD'] },
};

/** account-authz as built in `checkout`, with these flags for Node. */
export async function startProduct(
  bench: Workbench,
  { checkout = project, socket = false, flags = bench.runtime.flags } = {},
): Promise<Server> {
  const [port = 0, admin = 0] = await freePorts(2);
  const address = socket ? `unix:${bench.path(`${port}.sock`)}` : `127.0.0.1:${port}`;
  const settings = {
    listen: address,
    admin: `127.0.0.1:${admin}`,
    issuers: [{ issuer, audiences: [audience], jwksUrl: bench.issuer.jwksUrl }],
    ...policy,
    cache: { maxTokens: 10_000 },
    // The peers log nothing.
    log: { level: 'info', allowed: false },
  };
  const config = await bench.file(`account-authz-${port}.yaml`, stringify(settings));
  const { node: command, environment } = bench.runtime;
  const args = [...flags, join(checkout, 'dist', 'main.js'), 'serve', '--config', config];
  return { ...(await startServer(bench, address, { command, args, environment })), checkout };
}
