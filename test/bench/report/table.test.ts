import { stripVTControlCharacters } from 'node:util';
import { expect } from 'chai';
import { cell, type Table, toMarkdown, toText } from '../../../bench/report/table.ts';

const table: Table = {
  columns: [
    { head: 'phase', align: 'left' },
    { head: 'wrong', align: 'right' },
  ],
  rows: [
    [cell('rotation'), cell(0, 'good')],
    [cell('a|b'), cell(12, 'bad')],
  ],
};

describe('a table', () => {
  it('aligns its columns in text', () => {
    expect(toText(table, false)).to.equal('phase     wrong\nrotation      0\na|b          12');
  });

  it('is as wide in colour as without', () => {
    const coloured = toText(table, true);
    expect(coloured).to.include('\x1b[32m0\x1b[39m');
    expect(stripVTControlCharacters(coloured)).to.equal(toText(table, false));
  });

  it('is Markdown, with its bars escaped', () => {
    expect(toMarkdown(table)).to.equal('| phase | wrong |\n| :-- | --: |\n| rotation | 0 |\n| a\\|b | 12 |');
  });
});
