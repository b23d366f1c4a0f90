// Writes the results of cases as TAP 14 and as JUnit XML. Never anything of a token: a detail names claims, not their values.
import { printable, quotedPrintable } from '../../text/printable.ts';
import type { CaseResult } from './run-cases.ts';

const maxTextLength = 1024;

export function tapPlan(count: number): string {
  return `TAP version 14\n1..${count}\n`;
}

/** `number` counts from 1. */
export function tapLine(result: CaseResult, number: number): string {
  // TAP 14: a number sign would start a directive such as SKIP.
  const name = printable(result.name, maxTextLength).replaceAll(/[\\#]/g, sign => `\\${sign}`);
  if (result.isAsExpected) return `ok ${number} - ${name}\n`;
  const { expected, received, detail } = result;
  const lines = Object.entries({ expected, received }).map(
    ([key, text]) => `${key}: ${printable(text, maxTextLength)}`,
  );
  if (detail !== undefined) lines.push(`detail: ${quotedPrintable(detail, maxTextLength)}`);
  return `not ok ${number} - ${name}\n  ---\n${lines.map(line => `  ${line}\n`).join('')}  ...\n`;
}

export function tapSummary(results: readonly CaseResult[]): string {
  const passed = results.filter(({ isAsExpected }) => isAsExpected).length;
  return `# ${passed} passed, ${results.length - passed} failed\n`;
}

export function toJunit(suite: string, results: readonly CaseResult[]): string {
  const failures = results.filter(({ isAsExpected }) => !isAsExpected).length;
  const counts = `tests="${results.length}" failures="${failures}" errors="0" skipped="0"`;
  const cases = results.map(result => {
    const start = `    <testcase classname="account-authz" name="${xml(result.name)}"`;
    if (result.isAsExpected) return `${start}/>\n`;
    const message = `expected ${result.expected}, received ${result.received}`;
    return `${start}>\n      <failure message="${xml(message)}">${xml(result.detail ?? message)}</failure>\n    </testcase>\n`;
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ${counts}>\n  <testsuite name="${xml(suite)}" ${counts}>\n${cases.join('')}  </testsuite>\n</testsuites>\n`;
}

const xmlEntities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function xml(text: string): string {
  return printable(text, maxTextLength).replaceAll(/[&<>"]/g, sign => xmlEntities[sign] ?? sign);
}
