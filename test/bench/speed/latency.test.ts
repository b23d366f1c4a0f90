import { expect } from 'chai';
import type { RunFigures } from '../../../bench/load/wire-load.ts';
import { firstLane } from '../../../bench/speed/latency.ts';

function loop(...lanes: readonly (readonly number[])[]): RunFigures {
  return {
    elapsedMs: 1000,
    lanes: lanes.map(latenciesMs => ({
      answered: latenciesMs.length,
      wrong: 0,
      failed: 0,
      latenciesMs: Float64Array.from(latenciesMs),
    })),
    cpuMicroseconds: [],
    loadCpuMicroseconds: 0,
  };
}

describe('the latency of the first lane', () => {
  it('counts the calls of several loops as those of one, and those of other lanes not at all', () => {
    const quick = Array.from({ length: 60 }, () => 1);
    const slow = Array.from({ length: 40 }, () => 11);
    const figures = firstLane(loop(quick, [900]), loop(slow, [900]));
    expect(figures).to.deep.equal({ meanMs: 5, p50Ms: 1, p99Ms: 11, p999Ms: 11 });
  });

  it('is none where a loop has no lane', () => {
    expect(() => firstLane(loop([1]), loop())).to.throw('a loop without a lane');
  });
});
