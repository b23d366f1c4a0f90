// The state of a key set, which several issuers may share, and what can be read from it. key-set-reducer.ts changes it.
import type { DetailOf } from '../authz/checks.ts';
import type { VerificationKey } from './jwks.ts';

/** A key, no such key at the issuer, or undecidable now. */
export type KeyLookup =
  | { readonly kind: 'key'; readonly key: VerificationKey }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'unavailable'; readonly detail: DetailOf<'keys_unavailable'> };

export interface KeySetLimits {
  readonly refreshMs: number;
  readonly maxAgeMs: number;
  readonly cooldownMs: number;
  /** Longest backoff while there is no usable set. */
  readonly maxRetryMs: number;
  /** Longest backoff of early refreshes. */
  readonly maxEarlyMs: number;
  /** After this time without an unknown kid the backoff of early refreshes starts anew. */
  readonly quietMs: number;
  /** How long an unknown kid may wait for the refresh it asked for. */
  readonly waitMs: number;
  readonly maxWaiters: number;
  /** Bound of the negative cache and of the kids that are owed a fetch. */
  readonly maxUnknownKids: number;
}

/** The limits that no setting changes. */
export const fixedLimits = {
  maxRetryMs: 15_000,
  maxEarlyMs: 60_000,
  quietMs: 600_000,
  waitMs: 150,
  maxWaiters: 1024,
  maxUnknownKids: 1024,
} as const;

export interface Waiter {
  readonly kid: string;
  readonly deadlineMs: number;
}

export interface KeySetState {
  readonly limits: KeySetLimits;
  readonly phase: 'new' | 'waiting' | 'fetching' | 'stopped';
  /** The set in force, empty until there is one. */
  readonly keys: ReadonlyMap<string, VerificationKey>;
  /** The start of the fetch that confirmed the set; undefined until there is one. */
  readonly confirmedMs: number | undefined;
  /** The number of the latest fetch. */
  readonly fetch: number;
  readonly fetchStartedMs: number;
  /** When the next fetch is due; counts in the phase `waiting` only. */
  readonly nextFetchMs: number;
  /** The end of the cooldown. */
  readonly notBeforeMs: number;
  /** The end of the cooldown or, if that is later, of the backoff of early refreshes. */
  readonly earlyNotBeforeMs: number;
  /** Early refreshes in a row that brought nothing new. */
  readonly earlyFetchesWithoutNews: number;
  /** When a kid that is not usable was last asked for. */
  readonly askedMs: number;
  /** Failed fetches in a row. */
  readonly failures: number;
  readonly lastResult: 'success' | 'failure' | undefined;
  readonly lastProblem: string | undefined;
  /** One for each kid, in the order of their deadlines. */
  readonly waiters: readonly Waiter[];
  /** Kids asked for after the latest fetch started: its success does not settle them. */
  readonly askedDuringFetch: readonly string[];
  /** Kids asked for before the fetch in flight started: its success settles them. */
  readonly askedBeforeFetch: readonly string[];
  /** The negative cache: kids asked for before the last successful fetch started, and not in its set. */
  readonly knownAbsent: ReadonlySet<string>;
  /** The source changed while a fetch was in flight. */
  readonly changed: boolean;
  /** The set is dropped unless the fetch of this number succeeds: an authority that it was fetched under is gone. */
  readonly untrustedUntil: number | undefined;
}

export function createKeySetState(limits: KeySetLimits): KeySetState {
  return {
    limits,
    phase: 'new',
    keys: new Map(),
    confirmedMs: undefined,
    fetch: 0,
    fetchStartedMs: 0,
    nextFetchMs: 0,
    notBeforeMs: 0,
    earlyNotBeforeMs: 0,
    earlyFetchesWithoutNews: 0,
    askedMs: Number.NEGATIVE_INFINITY,
    failures: 0,
    lastResult: undefined,
    lastProblem: undefined,
    waiters: [],
    askedDuringFetch: [],
    askedBeforeFetch: [],
    knownAbsent: new Set(),
    changed: false,
    untrustedUntil: undefined,
  };
}

/** When `woken` is due next, undefined when nothing waits for time to pass. */
export function nextWakeMs(state: KeySetState): number | undefined {
  // Callers wait during a fetch only, and then no other one is due.
  return state.phase === 'waiting' ? state.nextFetchMs : state.waiters[0]?.deadlineMs;
}

/** True while there is a set that was confirmed less than maxAge ago. */
export function isUsable(state: KeySetState, nowMs: number): boolean {
  return state.confirmedMs !== undefined && nowMs - state.confirmedMs < state.limits.maxAgeMs;
}

/** The key under this kid, if its set is usable now. */
export function usableKey(state: KeySetState, kid: string, nowMs: number): VerificationKey | undefined {
  return isUsable(state, nowMs) ? state.keys.get(kid) : undefined;
}
