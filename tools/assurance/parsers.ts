// `npm run parsers -- --queries N --seed S`: a comparison of any length with the parsers of Node, Python, Go and Java. Exits with 1 on a
// difference.
import { parseArgs } from 'node:util';
import { nodeParsers } from '../../test/assurance/parsers/node-parsers.ts';
import { compareParsers, generateQueries, toTable } from '../../test/assurance/parsers/parser-comparison.ts';
import { foreignParsers } from './foreign-parsers.ts';

const { values } = parseArgs({
  options: {
    queries: { type: 'string', default: '100000' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
  },
});
const queries = generateQueries(Number(values.seed), Number(values.queries));
const readings = new Map<string, readonly (readonly string[])[]>(
  Array.from(nodeParsers, ([name, read]) => [name, queries.map(read)]),
);
for (const { language, read } of foreignParsers) {
  const found = await read(queries, { kind: 'queries' });
  if (found === undefined) console.log(`${language} is left out: this machine does not have it`);
  for (const [parser, accounts] of found ?? []) readings.set(parser, accounts);
}
const comparison = compareParsers(queries, readings);
console.log(toTable(comparison));
console.log(
  `seed ${values.seed}: ${comparison.allowed} of ${queries.length} queries allowed, ${comparison.differences.length} differences`,
);
for (const difference of comparison.differences.slice(0, 20)) console.log(`  ${JSON.stringify(difference)}`);
process.exit(comparison.differences.length === 0 ? 0 : 1);
