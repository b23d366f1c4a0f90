// The revocation list as an index: a verified token costs one look-up for each combination of selectors in the list, whatever its length.
import { hash } from 'node:crypto';

/** What an entry selects tokens by. The last two may have any character, also the separator of a key. */
export const selectorNames = ['iss', 'uid', 'acc', 'app', 'sid', 'jti'] as const;
type SelectorName = (typeof selectorNames)[number];

/** An entry of the list. */
export interface Revocation {
  readonly kind: 'revocation';
  /** At least one. All must be equal. */
  readonly values: { readonly [Name in SelectorName]?: string | undefined };
  /** Matches tokens that were issued earlier, Infinity matches all; in seconds since the epoch. */
  readonly issuedBefore: number;
  /** Matches nothing from then on, Infinity never expires; in seconds since the epoch. */
  readonly expires: number;
}

/** A verified token in a request. An entry does not match by what is undefined here. */
export interface RevocableToken {
  readonly iss: string;
  readonly uid: string;
  readonly app: string;
  /** The addressed account, if it is one of the token. */
  readonly acc: string | undefined;
  readonly jti: string | undefined;
  readonly sid: string | undefined;
  /** In seconds since the epoch. */
  readonly iat: number | undefined;
}

export interface RevocationList {
  /** The number of entries, with those that have expired. */
  readonly entries: number;
  /** The members by which an entry matches the token: `uid, issuedBefore`. Undefined if none does. `now` is wall time in seconds. */
  find(token: RevocableToken, now: number): string | undefined;
}

interface RevocationListBuilder extends RevocationList {
  add(entry: Revocation): void;
}

type Window = Pick<Revocation, 'issuedBefore' | 'expires'>;

interface Table {
  readonly selectors: string;
  readonly names: readonly SelectorName[];
  /** The windows of a key without those that another one covers: `expires` ascends and `issuedBefore` descends. */
  readonly windowsByKey: Map<string, Window[]>;
}

// Shared by all entries without times, to save memory. It covers all others, so nothing is ever added to it.
const always: Window[] = [{ issuedBefore: Infinity, expires: Infinity }];

export function createRevocationList(): RevocationListBuilder {
  const tables = new Map<string, Table>();
  let entries = 0;

  function tableOf(names: readonly SelectorName[]): Table {
    const selectors = names.join(', ');
    const known = tables.get(selectors);
    if (known !== undefined) return known;
    const table: Table = { selectors, names, windowsByKey: new Map() };
    tables.set(selectors, table);
    return table;
  }

  return {
    get entries() {
      return entries;
    },
    add({ values, issuedBefore, expires }) {
      const names = selectorNames.filter(name => values[name] !== undefined);
      const key = keyOf(names, values);
      if (key === undefined) throw new Error('a revocation that selects nothing');
      entries += 1;
      const { windowsByKey } = tableOf(names);
      const windows = windowsByKey.get(key);
      if (windows !== undefined) addWindow(windows, { issuedBefore, expires });
      else if (issuedBefore === Infinity && expires === Infinity) windowsByKey.set(key, always);
      else windowsByKey.set(key, [{ issuedBefore, expires }]);
    },
    find(token, now) {
      for (const { selectors, names, windowsByKey } of tables.values()) {
        const key = keyOf(names, token);
        const windows = key === undefined ? undefined : windowsByKey.get(key);
        if (windows === undefined) continue;
        // Of those that have not expired, the first one reaches furthest.
        const { issuedBefore } = windows[partitionPoint(windows, ({ expires }) => expires <= now)] ?? never;
        if ((token.iat ?? -Infinity) < issuedBefore)
          return issuedBefore === Infinity ? selectors : `${selectors}, issuedBefore`;
      }
      return undefined;
    },
  };
}

const never = { issuedBefore: -Infinity };

// Longer keys are kept as their digest: 100,000 of the longest entries would take more memory than a container has, twice during a reload.
// A digest has 43 characters, so that no shorter key equals one.
const maxKeyLength = 42;

/** The key of an entry or a token; undefined if it lacks one of the selectors. */
function keyOf(names: readonly SelectorName[], values: Revocation['values']): string | undefined {
  const key = joinSelectors(names, values);
  if (key === undefined || key.length <= maxKeyLength) return key;
  return hash('sha256', key, 'base64url');
}

function joinSelectors(names: readonly SelectorName[], values: Revocation['values']): string | undefined {
  let key: string | undefined;
  for (const name of names) {
    const value = values[name];
    if (value === undefined) return undefined;
    // With its length, so that where it ends does not depend on what it has.
    const part = name === 'sid' ? `${value.length}\0${value}` : value;
    key = key === undefined ? part : `${key}\0${part}`;
  }
  return key;
}

// By binary search: even 100,000 windows of one key take no time that a request would notice.
function addWindow(windows: Window[], added: Window): void {
  const at = partitionPoint(windows, ({ expires }) => expires < added.expires);
  const next = windows[at];
  if (next !== undefined && next.issuedBefore >= added.issuedBefore) return;
  const from = partitionPoint(windows, ({ issuedBefore }) => issuedBefore > added.issuedBefore);
  const to = next?.expires === added.expires ? at + 1 : at;
  windows.splice(from, to - from, added);
}

/** The number of windows before the first one that the test does not hold for. */
function partitionPoint(windows: readonly Window[], holds: (window: Window) => boolean): number {
  let low = 0;
  let high = windows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const window = windows[middle];
    if (window !== undefined && holds(window)) low = middle + 1;
    else high = middle;
  }
  return low;
}
