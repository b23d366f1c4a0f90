// Evaluates the floors of docs/dev/performance.md, each as a ratio within one run, round by round.
import type { BenchResults, CallRound, Rounds } from './results.ts';
import { ratioOf, type Spread, spreadOf } from './rounds.ts';

export interface Floor {
  readonly text: string;
  readonly bound: { readonly kind: 'at least' | 'at most'; readonly value: number; readonly unit: '×' | 'MB' | 'ms' };
  /** undefined if this run did not measure it. */
  readonly measured: Spread | undefined;
  /** The same ratio by CPU time per call, which a disturbed machine affects less; reported, without a floor. */
  readonly byCpuTime?: Spread | undefined;
  readonly verdict: Verdict;
}

/** `undecided`: a ratio whose spread is wider than its distance to the bound. `not evaluated`: a partial run. */
export type Verdict = 'met' | 'NOT MET' | 'undecided' | 'not measured' | 'not evaluated';

export function evaluateFloors({ run, calls, envoy, start, memory }: BenchResults): readonly Floor[] {
  const calling = (value: number, name: string, other: string, text: string): Omit<Floor, 'verdict'> => ({
    text,
    bound: { kind: 'at least', value, unit: '×' },
    measured: ratio<CallRound>(calls, name, other, round => round.perSecond),
    byCpuTime: ratio<CallRound>(calls, name, other, round => 1 / round.cpuMicrosecondsPerCall),
  });
  const floors: readonly Omit<Floor, 'verdict'>[] = [
    calling(1, 'known', 'nothing', 'a known token, to grpc-js with proto-loader that does nothing'),
    calling(1, 'known', 'go-jwt', 'a known token, to grpc-go with golang-jwt that verifies each call'),
    calling(0.45, 'new', 'go-jwt', 'a new token, to grpc-go with golang-jwt that verifies each call'),
    calling(7, 'known', 'opa', 'a known token, to opa-envoy-plugin'),
    calling(8, 'known', 'authorino', 'a known token, to Authorino'),
    {
      text: 'requests behind Envoy, to opa-envoy-plugin there',
      bound: { kind: 'at least', value: 2.5, unit: '×' },
      measured: ratio(envoy, 'envoy-known', 'envoy-opa', round => round.perSecond),
    },
    {
      text: 'resident under load with 10,000 cached tokens',
      bound: { kind: 'at most', value: 160, unit: 'MB' },
      measured: spreadOfSome(memory.rotation),
    },
    {
      text: 'anonymous memory at 200 calls a second, to grpc-js with proto-loader that does nothing',
      bound: { kind: 'at most', value: 1.25, unit: '×' },
      measured: ratio(memory, 'sidecar-known', 'sidecar-nothing', megabytes => megabytes),
    },
    {
      text: 'from start to first answer',
      bound: { kind: 'at most', value: 1000, unit: 'ms' },
      measured: spreadOfSome(start.known),
    },
  ];
  return floors.map(floor => ({ ...floor, verdict: verdictOf(floor, run.isWhole) }));
}

function verdictOf({ measured, bound }: Omit<Floor, 'verdict'>, isWhole: boolean): Verdict {
  if (measured === undefined) return 'not measured';
  if (!isWhole) return 'not evaluated';
  const reaches = (value: number): boolean => (bound.kind === 'at least' ? value >= bound.value : value <= bound.value);
  if (bound.unit === '×' && reaches(measured.min) !== reaches(measured.max)) return 'undecided';
  return reaches(measured.median) ? 'met' : 'NOT MET';
}

function spreadOfSome(values: readonly number[] | undefined): Spread | undefined {
  return values === undefined || values.length === 0 ? undefined : spreadOf(values);
}

function ratio<Round>(
  rounds: Rounds<Round>,
  name: string,
  other: string,
  value: (round: Round) => number,
): Spread | undefined {
  const own = rounds[name] ?? [];
  const others = rounds[other] ?? [];
  return own.length === 0 || others.length === 0 ? undefined : ratioOf(own.map(value), others.map(value));
}
