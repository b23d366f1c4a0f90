// Interleaved rounds and their statistics: each round measures every item once, so that a machine that changes its pace affects all items.

/** The values of each item by name, one per round. */
export async function inTurn<Item extends { readonly name: string }, Value>(
  rounds: number,
  items: readonly Item[],
  take: (item: Item, round: number) => Promise<Value>,
): Promise<Record<string, Value[]>> {
  const values = new Map<string, Value[]>(items.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round++)
    for (const item of items) values.get(item.name)?.push(await take(item, round));
  return Object.fromEntries(values);
}

/** A failed turn is retried twice at most; the last error ends the bench. */
export async function persistently<Value>(
  turn: () => Promise<Value>,
  onFailure: (error: unknown) => void,
): Promise<Value> {
  for (let left = 2; ; left -= 1) {
    try {
      return await turn();
    } catch (error) {
      if (left === 0) throw error;
      onFailure(error);
    }
  }
}

/** The median of the rounds, and their spread. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** NaN for no values. */
export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = (sorted.length - 1) / 2;
  const median = ((sorted[Math.floor(middle)] ?? NaN) + (sorted[Math.ceil(middle)] ?? NaN)) / 2;
  return { median, min: sorted[0] ?? NaN, max: sorted.at(-1) ?? NaN };
}

/** The ratio of one item to another, round by round, so that a disturbance affects both. */
export function ratioOf(values: readonly number[], others: readonly number[]): Spread {
  return spreadOf(values.map((value, round) => value / (others[round] ?? NaN)));
}
