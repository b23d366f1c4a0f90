// The command line of the soak.
import { parseArgs } from 'node:util';

export interface SoakOptions {
  readonly seconds: number;
  readonly perSecond: number;
  readonly ownNode: boolean;
  /** Path of the chart. */
  readonly out: string | undefined;
}

export const usage = `npm run soak -- [options]

  --minutes N      how long (60)
  --seconds N      the same for a short run, which writes no chart unless given a path
  --rate N         checks a second: eight in ten known tokens, one new, one refused (400)
  --own-node       the Node that runs the soak, without flags, in the place of the image's
  --out DIRECTORY  where the picture goes (bench/results)
`;

export type ParsedSoakOptions =
  | { readonly kind: 'options'; readonly options: SoakOptions }
  | { readonly kind: 'usage problem'; readonly problem: string };

export function parseSoakOptions(args: readonly string[], results: string): ParsedSoakOptions {
  const problem = (text: string): ParsedSoakOptions => ({ kind: 'usage problem', problem: text });
  let values: ReturnType<typeof parse>;
  try {
    values = parse(args);
  } catch (error) {
    return problem(error instanceof Error ? error.message : String(error));
  }
  const { minutes, seconds, rate } = values;
  for (const [name, value] of Object.entries({ minutes, seconds, rate }))
    if (value !== undefined && !(/^\d+(?:\.\d+)?$/.test(value) && Number(value) > 0))
      return problem(`--${name} ${value}: a number above 0`);
  if (minutes !== undefined && seconds !== undefined) return problem('--minutes or --seconds, not both');
  return {
    kind: 'options',
    options: {
      seconds: seconds === undefined ? Number(minutes ?? 60) * 60 : Number(seconds),
      perSecond: Number(rate ?? 400),
      ownNode: values['own-node'],
      out: values.out ?? (seconds === undefined ? results : undefined),
    },
  };
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string' },
      seconds: { type: 'string' },
      rate: { type: 'string' },
      'own-node': { type: 'boolean', default: false },
      out: { type: 'string' },
    },
  }).values;
}
