// Where an HTTP/2 connection keeps its open streams: a Map in the place of Node's, from which closed ones go at once. Knows nothing of gRPC.

/**
 * Lets the young generation of V8's heap collect the closed streams of this connection, with all that belonged to their calls. To be
 * called before the first stream. Where Node keeps its streams another way, nothing changes, and calls only cost what they did.
 *
 * Node has them in a Map. V8 gives a Map a new table each time that the last is used up, and the outgrown table points on to the new
 * one and to what it held (OrderedHashTable in V8's source). So one outgrown table in the old generation keeps every later one until
 * a major collection, and the streams that were open when each was outgrown: docs/performance.md says what that costs.
 */
export function keepStreamsInSlots(session: object): void {
  const state: unknown = Reflect.get(session, stateSymbolOf(session) ?? '');
  if (hasNoStreamYet(state)) state.streams = createSlotMap();
}

/** A Map whose own tables hold the numbers of slots only. A slot is emptied where its entry is deleted. */
export function createSlotMap<Key, Value>(): Map<Key, Value> {
  const slots: (readonly [Value] | undefined)[] = [];
  const free: number[] = [];
  const slotOf = new Map<Key, number>();

  const map: Map<Key, Value> = {
    get size() {
      return slotOf.size;
    },
    has: key => slotOf.has(key),
    get: key => slots[slotOf.get(key) ?? -1]?.[0],
    set(key, value) {
      const slot = slotOf.get(key) ?? free.pop() ?? slots.length;
      slots[slot] = [value];
      slotOf.set(key, slot);
      return map;
    },
    delete(key) {
      const slot = slotOf.get(key);
      if (slot === undefined) return false;
      slots[slot] = undefined;
      free.push(slot);
      return slotOf.delete(key);
    },
    clear() {
      for (const key of slotOf.keys()) map.delete(key);
    },
    keys: () => slotOf.keys(),
    *values() {
      for (const [, value] of map) yield value;
      return undefined;
    },
    *entries() {
      for (const [key, slot] of slotOf) for (const value of slots[slot] ?? []) yield [key, value];
      return undefined;
    },
    forEach(callback, thisArgument) {
      for (const [key, value] of map) callback.call(thisArgument, value, key, map);
    },
    [Symbol.iterator]: () => map.entries(),
    [Symbol.toStringTag]: 'Map',
  };
  return map;
}

function stateSymbolOf(session: object): symbol | undefined {
  return Object.getOwnPropertySymbols(session).find(({ description }) => description === 'state');
}

// Node's own is a Map without Map in its chain of prototypes (SafeMap in lib/internal/per_context/primordials.js).
function hasNoStreamYet(state: unknown): state is { streams: Map<unknown, unknown> } {
  const streams: unknown = Object(state).streams;
  return Object.prototype.toString.call(streams) === '[object Map]' && Object(streams).size === 0;
}
