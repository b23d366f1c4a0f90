// A measured server: a child process on the servers' core, identified by its port, killed with this process.
import { setTimeout as delay } from 'node:timers/promises';
import { connectWire, type WireAnswer, type WireRequest, type WireTarget } from '../load/wire-client.ts';
import type { RequestSet } from '../load/wire-load.ts';
import { isExpected } from '../load/wire-load.ts';
import { type ProgramCommand, startPinnedProcess } from './pinned-process.ts';

export interface ServerProcess {
  readonly pid: number;
  /** From spawn to its first correct answer. */
  readonly startMs: number;
  stop(): Promise<void>;
}

export interface Probe {
  readonly target: WireTarget;
  readonly shared: { readonly first: Buffer; readonly later: Buffer };
  readonly request: WireRequest;
  readonly expected: RequestSet['expected'];
}

const startLimitMs = 20_000;
// A starting contender may accept a connection and never answer on it, so each attempt uses a new connection.
const answerLimitMs = 4000;

export async function startServerProcess(
  command: ProgramCommand,
  core: number | undefined,
  probe: Probe,
): Promise<ServerProcess> {
  const spawnedMs = performance.now();
  const server = await startPinnedProcess(command, core);
  while (!(await answersRightly(probe))) {
    if (server.hasEnded()) throw new Error(`${command.command} has ended:\n${server.errors()}`);
    if (performance.now() - spawnedMs > startLimitMs) {
      await server.stop();
      throw new Error(`${command.command} gives no right answer after ${startLimitMs / 1000} s\n${server.errors()}`);
    }
    await delay(2);
  }
  const { pid, stop } = server;
  return { pid, startMs: performance.now() - spawnedMs, stop };
}

async function answersRightly(probe: Probe): Promise<boolean> {
  const answer = await ask(probe).catch(() => undefined);
  return answer !== undefined && isExpected(probe.expected, answer);
}

/** One request on a new connection. */
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
      delay(answerLimitMs, undefined, { ref: false }).then(() => {
        throw new Error('no answer');
      }),
    ]);
  } finally {
    await client.close();
  }
}
