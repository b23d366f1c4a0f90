import { expect } from 'chai';
import fc from 'fast-check';
import { slopeOf } from '../../../bench/measure/trend.ts';

describe('the trend of samples', () => {
  it('is the rise of the line that they lie on', () => {
    const samples = [0, 1, 2, 5].map(at => ({ at, value: 100 + 3 * at }));
    expect(slopeOf(samples)).to.be.closeTo(3, 1e-9);
  });

  it('is not moved by where the line begins', () => {
    fc.assert(
      fc.property(fc.integer({ min: -1000, max: 1000 }), fc.integer({ min: -50, max: 50 }), (start, slope) => {
        const samples = [0, 1, 2, 3].map(at => ({ at, value: start + slope * at }));
        expect(slopeOf(samples)).to.be.closeTo(slope, 1e-6);
      }),
    );
  });

  it('weighs what lies above the line against what lies below', () => {
    const samples = [1, -1, -1, 1].map((value, at) => ({ at, value }));
    expect(slopeOf(samples)).to.equal(0);
  });

  for (const [name, samples] of [
    ['nothing', []],
    ['one sample', [{ at: 1, value: 5 }]],
    [
      'one time',
      [
        { at: 1, value: 5 },
        { at: 1, value: 9 },
      ],
    ],
  ] as const) {
    it(`of ${name} is 0`, () => {
      expect(slopeOf(samples)).to.equal(0);
    });
  }
});
