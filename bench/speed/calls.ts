// Throughput and CPU time a call: one closed loop, and what it cost.
import type { RunFigures } from '../load/wire-load.ts';
import { residentMegabytes } from '../measure/resident-memory.ts';
import type { SetName } from './contender.ts';
import type { BenchLab } from './lab.ts';
import { checkCallBlocks } from './requests.ts';
import type { CallRound } from './results.ts';

export interface CallsForm {
  readonly connections: number;
  readonly inFlight: number;
  readonly warmMs: number;
  readonly measureMs: number;
}

export async function measureCalls(
  lab: BenchLab,
  server: { readonly port: number; readonly pid: number },
  set: SetName,
  { connections, inFlight, warmMs, measureMs }: CallsForm,
): Promise<CallRound> {
  const { port, pid } = server;
  const target = { port };
  const run = { target, shared: checkCallBlocks, connections, warmMs, measureMs, pids: [pid] };
  const figures = await lab.load.run({ kind: 'closed', set, inFlight, run });
  return callRound(set, figures, residentMegabytes(pid) ?? NaN);
}

export function callRound(name: string, figures: RunFigures, megabytes: number): CallRound {
  const answered = rightAnswers(name, figures);
  const cpu = figures.cpuMicroseconds.reduce((sum, each) => sum + each, 0);
  return {
    perSecond: (answered / figures.elapsedMs) * 1000,
    cpuMicrosecondsPerCall: cpu / answered,
    serverShare: cpu / 1000 / figures.elapsedMs,
    loadShare: figures.loadCpuMicroseconds / 1000 / figures.elapsedMs,
    residentMegabytes: megabytes,
  };
}

/** The answers of all lanes; one that is wrong or missing ends the bench, for then its figures say nothing. */
export function rightAnswers(name: string, { lanes }: RunFigures): number {
  const sum = (of: 'answered' | 'wrong' | 'failed'): number => lanes.reduce((total, lane) => total + lane[of], 0);
  if (sum('answered') === 0) throw new Error(`${name}: nothing was answered`);
  if (sum('wrong') + sum('failed') > 0)
    throw new Error(`${name}: ${sum('wrong')} wrong and ${sum('failed')} failed of ${sum('answered')} answers`);
  return sum('answered');
}
