// Rounds in turn: each takes every item once, in the same order, so that a machine that changes its pace changes it for all.

/** What each item gave, by its name, one value a round. */
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

/** A turn that fails is taken again, twice at most; the last error ends the bench. */
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
