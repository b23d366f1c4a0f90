// Scenario `calls`: throughput at saturation and CPU time a call, contenders in turn, round after round.
import type { RunFigures } from '../load/wire-load.ts';
import { residentMegabytes } from '../measure/resident-memory.ts';
import type { Contender, RunningContender } from './contender.ts';
import type { BenchLab } from './lab.ts';
import { checkCallBlocks } from './requests.ts';

export interface CallRound {
  readonly perSecond: number;
  readonly cpuMicrosecondsPerCall: number;
  /** Share of its core that the server used; much less than 1: something else was the limit. */
  readonly serverShare: number;
  readonly loadShare: number;
  readonly residentMegabytes: number;
}

export interface CallsForm {
  readonly connections: number;
  readonly inFlight: number;
  readonly warmMs: number;
  readonly measureMs: number;
}

export async function measureCalls(
  lab: BenchLab,
  contender: Contender,
  running: RunningContender,
  form: CallsForm,
): Promise<CallRound> {
  const figures = await lab.load.run({
    kind: 'closed',
    set: contender.set,
    inFlight: form.inFlight,
    run: {
      target: { port: running.port },
      shared: checkCallBlocks,
      connections: form.connections,
      warmMs: form.warmMs,
      measureMs: form.measureMs,
      pids: [running.pid],
    },
  });
  return callRound(contender.name, figures, residentMegabytes(running.pid) ?? NaN);
}

export function callRound(name: string, figures: RunFigures, megabytes: number): CallRound {
  const [lane] = figures.lanes;
  if (lane === undefined || lane.answered === 0) throw new Error(`${name} has answered nothing`);
  if (lane.wrong > 0 || lane.failed > 0)
    throw new Error(`${name}: ${lane.wrong} wrong and ${lane.failed} failed of ${lane.answered} answers`);
  const cpu = figures.cpuMicroseconds.reduce((sum, each) => sum + each, 0);
  return {
    perSecond: (lane.answered / figures.elapsedMs) * 1000,
    cpuMicrosecondsPerCall: cpu / lane.answered,
    serverShare: cpu / 1000 / figures.elapsedMs,
    loadShare: figures.loadCpuMicroseconds / 1000 / figures.elapsedMs,
    residentMegabytes: megabytes,
  };
}
