// The state machine of a key set: state, event, monotonic now → state. Pure: no I/O, timers or randomness.
// The caller begins a fetch when `fetch` grows, and aborts it after `stopped`. It sends `woken` no later than nextWakeMs(state), supplies the
// jitter, and lets an unknown kid wait while a fetch is in flight.
//
// `seeded` gives a new machine a set from disk with its age. A result of a fetch that is not in flight is ignored.
// A set is usable while it was confirmed less than maxAge ago, counted from the start of the fetch that confirmed it.
// A fetch starts no sooner than the cooldown after the end of the one before, whatever its result and whoever asks.
// A fetch that unknown kids asked for is an early refresh. Each one that fails or brings the set that is in force already delays the
// next one, so a flood of unknown kids costs the issuer little. Only a changed set, a usable set where there was none, or ten minutes
// without an unknown kid end this backoff. Background refreshes and retries are due regardless of it.
import type { DetailOf } from '../authz/checks.ts';
import type { KeySet } from './jwks.ts';

/** The part of a key set that counts here. */
export type Keys = Pick<KeySet, 'keys' | 'kids'>;

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
  /** Bound of the negative cache and of the kids that are owed a fetch. */
  readonly maxUnknownKids: number;
}

/** The limits that no setting changes. */
export const fixedLimits = {
  maxRetryMs: 15_000,
  maxEarlyMs: 60_000,
  quietMs: 600_000,
  maxUnknownKids: 1024,
} as const;

export interface KeySetState {
  readonly limits: KeySetLimits;
  readonly phase: 'new' | 'waiting' | 'fetching' | 'stopped';
  /** The set in force, empty until there is one. */
  readonly set: Keys;
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
  /** Kids asked for after the latest fetch started: its success does not settle them. */
  readonly askedDuringFetch: readonly string[];
  /** Kids asked for before the fetch in flight started: its success settles them. */
  readonly askedBeforeFetch: readonly string[];
  /** The negative cache: kids asked for before the last successful fetch started, and not in its set. */
  readonly knownAbsent: ReadonlySet<string>;
  /** The source changed while a fetch was in flight. */
  readonly changed: boolean;
}

/** What a fetch brought. */
export type FetchOutcome =
  | { readonly kind: 'fetched'; readonly set: Keys }
  | { readonly kind: 'notModified' }
  | { readonly kind: 'failed'; readonly problem: string };

/** `jitter` is a random number from 0 up to, not including, 1. */
type FetchEnd = FetchOutcome & { readonly fetch: number; readonly jitter: number };

export type KeySetEvent =
  | { readonly kind: 'seeded'; readonly set: Keys; readonly ageMs: number }
  | { readonly kind: 'started' | 'woken' | 'changed' | 'stopped' }
  | { readonly kind: 'asked'; readonly kid: string }
  | FetchEnd;

/** In the usable set, not at the issuer, or undecidable now. */
export type KidAnswer =
  | { readonly kind: 'known' | 'unknown' }
  | { readonly kind: 'unavailable'; readonly detail: DetailOf<'keys_unavailable'> };

export function createKeySetState(limits: KeySetLimits): KeySetState {
  return {
    limits,
    phase: 'new',
    set: { keys: new Map(), kids: new Set() },
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
    askedDuringFetch: [],
    askedBeforeFetch: [],
    knownAbsent: new Set(),
    changed: false,
  };
}

/** When `woken` is due next, undefined when nothing waits for time to pass. */
export function nextWakeMs(state: KeySetState): number | undefined {
  return state.phase === 'waiting' ? state.nextFetchMs : undefined;
}

/** True while there is a set that was confirmed less than maxAge ago. */
export function isUsable(state: KeySetState, nowMs: number): boolean {
  return state.confirmedMs !== undefined && nowMs - state.confirmedMs < state.limits.maxAgeMs;
}

/** The answer that the state allows now. For no kid, whether there is a usable set. */
export function answerNow(state: KeySetState, kid: string | undefined, nowMs: number): KidAnswer {
  if (isUsable(state, nowMs)) {
    if (kid === undefined || state.set.kids.has(kid)) return { kind: 'known' };
    if (state.lastResult === 'success' && state.phase !== 'stopped') return { kind: 'unknown' };
  }
  return { kind: 'unavailable', detail: whyUnavailable(state, nowMs) };
}

function whyUnavailable(state: KeySetState, nowMs: number): DetailOf<'keys_unavailable'> {
  if (state.phase === 'stopped') return 'stopped';
  const problem = state.lastProblem === undefined ? '' : `, last refresh: ${state.lastProblem}`;
  if (state.confirmedMs === undefined) return `no key set yet${problem}`;
  if (!isUsable(state, nowMs)) return `key set too old${problem}`;
  return `kid not in the key set${problem}`;
}

/** The next state. An event that does not fit the phase changes nothing. */
export function reduce(state: KeySetState, event: KeySetEvent, nowMs: number): KeySetState {
  switch (event.kind) {
    case 'seeded':
      // Not after a fetch: the issuer's answer is newer than the seed. The negation also refuses NaN.
      if (state.phase !== 'new' || !(event.ageMs >= 0 && event.ageMs < state.limits.maxAgeMs)) return state;
      return { ...state, set: event.set, confirmedMs: nowMs - event.ageMs };
    case 'started':
      return state.phase === 'new' ? beginFetch(state, nowMs) : state;
    case 'woken':
      return state.phase === 'waiting' && nowMs >= state.nextFetchMs ? beginFetch(state, nowMs) : state;
    case 'asked':
      return asked(state, event.kid, nowMs);
    case 'fetched':
    case 'notModified':
    case 'failed':
      return state.phase === 'fetching' && state.fetch === event.fetch ? afterFetch(state, event, nowMs) : state;
    case 'changed':
      return changed(state, nowMs);
    case 'stopped':
      return { ...state, phase: 'stopped' };
  }
}

function beginFetch(state: KeySetState, nowMs: number): KeySetState {
  const kids = { askedBeforeFetch: state.askedDuringFetch, askedDuringFetch: [] };
  return { ...state, ...kids, phase: 'fetching', fetch: state.fetch + 1, fetchStartedMs: nowMs, changed: false };
}

function asked(state: KeySetState, kid: string, nowMs: number): KeySetState {
  const { kind } = answerNow(state, kid, nowMs);
  if (kind === 'known' || state.phase === 'new' || state.phase === 'stopped') return state;
  const isQuiet = nowMs - state.askedMs >= state.limits.quietMs;
  const asking = { ...state, askedMs: nowMs, ...(isQuiet && { earlyFetchesWithoutNews: 0 }) };
  const noted = { ...asking, askedDuringFetch: remember(state, kid) };
  if (state.phase === 'fetching') return noted;
  if (nowMs >= state.earlyNotBeforeMs) return beginFetch(noted, nowMs);
  // The last successful fetch settled it, so no fetch is owed. After the backoff it may ask again.
  if (kind === 'unknown' && state.knownAbsent.has(kid)) return asking;
  // Hard rotation (docs/keys.md): the fetch comes at the end of the backoff even if nobody asks again.
  return { ...noted, nextFetchMs: Math.min(state.nextFetchMs, state.earlyNotBeforeMs) };
}

/** The kids asked for during the fetch, with this one unless it is settled by the fetch in flight or there is no room. */
function remember({ limits, askedDuringFetch, askedBeforeFetch }: KeySetState, kid: string): readonly string[] {
  const full = askedDuringFetch.length >= limits.maxUnknownKids;
  if (full || askedDuringFetch.includes(kid) || askedBeforeFetch.includes(kid)) return askedDuringFetch;
  return [...askedDuringFetch, kid];
}

function changed(state: KeySetState, nowMs: number): KeySetState {
  if (state.phase === 'fetching') return { ...state, changed: true };
  if (state.phase !== 'waiting') return state;
  if (nowMs >= state.notBeforeMs) return beginFetch(state, nowMs);
  return { ...state, nextFetchMs: Math.min(state.nextFetchMs, state.notBeforeMs) };
}

// After a fetch: the set, the time of the next fetch, and the backoff of early refreshes.

function afterFetch(state: KeySetState, event: FetchEnd, nowMs: number): KeySetState {
  const cooled = { ...state, notBeforeMs: nowMs + state.limits.cooldownMs };
  const paced = { ...cooled, ...earlyPace(cooled, event, nowMs) };
  return { ...withResult(paced, event, nowMs), phase: 'waiting', askedBeforeFetch: [], changed: false };
}

function withResult(state: KeySetState, event: FetchEnd, nowMs: number): KeySetState {
  switch (event.kind) {
    case 'failed':
      return afterFailure(state, event.problem, event.jitter, nowMs);
    case 'fetched':
      return afterSuccess(state, event.set, event.jitter);
    case 'notModified':
      // Without a usable set a 304 confirms nothing.
      if (!isUsable(state, nowMs)) return afterFailure(state, 'status 304', event.jitter, nowMs);
      return afterSuccess(state, state.set, event.jitter);
  }
}

function earlyPace(
  state: KeySetState,
  event: FetchEnd,
  nowMs: number,
): Pick<KeySetState, 'earlyFetchesWithoutNews' | 'earlyNotBeforeMs'> {
  // A changed set, or a usable one where there was none.
  const isNews = event.kind === 'fetched' && !(isUsable(state, nowMs) && isSameSet(event.set, state.set));
  if (isNews) return { earlyFetchesWithoutNews: 0, earlyNotBeforeMs: state.notBeforeMs };
  const isEarly = state.askedBeforeFetch.length > 0;
  const withoutNews = state.earlyFetchesWithoutNews + (isEarly ? 1 : 0);
  const { limits } = state;
  const earlyMs = isEarly
    ? nowMs + backoffMs(limits, withoutNews - 1, limits.maxEarlyMs, event.jitter)
    : state.earlyNotBeforeMs;
  return { earlyFetchesWithoutNews: withoutNews, earlyNotBeforeMs: Math.max(state.notBeforeMs, earlyMs) };
}

/** An unchanged key is the same object. */
function isSameSet({ keys }: Keys, other: Keys): boolean {
  return keys.size === other.keys.size && [...keys.keys()].every(key => other.keys.has(key));
}

function afterSuccess(state: KeySetState, set: Keys, jitter: number): KeySetState {
  // The issuer may have published a kid that was asked for during the fetch after it had written its answer.
  const askedDuringFetch = state.askedDuringFetch.filter(kid => !set.kids.has(kid));
  const dueMs = state.changed ? state.notBeforeMs : state.fetchStartedMs + refreshDelayMs(state.limits, jitter);
  const owedMs = askedDuringFetch.length > 0 ? state.earlyNotBeforeMs : dueMs;
  const absent = [...new Set([...state.askedBeforeFetch, ...state.knownAbsent])].filter(kid => !set.kids.has(kid));
  return {
    ...state,
    set,
    confirmedMs: state.fetchStartedMs,
    nextFetchMs: Math.max(state.notBeforeMs, Math.min(dueMs, owedMs)),
    failures: 0,
    lastResult: 'success',
    lastProblem: undefined,
    askedDuringFetch,
    // The newest first.
    knownAbsent: new Set(absent.slice(0, state.limits.maxUnknownKids)),
  };
}

function afterFailure(state: KeySetState, problem: string, jitter: number, nowMs: number): KeySetState {
  const failures = state.failures + 1;
  const nextFetchMs = state.changed ? state.notBeforeMs : retryMs(state, failures, jitter, nowMs);
  // The kids were answered 503 and the retry is scheduled; a fetch for them would defeat the backoff.
  return { ...state, nextFetchMs, failures, lastResult: 'failure', lastProblem: problem, askedDuringFetch: [] };
}

/** After a success. Spread over the last fifth of the interval, and at least a fifth of maxAge before the set is too old. */
function refreshDelayMs(limits: KeySetLimits, jitter: number): number {
  return Math.min(limits.refreshMs * (0.8 + 0.2 * jitter), limits.maxAgeMs * 0.8);
}

/** When to retry after this many failures in a row. The backoff is short from the moment when the set is too old. */
function retryMs({ limits, confirmedMs }: KeySetState, failures: number, jitter: number, nowMs: number): number {
  const tooOldMs = confirmedMs === undefined ? nowMs : Math.max(nowMs, confirmedMs + limits.maxAgeMs);
  const longMs = backoffMs(limits, failures, limits.refreshMs, jitter);
  const shortMs = backoffMs(limits, failures, Math.min(limits.refreshMs, limits.maxRetryMs), jitter);
  return Math.min(nowMs + longMs, tooOldMs + shortMs);
}

/**
 * Between half of the cooldown doubled so often and all of it, and never below the cooldown: [c, 2c], [2c, 4c] … the cap. There the jitter
 * narrows to a fifth: with half of it, a flood of unknown kids would cause a third more fetches.
 */
function backoffMs({ cooldownMs }: KeySetLimits, times: number, capMs: number, jitter: number): number {
  const doubledMs = cooldownMs * 2 ** Math.min(times, 32);
  const lowMs = Math.max(cooldownMs, Math.min(doubledMs / 2, capMs * 0.8));
  const highMs = Math.max(cooldownMs, Math.min(doubledMs, capMs));
  return lowMs + (highMs - lowMs) * jitter;
}
