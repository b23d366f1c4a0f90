// The floors of product.md section 7 and the bars of issue 6, each judged as a ratio within one run, round by round.
import type { BenchResults, CallRound, EnvoyRound, Rounds } from './results.ts';
import { ratioOf, type Spread, spreadOf } from './spread.ts';

export interface Floor {
  readonly text: string;
  readonly bound: { readonly kind: 'at least' | 'at most'; readonly value: number; readonly unit: string };
  /** undefined where this run has not measured it. */
  readonly measured: Spread | undefined;
  /** The same ratio by CPU time a call, which a disturbed machine moves less; told, not judged. */
  readonly byCpuTime?: Spread | undefined;
  /** undefined where it is not judged: not measured, or in a run that is not whole. */
  readonly isMet: boolean | undefined;
}

export function judgeFloors(results: BenchResults): readonly Floor[] {
  const { calls, envoy, start, storms, memory } = results;
  const atLeast = (value: number, text: string, measured: Spread | undefined): Floor =>
    judge({ text, bound: { kind: 'at least', value, unit: '×' }, measured }, results.run.isWhole);
  const atMost = (value: number, unit: string, text: string, measured: Spread | undefined): Floor =>
    judge({ text, bound: { kind: 'at most', value, unit }, measured }, results.run.isWhole);
  const calling = (value: number, name: string, other: string, text: string): Floor => ({
    ...atLeast(
      value,
      text,
      ratio<CallRound>(calls, name, other, round => round.perSecond),
    ),
    byCpuTime: ratio<CallRound>(calls, name, other, round => 1 / round.cpuMicrosecondsPerCall),
  });
  return [
    calling(1, 'known', 'nothing', 'a known token, to grpc-js with proto-loader that does nothing'),
    calling(1, 'known', 'go-jwt', 'a known token, to grpc-go with golang-jwt that verifies each call'),
    calling(0.6, 'new', 'go-jwt', 'a new token, to grpc-go with golang-jwt that verifies each call'),
    calling(7, 'known', 'opa', 'a known token, to opa-envoy-plugin'),
    calling(8, 'known', 'authorino', 'a known token, to Authorino'),
    atLeast(
      2.5,
      'requests behind Envoy, to opa-envoy-plugin there',
      ratio<EnvoyRound>(envoy, 'envoy-known', 'envoy-opa', round => round.perSecond),
    ),
    atMost(
      1.4,
      '×',
      'mean latency behind Envoy, to a Go service there that does nothing',
      ratio<EnvoyRound>(envoy, 'envoy-known', 'envoy-go-nothing', round => round.meanMs),
    ),
    atMost(
      150,
      'MB',
      'resident under load with 10,000 cached tokens, as the image runs',
      of(memory, 'rotation', ({ residentMegabytes }) => residentMegabytes),
    ),
    atMost(
      1000,
      'ms',
      'from start to first answer',
      of(start, 'known', milliseconds => milliseconds),
    ),
    // A refusal always has its line in the log, so an allow with its line is the one to compare with.
    calling(
      1,
      'garbage',
      'known-logged',
      'a refusal of garbage, to an allow of a known token, both with their log line',
    ),
    atMost(
      3,
      '×',
      'p99 of a known token under a storm of forged ones, to quiet',
      ratio(storms, 'forged', 'quiet', ({ p99Ms }) => p99Ms),
    ),
    atMost(15, 'MB', 'what 10,000 cached tokens hold', difference(memory, 'rotation', 'known')),
  ];
}

function judge(floor: Omit<Floor, 'isMet'>, isWhole: boolean): Floor {
  const { measured, bound } = floor;
  if (measured === undefined || !isWhole) return { ...floor, isMet: undefined };
  return {
    ...floor,
    isMet: bound.kind === 'at least' ? measured.median >= bound.value : measured.median <= bound.value,
  };
}

function values<Round>(rounds: Rounds<Round>, name: string, value: (round: Round) => number): number[] | undefined {
  const of = rounds[name];
  return of === undefined || of.length === 0 ? undefined : of.map(value);
}

function of<Round>(rounds: Rounds<Round>, name: string, value: (round: Round) => number): Spread | undefined {
  const own = values(rounds, name, value);
  return own === undefined ? undefined : spreadOf(own);
}

function ratio<Round>(
  rounds: Rounds<Round>,
  name: string,
  other: string,
  value: (round: Round) => number,
): Spread | undefined {
  const own = values(rounds, name, value);
  const others = values(rounds, other, value);
  return own === undefined || others === undefined ? undefined : ratioOf(own, others);
}

function difference(memory: BenchResults['memory'], name: string, other: string): Spread | undefined {
  const own = values(memory, name, ({ liveMegabytes }) => liveMegabytes);
  const others = values(memory, other, ({ liveMegabytes }) => liveMegabytes);
  if (own === undefined || others === undefined) return undefined;
  return spreadOf(own.map((megabytes, round) => megabytes - (others[round] ?? NaN)));
}
