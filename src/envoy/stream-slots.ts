// Where an HTTP/2 connection keeps its streams: in slots in the place of Node's Map and Set, from which closed ones go at once. Knows
// nothing of gRPC.

/**
 * Lets the young generation of V8's heap collect the closed streams of this connection, with all that belonged to their calls. To be
 * called before the first stream. Where Node keeps its streams another way, nothing changes, and calls only cost what they did.
 *
 * Node has the open ones in a Map, and each that it creates in a Set for a moment. V8 gives a Map or Set a new table each time that the
 * last is used up, in the old generation where the last was there, and the outgrown table points on to the new one and to what it
 * held (OrderedHashTable in V8's source). So every table is there for a major collection, with the streams that were open when it was
 * outgrown: docs/performance.md says what that costs.
 */
export function keepStreamsInSlots(session: object): void {
  const state: unknown = Reflect.get(session, stateSymbolOf(session) ?? '');
  if (isEmptyIn(state, 'streams', '[object Map]')) state.streams = createSlotMap();
  if (isEmptyIn(state, 'pendingStreams', '[object Set]')) state.pendingStreams = createSlotSet();
}

const free = Symbol('free');

/**
 * A Map without tables, in no order. Each of its steps looks through the slots, of which there are as many as entries at most at once:
 * for the streams of one connection, whose number is bounded, that takes less time than a table does.
 */
export function createSlotMap<Key, Value>(): Map<Key, Value> {
  const keys: (Key | typeof free)[] = [];
  const values: (Value | undefined)[] = [];
  let size = 0;

  const map: Map<Key, Value> = {
    get size() {
      return size;
    },
    has: key => keys.includes(key),
    get: key => values[keys.indexOf(key)],
    set(key, value) {
      let slot = keys.indexOf(key);
      if (slot < 0) {
        size += 1;
        slot = keys.indexOf(free);
        if (slot < 0) slot = keys.length;
        keys[slot] = key;
      }
      values[slot] = value;
      return map;
    },
    delete(key) {
      const slot = keys.indexOf(key);
      if (slot < 0) return false;
      size -= 1;
      keys[slot] = free;
      values[slot] = undefined;
      return true;
    },
    clear() {
      for (const key of map.keys()) map.delete(key);
    },
    *keys() {
      for (const key of keys) if (key !== free) yield key;
      return undefined;
    },
    *values() {
      for (const [, value] of map) yield value;
      return undefined;
    },
    *entries() {
      for (const [slot, key] of keys.entries()) if (key !== free) yield [key, values[slot] as Value];
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

/** The same as a Set. */
export function createSlotSet<Member>(): Set<Member> {
  const map = createSlotMap<Member, Member>();
  const set: Set<Member> = {
    get size() {
      return map.size;
    },
    has: map.has,
    add(member) {
      map.set(member, member);
      return set;
    },
    delete: map.delete,
    clear: map.clear,
    keys: map.keys,
    values: map.keys,
    entries: map.entries,
    forEach(callback, thisArgument) {
      for (const member of set) callback.call(thisArgument, member, member, set);
    },
    [Symbol.iterator]: map.keys,
    [Symbol.toStringTag]: 'Set',
  };
  return set;
}

function stateSymbolOf(session: object): symbol | undefined {
  return Object.getOwnPropertySymbols(session).find(({ description }) => description === 'state');
}

// Node's own are a Map and a Set without Map and Set in their chains of prototypes (lib/internal/per_context/primordials.js).
function isEmptyIn<Name extends string>(state: unknown, name: Name, tag: string): state is Record<Name, unknown> {
  const collection: unknown = Object(state)[name];
  return Object.prototype.toString.call(collection) === tag && Object(collection).size === 0;
}
