// docs/failure-modes.md: every row names an existing test, existing metrics and reasons of the code.
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { refusalAnswers } from '../../src/authz/refusal.ts';
import { unknownMetrics } from '../deploy/monitoring/expressions.ts';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const rows = read('docs/failure-modes.md')
  .split('\n')
  .filter(line => line.startsWith('| '))
  .slice(1)
  .map(line => line.slice(2, -2).split(' | '));

describe('docs/failure-modes.md', () => {
  it('has a table of four columns', () => {
    expect(rows).to.have.length.of.at.least(25);
    expect(rows.filter(cells => cells.length !== 4)).to.deep.equal([]);
  });

  for (const [what = '', answer = '', , proof = ''] of rows) {
    it(`names an existing test: ${what}`, () => {
      const [, file = '', title = ''] = /^`(test\/\S+\.test\.ts)`: (.+)$/.exec(proof) ?? [];
      const titles = Array.from(
        read(file).matchAll(/\b(?:it|describe)\(\s*(['"`])(.*?)\1,/g),
        ([, , text]) => text ?? '',
      );
      expect(titles.some(each => each.includes(title) && title !== '')).to.equal(true);
    });

    it(`has the status of the reason: ${what}`, () => {
      for (const [, status, reason] of answer.matchAll(/(\d{3}) `(\w+)`/g))
        expect(refusalAnswers).to.have.nested.property(`${reason}.httpStatus`, Number(status));
    });
  }

  it('names only existing metrics', async () => {
    const names = rows.flatMap(([, , sign = '']) => sign.match(/\b(?:account_authz|envoy|process|nodejs)_\w+/g) ?? []);
    expect(await unknownMetrics(names)).to.deep.equal([]);
  });
});
