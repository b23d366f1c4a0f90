import { expect } from 'chai';
import { line, linearMarks, polyline, powerMarks, svgDocument, text } from '../../../bench/report/svg.ts';

describe('an SVG of the bench', () => {
  const svg = svgDocument(100, 50, 'a < b', [text(1, 2, 'x & "y"', 'ink'), line(0, 0, 10, 10, 'grid')]);

  it('is one self-contained document without a script', () => {
    expect(svg).to.match(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" [^>]*>\n[\s\S]*<\/svg>\n$/);
    expect(svg).to.not.match(/<script|href|url\(|@import/);
  });

  it('has colours for a light and for a dark page', () => {
    expect(svg).to.match(/\.f-ink\{fill:#1f2933\}[\s\S]*prefers-color-scheme: dark\)\{[\s\S]*\.f-ink\{fill:#e4e9ef\}/);
  });

  it('escapes its texts', () => {
    expect(svg).to.include('>x &amp; &quot;y&quot;</text>').and.to.include('aria-label="a &lt; b"');
  });
});

describe('the marks of an axis', () => {
  for (const [highest, marks] of [
    [10, [0, 2, 4, 6, 8, 10]],
    [0.9, [0, 0.2, 0.4, 0.6, 0.8, 1]],
    [34_190, [0, 10_000, 20_000, 30_000, 40_000]],
    [0, [0, 0.2, 0.4, 0.6, 0.8, 1]],
  ] as const) {
    it(`reach ${highest} in round steps`, () => {
      expect(linearMarks(highest).map(mark => Math.round(mark * 10) / 10)).to.deep.equal(marks);
    });
  }

  it('are powers of ten that hold all values', () => {
    expect(powerMarks([0.07, 3, 148])).to.deep.equal([0.01, 0.1, 1, 10, 100, 1000]);
  });

  it('are there where there is no value', () => {
    expect(powerMarks([])).to.deep.equal([1, 10]);
  });
});

describe('a line of points', () => {
  it('has a gap where one is missing', () => {
    expect(polyline([[0, 1], [2, 3], undefined, [4, 5]], 'ink')).to.include('d="M0 1L2 3M4 5"');
  });
});
