// Prints what the policy does with each operation: a table and a line for each problem, or JSON.
import { alignColumns, listWords, printable, printableValue } from '../../text/printable.ts';
import type { Coverage, CoverageReport } from './coverage.ts';
import type { CoverageProblem } from './operations.ts';

const maxListed = 8;
const maxCell = 160;
const maxAbout = 320;
const maxLine = 2048;

export function formatCoverage(rows: readonly Coverage[]): string {
  const cells = rows.map(row => [row.method, row.path, ...describe(row)].map(cell => printable(cell, maxCell)));
  const lines = alignColumns([['method', 'path', 'routes', 'account', 'who may call'], ...cells]);
  return lines.map(line => `${line}\n`).join('');
}

function describe({ outcome, routes, account, roles, scopes }: Coverage): readonly [string, string, string] {
  if (outcome === 'public') return ['public', 'not compared', 'everyone, unchecked'];
  if (routes.length === 0) return [outcome, '', 'nobody'];
  const who = [roles, ...(scopes ? [scopes] : [])].map(names => listWords(names, maxListed) || 'nobody');
  return [listWords(routes, maxListed), account.join(', ') || 'not compared', who.join('; scopes ')];
}

export function formatCoverageProblems(file: string, problems: readonly CoverageProblem[]): string {
  return problems
    .map(({ severity, method, path, place, message }) => {
      const about = method === undefined ? place : `${method} ${path}`;
      // A path may be longer than any line.
      const line = about === undefined ? message : `${printable(about, maxAbout)}: ${message}`;
      return `${severity}: ${printable(file, maxLine)}: ${printable(line, maxLine)}\n`;
    })
    .join('');
}

export function toCoverageJson(report: CoverageReport): string {
  return `${JSON.stringify(printableValue(report, maxLine), undefined, 2)}\n`;
}
