// Scenario `routes`: what the number of routes costs, measured in a process of its own on the core of the servers.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onCore } from '../measure/pinning.ts';
import type { BenchForm } from './form.ts';
import { type BenchLab, projectDirectory } from './lab.ts';
import type { Rounds, RouteRound } from './results.ts';

const routeCounts = [10, 10_000];

export async function measureRoutes(
  { runtime, cores }: BenchLab,
  { rounds }: Pick<BenchForm, 'rounds'>,
): Promise<Rounds<RouteRound>> {
  const file = join(projectDirectory, 'bench', 'speed', 'routes-process.ts');
  const args = [...runtime.flags, '--import', 'tsx', file, ...[rounds, ...routeCounts].map(String)];
  const [command, pinnedArgs] = onCore(cores?.server, runtime.node, args);
  const { stdout } = await promisify(execFile)(command, pinnedArgs, {
    cwd: projectDirectory,
    env: { ...process.env, ...runtime.environment },
  });
  return JSON.parse(stdout) as Rounds<RouteRound>;
}
