import { expect } from 'chai';
import { percentile, percentiles } from '../../../bench/measure/percentiles.ts';

const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);

describe('a percentile', () => {
  for (const [percent, expected] of [
    [0, 1],
    [50, 50],
    [99, 99],
    [99.1, 100],
    [100, 100],
  ] as const) {
    it(`is ${expected} of 1 to 100 at ${percent} percent`, () => {
      expect(percentile(hundred, percent)).to.equal(expected);
    });
  }

  it('is the only value there is', () => {
    expect(percentiles([7], [1, 50, 99])).to.deep.equal([7, 7, 7]);
  });

  it('is undefined of nothing', () => {
    expect(percentile([], 50)).to.equal(undefined);
  });

  it('sorts numbers as numbers and leaves the list as it is', () => {
    const values = [10, 9, 100];
    expect(percentile(values, 50)).to.equal(10);
    expect(values).to.deep.equal([10, 9, 100]);
  });
});
