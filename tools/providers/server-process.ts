// Runs a third-party server in its own process group, and kills it at the latest when this process exits.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

export interface ServerCommand {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Answers with 200 as soon as the server is up. */
  readonly healthUrl: string;
}

export interface ServerProcess {
  /** Sends SIGTERM to the group, and SIGKILL after twenty seconds. */
  stop(): Promise<void>;
}

const startLimitMs = 300_000;
const stopLimitMs = 20_000;

export async function startServer({ name, command, args, env, healthUrl }: ServerCommand): Promise<ServerProcess> {
  const child = spawn(command, args, {
    // Its own group, because Keycloak's script is the parent of its Java process.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-8000);
    });
  }
  const signal = (kind: NodeJS.Signals): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, kind);
    } catch {
      // The group has no process.
    }
  };
  const kill = (): void => signal('SIGKILL');
  process.once('exit', kill);
  const exited = once(child, 'exit').finally(() => process.off('exit', kill));
  exited.catch(() => undefined);

  const deadline = performance.now() + startLimitMs;
  while ((await statusOf(healthUrl)) !== 200) {
    const ended = child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
    if (ended || performance.now() > deadline) {
      kill();
      throw new Error(`${name} ${ended ? 'exited' : `is not up after ${startLimitMs / 1000} s`}:\n${output}`);
    }
    await delay(100);
  }
  return {
    async stop() {
      signal('SIGTERM');
      const overdue = setTimeout(kill, stopLimitMs);
      await exited;
      clearTimeout(overdue);
    },
  };
}

function statusOf(url: string): Promise<number | undefined> {
  return fetch(url).then(
    async answer => {
      await answer.arrayBuffer();
      return answer.status;
    },
    () => undefined,
  );
}
