// Checks the PromQL in the files of the repository: parsed by the real promtool, and compared with the existing metrics.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { runProgram, type Verdict } from '../../../lab/programs.ts';
import { envoyMetrics, productFamilies, seriesNames } from '../../support/metric-families.ts';

/** Parses the expressions with promtool, after it has replaced Grafana's variables with values. */
export async function parseExpressions(expressions: readonly string[]): Promise<Verdict> {
  const directory = await mkdtemp(join(tmpdir(), 'account-authz-promql-'));
  try {
    const rules = expressions.map((expr, i) => ({
      record: `expression:${i}`,
      expr: expr.replaceAll('$__rate_interval', '5m').replaceAll(/\$\w+/g, 'any'),
    }));
    const file = join(directory, 'rules.yaml');
    await writeFile(file, stringify({ groups: [{ name: 'expressions', rules }] }));
    return await runProgram('promtool', ['check', 'rules', '--lint=none', file]);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
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
