// A small fleet in virtual time meets the bars of `npm run fleet`.
import { expect } from 'chai';
import { runFleet } from '../../../tools/fleet/run.ts';
import { scenarios } from '../../../tools/fleet/scenarios.ts';

describe('a fleet of 250 instances', () => {
  const options = { instances: 250, seed: 1 };

  for (const scenario of scenarios) {
    it(`meets each bar of the scenario: ${scenario.name}`, () => {
      const outcome = runFleet(scenario, options);
      expect(scenario.bars.filter(bar => !bar.isMet(outcome)).map(({ text }) => text)).to.deep.equal([]);
      expect(scenario.bars).to.not.deep.equal([]);
      expect(outcome.good.allowed).to.be.above(250);
      expect(outcome.fetches).to.have.length(scenario.endMs / 1000);
    });
  }

  it('repeats a run with the same seed, and runs differently with another seed', () => {
    const [scenario] = scenarios;
    if (scenario === undefined) throw new Error('no scenario');
    const fetches = (seed: number): readonly number[] => runFleet(scenario, { instances: 20, seed }).fetches;
    expect(fetches(7)).to.deep.equal(fetches(7));
    expect(fetches(7)).to.not.deep.equal(fetches(8));
  });
});
