// The command line of the bench.
import { parseArgs } from 'node:util';
import type { Algorithm } from './tokens.ts';

export interface BenchOptions {
  readonly quick: boolean;
  /** Names of contenders or scenarios; empty for all. */
  readonly only: readonly string[];
  readonly rounds: number;
  readonly algorithm: Algorithm;
  /** Major version of the Node that contenders in JavaScript run on; the one that runs the bench if not given. */
  readonly node: string | undefined;
  /** Flags for the product's own Node. */
  readonly nodeOptions: readonly string[];
  /** Measure nothing: write the page and the charts anew from the figures of the last whole run. */
  readonly render: boolean;
  /** Where the page and the charts go; nowhere for a run that is not whole, unless told. */
  readonly out: string | undefined;
}

export const usage = `npm run bench -- [options]

  --quick              about two minutes: less of everything, which judges no floor
  --only NAME,...      these contenders and scenarios only; scenarios: calls, latency, connections, start, envoy, storms,
                       memory, scan, replicas (calls where contenders alone are named)
  --rounds N           rounds that the contenders take in turn (10, with --quick 2, or 3 of what --only names); of latency and
                       behind Envoy 4 at most
  --algorithm NAME     RS256 (default) or ES256, for all tokens
  --node MAJOR         the Node of all contenders in JavaScript: 20, 22, 24 or 26, from npm
  --node-options=TEXT  flags of Node for account-authz alone
  --render             measures nothing: the page and the charts anew from bench/results/bench.json
  --out DIRECTORY      where the page and the charts go (bench/results of a whole run)
`;

export type ParsedOptions =
  | { readonly kind: 'options'; readonly options: BenchOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'usage problem'; readonly problem: string };

export function parseBenchOptions(args: readonly string[]): ParsedOptions {
  const problem = (text: string): ParsedOptions => ({ kind: 'usage problem', problem: text });
  let values: ReturnType<typeof parse>;
  try {
    values = parse(args);
  } catch (error) {
    return problem(error instanceof Error ? error.message : String(error));
  }
  if (values.help) return { kind: 'help' };
  const { algorithm, rounds, node } = values;
  if (algorithm !== 'RS256' && algorithm !== 'ES256') return problem(`--algorithm ${algorithm}: RS256 or ES256`);
  if (rounds !== undefined && !/^[1-9]\d?$/.test(rounds)) return problem(`--rounds ${rounds}: 1 to 99`);
  if (node !== undefined && !/^\d\d$/.test(node)) return problem(`--node ${node}: a major version such as 26`);
  return {
    kind: 'options',
    options: {
      quick: values.quick,
      only: words(values.only, ','),
      rounds: rounds === undefined ? (values.quick ? (values.only === '' ? 2 : 3) : 10) : Number(rounds),
      algorithm,
      node,
      nodeOptions: words(values['node-options'], ' '),
      render: values.render,
      out: values.out,
    },
  };
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string', default: '' },
      rounds: { type: 'string' },
      algorithm: { type: 'string', default: 'RS256' },
      node: { type: 'string' },
      'node-options': { type: 'string', default: '' },
      render: { type: 'boolean', default: false },
      out: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  }).values;
}

function words(text: string, separator: string): string[] {
  return text
    .split(separator)
    .map(word => word.trim())
    .filter(word => word !== '');
}
