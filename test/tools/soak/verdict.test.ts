// When the memory of a soak counts as flat.
import { expect } from 'chai';
import { maxRiseMegabytes, type SoakSample, soakVerdict } from '../../../tools/soak/verdict.ts';

function samples(megabytesAt: (second: number) => number): SoakSample[] {
  return Array.from({ length: 101 }, (_, atSeconds) => ({
    atSeconds,
    residentMegabytes: megabytesAt(atSeconds),
    loopDelayMs: 10,
  }));
}

describe('the verdict of a soak', () => {
  it('is flat if memory does not change', () => {
    expect(soakVerdict(samples(() => 130))).to.deep.equal({ riseMegabytes: 0, isFlat: true });
  });

  it('ignores the warm-up', () => {
    const { isFlat, riseMegabytes } = soakVerdict(samples(second => (second < 25 ? 50 + second * 3 : 130)));
    expect(riseMegabytes).to.be.closeTo(0, 1e-9);
    expect(isFlat).to.equal(true);
  });

  it('is not flat if the trend rises by more than the bound', () => {
    const slope = (maxRiseMegabytes + 0.1) / 75;
    expect(soakVerdict(samples(second => 100 + second * slope)).isFlat).to.equal(false);
  });

  it('is flat if the trend rises by less than the bound', () => {
    const slope = (maxRiseMegabytes - 0.1) / 75;
    expect(soakVerdict(samples(second => 100 + second * slope)).isFlat).to.equal(true);
  });

  it('is flat if memory only fluctuates', () => {
    expect(soakVerdict(samples(second => 130 + (second % 5))).isFlat).to.equal(true);
  });
});
