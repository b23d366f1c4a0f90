// Seeded random numbers (xoshiro128**, Blackman and Vigna): the same seed generates the same requests.

export interface Random {
  /** An integer from 0 up to, not including, the limit. */
  below(limit: number): number;
  chance(probability: number): boolean;
  pick<Item>(items: readonly [Item, ...Item[]] | readonly Item[]): Item;
  /** A weighted choice. */
  weighted<Item>(items: readonly (readonly [weight: number, item: Item])[]): Item;
  /** A random subset of at least this size, in order. */
  some<Item>(items: readonly Item[], least?: number): Item[];
}

/** The words of a text, for lists of names and values. */
export function words(text: string, separator = ' '): readonly string[] {
  return text.split(separator);
}

export function createRandom(...seeds: readonly number[]): Random {
  const state = seeded(seeds);

  function next(): number {
    const [a, b, c, d] = state;
    const result = Math.imul(rotated(Math.imul(b, 5), 7), 9);
    state[2] = c ^ a;
    state[3] = d ^ b;
    state[1] = b ^ state[2];
    state[0] = a ^ state[3];
    state[2] ^= b << 9;
    state[3] = rotated(state[3], 11);
    return result >>> 0;
  }

  const below = (limit: number): number => Math.floor((next() / 2 ** 32) * limit);
  function pick<Item>(items: readonly Item[]): Item {
    const item = items[below(items.length)];
    if (item === undefined && items.length === 0) throw new Error('nothing to pick from');
    return item as Item;
  }
  return {
    below,
    chance: probability => next() < probability * 2 ** 32,
    pick,
    weighted(items) {
      let left = below(items.reduce((sum, [weight]) => sum + weight, 0));
      for (const [weight, item] of items) {
        left -= weight;
        if (left < 0) return item;
      }
      throw new Error('no weights');
    },
    some(items, least = 0) {
      const wanted = least + below(items.length - least + 1);
      const rest = items.map((_, i) => i);
      while (rest.length > wanted) rest.splice(below(rest.length), 1);
      return rest.flatMap(i => items.slice(i, i + 1));
    },
  };
}

// splitmix32 spreads small seeds over the state, so that neighbouring seeds are uncorrelated.
function seeded(seeds: readonly number[]): [number, number, number, number] {
  let hash = 0x9e3779b9;
  for (const seed of seeds) hash = mixed(hash ^ mixed((seed >>> 0) + 0x9e3779b9));
  const word = (): number => {
    hash = (hash + 0x9e3779b9) | 0;
    return mixed(hash);
  };
  return [word(), word(), word(), word() | 1];
}

function mixed(value: number): number {
  let x = value;
  x = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
  x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
  return x ^ (x >>> 15);
}

function rotated(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}
