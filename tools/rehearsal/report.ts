// Formats the figures of a rehearsal as tables.
import { cell, type Table, toText } from '../../bench/report/table.ts';
import type { Answered } from './load.ts';
import type { Rehearsal } from './rehearsal.ts';

/** Whether no request failed and no other problem occurred. */
export function isLossless({ answers, problems }: Rehearsal): boolean {
  return answers.length > 0 && problems.length === 0 && answers.every(({ failure }) => failure === undefined);
}

export function reportOf(rehearsal: Rehearsal, colour: boolean): string {
  return [
    toText(requestsTable(rehearsal), colour),
    toText(containersTable(rehearsal), colour),
    ...failuresOf(rehearsal),
    ...rehearsal.problems,
  ].join('\n\n');
}

function requestsTable({ answers, rolls }: Rehearsal): Table {
  const during = rolls.map(({ fromMs, toMs }, index) => ({
    name: `roll ${index + 1}`,
    part: answers.filter(({ atMs }) => atMs >= fromMs && atMs < toMs),
    seconds: ((toMs - fromMs) / 1000).toFixed(1),
  }));
  return {
    columns: ['', 'SECONDS', 'REQUESTS', 'FAILED', 'P50 MS', 'P99 MS', 'MAX MS', 'LONGEST GAP MS'].map(
      (head, index) => ({
        head,
        align: index === 0 ? 'left' : 'right',
      }),
    ),
    rows: [...during, { name: 'all', part: answers, seconds: '' }].map(({ name, part, seconds }) => {
      const latencies = part.map(({ latencyMs }) => latencyMs).sort((a, b) => a - b);
      const failed = part.filter(({ failure }) => failure !== undefined).length;
      return [
        cell(name),
        cell(seconds),
        cell(part.length),
        cell(failed, failed === 0 ? 'good' : 'bad'),
        ...[0.5, 0.99, 1].map(share => cell(quantile(latencies, share).toFixed(1))),
        cell(longestGapMs(part).toFixed(0)),
      ];
    }),
  };
}

function containersTable({ pods }: Rehearsal): Table {
  const heads = ['POD', 'CONTAINER', 'STARTED S', 'READY S', 'PRESTOP S', 'SIGTERM S', 'EXITED S', 'EXIT CODE'];
  const seconds = (ms: number): string => (ms === 0 ? '' : (ms / 1000).toFixed(1));
  return {
    columns: heads.map((head, index) => ({ head, align: index < 2 ? 'left' : 'right' })),
    rows: pods.flatMap(({ name, containers }) =>
      containers.map((each, index) => [
        cell(index === 0 ? name : ''),
        cell(each.name),
        cell(seconds(each.startedMs)),
        cell(seconds(each.readyMs)),
        cell(seconds(each.hookMs)),
        cell(seconds(each.terminatedMs)),
        cell(seconds(each.exitedMs)),
        // The last pod is not terminated but killed at the end of the rehearsal.
        cell(each.exitedMs === 0 ? '' : each.exitCode),
      ]),
    ),
  };
}

/** The number of each failure, by pod and kind of connection. */
function failuresOf({ answers }: Rehearsal): string[] {
  const counts = new Map<string, number>();
  for (const { client, pod, failure } of answers) {
    if (failure === undefined) continue;
    const words = `${failure} (${client}, ${pod})`;
    counts.set(words, (counts.get(words) ?? 0) + 1);
  }
  return Array.from(counts, ([words, count]) => `${count} × ${words}`);
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
}

function longestGapMs(answers: readonly Answered[]): number {
  const times = answers
    .filter(({ failure }) => failure === undefined)
    .map(({ atMs, latencyMs }) => atMs + latencyMs)
    .sort((a, b) => a - b);
  return times.reduce((longest, time, index) => Math.max(longest, time - (times[index - 1] ?? time)), 0);
}
