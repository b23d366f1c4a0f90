import { expect } from 'chai';
import { mayChoose, quickScenarios, scenarioNames, select } from '../../../bench/speed/scenario-names.ts';

const contenders = ['known', 'nothing', 'opa'];

function chosen(...only: readonly string[]): { scenarios: readonly string[]; contenders: readonly string[] } {
  const selected = select(only, contenders, false);
  if (selected.kind === 'unknown') throw new Error(selected.names.join());
  const { scenarios, isWanted } = selected.selection;
  return { scenarios: [...scenarios], contenders: contenders.filter(isWanted) };
}

describe('what a bench is asked for', () => {
  it('is everything where nothing is named', () => {
    expect(chosen()).to.deep.equal({ scenarios: scenarioNames, contenders });
  });

  it('is the calls of the contenders that are named', () => {
    expect(chosen('opa', 'known')).to.deep.equal({ scenarios: ['calls'], contenders: ['known', 'opa'] });
  });

  it('is the scenarios that are named, of all', () => {
    expect(chosen('start', 'calls')).to.deep.equal({ scenarios: ['calls', 'start'], contenders });
  });

  it('is both where both are named', () => {
    expect(chosen('latency', 'opa')).to.deep.equal({ scenarios: ['latency'], contenders: ['opa'] });
  });

  it('is less of everything in a quick run where nothing is named', () => {
    const selected = select([], [...contenders, 'rego'], true);
    expect(selected.kind === 'selection' && [...selected.selection.scenarios]).to.deep.equal(quickScenarios);
    expect(
      selected.kind === 'selection' && contenders.concat('rego').filter(selected.selection.isWanted),
    ).to.deep.equal(contenders);
  });

  it('is a contender that is named, in a quick run too', () => {
    const selected = select(['rego'], ['rego'], true);
    expect(selected.kind === 'selection' && selected.selection.isWanted('rego')).to.equal(true);
  });

  it('is told where a name is neither', () => {
    expect(select(['known', 'latencies'], contenders, false)).to.deep.equal({ kind: 'unknown', names: ['latencies'] });
  });

  for (const [only, may] of [
    [[], true],
    [['calls'], true],
    [['opa'], true],
    [['calls', 'opa'], true],
    [['known'], false],
    [['calls', 'known'], false],
  ] as const) {
    it(`${may ? 'may' : 'does not'} take opa in: --only ${only.join() || 'nothing'}`, () => {
      expect(mayChoose(only, ['opa'])).to.equal(may);
    });
  }
});
