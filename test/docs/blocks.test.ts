// The fenced blocks of README and docs/.
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { allPages } from '../../lab/document.ts';
import { envoyVersions } from '../../lab/envoy.ts';
import { parseExpressions, unknownMetrics } from '../deploy/monitoring/expressions.ts';

const pages = allPages();

describe('blocks in the documents', () => {
  const blocks = pages.flatMap(({ path, blocks: own }) => own.map(block => ({ path, ...block })));

  it('name exactly the versions of Envoy that the tests run', () => {
    const lists = pages
      .filter(({ path }) => path !== 'CHANGELOG.md')
      .flatMap(({ path, text }) =>
        Array.from(text.matchAll(/1\.36\.4(?:,| to| and)[\d., andto]*\d/g), ([list]) => ({ path, list })),
      );
    expect(lists).to.have.length.of.at.least(5);
    const wrong = lists.filter(({ list }) => list.split(/, | and /).join() !== envoyVersions.join());
    expect(wrong).to.deep.equal([]);
  });

  it('name only scripts of package.json', async () => {
    const { scripts } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'));
    const current = pages.filter(({ path }) => path !== 'CHANGELOG.md');
    const named = current.flatMap(({ path, text }) =>
      Array.from(text.matchAll(/npm run (?:--silent )?([\w:-]+)/g), ([, name = '']) => ({ path, name })),
    );
    expect(named).to.have.length.of.at.least(20);
    expect(named.filter(({ name }) => !Object.hasOwn(scripts, name))).to.deep.equal([]);
  });

  it('contain valid PromQL with existing metrics', async () => {
    const expressions = blocks.filter(({ language }) => language === 'promql').map(({ text }) => text);
    expect(expressions).to.have.length.of.at.least(20);
    const { good, output } = await parseExpressions(expressions);
    expect(good, output).to.equal(true);
    expect(await unknownMetrics(expressions)).to.deep.equal([]);
  });
});
