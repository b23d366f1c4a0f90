// Derives docs/dev/security-cases.md from the list of cases, the titles of the tests and the list of cases without a test.
import { readFile, writeFile } from 'node:fs/promises';
import { type SecurityCase, sections, securityCases } from './case-list.ts';
import { type CaseTest, caseTests } from './case-tests.ts';
import { leftOut } from './left-out.ts';

export const casesPage = 'docs/dev/security-cases.md';

const file = new URL(`../../${casesPage}`, import.meta.url);

export async function readCasesPage(): Promise<string> {
  return await readFile(file, 'utf8');
}

export async function writeCasesPage(): Promise<void> {
  await writeFile(file, renderCasesPage(await caseTests()));
}

export function renderCasesPage(tests: readonly CaseTest[]): string {
  const cases = securityCases();
  const parts = Array.from(sections, ([letter, title]) => {
    const own = cases.filter(({ id }) => id.startsWith(letter));
    return `## ${letter}: ${title}\n\n| id | case | outcome | tests | rings |\n|---|---|---|---|---|\n${own
      .map(each => row(each, tests))
      .join('')}`;
  });
  const tested = cases.filter(({ id }) => !leftOut.has(id)).length;
  return `<!-- Made by npm run derive from the names of the tests, test/assurance/cases.tsv and test/assurance/left-out.ts. -->

# Security cases and their tests

${tested} of ${cases.length} cases have tests whose names carry their ids; the others say why they have none. \`npx mocha -g J-014\` (with
\`'test/**/*.test.ts'\`) runs the tests of one case.

Outcomes: A is an allow; D400, D401, D403, D404 and D503 are refusals with that status (D401m \`token_missing\`, D401e
\`token_expired\`); gN is a gRPC status of the call itself. Rings: *unit* is the code alone, *wire* goes through sockets and the
real serializers, *Envoy* through a real Envoy, where not said otherwise each supported one.

Besides, [\`lab/invariants.ts\`](../../lab/invariants.ts) holds what is true of every answer, whatever the case.

${parts.join('\n')}`;
}

function row({ id, input, outcome }: SecurityCase, all: readonly CaseTest[]): string {
  const tests = all.filter(({ ids }) => ids.includes(id));
  const reason = leftOut.get(id);
  const cell = reason === undefined ? testsCell(id, tests) : `No test: ${escaped(reason)}`;
  const rings = ['unit', 'wire', 'Envoy'].filter(ring => tests.some(each => each.ring === ring));
  return `| ${id} | ${escaped(input)} | ${escaped(outcome)} | ${cell} | ${rings.join(', ')} |\n`;
}

function testsCell(id: string, tests: readonly CaseTest[]): string {
  const files = new Map<string, string[]>();
  for (const { file, title } of tests) files.set(file, [...(files.get(file) ?? []), plain(title, id)]);
  return Array.from(files, ([file, titles]) => `\`${file}\`: ${titles.join('; ')}`).join('<br>');
}

// The id is in the first column.
function plain(title: string, id: string): string {
  return inline(title.replace(id, '').trim());
}

/** The list may contain code. */
function escaped(text: string): string {
  return text.replaceAll('|', '\\|');
}

/** Escapes Markdown in titles of tests. */
function inline(text: string): string {
  const shown = text.replace(/[^\x20-\x7e\u00a1-\uffff]/g, ' ').replaceAll('<', '&lt;');
  return shown.replace(/[\\`*_[\]|]/g, '\\$&');
}
