import { expect } from 'chai';
import { evaluateFloors } from '../../../bench/speed/floors.ts';
import { benchMarkdown } from '../../../bench/speed/report.ts';
import type { BenchResults, CallRound, EnvoyRound, RouteRound } from '../../../bench/speed/results.ts';

const call = (perSecond: number): CallRound[] => [
  { perSecond, cpuMicrosecondsPerCall: 1e6 / perSecond, serverShare: 1, loadShare: 0.1, residentMegabytes: 100 },
];
const envoy = (perSecond: number, meanMs: number): EnvoyRound[] => [
  { perSecond, meanMs, cpuMicrosecondsPerRequest: 100, p50Ms: 1, p99Ms: 2, p999Ms: 3 },
];
const calls = {
  nothing: call(10_000),
  known: call(40_000),
  'known-revocations': call(36_400),
  new: call(9000),
  'go-jwt': call(20_000),
  opa: call(5000),
  authorino: call(5000),
};
const behindEnvoy = {
  'envoy-known': envoy(2500, 1.4),
  'envoy-opa': envoy(1000, 3),
  'envoy-go-nothing': envoy(3000, 1),
};

const routes = (nanoseconds: number, microseconds: number): RouteRound[] => [
  {
    matchNanoseconds: { hit: nanoseconds, deep: 1, miss: 1, all: 1 },
    decisionMicroseconds: { hit: microseconds, deep: 1, miss: 1, all: 1 },
  },
];

function results(changes: Partial<BenchResults> = {}): BenchResults {
  return {
    run: {
      ...{ isWhole: true, rounds: 1, algorithm: 'RS256', requestBytes: 1200, pinned: true },
      ...{ node: '26.0.0', nodeOptions: ['--a'], go: '1.26.0', envoy: '1.40.0' },
    },
    contenders: [{ name: 'known', title: 'account-authz', family: 'product' }],
    absent: [{ name: 'go-nothing', title: 'grpc-go', reason: 'no go on the PATH' }],
    ...{
      calls,
      latency: {},
      start: { known: [1000] },
      envoy: behindEnvoy,
      memory: { rotation: [160] },
      routes: { '10': routes(100, 10), '10000': routes(130, 13) },
    },
    ...changes,
  };
}

describe('the floors', () => {
  it('are all met by figures exactly at the floor', () => {
    expect(evaluateFloors(results()).map(({ isMet }) => isMet)).to.deep.equal(Array.from({ length: 12 }, () => true));
  });

  const short: readonly (readonly [text: string, changes: Partial<BenchResults>])[] = [
    ['grpc-js with proto-loader that does nothing', { calls: { ...calls, nothing: call(40_001) } }],
    ['a known token, to grpc-go with golang-jwt', { calls: { ...calls, 'go-jwt': call(40_001), new: call(40_000) } }],
    ['a known token with 100,000 revocations', { calls: { ...calls, 'known-revocations': call(36_399) } }],
    ['a new token, to grpc-go with golang-jwt', { calls: { ...calls, new: call(8999) } }],
    ['a known token, to opa-envoy-plugin', { calls: { ...calls, opa: call(5715) } }],
    ['a known token, to Authorino', { calls: { ...calls, authorino: call(5001) } }],
    ['requests behind Envoy', { envoy: { ...behindEnvoy, 'envoy-opa': envoy(1001, 3) } }],
    ['mean latency behind Envoy', { envoy: { ...behindEnvoy, 'envoy-known': envoy(2500, 1.41) } }],
    ['resident under load', { memory: { rotation: [160.1] } }],
    ['from start to first answer', { start: { known: [1001] } }],
    ['a match among 10,000 routes', { routes: { '10': routes(100, 10), '10000': routes(131, 13) } }],
    ['a decision with 10,000 routes', { routes: { '10': routes(100, 10), '10000': routes(130, 13.1) } }],
  ];
  for (const [text, changes] of short) {
    it(`are missed by a figure just below: ${text}`, () => {
      const missed = evaluateFloors(results(changes)).filter(({ isMet }) => isMet !== true);
      expect(missed.map(floor => [floor.text.includes(text), floor.isMet])).to.deep.equal([[true, false]]);
    });
  }

  it('compare the median of the ratios of each round', () => {
    const rounds = { known: [...call(9000), ...call(90_000), ...call(20_000)], nothing: [1e4, 9e4, 1e4].flatMap(call) };
    const [floor] = evaluateFloors(results({ calls: { ...calls, ...rounds } }));
    expect(floor?.measured).to.deep.equal({ min: 0.9, median: 1, max: 2 });
  });

  it('are not evaluated without a measurement, nor in a partial run', () => {
    const { run } = results();
    expect(evaluateFloors(results({ memory: {} })).at(-4)?.isMet).to.equal(undefined);
    expect(evaluateFloors(results({ run: { ...run, isWhole: false } })).some(({ isMet }) => isMet)).to.equal(false);
  });
});

describe('the report of a bench', () => {
  const page = benchMarkdown(results());

  it('has the floors, the figures, absent contenders and the runtimes, and nothing else of the machine', () => {
    expect(page).to.match(/\| a known token, to opa-envoy-plugin \| ≥ 7\.00 × \| 8\.00 × \|.*\| met \|/);
    expect(page).to.match(/\| `known`: account-authz \| 40,000 \| 40,000 … 40,000 \| 25\.0 \|/);
    expect(page).to.include('- `go-nothing`, grpc-go: no go on the PATH');
    expect(page).to.include('Node 26.0.0 with --a, Go 1.26.0, Envoy 1.40.0; RS256; requests of 1,200 bytes; 1 rounds');
    expect(page).to.not.match(/## Latency|NaN|undefined|127\.0\.0\.1/);
  });
});
