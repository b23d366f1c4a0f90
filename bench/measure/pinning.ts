// Processes on a core of their own, through taskset(1) of util-linux. Where there is no taskset or one core only, nothing is pinned
// and the report says so.
import { execFile, execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';

export interface Cores {
  /** What is measured. */
  readonly server: number;
  /** What measures. */
  readonly load: number;
}

/** undefined where processes cannot be pinned. */
export function chooseCores(): Cores | undefined {
  if (availableParallelism() < 2) return undefined;
  try {
    execFileSync('taskset', ['--version'], { stdio: 'ignore' });
  } catch {
    return undefined;
  }
  return { server: 1, load: 0 };
}

/** The command that runs this one on that core; the process id is the command's own, since taskset becomes it. */
export function onCore(
  core: number | undefined,
  command: string,
  args: readonly string[],
): readonly [command: string, args: string[]] {
  return core === undefined ? [command, [...args]] : ['taskset', ['-c', String(core), command, ...args]];
}

/** Moves a running process with all its threads. */
export async function pin(pid: number, core: number | undefined): Promise<void> {
  if (core !== undefined) await promisify(execFile)('taskset', ['-a', '-p', '-c', String(core), String(pid)]);
}
