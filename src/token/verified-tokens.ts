// The cache of verified tokens: a cached token costs a hash instead of a signature. Refusals are never cached.
// Eviction by SIEVE (Zhang et al., NSDI 2024): a hand walks from the oldest to the newest entry, spares what was used since its last
// visit, and evicts the first that was not. A flood of one-time tokens evicts its own entries, not the tokens in use.
// Bounded in tokens and in bytes: a token may name 1,000 accounts with a role in each.
import { hash } from 'node:crypto';
import type { Account, AccountSet, Claimed, ClaimedByAccount, Identity } from '../authz/principal.ts';
import type { Refusal } from '../authz/refusal.ts';
import type { Claims } from './claims.ts';

/** Verified claims, valid only while the key that verified them is in use. */
export interface VerifiedToken<Key> {
  readonly claims: Claims;
  readonly key: Key;
}

/** By the name of a token, see `nameOf`. */
export interface VerifiedTokens<Key> {
  /** Do not keep the result: it changes when the token is put again. */
  get(name: string): VerifiedToken<Key> | undefined;
  put(name: string, verified: VerifiedToken<Key>): void;
  remove(name: string): void;
  size(): number;
  /** An estimate of the memory that they take. */
  bytes(): number;
}

// Also the result of `get`, to keep one object per token.
interface Entry<Key> extends VerifiedToken<Key> {
  readonly name: string;
  readonly bytes: number;
  claims: Claims;
  key: Key;
  used: boolean;
}

// An ordinary token takes 600 to 700, and one of 180 accounts nine times as much. Some hundred of the largest fit in a small cache.
const bytesPerToken = 768;
const minBytes = 4 * 1024 * 1024;

/** Holds at most `maxTokens`, and 768 bytes for each of them but at least 4 MiB; 0 turns the cache off. */
export function createVerifiedTokens<Key>(maxTokens: number): VerifiedTokens<Key> {
  const entries = new Map<string, Entry<Key>>();
  // A map is iterated from its oldest entry to its newest, whatever is deleted meanwhile.
  let walk = entries.values();
  /** Undefined: the walk begins anew. */
  let hand: Entry<Key> | undefined;
  let bytes = 0;
  const maxBytes = Math.max(maxTokens * bytesPerToken, minBytes);

  function advance(): void {
    const step = walk.next();
    hand = step.done ? undefined : step.value;
  }

  function drop(entry: Entry<Key>): void {
    if (hand === entry) advance();
    entries.delete(entry.name);
    bytes -= entry.bytes;
  }

  // Ends within two rounds: the first one clears every `used`.
  function makeRoom(): void {
    for (const { size } = entries; entries.size === size; ) {
      if (hand === undefined) {
        walk = entries.values();
        advance();
      } else if (hand.used) {
        hand.used = false;
        advance();
      } else drop(hand);
    }
  }

  return {
    get(name) {
      const entry = entries.get(name);
      if (entry === undefined) return undefined;
      entry.used = true;
      return entry;
    },
    put(name, verified) {
      if (maxTokens === 0) return;
      const known = entries.get(name);
      if (known !== undefined) {
        known.claims = pack(verified.claims).claims;
        known.key = verified.key;
        return;
      }
      const packed = pack(verified.claims);
      while (entries.size > 0 && (entries.size >= maxTokens || bytes + packed.bytes > maxBytes)) makeRoom();
      entries.set(name, { name, ...packed, key: verified.key, used: false });
      bytes += packed.bytes;
    },
    remove(name) {
      const entry = entries.get(name);
      if (entry !== undefined) drop(entry);
    },
    size: () => entries.size,
    bytes: () => bytes,
  };
}

/** A full SHA-256 of the whole token: a shorter or weaker key would confuse tokens (GHSA-rp9m-7r4c-75qg). */
export function nameOf(token: string): string {
  return hash('sha256', token, 'binary');
}

interface Packed {
  readonly claims: Claims;
  readonly bytes: number;
}

// Measured: an entry with its claims, and a list. A little more than they take.
const bytesOfEntry = 440;
const bytesOfList = 40;

/**
 * The same claims, with several accounts as one text: a set of 180 names takes three times the memory, in 180 objects, and V8 lets the heap
 * grow to a multiple of what is alive (docs/dev/performance.md).
 */
function pack(claims: Claims): Packed {
  const { identity } = claims;
  const accounts = packAccounts(identity.accounts);
  const [role, scope] = [packClaimed(identity.role), packClaimed(identity.scope)];
  let bytes = bytesOfEntry + bytesOfClaimed(role) + bytesOfClaimed(scope);
  if (accounts instanceof PackedAccounts) bytes += accounts.bytes();
  for (const value of [...Object.values(identity), ...identity.forwarded])
    if (typeof value === 'string') bytes += value.length;
  return { claims: { ...claims, identity: { ...identity, accounts, role, scope } }, bytes };
}

function packAccounts(accounts: Identity['accounts']): Identity['accounts'] {
  return typeof accounts === 'string' || 'kind' in accounts ? accounts : new PackedAccounts([...accounts]);
}

function packClaimed(claimed: Claimed | ClaimedByAccount): Claimed | ClaimedByAccount {
  return 'kind' in claimed ? { kind: claimed.kind, claimed: new PackedClaims(claimed.claimed) } : claimed;
}

// Names of a list are texts of the configuration.
function bytesOfClaimed(claimed: Claimed | ClaimedByAccount | Refusal): number {
  if (!('kind' in claimed)) return bytesOfList + 8 * claimed.length;
  return 'claimed' in claimed && claimed.claimed instanceof PackedClaims ? claimed.claimed.bytes() : bytesOfList;
}

// Classes, because each closure of an object would take memory of its own.
class PackedAccounts implements AccountSet {
  readonly size: number;
  /** No account has a space, so a name between spaces is a whole one. */
  readonly #text: string;

  constructor(accounts: readonly Account[]) {
    this.size = accounts.length;
    this.#text = ['', ...accounts, ''].join(' ');
  }

  has(account: Account): boolean {
    return this.#text.includes(` ${account} `);
  }

  [Symbol.iterator](): Iterator<Account> {
    return (this.#text.slice(1, -1).split(' ') as Account[]).values();
  }

  bytes(): number {
    return bytesOfList + this.#text.length;
  }
}

/** Most accounts have the same names of a permission table, so there are few lists. */
class PackedClaims {
  readonly #lists: readonly (readonly [accounts: PackedAccounts, claimed: Claimed | Refusal])[];

  constructor(claimed: ClaimedByAccount['claimed']) {
    const accountsOf = new Map<Claimed | Refusal, Account[]>();
    for (const [account, each] of claimed) {
      const accounts = accountsOf.get(each);
      if (accounts === undefined) accountsOf.set(each, [account]);
      else accounts.push(account);
    }
    this.#lists = Array.from(accountsOf, ([each, accounts]) => [new PackedAccounts(accounts), each]);
  }

  get(account: Account): Claimed | Refusal | undefined {
    return this.#lists.find(([accounts]) => accounts.has(account))?.[1];
  }

  *[Symbol.iterator](): Iterator<readonly [Account, Claimed | Refusal]> {
    for (const [accounts, each] of this.#lists) for (const account of accounts) yield [account, each];
  }

  bytes(): number {
    return this.#lists.reduce((sum, [accounts, each]) => sum + accounts.bytes() + bytesOfClaimed(each), bytesOfList);
  }
}
