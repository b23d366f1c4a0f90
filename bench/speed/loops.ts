// The two measurements of a server: throughput and CPU time per call in a closed loop, latency at a fixed rate in an open loop.
import type { WireTarget } from '../load/wire-client.ts';
import type { RunFigures } from '../load/wire-load.ts';
import { percentiles } from '../measure/percentiles.ts';
import { residentMegabytes } from '../measure/resident-memory.ts';
import type { BenchLab } from './lab.ts';
import { checkCallBlocks } from './requests.ts';
import type { CallRound, LatencyRound } from './results.ts';

interface Server {
  readonly target: WireTarget;
  readonly pid: number;
}

interface LoopForm {
  readonly connections: number;
  readonly warmMs: number;
  readonly measureMs: number;
}

export async function measureCalls(
  lab: BenchLab,
  server: Server,
  set: string,
  { inFlight, ...form }: LoopForm & { readonly inFlight: number },
): Promise<CallRound> {
  const figures = await lab.load.run({ kind: 'closed', set, inFlight, run: runOf(server, form) });
  const answered = rightAnswers(set, figures);
  const cpu = figures.cpuMicroseconds.reduce((sum, each) => sum + each, 0);
  return {
    perSecond: (answered / figures.elapsedMs) * 1000,
    cpuMicrosecondsPerCall: cpu / answered,
    serverShare: cpu / 1000 / figures.elapsedMs,
    loadShare: figures.loadCpuMicroseconds / 1000 / figures.elapsedMs,
    residentMegabytes: residentMegabytes(server.pid) ?? NaN,
  };
}

/** Latencies of the first lane, from a call's due time to its answer. */
export async function measureLatency(
  lab: BenchLab,
  server: Server,
  lanes: readonly { readonly set: string; readonly perSecond: number }[],
  form: LoopForm,
): Promise<LatencyRound> {
  const figures = await lab.load.run({ kind: 'open', run: runOf(server, form), lanes });
  rightAnswers(lanes.map(({ set }) => set).join(' beside '), figures);
  return firstLane(figures);
}

export function firstLane({ lanes: [lane] }: RunFigures): LatencyRound {
  if (lane === undefined) throw new Error('a loop without a lane');
  const values = Array.from(lane.latenciesMs);
  const [p50Ms = NaN, p99Ms = NaN, p999Ms = NaN] = percentiles(values, [50, 99, 99.9]);
  return { meanMs: values.reduce((sum, value) => sum + value, 0) / values.length, p50Ms, p99Ms, p999Ms };
}

/** The answers of all lanes; a wrong or missing answer ends the bench, because its figures would be meaningless. */
export function rightAnswers(name: string, { lanes }: RunFigures): number {
  const sum = (of: 'answered' | 'wrong' | 'failed'): number => lanes.reduce((total, lane) => total + lane[of], 0);
  if (sum('answered') === 0) throw new Error(`${name}: nothing was answered`);
  if (sum('wrong') + sum('failed') > 0)
    throw new Error(`${name}: ${sum('wrong')} wrong and ${sum('failed')} failed of ${sum('answered')} answers`);
  return sum('answered');
}

function runOf({ target, pid }: Server, form: LoopForm) {
  return { ...form, target, shared: checkCallBlocks, pids: [pid] };
}
