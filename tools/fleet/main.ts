// `npm run fleet`: simulates thousands of instances in virtual time and the load that they put on the authentication service. Exits with 1
// if a scenario misses a bar.
import { parseArgs } from 'node:util';
import { type Cell, cell, type Table, toText } from '../../bench/report/table.ts';
import { runLists } from './lists.ts';
import { type Outcome, runFleet, type Scenario } from './run.ts';
import { scenarios } from './scenarios.ts';

interface Result {
  readonly scenario: Scenario;
  readonly outcome: Outcome;
}

const { values } = parseArgs({
  options: {
    instances: { type: 'string', default: '5000' },
    seed: { type: 'string', default: '1' },
  },
});
const results = scenarios.map((scenario): Result => {
  console.error(`${scenario.name}: ${scenario.what}`);
  return { scenario, outcome: runFleet(scenario, { instances: Number(values.instances), seed: Number(values.seed) }) };
});
process.stdout.write(runLists(Number(values.instances), Number(values.seed)));
process.stdout.write(`${toText(fleetTable(results), process.stdout.isTTY === true)}\n`);
process.exitCode = results.every(isMet) ? 0 : 1;

function isMet({ scenario, outcome }: Result): boolean {
  return scenario.bars.every(bar => bar.isMet(outcome));
}

function fleetTable(results: readonly Result[]): Table {
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
