// A real Envoy with a given configuration, from a control plane or an overlay.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { killAtExit } from '../../../../lab/child-process.ts';
import { envoyBinary } from '../../../../lab/envoy.ts';

export interface ConfiguredEnvoy {
  stop(): Promise<void>;
}

/** Resolves when it is live; `adminPort` is that of its configuration. Rejects with its output if it exits first. */
export async function startConfiguredEnvoy(options: {
  readonly version: string;
  readonly bootstrap: unknown;
  readonly adminPort: number;
}): Promise<ConfiguredEnvoy> {
  const child = spawn(
    await envoyBinary(options.version),
    [
      ...['--config-yaml', JSON.stringify(options.bootstrap), '--concurrency', '1', '--disable-hot-restart'],
      ...['--log-level', 'warning'],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  killAtExit(child);
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const exited = once(child, 'exit');
  const deadline = performance.now() + 30_000;
  for (;;) {
    const live = await fetch(`http://127.0.0.1:${options.adminPort}/ready`).then(
      ({ status }) => status === 200,
      () => false,
    );
    if (live) break;
    if (child.exitCode !== null || performance.now() > deadline) throw new Error(`Envoy is not live:\n${errors}`);
    await delay(50);
  }
  return {
    async stop() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}
