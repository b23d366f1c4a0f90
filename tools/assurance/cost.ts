// `npm run cost -- [--minutes N] [--target T] [--seed S]`: searches the most expensive input of every reader of untrusted bytes. Exits
// with 1 if one exceeds its bound, or grows faster than its input.
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { allowedRequestMicroseconds } from '../../test/assurance/cost/allowed-request.ts';
import { type CostTarget, maxMultiple } from '../../test/assurance/cost/cost-target.ts';
import { describePattern } from '../../test/assurance/cost/pattern.ts';
import { growthOf, reportOf, type SearchReport, search } from '../../test/assurance/cost/search.ts';
import { createCostTargets } from '../../test/assurance/cost/targets.ts';

/** Halfway between linear and quadratic. */
const maxExponent = 1.5;

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '10' }, target: { type: 'string' }, seed: { type: 'string' } },
});
const { check, targets: all } = await createCostTargets();
const targets = all.filter(({ name }) => values.target === undefined || name === values.target);
const minutes = Number(values.minutes);
const seed = Number(values.seed ?? randomInt(2 ** 31));
if (targets.length === 0 || !(minutes > 0) || !Number.isSafeInteger(seed)) {
  const names = all.map(({ name }) => `'${name}'`).join('|');
  console.error(`usage: npm run cost -- [--minutes N] [--target ${names}] [--seed S]`);
  process.exit(2);
}

const allowed = await allowedRequestMicroseconds(check);
console.log(
  `seed ${seed}, ${minutes} minutes; an allowed request with a new token takes ${allowed.toFixed(0)} µs, the bound is ${maxMultiple} times that`,
);

const rows: string[][] = [['target', 'µs', 'allowed requests', 'exponent', 'runs', 'dearest input']];
const findings: string[] = [];
for (const target of targets) {
  const found = await search(target, seed, (minutes * 60_000) / targets.length);
  const report = await reportOf(target, found);
  const row = toRow(target, found.runs, report);
  rows.push(row);
  console.log(row.join('  '));
  findings.push(...(await findingsOf(target, report)));
}
console.log(`\n${table(rows)}`);
for (const finding of findings) console.log(finding);
console.log(findings.length === 0 ? 'nothing costs more than it may' : `${findings.length} findings`);
process.exitCode = findings.length === 0 ? 0 : 1;

function toRow(target: CostTarget, runs: number, { dearest: [first], growth }: SearchReport): string[] {
  return [
    target.name,
    first.microseconds.toFixed(first.microseconds < 10 ? 1 : 0),
    `${(first.microseconds / allowed).toFixed(2)} ×`,
    growth?.exponent.toFixed(2) ?? '-',
    String(runs),
    describePattern(first.pattern),
  ];
}

/** Measures a suspicious growth once more, because one measurement may be noise. */
async function findingsOf(target: CostTarget, { dearest: [first], growth }: SearchReport): Promise<string[]> {
  const found: string[] = [];
  if (first.microseconds > maxMultiple * allowed) {
    found.push(`${target.name}: costs too much: ${describePattern(first.pattern)}`);
  }
  if (growth !== undefined && growth.exponent > maxExponent) {
    const again = (await growthOf(target, growth.pattern)) ?? 0;
    if (again > maxExponent) {
      found.push(`${target.name}: grows with the power ${again.toFixed(2)}: ${describePattern(growth.pattern)}`);
    }
  }
  return found;
}

function table(lines: readonly (readonly string[])[]): string {
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map(line => line[column]?.length ?? 0))) ?? [];
  return lines.map(line => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')).join('\n');
}
