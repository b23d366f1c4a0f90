// Every security case is listed once, and has a test or a reason for its absence; the page of the cases is up to date.
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { idsIn, sections, securityCases } from './case-list.ts';
import { type CaseTest, caseTests } from './case-tests.ts';
import { readCasesPage, renderCasesPage } from './cases-page.ts';
import { leftOut } from './left-out.ts';

describe('security cases', () => {
  const listed = securityCases().map(({ id }) => id);
  let tests: readonly CaseTest[];
  let tested: Set<string>;

  before(async () => {
    tests = await caseTests();
    tested = new Set(tests.flatMap(({ ids }) => ids));
  });

  it('are listed once each, with input and outcome, under a section', () => {
    expect(new Set(listed)).to.have.property('size', listed.length);
    for (const { id, input, outcome } of securityCases()) {
      expect([input, outcome], id).to.not.include('');
      expect([...sections.keys()], id).to.include(id.slice(0, 1));
    }
  });

  it('each have a test or a reason for its absence', () => {
    expect(listed.filter(id => !tested.has(id) && !leftOut.has(id))).to.deep.equal([]);
  });

  it('have no reason for an absent test if they have one', () => {
    expect([...leftOut.keys()].filter(id => tested.has(id))).to.deep.equal([]);
  });

  it('are all listed: no test and no reason has an unknown id', () => {
    expect([...tested, ...leftOut.keys()].filter(id => !listed.includes(id))).to.deep.equal([]);
  });

  it('are referenced by every abuse case of docs/threat-model.md, with listed ids only', () => {
    const text = readFileSync(new URL('../../docs/threat-model.md', import.meta.url), 'utf8');
    expect(idsIn(text).filter(id => !listed.includes(id))).to.deep.equal([]);
    const [, abuse = ''] = text.split('## Abuse cases');
    const rows =
      abuse
        .split('## What is left')[0]
        ?.match(/^\| .*\|$/gm)
        ?.slice(1) ?? [];
    expect(rows).to.have.length.above(20);
    expect(rows.filter(row => idsIn(row).length === 0)).to.deep.equal([]);
  });

  it('are up to date in docs/dev/security-cases.md: npm run derive', async () => {
    expect(await readCasesPage()).to.equal(renderCasesPage(tests));
  });
});
