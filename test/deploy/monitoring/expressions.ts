// Checks the PromQL in the files of the repository: parsed by the real promtool, and compared with the existing metrics.
import { stringify } from 'yaml';
import { writeFixture } from '../../../lab/config-file.ts';
import { runProgram, type Verdict } from '../../../lab/programs.ts';
import { envoyMetrics, productFamilies, seriesNames } from '../../support/metric-families.ts';

/** Parses the expressions with promtool, after it has replaced Grafana's variables with values. */
export async function parseExpressions(expressions: readonly string[]): Promise<Verdict> {
  const rules = expressions.map((expr, i) => ({
    record: `expression:${i}`,
    expr: expr.replaceAll('$__rate_interval', '5m').replaceAll(/\$\w+/g, 'any'),
  }));
  const file = writeFixture('rules.yaml', stringify({ groups: [{ name: 'expressions', rules }] }));
  return runProgram('promtool', ['check', 'rules', '--lint=none', file]);
}

/** Metric names in expressions that are neither the product's nor in the list of Envoy's. */
export async function unknownMetrics(expressions: readonly string[]): Promise<readonly string[]> {
  const known = new Set([...seriesNames(await productFamilies()), ...envoyMetrics, ...ofPrometheus]);
  return [...new Set(expressions.flatMap(metricsIn))].filter(name => !known.has(name));
}

const ofPrometheus = ['up', 'ALERTS'];

/** Every identifier with an underscore that is neither a label nor a function; in these files, all of them are metrics. */
export function metricsIn(expression: string): string[] {
  const bare = expression
    .replaceAll(/"(?:[^"\\]|\\.)*"/g, '')
    .replaceAll(/\{[^}]*\}/g, ' ')
    .replaceAll(/\b(?:by|on|ignoring|without|group_left|group_right)\s*\([^)]*\)/g, ' ');
  return Array.from(bare.matchAll(/\b[a-z]+(?:_[a-z0-9]+)+\b(?!\s*\()|\bup\b/g), ([name]) => name);
}
