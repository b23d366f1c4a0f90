import { expect } from 'chai';
import { judgeFloors } from '../../../bench/speed/floors.ts';
import type { BenchResults } from '../../../bench/speed/results.ts';
import { callRound, envoyRound, latencyRound, memoryRound, results } from './results.ts';

function verdictOf(text: string, changes: Partial<BenchResults>): boolean | undefined {
  const floor = judgeFloors(results(changes)).find(each => each.text.includes(text));
  if (floor === undefined) throw new Error(`no floor about ${text}`);
  return floor.isMet;
}

describe('the floors', () => {
  it('are all met by figures that are good, but for the one that nobody measured', () => {
    const floors = judgeFloors(results());
    expect(floors.filter(({ isMet }) => isMet !== true).map(({ text }) => text)).to.deep.equal([
      'a known token, to Authorino',
    ]);
  });

  const { calls, envoy, memory, storms } = results();
  const rows: readonly (readonly [text: string, just: Partial<BenchResults>, less: Partial<BenchResults>])[] = [
    [
      'grpc-js with proto-loader that does nothing',
      { calls: { ...calls, known: [callRound(10_000)] } },
      { calls: { ...calls, known: [callRound(9999)] } },
    ],
    [
      'a known token, to grpc-go',
      { calls: { ...calls, known: [callRound(12_000)] } },
      { calls: { ...calls, known: [callRound(11_999)] } },
    ],
    [
      'a new token, to grpc-go',
      { calls: { ...calls, new: [callRound(7200)] } },
      { calls: { ...calls, new: [callRound(7199)] } },
    ],
    [
      'a known token, to opa-envoy-plugin',
      { calls: { ...calls, known: [callRound(14_000)] } },
      { calls: { ...calls, known: [callRound(13_999)] } },
    ],
    [
      'requests behind Envoy',
      { envoy: { ...envoy, 'envoy-known': [envoyRound(3750, 0.5)] } },
      { envoy: { ...envoy, 'envoy-known': [envoyRound(3749, 0.5)] } },
    ],
    [
      'mean latency behind Envoy',
      { envoy: { ...envoy, 'envoy-known': [envoyRound(6000, 0.7)], 'envoy-go-nothing': [envoyRound(8000, 0.5)] } },
      { envoy: { ...envoy, 'envoy-known': [envoyRound(6000, 0.7001)], 'envoy-go-nothing': [envoyRound(8000, 0.5)] } },
    ],
    [
      'resident under load',
      { memory: { ...memory, rotation: [memoryRound(150, 38)] } },
      { memory: { ...memory, rotation: [memoryRound(150.1, 38)] } },
    ],
    ['from start to first answer', { start: { known: [1000] } }, { start: { known: [1001] } }],
    [
      'a refusal of garbage',
      { calls: { ...calls, garbage: [callRound(20_000)] } },
      { calls: { ...calls, garbage: [callRound(19_999)] } },
    ],
    [
      'under a storm of forged ones',
      { storms: { ...storms, forged: [latencyRound(3)] } },
      { storms: { ...storms, forged: [latencyRound(3.01)] } },
    ],
    [
      'what 10,000 cached tokens hold',
      { memory: { known: [memoryRound(120, 30)], rotation: [memoryRound(130, 45)] } },
      { memory: { known: [memoryRound(120, 30)], rotation: [memoryRound(130, 45.1)] } },
    ],
  ];
  for (const [text, just, less] of rows) {
    it(`are met exactly at the bound: ${text}`, () => {
      expect(verdictOf(text, just)).to.equal(true);
    });
    it(`fall just beyond the bound: ${text}`, () => {
      expect(verdictOf(text, less)).to.equal(false);
    });
  }

  it('take the median of the rounds, each a ratio within its round', () => {
    const floors = judgeFloors(
      results({
        calls: {
          nothing: [callRound(10_000), callRound(1000), callRound(10_000)],
          known: [callRound(15_000), callRound(3000), callRound(9000)],
        },
      }),
    );
    expect(floors[0]?.measured).to.deep.equal({ median: 1.5, min: 0.9, max: 3 });
  });

  it('tell the ratio by CPU time beside the one that is judged', () => {
    const { calls } = results();
    const [first] = judgeFloors(
      results({ calls: { ...calls, nothing: [callRound(10_000, 90)], known: [callRound(9000, 30)] } }),
    );
    expect(first?.byCpuTime?.median).to.be.closeTo(3, 1e-9);
    expect(first?.isMet).to.equal(false);
  });

  it('are not judged in a run that is not whole', () => {
    const { run } = results();
    const floors = judgeFloors(results({ run: { ...run, isWhole: false } }));
    expect(floors.map(({ isMet }) => isMet)).to.deep.equal(floors.map(() => undefined));
  });

  it('are not judged where a contender is absent', () => {
    expect(verdictOf('to opa-envoy-plugin', { calls: { known: [callRound(20_000)] } })).to.equal(undefined);
  });
});
