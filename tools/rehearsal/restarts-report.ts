// Formats the figures of the restarts of authorizers as a table.
import { cell, type Table, toText } from '../../bench/report/table.ts';
import type { Restart, Restarts } from './restarts.ts';

/** `503 in the place of 200`: an answer of Envoy itself with this status. */
const unavailable = /^503 /;

/** Whether every request was answered as expected; with a single authorizer, whether each failure was a 503. */
export function isAsPromised({ answers, restarts }: Restarts, authorizers: number): boolean {
  const failures = answers.flatMap(({ failure = [] }) => failure);
  const isAsExpected = authorizers > 1 ? failures.length === 0 : failures.every(failure => unavailable.test(failure));
  return answers.length > 0 && restarts.length > 0 && isAsExpected;
}

export function restartsReport(result: Restarts, colour: boolean): string {
  const { answers, restarts, retries, errors } = result;
  const failed = new Map<string, number[]>();
  for (const { failure, latencyMs } of answers) {
    if (failure !== undefined) failed.set(failure, [...(failed.get(failure) ?? []), Math.round(latencyMs)]);
  }
  return [
    toText(table(result), colour),
    `${restarts.length} restarts, ${answers.length} requests; Envoy asked again for ${retries} checks and got no answer for ${errors}`,
    ...Array.from(
      failed,
      ([failure, latencies]) =>
        `${latencies.length} × ${failure}, after ${Math.min(...latencies)} to ${Math.max(...latencies)} ms`,
    ),
  ].join('\n');
}

function table({ answers, restarts }: Restarts): Table {
  const heads = ['', 'RESTARTS', 'AWAY S', 'REQUESTS', 'FAILED', 'FAILED A RESTART', 'P99 MS', 'MAX MS'];
  const seconds = (ms: number): string => (ms / 1000).toFixed(1);
  const row = (name: string, chosen: readonly Restart[]) => {
    const isWithin = (atMs: number): boolean =>
      chosen.some(({ signalledMs, readyMs }) => atMs >= signalledMs - settleMs && atMs < readyMs + settleMs);
    const part = answers.filter(({ atMs }) => isWithin(atMs));
    const failed = part.filter(({ failure }) => failure !== undefined).length;
    const latencies = part.map(({ latencyMs }) => latencyMs).sort((a, b) => a - b);
    const downtimes = chosen.map(({ endedMs, readyMs }) => readyMs - endedMs).sort((a, b) => a - b);
    return [
      cell(name),
      cell(chosen.length),
      cell(`${seconds(downtimes.at(0) ?? 0)} to ${seconds(downtimes.at(-1) ?? 0)}`),
      cell(part.length),
      cell(failed, failed === 0 ? 'good' : 'bad'),
      cell((failed / chosen.length).toFixed(1)),
      cell((latencies[Math.floor(latencies.length * 0.99)] ?? 0).toFixed(0)),
      cell((latencies.at(-1) ?? 0).toFixed(0)),
    ];
  };
  const signals = [...new Set(restarts.map(({ signal }) => signal))];
  return {
    columns: heads.map((head, index) => ({ head, align: index === 0 ? 'left' : 'right' })),
    rows: signals.map(signal =>
      row(
        signal,
        restarts.filter(each => each.signal === signal),
      ),
    ),
  };
}

/** How long before the kill a request that was in flight may have started. */
const settleMs = 100;
