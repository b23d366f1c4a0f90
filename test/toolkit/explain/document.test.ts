// docs/explain.md lists the same checks, options and exit codes as the code.
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { checkNames, checks } from '../../../src/authz/checks.ts';
import { runExplain } from './explain-lab.ts';

const page = readFileSync(new URL('../../../docs/explain.md', import.meta.url), 'utf8');

function rowsUnder(head: string): string[][] {
  const [, table = ''] = page.split(`| ${head} |`);
  const [rows = ''] = table.split('\n\n');
  return rows
    .split('\n')
    .slice(2)
    .map(row =>
      row
        .split('|')
        .slice(1, -1)
        .map(cell => cell.trim()),
    );
}

describe('docs/explain.md', () => {
  it('lists the checks in their order', () => {
    expect(rowsUnder('check').map(([name]) => name)).to.deep.equal(checkNames.map(name => `\`${name}\``));
  });

  it('lists the reasons of each check', () => {
    const reasons = rowsUnder('check').map(([, , cell = '']) => cell.match(/\w+_\w+/g)?.toSorted());
    const defined = checkNames.map(name =>
      Object.keys(checks[name])
        .filter(reason => reason !== 'internal')
        .toSorted(),
    );
    expect(reasons).to.deep.equal(defined);
  });

  it('lists the options of --help', async () => {
    const { stdout } = await runExplain(['--help']);
    const printed = Array.from(stdout.matchAll(/^ {2}(--[a-z-]+)/gm), ([, option]) => option);
    const documented = rowsUnder('option').map(([option = '']) => /--[a-z-]+/.exec(option)?.[0]);
    expect(documented).to.deep.equal(printed);
  });

  it('lists the exit codes of --help', async () => {
    const { stdout } = await runExplain(['--help']);
    const printed = /^Exit code: (.*)\.$/m.exec(stdout)?.[1]?.split(', ');
    expect(rowsUnder('exit code').map(([code, meaning]) => `${code} ${meaning}`)).to.deep.equal(printed);
  });
});
