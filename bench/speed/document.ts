// The figures in docs/performance.md, between two marks, so that nobody writes them by hand.
import { toMarkdown } from '../report/table.ts';
import { runLine, sections } from './report.ts';
import type { BenchResults } from './results.ts';

const begin = '<!-- figures: written by npm run bench -->';
const end = '<!-- end of figures -->';
/** What a reader of the document needs; bench/results.md has all. */
const shown: readonly string[] = ['floors', 'calls', 'envoy', 'storms', 'memory', 'connections'];

/** The document with these figures; `undefined` before the first whole run. */
export function withResults(document: string, results: BenchResults | undefined): string {
  const [from, to] = [document.indexOf(begin), document.indexOf(end)];
  if (from === -1 || to < from) throw new Error('docs/performance.md has lost its marks for the figures');
  return document.slice(0, from + begin.length) + figures(results) + document.slice(to);
}

function figures(results: BenchResults | undefined): string {
  if (results === undefined) return '\n\nNo whole run has been kept yet.\n\n';
  const parts = sections(results).filter(({ name }) => shown.includes(name));
  return [
    '',
    '',
    `${runLine(results)}. All tables: [bench/results.md](../bench/results.md).`,
    '',
    '![Throughput and CPU time a call](../bench/results/calls.svg)',
    '',
    '![Latency at fixed rates](../bench/results/latency.svg)',
    '',
    ...parts.flatMap(({ title, note, table }) => [`### ${title}`, '', note, '', toMarkdown(table), '']),
    '',
  ].join('\n');
}
