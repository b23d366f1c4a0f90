// The command line of the bench.
import { parseArgs } from 'node:util';
import type { forms } from './form.ts';

export const scenarioNames = ['calls', 'latency', 'start', 'envoy', 'memory'] as const;
export type ScenarioName = (typeof scenarioNames)[number];

export interface BenchOptions {
  readonly form: keyof typeof forms;
  /** Names of contenders or scenarios; empty for all. */
  readonly only: readonly string[];
  /** Node flags that replace the image's. */
  readonly nodeOptions: readonly string[] | undefined;
  readonly ownNode: boolean;
  /** The folder of another checkout, built, which becomes a contender. */
  readonly beside: string | undefined;
  /** Folder of the page and the chart; none for a partial run, unless given. */
  readonly out: string | undefined;
}

export const usage = `npm run bench -- [options]

  --quick              two or three minutes: less of everything, evaluates no floor and writes no page
  --trial              seconds: shows that the bench runs on this machine, not how fast anything is
  --only NAME,...      these contenders and scenarios only; scenarios: ${scenarioNames.join(', ')}
                       (calls where contenders alone are named)
  --node-options=TEXT  flags for the Node of all contenders in JavaScript, in the place of the image's
  --own-node           the Node that runs the bench, without flags, in the place of the image's
  --beside DIRECTORY   another checkout, built: its account-authz is the contender known-beside
  --out DIRECTORY      where the page and the chart go, also those of a run that is not whole
`;

export type ParsedOptions =
  | { readonly kind: 'help' }
  | { readonly kind: 'options'; readonly options: BenchOptions }
  | { readonly kind: 'usage problem'; readonly problem: string };

export function parseBenchOptions(args: readonly string[]): ParsedOptions {
  let values: ReturnType<typeof parse>;
  try {
    values = parse(args);
  } catch (error) {
    return { kind: 'usage problem', problem: error instanceof Error ? error.message : String(error) };
  }
  if (values.help) return { kind: 'help' };
  const { quick, trial, out } = values;
  const flags = values['node-options'];
  return {
    kind: 'options',
    options: {
      form: trial ? 'trial' : quick ? 'quick' : 'whole',
      only: words(values.only, ','),
      nodeOptions: flags === undefined ? undefined : words(flags, ' '),
      ownNode: values['own-node'],
      beside: values.beside,
      out,
    },
  };
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      trial: { type: 'boolean', default: false },
      only: { type: 'string', default: '' },
      'node-options': { type: 'string' },
      'own-node': { type: 'boolean', default: false },
      beside: { type: 'string' },
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
