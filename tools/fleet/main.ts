// `npm run fleet`: simulates thousands of instances in virtual time and the load that they put on the authentication service. Exits with 1
// if a scenario misses a bar.
import { parseArgs } from 'node:util';
import { cell, toText } from '../../bench/report/table.ts';
import { runLists } from './lists.ts';
import { runFleet } from './run.ts';
import { scenarios } from './scenarios.ts';

const { values } = parseArgs({
  options: { instances: { type: 'string', default: '5000' }, seed: { type: 'string', default: '1' } },
});
const instances = Number(values.instances);
const seed = Number(values.seed);

const heads =
  'scenario|bar|met|fetches/s: mean|peak|after 1 min|usable p50 (s)|p99 (s)|max (s)|good: 401|good: 503'.split('|');
const rows = scenarios.map(scenario => {
  console.error(`${scenario.name}: ${scenario.what}`);
  const outcome = runFleet(scenario, { instances, seed });
  const { mean, peak, afterFirstMinute, good, usableSeconds } = outcome;
  const percent = (count: number): string =>
    count === 0 ? '0' : `${((count * 100) / (good.allowed + good.invalid + good.unavailable)).toPrecision(2)} %`;
  const seconds = [0.5, 0.99, 1].map(usableSeconds).map(each => (Number.isFinite(each) ? each.toFixed(1) : '–'));
  const bars = scenario.bars.map(({ text }) => text).join('; ');
  const met = scenario.bars.every(bar => bar.isMet(outcome)) ? cell('yes', 'good') : cell('NO', 'bad');
  if (met.text === 'NO') process.exitCode = 1;
  const refused = [percent(good.invalid), percent(good.unavailable)];
  const figures = [mean.toFixed(1), peak, afterFirstMinute.toFixed(1), ...seconds, ...refused];
  return [cell(scenario.name), cell(bars), met, ...figures.map(each => cell(each))];
});
const columns = heads.map((head, index) => ({ head, align: index < 3 ? 'left' : 'right' }) as const);
process.stdout.write(`${runLists(instances, seed)}${toText({ columns, rows }, process.stdout.isTTY === true)}\n`);
