// A table of changes of which a generator makes one at a time.
import type { Random } from './random.ts';

export type Row<Change> = readonly [weight: number, name: string, change: Change];

/** A random row, by weight. */
export function pickRow<Change>(random: Random, rows: readonly Row<Change>[]): Row<Change> {
  return random.weighted(rows.map(row => [row[0], row] as const));
}
