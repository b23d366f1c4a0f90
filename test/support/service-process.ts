// The built product as a process of its own, as an operator runs it: `node dist/main.js serve --config FILE`.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { secrets } from './secrets.ts';

/** One line of the product's log. */
export type LogLine = Readonly<Record<string, unknown>>;

export interface ServiceProcess {
  readonly pid: number;
  /** Where Envoy asks: `127.0.0.1:PORT` or `unix:PATH`, as the configuration of Envoy's cluster needs it. */
  readonly address: string;
  readonly adminPort: number;
  log(): readonly LogLine[];
  /** The line of one check, waited for. */
  logLine(requestId: string): Promise<LogLine>;
  /** Puts another configuration, or a text, in the place of the file, as a whole. */
  configure(config: Readonly<Record<string, unknown>> | string): Promise<void>;
  /** SIGHUP. */
  hangUp(): void;
  /** Everything written to standard error. */
  errorLog(): string;
  /** The exit code of one that ends by itself, when its log is read to the end. */
  exitCode(): Promise<number | null>;
  /** The same, whether anybody reads its log or not. */
  exited(): Promise<number | null>;
  /** From now on nobody reads its log; `closed`: nobody can. */
  leaveLog(how: 'open' | 'closed'): void;
  /** SIGTERM; the exit code. */
  stop(): Promise<number | null>;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** SIGSTOP: the process is there and answers nothing. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
}

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

export interface ServiceProcessOptions {
  /** Whether to wait until it is ready, which needs keys; true if not given. */
  readonly ready?: boolean;
  /** Options of Node itself, such as a module to import first. */
  readonly nodeOptions?: readonly string[];
  /** Over the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** A file that is there, in place of one that is written. */
  readonly file?: string;
  /** False: nobody reads its log, where to read it would take a core from what is measured. Needs ports that are not 0, and to be waited for. */
  readonly keepsLog?: boolean;
}

/** Writes the configuration to a file and runs the product with it; ports may be 0. */
export async function startServiceProcess(
  config: Readonly<Record<string, unknown>>,
  { ready = true, nodeOptions = [], env = {}, file: given, keepsLog = true }: ServiceProcessOptions = {},
): Promise<ServiceProcess> {
  await access(main).catch(cause => {
    throw new Error('dist/main.js is missing: npm run build makes it', { cause });
  });
  const directory = await mkdtemp(join(tmpdir(), 'account-authz-'));
  const file = given ?? join(directory, 'config.yaml');
  if (given === undefined) await writeFile(file, stringify(config));
  const child = spawn(process.execPath, [...nodeOptions, main, 'serve', '--config', file], {
    stdio: ['ignore', keepsLog ? 'pipe' : 'ignore', 'pipe'],
    env: { ...process.env, ...env },
  });
  const kill = (): boolean => child.kill('SIGKILL');
  process.once('exit', kill);
  const exited = once(child, 'exit').then(async ([code]) => {
    process.off('exit', kill);
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
  // A process that crashes may not come to the end of its line.
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

  const ports = keepsLog
    ? ((await Promise.race([line(each => each.msg === 'serving'), ended])).ports as Ports)
    : { listen: portOf(config.listen), admin: portOf(config.admin) };
  if (ready) await Promise.race([untilReady(ports.admin), ended]);
  // A test that fails before it can stop the service must not keep the run from ending, and the end kills the service.
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

// Readiness can only be asked for.
interface Ports {
  readonly listen: number;
  readonly admin: number;
}

function portOf(address: unknown): number {
  return Number(String(address).replace(/^.*:/, ''));
}

async function untilReady(adminPort: number): Promise<void> {
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${adminPort}/readyz`).catch(() => undefined);
    if (answer?.status === 200) return;
    await delay(20);
  }
}
