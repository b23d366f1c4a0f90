// `npm run fleet`: simulates thousands of instances in virtual time and the load that they put on the authentication service. Exits with 1
// if a scenario misses a bar.
import { parseArgs } from 'node:util';
import { toText } from '../../bench/report/table.ts';
import { fleetTable, isMet, type Result } from './report.ts';
import { runFleet } from './run.ts';
import { scenarios } from './scenarios.ts';

const { values } = parseArgs({
  options: {
    instances: { type: 'string', default: '5000' },
    seed: { type: 'string', default: '1' },
  },
});
const options = { instances: Number(values.instances), seed: Number(values.seed) };
const isTerminal = process.stdout.isTTY === true;
const colour = isTerminal && (process.env.NO_COLOR ?? '') === '';

const results: Result[] = scenarios.map((scenario, index) => {
  const onProgress = (share: number): void => {
    if (!isTerminal) return;
    const done = `${index + 1} of ${scenarios.length}, ${Math.round(share * 100)} %`;
    process.stdout.write(share < 1 ? `\r\x1b[2K${done}  ${scenario.name}` : '\r\x1b[2K');
  };
  return { scenario, outcome: runFleet(scenario, { ...options, onProgress }) };
});
process.stdout.write(`${toText(fleetTable(results), colour)}\n`);
process.exitCode = results.every(isMet) ? 0 : 1;
