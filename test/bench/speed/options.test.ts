import { expect } from 'chai';
import { parseBenchOptions } from '../../../bench/speed/options.ts';

function optionsOf(...args: readonly string[]) {
  const parsed = parseBenchOptions(args);
  if (parsed.kind !== 'options') throw new Error(JSON.stringify(parsed));
  return parsed.options;
}

describe('the command line of the bench', () => {
  it('measures everything in ten rounds where nothing is said', () => {
    expect(optionsOf()).to.deep.equal({
      quick: false,
      only: [],
      rounds: 10,
      algorithm: 'RS256',
      node: undefined,
      nodeOptions: [],
      render: false,
      out: undefined,
    });
  });

  it('takes names with commas and flags with spaces', () => {
    const options = optionsOf('--only', 'known, nothing,', '--node-options=--a=1  --b', '--node', '26');
    expect(options).to.deep.include({ only: ['known', 'nothing'], nodeOptions: ['--a=1', '--b'], node: '26' });
  });

  it('takes fewer rounds for a quick run, unless told', () => {
    const rounds = [['--quick'], ['--quick', '--only', 'known'], ['--quick', '--rounds', '7']].map(
      args => optionsOf(...args).rounds,
    );
    expect(rounds).to.deep.equal([2, 3, 7]);
  });

  for (const args of [
    ['--rounds', '0'],
    ['--rounds', 'many'],
    ['--algorithm', 'HS256'],
    ['--node', 'latest'],
    ['--quik'],
    ['known'],
  ]) {
    it(`refuses ${args.join(' ')}`, () => {
      expect(parseBenchOptions(args).kind).to.equal('usage problem');
    });
  }

  it('knows --help', () => {
    expect(parseBenchOptions(['--help'])).to.deep.equal({ kind: 'help' });
  });
});
