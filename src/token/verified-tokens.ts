// The cache of verified tokens: a cached token costs a hash instead of a signature. Refusals are never cached.
// Eviction by SIEVE (Zhang et al., NSDI 2024): a hand walks from the oldest to the newest entry, spares what was used since its last
// visit, and evicts the first that was not. A flood of one-time tokens evicts its own entries, not the tokens in use.
// Bounded in tokens and in bytes: a token may name 1,000 accounts with a role in each.
import { hash } from 'node:crypto';
import type { Claimed, ClaimedByAccount } from '../authz/principal.ts';
import type { Refusal } from '../authz/refusal.ts';
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
  /** An estimate of the memory that they take. */
  bytes(): number;
}

// Also the result of `get`, to keep one object per token.
interface Entry<Key> extends VerifiedToken<Key> {
  readonly name: string;
  bytes: number;
  claims: Claims;
  key: Key;
  used: boolean;
  older: Entry<Key> | undefined;
  newer: Entry<Key> | undefined;
}

// Five times an ordinary token, and room for some hundred of the largest in a small cache.
const bytesPerToken = 3 * 1024;
const minBytes = 16 * 1024 * 1024;

/** Holds at most `maxTokens`, and 3 KiB for each of them but at least 16 MiB; 0 turns the cache off. */
export function createVerifiedTokens<Key>(maxTokens: number): VerifiedTokens<Key> {
  const entries = new Map<string, Entry<Key>>();
  let oldest: Entry<Key> | undefined;
  let newest: Entry<Key> | undefined;
  let hand: Entry<Key> | undefined;
  let bytes = 0;
  const maxBytes = Math.max(maxTokens * bytesPerToken, minBytes);

  function add(name: string, needed: number, { claims, key }: VerifiedToken<Key>): void {
    const entry: Entry<Key> = {
      name,
      bytes: needed,
      claims,
      key,
      used: false,
      older: newest,
      newer: undefined,
    };
    bytes += entry.bytes;
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
    bytes -= entry.bytes;
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
      const needed = bytesOf(verified.claims);
      while (entries.size > 0 && (entries.size >= maxTokens || bytes + needed > maxBytes)) makeRoom();
      add(name, needed, verified);
    },
    remove(token) {
      const entry = entries.get(nameOf(token));
      if (entry !== undefined) drop(entry);
    },
    size: () => entries.size,
    bytes: () => bytes,
  };
}

// A full SHA-256 of the whole token: a shorter or weaker key would confuse tokens (GHSA-rp9m-7r4c-75qg).
function nameOf(token: string): string {
  return hash('sha256', token, 'binary');
}

// Measured with Node's heap snapshots: an entry with its claims, one name in a set, one account in a map. A little more than they take.
const bytesOfEntry = 600;
const bytesOfName = 64;
const bytesOfAccount = 56;

function bytesOf({ identity }: Claims): number {
  let bytes = bytesOfEntry;
  for (const value of Object.values(identity)) if (typeof value === 'string') bytes += value.length;
  const { accounts, role, scope } = identity;
  if (typeof accounts !== 'string' && !('kind' in accounts))
    for (const { length } of accounts) bytes += bytesOfName + length;
  for (const claimed of [role, scope]) bytes += bytesOfClaim(claimed);
  return bytes;
}

// Names of a list are texts of the configuration. Lists of accounts are mostly shared, so their items count once for each list.
function bytesOfClaim(claimed: Claimed | ClaimedByAccount): number {
  if (!('kind' in claimed)) return bytesOfList(claimed);
  let bytes = bytesOfAccount * claimed.claimed.size;
  for (const each of new Set(claimed.claimed.values())) bytes += bytesOfList(each);
  return bytes;
}

function bytesOfList(claimed: Claimed | Refusal): number {
  return bytesOfName + (typeof claimed === 'object' && !('kind' in claimed) ? 8 * claimed.length : 128);
}
