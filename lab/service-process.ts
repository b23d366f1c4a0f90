// The built product in a process of its own, as an operator runs it: `node dist/main.js serve --config FILE`.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { builtFile } from './built.ts';
import { killAtExit } from './child-process.ts';
import { secrets } from './secrets.ts';

/** One line of the product's log. */
export type LogLine = Readonly<Record<string, unknown>>;

export interface ServiceProcess {
  readonly pid: number;
  /** The address for Envoy's cluster: `127.0.0.1:PORT` or `unix:PATH`. */
  readonly address: string;
  readonly adminPort: number;
  log(): readonly LogLine[];
  /** Waits for the log line of one check. */
  logLine(requestId: string): Promise<LogLine>;
  /** Replaces the configuration file atomically, by a configuration or by a text. */
  configure(config: Readonly<Record<string, unknown>> | string): Promise<void>;
  /** SIGHUP. */
  hangUp(): void;
  /** Standard error so far. */
  errorLog(): string;
  /** Waits until it exits by itself and its log is read to the end; the exit code. */
  exitCode(): Promise<number | null>;
  /** The same without reading the log. */
  exited(): Promise<number | null>;
  /** Stops reading its log; `closed` also closes the pipe. */
  leaveLog(how: 'open' | 'closed'): void;
  /** Sends SIGTERM; the exit code. */
  stop(): Promise<number | null>;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** SIGSTOP: the process exists but answers nothing. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
}

export interface ServiceProcessOptions {
  /** Whether to wait for readiness, which needs keys; default true. */
  readonly ready?: boolean;
  /** Options for Node, for example `--import`. */
  readonly nodeOptions?: readonly string[];
  /** Further command-line arguments. */
  readonly arguments?: readonly string[];
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** An existing file to use instead of a written one. */
  readonly file?: string;
  /** False discards the log, because reading it would take CPU from a measured process. Needs fixed ports and no wait for log lines. */
  readonly readsLog?: boolean;
}

/** Writes the configuration to a file and runs the product with it; ports may be 0. */
export async function startServiceProcess(
  config: Readonly<Record<string, unknown>>,
  options: ServiceProcessOptions = {},
): Promise<ServiceProcess> {
  const { ready = true, nodeOptions = [], arguments: more = [], env = {}, file: given, readsLog = true } = options;
  const main = fileURLToPath(builtFile('main.js'));
  const directory = await mkdtemp(join(tmpdir(), 'account-authz-'));
  const file = given ?? join(directory, 'config.yaml');
  if (given === undefined) await writeFile(file, stringify(config));
  const child = spawn(process.execPath, [...nodeOptions, main, 'serve', '--config', file, ...more], {
    stdio: ['ignore', readsLog ? 'pipe' : 'ignore', 'pipe'],
    env: { ...process.env, ...env },
  });
  const kill = (): boolean => child.kill('SIGKILL');
  killAtExit(child);
  const exited = once(child, 'exit').then(async ([code]) => {
    await rm(directory, { recursive: true, force: true });
    return code as number | null;
  });

  const closed = once(child, 'close').then(([code]) => code as number | null);

  const lines: LogLine[] = [];
  let errors = '';
  let rest = '';
  const waiting = new Map<(line: LogLine) => boolean, (line: LogLine) => void>();
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    const complete = (rest + text).split('\n');
    rest = complete.pop() ?? '';
    secrets.show('log', complete.join('\n'));
    for (const line of complete.map((json): LogLine => JSON.parse(json))) {
      lines.push(line);
      for (const [isWanted, resolve] of waiting) if (isWanted(line)) resolve(line);
    }
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
    secrets.show('standard error', errors);
  });
  // A process that crashes may leave its last line incomplete.
  child.on('close', () => secrets.show('log', rest));
  const line = (isWanted: (line: LogLine) => boolean): Promise<LogLine> => {
    const written = lines.find(isWanted);
    return written === undefined ? new Promise(resolve => waiting.set(isWanted, resolve)) : Promise.resolve(written);
  };
  const ended = exited.then(code => {
    throw new Error(
      `the service has ended with ${code}:\n${errors}${lines.map(each => JSON.stringify(each)).join('\n')}`,
    );
  });
  ended.catch(() => undefined);

  const ports = readsLog
    ? ((await Promise.race([line(each => each.msg === 'serving'), ended])).ports as Ports)
    : { listen: portOf(config.listen), admin: portOf(config.admin) };
  if (ready) await Promise.race([untilReady(ports.admin), ended]);
  // Unreferenced, so that a failed test that did not stop the service does not keep the run from ending; the exit handler kills it.
  child.unref();
  for (const stream of [child.stdout, child.stderr]) if (stream instanceof Socket) stream.unref();
  const listen = String(config.listen);
  return {
    pid: child.pid ?? 0,
    address: listen.startsWith('unix:') ? listen : `127.0.0.1:${ports.listen}`,
    adminPort: ports.admin,
    log: () => lines,
    logLine: requestId => line(each => each.requestId === requestId),
    async configure(changed) {
      await writeFile(`${file}.new`, typeof changed === 'string' ? changed : stringify(changed));
      await rename(`${file}.new`, file);
    },
    hangUp: () => process.kill(child.pid ?? 0, 'SIGHUP'),
    errorLog: () => errors,
    exitCode() {
      child.ref();
      return closed;
    },
    exited() {
      child.ref();
      return exited;
    },
    leaveLog(how) {
      if (how === 'closed') child.stdout?.destroy();
      else child.stdout?.pause();
    },
    stop() {
      child.ref();
      child.kill('SIGTERM');
      return exited;
    },
    async kill() {
      child.ref();
      kill();
      await exited;
    },
    pause: () => process.kill(child.pid ?? 0, 'SIGSTOP'),
    resume: () => process.kill(child.pid ?? 0, 'SIGCONT'),
  };
}

interface Ports {
  readonly listen: number;
  readonly admin: number;
}

function portOf(address: unknown): number {
  return Number(String(address).replace(/^.*:/, ''));
}

// Polls: there is no event for readiness.
async function untilReady(adminPort: number): Promise<void> {
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${adminPort}/readyz`).catch(() => undefined);
    if (answer?.status === 200) return;
    await delay(20);
  }
}
