// docs/envoy-lint.md: its table of rules, from the rules. What stands above the table is written by hand.
import { readFileSync } from 'node:fs';
import { lintRules } from '../../src/toolkit/lint/lint.ts';

const page = new URL('../../docs/envoy-lint.md', import.meta.url);
const head = '| id | what | fix |\n|---|---|---|\n';

export function makeLintPage(): string {
  const [written = ''] = readFileSync(page, 'utf8').split(head);
  const rows = Object.entries(lintRules).map(([id, { what, fix }]) =>
    [`\`${id}\``, what, fix].map(cell => cell.replaceAll('|', '\\|')).join(' | '),
  );
  return `${written}${head}${rows.map(row => `| ${row} |\n`).join('')}`;
}
