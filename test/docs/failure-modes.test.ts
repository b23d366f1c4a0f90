// docs/failure-modes.md: every row names an existing test, and its answer is one that account-authz, Envoy or the documented exit gives.
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { refusalAnswers } from '../../src/authz/refusal.ts';
import { unknownMetrics } from '../deploy/monitoring/expressions.ts';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const rows = read('docs/failure-modes.md')
  .split('\n')
  .filter(line => line.startsWith('| '))
  .slice(1)
  .map(line => line.slice(2, -2).split(' | '));

/** The answers of a cell: `503 keys_unavailable` of account-authz, `503` or `403` of Envoy, or `nothing`. */
function answersOf(cell: string): string[] {
  const [first = ''] = cell.split(/[,;:]/);
  const ours = Array.from(cell.matchAll(/(\d{3}) `(\w+)`/g), ([, status, reason]) => `${status} ${reason}`);
  const envoys = Array.from(cell.matchAll(/\bEnvoy's (\d{3})\b/g), ([, status]) => `Envoy's ${status}`);
  return [...ours, ...envoys, ...(/^nothing\b/.test(first) ? ['nothing'] : [])];
}

const possible = new Set([
  ...Object.entries(refusalAnswers).map(([reason, { httpStatus }]) => `${httpStatus} ${reason}`),
  // status_on_error, and what validate_mutations or rbac refuse.
  "Envoy's 503",
  "Envoy's 403",
  'nothing',
]);

/** An id of a case; a curve such as P-256 is none. */
const idPattern = /\b(?!P-(?:256|384|521)\b)[A-Z]-\d{3}\b/;

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
      // A page may leave out what a title has around its fact; a word or a letter is no fact.
      expect(title, proof).to.match(/^[A-Z]-\d{3}$|\S+ \S+ \S+/);
      expect(titles.filter(each => each.includes(title))).to.have.length.of.at.least(1);
    });

    it(`names an answer that is given: ${what}`, () => {
      const answers = answersOf(answer);
      expect(answers, answer).to.have.length.of.at.least(1);
      expect(answers.filter(each => !possible.has(each))).to.deep.equal([]);
      // No status and no name in code marks stands outside of what was recognized.
      const statuses = answer.match(/\b[1-5]\d\d\b(?! (?:ms|s|MB)\b)/g) ?? [];
      expect(answers.flatMap(each => each.match(/\d{3}/) ?? [])).to.include.members(statuses);
    });
  }

  it('names only existing metrics', async () => {
    const names = rows.flatMap(([, , sign = '']) => sign.match(/\b(?:account_authz|envoy|process|nodejs)_\w+/g) ?? []);
    expect(await unknownMetrics(names)).to.deep.equal([]);
  });
});

describe('docs/threat-model.md', () => {
  it('has ids for every abuse case, and each is named by a test', () => {
    const [, abuse = ''] = read('docs/threat-model.md').split('## Abuse cases');
    const table = abuse.split('## What is left')[0]?.match(/^\| .*\|$/gm) ?? [];
    expect(table.slice(1)).to.have.length.above(20);
    expect(table.slice(1).filter(row => !idPattern.test(row))).to.deep.equal([]);
    const tests = readdirSync(new URL('../', import.meta.url), { recursive: true, encoding: 'utf8' });
    const texts = tests
      .filter(name => name.endsWith('.ts'))
      .map(name => read(`test/${name}`))
      .join('\n');
    const ids = table.join('\n').match(new RegExp(idPattern, 'g')) ?? [];
    expect(ids.filter(id => !texts.includes(id))).to.deep.equal([]);
  });
});
