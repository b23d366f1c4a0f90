import { expect } from 'chai';
import { soakSvg } from '../../../bench/soak/chart.ts';
import { mostRiseMegabytes, type SoakSample, soakVerdict } from '../../../bench/soak/verdict.ts';

function samples(megabytesAt: (second: number) => number): SoakSample[] {
  return Array.from({ length: 101 }, (_, atSeconds) => ({
    atSeconds,
    residentMegabytes: megabytesAt(atSeconds),
    loopDelayMs: 10,
  }));
}

describe('the verdict of a soak', () => {
  it('is flat where memory stays', () => {
    expect(soakVerdict(samples(() => 130))).to.deep.equal({ riseMegabytes: 0, isFlat: true });
  });

  it('leaves the warm-up out', () => {
    const { isFlat, riseMegabytes } = soakVerdict(samples(second => (second < 25 ? 50 + second * 3 : 130)));
    expect(riseMegabytes).to.be.closeTo(0, 1e-9);
    expect(isFlat).to.equal(true);
  });

  it('is not flat where the line rises by more than the bound from end to end', () => {
    const slope = (mostRiseMegabytes + 0.1) / 75;
    expect(soakVerdict(samples(second => 100 + second * slope)).isFlat).to.equal(false);
  });

  it('is flat where the line rises by less than the bound', () => {
    const slope = (mostRiseMegabytes - 0.1) / 75;
    expect(soakVerdict(samples(second => 100 + second * slope)).isFlat).to.equal(true);
  });

  it('sees through what comes and goes', () => {
    expect(soakVerdict(samples(second => 130 + (second % 5))).isFlat).to.equal(true);
  });
});

describe('the picture of a soak', () => {
  const svg = soakSvg(
    samples(second => 100 + second / 10),
    'a title',
    'a subtitle',
  );

  it('is one self-contained document with a line for memory and one for the event loop', () => {
    expect(svg).to.match(/^<svg [\s\S]*<\/svg>\n$/);
    expect(svg.match(/<path d="M64 [^"]*L[^"]*" class="s-(?:product|peer)"/g)).to.have.length(2);
    expect(svg).to.not.match(/NaN|undefined|Infinity|<script|href/);
  });
});
