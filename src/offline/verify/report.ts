// Prints what a gateway answered beside what was expected, as a table or as JSON. Has nothing of the token.
import { listWords } from '../../text/list.ts';
import { printable } from '../../text/printable.ts';
import { answersAsExpected, type Difference, explainDifference } from './comparison.ts';
import type { Expected } from './expected.ts';
import type { AskedRequest, GatewayVerification } from './verification.ts';

const maxTextLength = 2048;
const maxListed = 5;
const shown = (text: string): string => printable(text, maxTextLength);

/** The difference of each request, undefined where the answer is as expected. `file` is the configuration. */
function differencesIn({ asked }: GatewayVerification, file: string): readonly (Difference | undefined)[] {
  const isAsked = asked.some(({ answer }) => answer.reason !== undefined);
  const isFiltered = asked.some(
    each => each.planned.purpose.kind === 'path outside the grammar' && answersAsExpected(each),
  );
  return asked.map(each => explainDifference(each, { isAsked, isFiltered, file: shown(file) }));
}

export function toTable(verification: GatewayVerification, file: string): string {
  const { asked, leftOut, notes, origin } = verification;
  const rows = [
    ['', 'request', 'expected', 'actual'],
    ...asked.map(each => [
      answersAsExpected(each) ? 'ok' : 'DIFF',
      shown(each.planned.name),
      expectedText(each.expected),
      actualText(each),
    ]),
  ];
  const widths = [0, 1, 2].map(column => Math.max(...rows.map(row => row[column]?.length ?? 0)));
  const lines = rows.map(row =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const count = asked.filter(each => !answersAsExpected(each)).length;
  const meanings = [...group(differencesIn(verification, file))].map(
    ([meaning, { look, times }]) => `${times} of ${asked.length}: ${meaning}\n  look at: ${look}`,
  );
  return [
    ...lines,
    '',
    ...meanings,
    ...notes.map(note => `note: ${shown(note)}`),
    ...leftOut
      .filter(({ names }) => names.length > 0)
      .map(({ names, why }) => shown(`${names.length} left out (${why}): ${listWords(names, maxListed)}`)),
    `${shown(origin)}: ${asked.length - count} of ${asked.length} answers as expected`,
    '',
  ].join('\n');
}

export function toJson(verification: GatewayVerification, file: string): string {
  const { asked, leftOut, notes, origin } = verification;
  const differences = differencesIn(verification, file);
  const value = {
    url: shown(origin),
    requests: asked.map((each, i) => ({
      request: shown(each.planned.name),
      expected: each.expected.kind === 'passed' ? { reason: 'allowed' } : statusAndReason(each.expected),
      actual: statusAndReason(each.answer),
      asExpected: answersAsExpected(each),
      ...differences[i],
    })),
    leftOut: leftOut.flatMap(({ names, why }) => names.map(name => ({ request: shown(name), why: shown(why) }))),
    notes: notes.map(shown),
  };
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

function statusAndReason({ status, reason }: { readonly status: number; readonly reason: string | undefined }) {
  return { status, ...(reason === undefined ? {} : { reason }) };
}

function expectedText(expected: Expected): string {
  return expected.kind === 'passed' ? 'an answer of the API' : `${expected.status} ${expected.reason}`;
}

function actualText({ answer: { status, reason } }: AskedRequest): string {
  return reason === undefined ? `${status}, not from account-authz` : `${status} ${reason}`;
}

function group(differences: readonly (Difference | undefined)[]) {
  const groups = new Map<string, { readonly look: string; readonly times: number }>();
  for (const difference of differences) {
    if (difference === undefined) continue;
    const { meaning, look } = difference;
    groups.set(meaning, { look, times: (groups.get(meaning)?.times ?? 0) + 1 });
  }
  return groups;
}
