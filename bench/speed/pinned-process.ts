// A child process pinned to a core, which is killed with the bench.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { onCore } from '../measure/pinning.ts';

export interface ProgramCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

export interface PinnedProcess {
  readonly pid: number;
  /** True once its output is complete, too. */
  hasEnded(): boolean;
  /** The tail of its standard error. */
  errors(): string;
  stop(): Promise<void>;
}

export async function startPinnedProcess(
  { command, args, environment }: ProgramCommand,
  core: number | undefined,
): Promise<PinnedProcess> {
  const [pinned, pinnedArgs] = onCore(core, command, args);
  const child = spawn(pinned, pinnedArgs, {
    stdio: ['ignore', 'ignore', 'pipe'],
    // That of the image and no other: with NODE_EXTRA_CA_CERTS, say, Node keeps more certificates.
    env: { PATH: process.env.PATH, ...environment },
  });
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-4000);
  });
  let hasEnded = false;
  child.once('close', () => {
    hasEnded = true;
  });
  const exited = once(child, 'exit').then(() => process.off('exit', kill));
  const failed = once(child, 'error').then(([error]) => {
    throw error;
  });
  failed.catch(() => undefined);
  await Promise.race([once(child, 'spawn'), failed]);
  return {
    pid: child.pid ?? 0,
    hasEnded: () => hasEnded,
    errors: () => errors,
    async stop() {
      kill();
      await exited;
    },
  };
}
