// Pins processes to cores with taskset(1) of util-linux. Without taskset or with a single core, nothing is pinned
// and the report says so.
import { execFile, execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';

export interface Cores {
  /** The measured processes. */
  readonly server: number;
  /** The measuring processes. */
  readonly load: number;
}

/** undefined if processes cannot be pinned. */
export function chooseCores(): Cores | undefined {
  if (availableParallelism() < 2) return undefined;
  try {
    execFileSync('taskset', ['--version'], { stdio: 'ignore' });
  } catch {
    return undefined;
  }
  return { server: 1, load: 0 };
}

/** The command, run on that core; taskset execs it, so the process id is the command's own. */
export function onCore(
  core: number | undefined,
  command: string,
  args: readonly string[],
): readonly [command: string, args: string[]] {
  return core === undefined ? [command, [...args]] : ['taskset', ['-c', String(core), command, ...args]];
}

/** Moves a running process and all its threads. */
export async function pin(pid: number, core: number | undefined): Promise<void> {
  if (core !== undefined) await promisify(execFile)('taskset', ['-a', '-p', '-c', String(core), String(pid)]);
}
