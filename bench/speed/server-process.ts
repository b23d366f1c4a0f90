// A server that is measured: a process of its own on the core for servers, known by its port, stopped with this process.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { connectWire, type WireAnswer, type WireRequest, type WireTarget } from '../load/wire-client.ts';
import type { RequestSet } from '../load/wire-load.ts';
import { isExpected } from '../load/wire-load.ts';
import { onCore } from '../measure/pinning.ts';

export interface ServerProcess {
  readonly pid: number;
  /** From its start to its first right answer. */
  readonly startMs: number;
  signal(signal: NodeJS.Signals): void;
  stop(): Promise<void>;
}

export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

export interface Probe {
  readonly target: WireTarget;
  readonly shared: { readonly first: Buffer; readonly later: Buffer };
  readonly request: WireRequest;
  readonly expected: RequestSet['expected'];
}

const startLimitMs = 20_000;

export async function startServerProcess(
  { command, args, environment }: ServerCommand,
  core: number | undefined,
  probe: Probe,
): Promise<ServerProcess> {
  const [pinned, pinnedArgs] = onCore(core, command, args);
  const beganMs = performance.now();
  const child = spawn(pinned, pinnedArgs, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...environment },
  });
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-4000);
  });
  const exited = once(child, 'exit').then(() => process.off('exit', kill));
  const failed = once(child, 'error').then(([error]) => {
    throw error;
  });
  failed.catch(() => undefined);
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  await Promise.race([once(child, 'spawn'), failed]);
  while (!(await answersRightly(probe))) {
    if (hasEnded()) throw new Error(`${command} has ended:\n${errors}`);
    if (performance.now() - beganMs > startLimitMs) {
      kill();
      throw new Error(`${command} gives no right answer after ${startLimitMs / 1000} s\n${errors}`);
    }
    await delay(2);
  }
  return {
    pid: child.pid ?? 0,
    startMs: performance.now() - beganMs,
    signal: signal => void child.kill(signal),
    async stop() {
      kill();
      await exited;
    },
  };
}

async function answersRightly(probe: Probe): Promise<boolean> {
  const answer = await ask(probe).catch(() => undefined);
  return answer !== undefined && isExpected(probe.expected, answer);
}

/** One request on a connection of its own. */
export async function ask({ target, shared, request }: Omit<Probe, 'expected'>): Promise<WireAnswer> {
  let answered: (answer: WireAnswer) => void;
  let fail: (error: Error) => void;
  const answer = new Promise<WireAnswer>((resolve, reject) => {
    answered = resolve;
    fail = reject;
  });
  const client = await connectWire({
    target,
    shared,
    connections: 1,
    onAnswer: (_, received) =>
      answered({ ...received, message: received.message === undefined ? undefined : Buffer.from(received.message) }),
    onFault: error => fail(error),
  });
  try {
    client.send(0, request, 0);
    return await Promise.race([
      answer,
      delay(startLimitMs, undefined, { ref: false }).then(() => {
        throw new Error('no answer');
      }),
    ]);
  } finally {
    await client.close();
  }
}
