// The table that `npm run fleet` prints.
import { type Cell, cell, type Table } from '../../bench/report/table.ts';
import type { Outcome, Scenario } from './run.ts';

export interface Result {
  readonly scenario: Scenario;
  readonly outcome: Outcome;
}

export function isMet({ scenario, outcome }: Result): boolean {
  return scenario.bars.every(bar => bar.isMet(outcome));
}

export function fleetTable(results: readonly Result[]): Table {
  const right = (head: string) => ({ head, align: 'right' }) as const;
  return {
    columns: [
      { head: 'scenario', align: 'left' },
      right('fetches/s: mean'),
      right('peak'),
      right('after 1 min'),
      right('usable p50 (s)'),
      right('p99 (s)'),
      right('max (s)'),
      right('good: 401'),
      right('good: 503'),
      { head: 'bar', align: 'left' },
      { head: 'met', align: 'left' },
    ],
    rows: results.map(({ scenario, outcome }) => {
      const { mean, peak, afterFirstMinute, good, usableSeconds } = outcome;
      const all = good.allowed + good.invalid + good.unavailable;
      const met = isMet({ scenario, outcome });
      return [
        cell(scenario.name),
        cell(mean.toFixed(1)),
        cell(peak),
        cell(afterFirstMinute.toFixed(1)),
        ...[0.5, 0.99, 1].map(share => seconds(usableSeconds(share))),
        cell(percent(good.invalid / all)),
        cell(percent(good.unavailable / all)),
        cell(scenario.bars.map(({ text }) => text).join('; ')),
        cell(met ? 'yes' : 'NO', met ? 'good' : 'bad'),
      ];
    }),
  };
}

function seconds(value: number): Cell {
  return cell(Number.isFinite(value) ? value.toFixed(1) : '–');
}

function percent(share: number): string {
  return share === 0 ? '0' : `${(share * 100).toPrecision(2)} %`;
}
