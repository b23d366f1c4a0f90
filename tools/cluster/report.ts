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

/** The section of one deployment. */
export function sectionOf(rows: readonly Row[], { commit, date, kubernetes, nodes }: Surroundings): string {
  const good = rows.filter(({ isGood }) => isGood).length;
  const requests = rows.reduce((sum, { window }) => sum + (window?.requests ?? 0), 0);
  const lines = rows.map(({ what, expected, measured, isGood, window }) => {
    const load = window === undefined ? ['', ''] : [`${window.requests}`, lostText(window)];
    return `| ${[what, expected, measured, ...load, isGood ? 'yes' : '**no**'].map(cell).join(' | ')} |`;
  });
  return [
    `Commit ${commit}, ${date}, Kubernetes ${kubernetes}, ${nodes}: ${good} of ${rows.length} rows as expected, ${requests} requests.`,
    '',
    '| what | expected | measured | requests | lost | as expected |',
    '|---|---|---|---|---|---|',
    ...lines,
  ].join('\n');
}

const introduction = `# On a real cluster

What \`npm run cluster -- --page\` measured on real pods. It makes this page, a section for each deployment; do not edit it.

Six clients pause for 30 ms between requests (HTTP/1.1, HTTP/2, a connection for each request) and never retry. Each answer is one that account-authz
decides; another answer or none is *lost*. *No answer* is the longest time without an expected answer for any of the clients. *Away* is the time from the
signal until the kubelet counts the container as ready again. *Begun* after the end shows the kubelet's back-off, in whole seconds.
The *memory peak* has the pages of the program's file that this container was the first to read.
`;

/** Replaces the sections of this run and keeps the others of the page before. */
export function pageWith(before: string, sections: ReadonlyMap<string, string>, order: readonly string[]): string {
  const [, ...kept] = before.split(/^## /m);
  const all = new Map(kept.map(text => [text.slice(0, text.indexOf('\n')), text.slice(text.indexOf('\n')).trim()]));
  for (const [name, text] of sections) all.set(name, text);
  const known = order.flatMap(name => (all.has(name) ? [`\n## ${name}\n\n${all.get(name)}\n`] : []));
  return introduction + known.join('');
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}
