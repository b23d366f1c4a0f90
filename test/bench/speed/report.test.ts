import { expect } from 'chai';
import { callsSvg, latencySvg } from '../../../bench/speed/charts.ts';
import { benchMarkdown, sections } from '../../../bench/speed/report.ts';
import { results } from './results.ts';

/** Each element that is opened is closed, in order. */
function openElements(svg: string): readonly string[] {
  const open: string[] = [];
  for (const [, isEnd, name = '', isEmpty] of svg.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)) {
    if (isEnd === '/' && open.at(-1) === name) open.pop();
    else if (isEmpty !== '/') open.push(`${isEnd}${name}`);
  }
  return open;
}

describe('the page of a bench', () => {
  const page = benchMarkdown(results());

  it('has a section for each scenario', () => {
    expect(sections(results()).map(({ name }) => name)).to.deep.equal([
      ...['floors', 'calls', 'latency', 'connections', 'start', 'envoy', 'storms', 'memory', 'scan', 'replicas'],
    ]);
  });

  it('leaves out what was not measured', () => {
    const page = benchMarkdown(results({ envoy: {}, scan: {} }));
    expect(page).to.not.match(/## Behind Envoy|## The cache under a scan/);
  });

  it('tells each floor with its bound, what was measured and the verdict', () => {
    expect(page).to.match(/\| a known token, to opa-envoy-plugin \| ≥ 7\.00 × \| 10\.0 × \|.*\| met \|/);
    expect(page).to.match(/\| a known token, to Authorino \|.*\| not measured \|/);
  });

  it('tells figures and their ratio to the service that does nothing', () => {
    expect(page).to.match(/\| known \| account-authz, one known token \| 20,000 \|[^|]*\| 2\.00 \| 50\.0 \|/);
  });

  it('says who is absent and why', () => {
    expect(page).to.include('`authorino`, Authorino: needs a cluster');
  });

  it('says what ran, and nothing else of the machine', () => {
    expect(page).to.include('Node 20.20.2, Go 1.26.8, Envoy 1.40.0; RS256; requests of 1,200 bytes; 1 rounds in turn');
    expect(page).to.not.match(/127\.0\.0\.1|localhost|\/(?:tmp|work|home|root)\//);
  });

  it('says so where it judges nothing', () => {
    const { run } = results();
    expect(benchMarkdown(results({ run: { ...run, isWhole: false } }))).to.include('it judges no floor');
  });

  it('has no figure that is none', () => {
    expect(page).to.not.match(/NaN|undefined|Infinity/);
  });
});

describe('the charts of a bench', () => {
  for (const [name, svg] of [
    ['calls', callsSvg(results())],
    ['latency', latencySvg(results())],
    ['calls of nobody', callsSvg(results({ calls: {} }))],
    ['latency of nobody', latencySvg(results({ latency: {} }))],
  ] as const) {
    it(`are well-formed: ${name}`, () => {
      expect(openElements(svg)).to.deep.equal([]);
      expect(svg).to.not.match(/NaN|undefined|Infinity|<script|href/);
    });
  }

  it('name each contender that was measured, and draw the floor across', () => {
    const svg = callsSvg(results());
    expect(svg).to.include('>does nothing &amp; &lt;more&gt;</text>').and.to.include('>20,000</text>');
    expect(svg).to.match(/class="f-mark"[^>]*>nothing<\/text>/);
  });

  it('say where a rate is beyond the capacity', () => {
    expect(latencySvg(results())).to.include('>beyond its capacity</text>');
  });
});
