// The verdict of each floor of the bench at, below and without its figure; and what the report shows.
import { expect } from 'chai';
import { evaluateFloors } from '../../../bench/speed/floors.ts';
import { benchMarkdown } from '../../../bench/speed/report.ts';
import type { BenchResults, CallRound, EnvoyRound } from '../../../bench/speed/results.ts';

const call = (perSecond: number): CallRound[] => [
  { perSecond, cpuMicrosecondsPerCall: 1e6 / perSecond, serverShare: 1, loadShare: 0.1, residentMegabytes: 100 },
];
const envoy = (perSecond: number): EnvoyRound[] => [
  { perSecond, cpuMicrosecondsPerRequest: 100, meanMs: 1, p50Ms: 1, p99Ms: 2, p999Ms: 3 },
];
/** Each figure exactly at its floor. */
const calls = {
  ...{ nothing: call(10_000), known: call(40_000), new: call(9000) },
  ...{ 'go-jwt': call(20_000), opa: call(5000), authorino: call(5000) },
};
const behindEnvoy = { 'envoy-known': envoy(2500), 'envoy-opa': envoy(1000) };
const memory = { rotation: [160], 'sidecar-known': [50], 'sidecar-nothing': [40] };
const run = {
  ...{ isWhole: true, rounds: 1, algorithm: 'RS256', requestBytes: 1200, pinned: true },
  ...{ node: '26.0.0', nodeOptions: ['--a'], go: '1.26.0', envoy: '1.40.0' },
};
const results = (changes: Partial<BenchResults> = {}): BenchResults => ({
  run,
  contenders: [{ name: 'known', title: 'account-authz', family: 'product' }],
  absent: [{ name: 'opa', title: 'opa-envoy-plugin', reason: 'no go on the PATH' }],
  ...{ calls, latency: {}, start: { known: [1000] }, envoy: behindEnvoy, memory },
  ...changes,
});
const verdicts = (changes: Partial<BenchResults> = {}): readonly string[] =>
  evaluateFloors(results(changes)).map(({ verdict }) => verdict);

describe('the floors', () => {
  it('are all met by figures exactly at the floor', () => {
    expect(verdicts()).to.deep.equal(Array.from({ length: 9 }, () => 'met'));
  });

  it('are each missed by a figure just below', () => {
    const short: readonly Partial<BenchResults>[] = [
      { calls: { ...calls, nothing: call(40_001) } },
      { calls: { ...calls, 'go-jwt': call(40_001), new: call(40_000) } },
      { calls: { ...calls, new: call(8999) } },
      { calls: { ...calls, opa: call(5715) } },
      { calls: { ...calls, authorino: call(5001) } },
      { envoy: { ...behindEnvoy, 'envoy-opa': envoy(1001) } },
      { memory: { ...memory, rotation: [160.1] } },
      { memory: { ...memory, 'sidecar-known': [50.1] } },
      { start: { known: [1001] } },
    ];
    for (const [at, changes] of short.entries())
      expect(verdicts(changes).flatMap((verdict, index) => (verdict === 'NOT MET' ? [index] : []))).to.deep.equal([at]);
  });

  it('compare the ratios of each round, and decide nothing where their spread reaches over the bound', () => {
    const evaluated = (known: readonly number[]) =>
      evaluateFloors(
        results({ calls: { ...calls, known: known.flatMap(call), nothing: [1e4, 9e4, 1e4].flatMap(call) } }),
      )[0];
    expect(evaluated([9000, 90_000, 20_000])).to.deep.include({
      measured: { min: 0.9, median: 1, max: 2 },
      verdict: 'undecided',
    });
    expect(evaluated([11_000, 99_000, 20_000])?.verdict).to.equal('met');
    expect(evaluated([9000, 81_000, 9000])?.verdict).to.equal('NOT MET');
    expect(verdicts({ start: { known: [900, 950, 1100] } }).at(-1)).to.equal('met');
  });

  it('are not evaluated without a measurement, nor in a partial run', () => {
    expect(verdicts({ start: {} }).at(-1)).to.equal('not measured');
    expect(new Set(verdicts({ run: { ...run, isWhole: false } }))).to.deep.equal(new Set(['not evaluated']));
  });
});

describe('the report of a bench', () => {
  it('has the floors, the figures, absent contenders and the runtimes, and nothing else of the machine', () => {
    const page = benchMarkdown(results());
    expect(page).to.match(/\| a known token, to opa-envoy-plugin \| ≥ 7\.00 × \| 8\.00 × \|.*\| met \|/);
    expect(page).to.match(/\| `known`: account-authz \| 40,000 \| 40,000 … 40,000 \| 25\.0 \|/);
    expect(page).to.include('- `opa`, opa-envoy-plugin: no go on the PATH');
    expect(page).to.include('Node 26.0.0 with --a, Go 1.26.0, Envoy 1.40.0; RS256; requests of 1,200 bytes; 1 rounds');
    expect(page).to.not.match(/## Latency|NaN|undefined|127\.0\.0\.1/);
  });
});
