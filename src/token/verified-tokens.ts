// Tokens that were verified before, so that a known token costs a hash instead of a signature. Refusals are never kept.
// What goes when there is no room is chosen by SIEVE (Zhang et al., NSDI 2024): a hand walks from the oldest to the newest, spares
// what was used since it last came by, and takes the first that was not. A flood of tokens that come once takes the places of its
// own, not those of the tokens in use, and a hit moves nothing.
import { hash } from 'node:crypto';
import type { Claims } from './claims.ts';

/** What a verification proved, and the key that proved it: once that key is gone, so is the proof. */
export interface VerifiedToken<Key> {
  readonly claims: Claims;
  readonly key: Key;
}

export interface VerifiedTokens<Key> {
  /** For use at once: what is given changes when the token is put again. */
  get(token: string): VerifiedToken<Key> | undefined;
  put(token: string, verified: VerifiedToken<Key>): void;
  remove(token: string): void;
  size(): number;
}

// Itself what is given: one object less for each token, of those that every major collection of the heap visits.
interface Entry<Key> extends VerifiedToken<Key> {
  readonly name: string;
  claims: Claims;
  key: Key;
  used: boolean;
  older: Entry<Key> | undefined;
  newer: Entry<Key> | undefined;
}

/** Never more than `maxTokens`; 0 keeps none. */
export function createVerifiedTokens<Key>(maxTokens: number): VerifiedTokens<Key> {
  const entries = new Map<string, Entry<Key>>();
  let oldest: Entry<Key> | undefined;
  let newest: Entry<Key> | undefined;
  let hand: Entry<Key> | undefined;

  function add(name: string, { claims, key }: VerifiedToken<Key>): void {
    const entry: Entry<Key> = { name, claims, key, used: false, older: newest, newer: undefined };
    if (newest === undefined) oldest = entry;
    else newest.newer = entry;
    newest = entry;
    entries.set(name, entry);
  }

  function drop(entry: Entry<Key>): void {
    if (hand === entry) hand = entry.newer;
    if (entry.older === undefined) oldest = entry.newer;
    else entry.older.newer = entry.newer;
    if (entry.newer === undefined) newest = entry.older;
    else entry.newer.older = entry.older;
    entries.delete(entry.name);
  }

  // Ends within two rounds: the first one leaves nothing marked as used.
  function makeRoom(): void {
    let candidate = hand ?? oldest;
    while (candidate?.used) {
      candidate.used = false;
      candidate = candidate.newer ?? oldest;
    }
    if (candidate === undefined) return;
    hand = candidate;
    drop(candidate);
  }

  return {
    get(token) {
      const entry = entries.get(nameOf(token));
      if (entry === undefined) return undefined;
      entry.used = true;
      return entry;
    },
    put(token, verified) {
      if (maxTokens === 0) return;
      const name = nameOf(token);
      const known = entries.get(name);
      if (known !== undefined) {
        known.claims = verified.claims;
        known.key = verified.key;
        return;
      }
      if (entries.size >= maxTokens) makeRoom();
      add(name, verified);
    },
    remove(token) {
      const entry = entries.get(nameOf(token));
      if (entry !== undefined) drop(entry);
    },
    size: () => entries.size,
  };
}

// Of the exact bytes, whole: a shorter or weaker name would let one token be taken for another (GHSA-rp9m-7r4c-75qg).
function nameOf(token: string): string {
  return hash('sha256', token, 'binary');
}
