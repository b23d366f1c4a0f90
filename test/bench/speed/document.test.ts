import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { withResults } from '../../../bench/speed/document.ts';
import type { BenchResults } from '../../../bench/speed/results.ts';
import { scenarioNames } from '../../../bench/speed/scenario-names.ts';
import { results } from './results.ts';

const project = fileURLToPath(new URL('../../../', import.meta.url));

describe('docs/performance.md', () => {
  let document: string;
  let kept: BenchResults | undefined;

  before(async () => {
    document = await readFile(`${project}docs/performance.md`, 'utf8');
    kept = await readFile(`${project}bench/results/bench.json`, 'utf8').then(
      text => JSON.parse(text) as BenchResults,
      () => undefined,
    );
  });

  it('has the figures of the run that is kept', () => {
    expect(document).to.equal(withResults(document, kept));
  });

  it('takes the figures of another run, and gives them back', () => {
    const other = withResults(document, results());
    expect(other).to.match(/### Floors[\s\S]*\| a known token, to opa-envoy-plugin \| ≥ 7\.00 × \| 10\.0 × \|/);
    expect(withResults(other, kept)).to.equal(document);
  });

  it('names every scenario', () => {
    for (const name of scenarioNames) expect(document).to.include(`\`${name}\``);
  });

  it('cannot take figures without its marks', () => {
    expect(() => withResults('# Performance', results())).to.throw(/marks/);
  });
});
