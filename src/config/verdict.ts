// What a running service is told of a changed configuration: the settings, or why they are refused, bounded for one log line.
import { foreignText } from '../foreign-text.ts';
import type { LoadedConfig } from './load.ts';
import { formatProblems, type Misconfiguration } from './problems.ts';

export interface RefusedConfig {
  readonly kind: 'refused';
  /** As check-config prints them, the first ones of the file, each of bounded length. */
  readonly problems: readonly string[];
  /** How many there are in all. */
  readonly count: number;
}

export type ConfigVerdict = LoadedConfig | RefusedConfig;

const maxProblems = 20;
const maxProblemLength = 300;

export function toVerdict(file: string, loaded: LoadedConfig | Misconfiguration): ConfigVerdict {
  if (loaded.kind === 'config') return loaded;
  const { problems } = loaded;
  const lines = formatProblems(file, problems.slice(0, maxProblems)).split('\n');
  return refusedConfig(
    lines.filter(line => line !== ''),
    problems.length,
  );
}

export function refusedConfig(problems: readonly string[], count = problems.length): RefusedConfig {
  const shown = problems.slice(0, maxProblems).map(problem => foreignText(problem, maxProblemLength));
  return { kind: 'refused', problems: shown, count };
}
