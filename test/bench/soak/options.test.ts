import { expect } from 'chai';
import { parseSoakOptions } from '../../../bench/soak/options.ts';

function parse(...args: readonly string[]) {
  return parseSoakOptions(args, '/results');
}

describe('the command line of the soak', () => {
  it('lasts an hour and leaves a picture where nothing is said', () => {
    expect(parse()).to.deep.equal({
      kind: 'options',
      options: { seconds: 3600, perSecond: 400, node: undefined, nodeOptions: [], out: '/results' },
    });
  });

  it('leaves no picture of a short one unless told where', () => {
    const [short, told] = [parse('--seconds', '5'), parse('--seconds', '5', '--out', '/here')];
    expect(short).to.deep.nested.include({ 'options.seconds': 5, 'options.out': undefined });
    expect(told).to.deep.nested.include({ 'options.out': '/here' });
  });

  for (const args of [
    ['--minutes', '0'],
    ['--minutes', 'x'],
    ['--rate', '-1'],
    ['--minutes', '1', '--seconds', '1'],
    ['--node', 'x'],
    ['--hours', '1'],
  ]) {
    it(`refuses ${args.join(' ')}`, () => {
      expect(parse(...args).kind).to.equal('usage problem');
    });
  }
});
