// Latency at a fixed rate, from the time that a call was due to its answer.
import type { RunFigures } from '../load/wire-load.ts';
import { percentiles } from '../measure/percentiles.ts';
import { rightAnswers } from './calls.ts';
import type { SetName } from './contender.ts';
import type { BenchLab } from './lab.ts';
import { checkCallBlocks } from './requests.ts';
import type { LatencyRound } from './results.ts';

export interface LatencyForm {
  readonly connections: number;
  readonly perSecond: number;
  readonly warmMs: number;
  readonly measureMs: number;
}

export async function measureLatency(
  lab: BenchLab,
  server: { readonly port: number; readonly pid: number },
  set: SetName,
  { connections, perSecond, warmMs, measureMs }: LatencyForm,
): Promise<LatencyRound> {
  const { port, pid } = server;
  const run = { target: { port }, shared: checkCallBlocks, connections, warmMs, measureMs, pids: [pid] };
  const figures = await lab.load.run({ kind: 'open', run, lanes: [{ set, perSecond }] });
  rightAnswers(set, figures);
  return firstLane(figures);
}

/** Of the first lane of an open loop, or of several open loops as if they were one. */
export function firstLane(...runs: readonly RunFigures[]): LatencyRound {
  const values = runs.flatMap(({ lanes: [lane] }) => {
    if (lane === undefined) throw new Error('a loop without a lane');
    return Array.from(lane.latenciesMs);
  });
  const [p50Ms = NaN, p99Ms = NaN, p999Ms = NaN] = percentiles(values, [50, 99, 99.9]);
  return { meanMs: values.reduce((sum, value) => sum + value, 0) / values.length, p50Ms, p99Ms, p999Ms };
}
