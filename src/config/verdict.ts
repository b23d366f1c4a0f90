// The result of validating a configuration for a running service: the settings, or the problems, bounded for one log line.
import type { FileVersion } from '../files/file-watch.ts';
import { printable } from '../text/printable.ts';
import type { LoadedConfig } from './load.ts';
import { type ConfigProblem, formatProblems, type Misconfiguration } from './problems.ts';

export interface RefusedConfig {
  readonly kind: 'refused';
  /** The first problems of the file as check-config prints them, each of bounded length. */
  readonly problems: readonly string[];
  /** The number of all problems. */
  readonly count: number;
  /** The files that the configuration names, as they were before they were read. */
  readonly namedFiles?: readonly FileVersion[];
}

export type ConfigVerdict = LoadedConfig | RefusedConfig;

const maxProblems = 20;
const maxProblemLength = 300;

export function toVerdict(file: string, loaded: LoadedConfig | Misconfiguration): ConfigVerdict {
  return loaded.kind === 'config' ? loaded : refuse(file, loaded.problems, loaded.namedFiles);
}

export function refuse(
  file: string,
  problems: readonly ConfigProblem[],
  namedFiles?: readonly FileVersion[],
): RefusedConfig {
  const lines = formatProblems(file, problems.slice(0, maxProblems)).split('\n');
  return refusedConfig(
    lines.filter(line => line !== ''),
    problems.length,
    namedFiles,
  );
}

export function refusedConfig(
  problems: readonly string[],
  count = problems.length,
  namedFiles: readonly FileVersion[] = [],
): RefusedConfig {
  const shown = problems.slice(0, maxProblems).map(problem => printable(problem, maxProblemLength));
  return { kind: 'refused', problems: shown, count, namedFiles };
}
