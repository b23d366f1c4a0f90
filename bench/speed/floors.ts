// Evaluates the floors of docs/dev/performance.md, each as a ratio within one run, round by round.
import type { BenchResults, CallRound, Rounds, RouteRound } from './results.ts';
import { ratioOf, type Spread, spreadOf } from './rounds.ts';

export interface Floor {
  readonly text: string;
  readonly bound: { readonly kind: 'at least' | 'at most'; readonly value: number; readonly unit: '×' | 'MB' | 'ms' };
  /** undefined if this run did not measure it. */
  readonly measured: Spread | undefined;
  /** The same ratio by CPU time per call, which a disturbed machine affects less; reported, without a floor. */
  readonly byCpuTime?: Spread | undefined;
  /** undefined without a measurement or in a partial run. */
  readonly isMet: boolean | undefined;
}

export function evaluateFloors({ run, calls, envoy, start, memory, routes }: BenchResults): readonly Floor[] {
  const calling = (value: number, name: string, other: string, text: string): Omit<Floor, 'isMet'> => ({
    text,
    bound: { kind: 'at least', value, unit: '×' },
    measured: ratio<CallRound>(calls, name, other, round => round.perSecond),
    byCpuTime: ratio<CallRound>(calls, name, other, round => 1 / round.cpuMicrosecondsPerCall),
  });
  const routing = (text: string, value: (round: RouteRound) => number): Omit<Floor, 'isMet'> => ({
    text,
    bound: { kind: 'at most', value: 1.3, unit: '×' },
    measured: ratio(routes, '10000', '10', value),
  });
  const floors: readonly Omit<Floor, 'isMet'>[] = [
    calling(1, 'known', 'nothing', 'a known token, to grpc-js with proto-loader that does nothing'),
    calling(1, 'known', 'go-jwt', 'a known token, to grpc-go with golang-jwt that verifies each call'),
    calling(0.45, 'new', 'go-jwt', 'a new token, to grpc-go with golang-jwt that verifies each call'),
    calling(7, 'known', 'opa', 'a known token, to opa-envoy-plugin'),
    calling(8, 'known', 'authorino', 'a known token, to Authorino'),
    calling(0.91, 'known-revocations', 'known', 'a known token with 100,000 revocations, to the same without'),
    {
      text: 'requests behind Envoy, to opa-envoy-plugin there',
      bound: { kind: 'at least', value: 2.5, unit: '×' },
      measured: ratio(envoy, 'envoy-known', 'envoy-opa', round => round.perSecond),
    },
    {
      text: 'mean latency behind Envoy, to a Go service there that does nothing',
      bound: { kind: 'at most', value: 1.4, unit: '×' },
      measured: ratio(envoy, 'envoy-known', 'envoy-go-nothing', round => round.meanMs),
    },
    {
      text: 'resident under load with 10,000 cached tokens',
      bound: { kind: 'at most', value: 160, unit: 'MB' },
      measured: spreadOfSome(memory.rotation),
    },
    {
      text: 'from start to first answer',
      bound: { kind: 'at most', value: 1000, unit: 'ms' },
      measured: spreadOfSome(start.known),
    },
    routing('a match among 10,000 routes, to one among 10', ({ matchNanoseconds }) => matchNanoseconds.hit),
    routing('a decision with 10,000 routes, to one with 10', ({ decisionMicroseconds }) => decisionMicroseconds.hit),
  ];
  return floors.map(floor => ({ ...floor, isMet: run.isWhole ? isMet(floor) : undefined }));
}

function isMet({ measured, bound }: Omit<Floor, 'isMet'>): boolean | undefined {
  if (measured === undefined) return undefined;
  return bound.kind === 'at least' ? measured.median >= bound.value : measured.median <= bound.value;
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
