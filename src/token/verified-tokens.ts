// Tokens that were verified before, so that a known token costs a hash instead of a signature. Refusals are never kept.
import { hash } from 'node:crypto';
import type { Claims } from './claims.ts';

/** What a verification proved, and the key that proved it: once that key is gone, so is the proof. */
export interface VerifiedToken<Key> {
  readonly claims: Claims;
  readonly kid: string;
  readonly key: Key;
}

export interface VerifiedTokens<Key> {
  get(token: string): VerifiedToken<Key> | undefined;
  put(token: string, verified: VerifiedToken<Key>): void;
  remove(token: string): void;
  size(): number;
}

/** Least recently used first out beyond `maxTokens`; 0 keeps none. */
export function createVerifiedTokens<Key>(maxTokens: number): VerifiedTokens<Key> {
  const entries = new Map<string, VerifiedToken<Key>>();
  return {
    get(token) {
      const name = nameOf(token);
      const entry = entries.get(name);
      if (entry === undefined) return undefined;
      // A Map keeps the order of insertion: putting the entry back makes it the most recent.
      entries.delete(name);
      entries.set(name, entry);
      return entry;
    },
    put(token, verified) {
      if (maxTokens === 0) return;
      entries.set(nameOf(token), verified);
      if (entries.size <= maxTokens) return;
      const oldest = entries.keys().next();
      if (!oldest.done) entries.delete(oldest.value);
    },
    remove(token) {
      entries.delete(nameOf(token));
    },
    size: () => entries.size,
  };
}

// Of the exact bytes, whole: a shorter or weaker name would let one token be taken for another (GHSA-rp9m-7r4c-75qg).
function nameOf(token: string): string {
  return hash('sha256', token, 'binary');
}
