import { expect } from 'chai';
import { type Timeline, timelineSvg } from '../../../bench/report/timeline-svg.ts';

const timeline: Timeline = {
  title: 'a < b & "c"',
  subtitle: 'four buckets',
  durationMs: 1000,
  phases: [{ label: 'only', fromMs: 0, toMs: 1000, shaded: [250, 500], events: [{ atMs: 300, label: 'now' }] }],
  panels: [
    {
      kind: 'lines',
      title: 'latency',
      height: 100,
      scale: 'log',
      series: [
        {
          name: 'p50',
          colour: '#111111',
          points: [
            { atMs: 0, value: 1 },
            { atMs: 250, value: undefined },
            { atMs: 500, value: 100 },
            { atMs: 750, value: 10 },
          ],
        },
      ],
    },
    {
      kind: 'stack',
      title: 'answers',
      height: 100,
      bucketMs: 250,
      series: [
        { name: '200', colour: '#222222', values: [10, 0, 0, 10] },
        { name: '503', colour: '#333333', values: [0, 10, 0, 10] },
      ],
    },
    { kind: 'ticks', title: 'fetches', height: 10, series: [{ name: 'fetch', colour: '#444444', times: [0, 1000] }] },
  ],
};

describe('a timeline', () => {
  const svg = timelineSvg(timeline);
  const pathOf = (attribute: string): string =>
    new RegExp(`<path d="([^"]*)" ${attribute}`).exec(svg)?.[1] ?? 'no such path';

  it('is one self-contained document without a script', () => {
    expect(svg).to.match(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" [^>]*>\n[\s\S]*<\/svg>\n$/);
    expect(svg).to.not.match(/<script|href|url\(|@import|NaN|undefined/);
  });

  it('escapes its texts', () => {
    expect(svg).to.include('>a &lt; b &amp; &quot;c&quot;</text>');
  });

  it('labels its phases, their events and its panels', () => {
    for (const label of ['only', 'now', 'latency', 'answers', 'fetches', '200', '503'])
      expect(svg).to.include(`>${label}</text>`);
  });

  it('leaves a gap in a line where nothing was measured', () => {
    expect(pathOf('stroke="#111111"')).to.match(/^M64 \S+M660 \S+L958 \S+$/);
  });

  it('stacks a column for each bucket that has something in it, on those below', () => {
    const [lower, upper] = [pathOf('fill="#222222"'), pathOf('fill="#333333"')];
    expect(lower.match(/M/g)).to.have.length(2);
    expect(upper.match(/M/g)).to.have.length(2);
    const [, foot] = /M958 ([\d.]+)V/.exec(upper) ?? [];
    const [, head] = /M958 [\d.]+V([\d.]+)H/.exec(lower) ?? [];
    expect(foot).to.equal(head);
  });

  it('puts ticks at both ends of the axis', () => {
    expect(pathOf('stroke="#444444"')).to.match(/^M64 \S+M1256 \S+$/);
  });
});
