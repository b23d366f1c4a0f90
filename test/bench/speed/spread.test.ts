import { expect } from 'chai';
import { ratioOf, spreadOf } from '../../../bench/speed/spread.ts';

describe('a spread', () => {
  it('has the middle one of an odd number of rounds', () => {
    expect(spreadOf([9, 1, 5])).to.deep.equal({ median: 5, min: 1, max: 9 });
  });

  it('has the mean of the two middle ones of an even number', () => {
    expect(spreadOf([4, 1, 2, 9])).to.deep.equal({ median: 3, min: 1, max: 9 });
  });

  it('of nothing is no number', () => {
    expect(spreadOf([]).median).to.be.NaN;
  });
});

describe('a ratio', () => {
  it('is taken round by round', () => {
    expect(ratioOf([10, 40, 90], [10, 20, 30])).to.deep.equal({ median: 2, min: 1, max: 3 });
  });
});
