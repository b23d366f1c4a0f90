// The cache of verified tokens: a cached token costs a hash instead of a signature. Refusals are never cached.
// Eviction by SIEVE (Zhang et al., NSDI 2024): a hand walks from the oldest to the newest entry, spares what was used since its last
// visit, and evicts the first that was not. A flood of one-time tokens evicts its own entries, not the tokens in use.
import { hash } from 'node:crypto';
import type { Claims } from './claims.ts';

/** Verified claims, valid only while the key that verified them is in use. */
export interface VerifiedToken<Key> {
  readonly claims: Claims;
  readonly key: Key;
}

export interface VerifiedTokens<Key> {
  /** Do not keep the result: it changes when the token is put again. */
  get(token: string): VerifiedToken<Key> | undefined;
  put(token: string, verified: VerifiedToken<Key>): void;
  remove(token: string): void;
  size(): number;
}

// Also the result of `get`, to keep one object per token.
interface Entry<Key> extends VerifiedToken<Key> {
  readonly name: string;
  claims: Claims;
  key: Key;
  used: boolean;
  older: Entry<Key> | undefined;
  newer: Entry<Key> | undefined;
}

/** Holds at most `maxTokens`; 0 turns the cache off. */
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

  // Ends within two rounds: the first one clears every `used`.
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

// A full SHA-256 of the whole token: a shorter or weaker key would confuse tokens (GHSA-rp9m-7r4c-75qg).
function nameOf(token: string): string {
  return hash('sha256', token, 'binary');
}
