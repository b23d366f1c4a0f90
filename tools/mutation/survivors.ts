// survivors.json: the mutants that no test is expected to kill, each with its reason. Only equivalent ones are excluded from the score.
import { readFileSync } from 'node:fs';
import { type Found, type Mutant, nameOf } from './mutants.ts';

export interface Survivor extends Omit<Mutant, 'id' | 'line'> {
  /** `equivalent`: no input distinguishes it from the original. `accepted`: one could, and the reason says why no test does. */
  readonly kind: 'equivalent' | 'accepted';
  readonly reason: string;
}

export interface Disagreement {
  readonly problem: 'alive and not listed' | 'listed and killed';
  readonly name: string;
}

export function readSurvivors(): readonly Survivor[] {
  return JSON.parse(readFileSync(new URL('survivors.json', import.meta.url), 'utf8')) as readonly Survivor[];
}

/** The differences between the list and the results. Mutants without a verdict are ignored. */
export function disagreements(survivors: readonly Survivor[], found: readonly Found[]): readonly Disagreement[] {
  const listed = new Set(survivors.map(nameOf));
  return found.flatMap(({ mutant, status }): Disagreement[] => {
    const name = nameOf(mutant);
    const isAlive = status === 'survived' || status === 'unreached';
    if (isAlive === listed.has(name)) return [];
    return [{ problem: isAlive ? 'alive and not listed' : 'listed and killed', name }];
  });
}

/** Entries that match no mutant of the current sources. */
export function withoutMutant(survivors: readonly Survivor[], mutants: readonly Mutant[]): readonly string[] {
  const names = new Set(mutants.map(nameOf));
  return survivors.map(nameOf).filter(name => !names.has(name));
}
