// The listed survivors of the mutation tests, and when they fail a run.
import { expect } from 'chai';
import { instrument, type Mutant } from '../../../tools/mutation/mutants.ts';
import { report } from '../../../tools/mutation/report.ts';
import { groups } from '../../../tools/mutation/scope.ts';
import { disagreements, readSurvivors, type Survivor, withoutMutant } from '../../../tools/mutation/survivors.ts';

const mutant: Mutant = {
  id: '7',
  file: 'src/a.ts',
  line: 3,
  operator: 'ConditionalExpression',
  original: 'a < b',
  replacement: 'true',
  occurrence: 0,
};
const { id: _id, line: _line, ...named } = mutant;
const survivor: Survivor = { ...named, kind: 'equivalent', reason: 'b is larger than any a' };

describe('survivors of the mutation tests', () => {
  it('are mutants of the current sources, each listed once and with a reason', async () => {
    const sources = await Promise.all(groups.map(group => instrument(group.sources)));
    const survivors = readSurvivors();
    expect(
      withoutMutant(
        survivors,
        sources.flatMap(({ mutants }) => mutants),
      ),
    ).to.deep.equal([]);
    expect(new Set(survivors.map(each => JSON.stringify({ ...each, kind: '', reason: '' }))).size).to.equal(
      survivors.length,
    );
    expect(survivors.filter(({ reason }) => reason.length < 10)).to.deep.equal([]);
  });

  it('fail the run if one is not listed', () => {
    expect(disagreements([], [{ mutant, status: 'survived' }]).map(({ problem }) => problem)).to.deep.equal([
      'alive and not listed',
    ]);
  });

  it('fail the run if a listed one is killed', () => {
    expect(disagreements([survivor], [{ mutant, status: 'killed' }]).map(({ problem }) => problem)).to.deep.equal([
      'listed and killed',
    ]);
  });

  it('do not fail the run if they are listed, or were not run', () => {
    expect(disagreements([survivor], [{ mutant, status: 'survived' }])).to.deep.equal([]);
    expect(disagreements([survivor], [])).to.deep.equal([]);
  });

  it('are stale if the source has no such mutant', () => {
    expect(withoutMutant([survivor], [{ ...mutant, original: 'a <= b' }])).to.have.length(1);
    expect(withoutMutant([survivor], [mutant])).to.deep.equal([]);
  });

  it('are excluded from the score only as equivalents', () => {
    const killed = { mutant: { ...mutant, occurrence: 1 }, status: 'killed' } as const;
    const found = [killed, { mutant, status: 'survived' } as const];
    expect(report(found, [], [survivor])).to.include('| all | 2 | 0 | 1 | 0 | 1 | 1 | 100.0 % |');
    expect(report(found, [mutant], [{ ...survivor, kind: 'accepted' }])).to.include(
      '| all | 2 | 1 | 1 | 0 | 1 | 0 | 50.0 % |',
    );
  });
});
