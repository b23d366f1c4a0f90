// The table of a cluster run: for the terminal, and as the page docs/dev/cluster.md.
import type { Window } from './load.ts';

export interface Row {
  readonly deployment: string;
  readonly what: string;
  readonly expected: string;
  readonly measured: string;
  readonly isGood: boolean;
  /** Absent where no load was measured. */
  readonly window?: Window;
}

export interface Surroundings {
  readonly commit: string;
  readonly date: string;
  readonly kubernetes: string;
  readonly nodes: string;
  readonly command: string;
}

export function lostText({ lost }: Window): string {
  const kinds = Object.entries(lost).sort(([, one], [, other]) => other - one);
  if (kinds.length === 0) return '0';
  const total = kinds.reduce((sum, [, count]) => sum + count, 0);
  return `${total}: ${kinds.map(([what, count]) => `${count} × ${what}`).join(', ')}`;
}

export function lineOf(row: Row): string {
  const load = row.window === undefined ? '' : `${row.window.requests} requests, lost ${lostText(row.window)}`;
  const measured = [row.measured, load].filter(each => each !== '').join('; ');
  return `${row.isGood ? 'ok  ' : 'FAIL'}  ${row.what}: ${measured} (expected: ${row.expected})`;
}

export function pageOf(rows: readonly Row[], { commit, date, kubernetes, nodes, command }: Surroundings): string {
  const deployments = [...new Set(rows.map(({ deployment }) => deployment))];
  const total = rows.reduce((sum, { window }) => sum + (window?.requests ?? 0), 0);
  const bad = rows.filter(({ isGood }) => !isGood).length;
  const table = (deployment: string): string => {
    const lines = rows
      .filter(row => row.deployment === deployment)
      .map(({ what, expected, measured, isGood, window }) => {
        const load = window === undefined ? ['', ''] : [`${window.requests}`, cell(lostText(window))];
        return `| ${[cell(what), cell(expected), cell(measured), ...load, isGood ? 'yes' : '**no**'].join(' | ')} |`;
      });
    const head = ['| what | expected | measured | requests | lost | as expected |', '|---|---|---|---|---|---|'];
    return [`## ${deployment}`, '', ...head, ...lines].join('\n');
  };
  return `${[
    '# On a real cluster',
    'What `npm run cluster` measured on real pods. It made this page; do not edit it.',
    [
      `Commit ${commit}, ${date}, Kubernetes ${kubernetes}, ${nodes}. \`${command}\``,
      `${rows.length} rows, ${bad === 0 ? 'all' : `${rows.length - bad}`} as expected; ${total} requests.`,
    ].join('\n'),
    [
      'Six clients pause for 30 ms between requests (HTTP/1.1, HTTP/2, a connection for each request) and never retry. Each answer is one that account-authz',
      'decides; another answer or none is *lost*. *No answer* is the longest time without an expected answer for any of the clients. *Away* is the time from the',
      'signal until the kubelet counts the container as ready again.',
    ].join('\n'),
    ...deployments.map(table),
  ].join('\n\n')}\n`;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}
