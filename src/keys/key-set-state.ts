// The key set of one issuer as a state machine: state, event, monotonic now → state, effects. No I/O, timers or randomness.
// Whoever runs it performs the effects, calls it again with `woken` no later than nextWakeMs(state), and brings the jitter.
//
// phase \ event | started  woken                  asked (kid not usable)                       fetched, notModified  failed               changed        stopped
// --------------+----------------------------------------------------------------------------------------------------------------------------------------------
// new           | fetching –                      unavailable                                  –                     –                    –              stopped
// waiting       | –        fetching once it is    cooldown over: fetching, and the kid waits   –                     –                    fetching, or   stopped
//               |          due                    cooldown: unknown after a success, else                                                 owed at the
//               |                                 unavailable; a fetch is owed at its end                                                 cooldown's end
// fetching      | –        waiters past 150 ms:   waits; no room: answered at once             waiting; waiters      waiting, backoff;    owed after     stopped
//               |          unavailable                                                         answered              waiters unavailable  this one       (abort)
// stopped       | –        –                      unavailable                                  –                     –                    –              –
//
// `withdrawn` takes the set away in every phase: nobody who is still trusted vouches for it. Then it goes on as `changed` does.
// `seeded` gives a new machine a set from disk with its age. Results name their fetch; one that is not in flight is ignored.
// A key is usable while its set was confirmed less than maxAge ago, counted from the start of the fetch that confirmed it.
// A fetch starts no sooner than the cooldown after the end of the one before, whatever its result and whoever asks.
import type { DetailOf } from '../authz/checks.ts';
import type { VerificationKey } from './jwks.ts';

/** What is known about a kid: its key, that the issuer has none under it, or that this cannot be decided now. */
export type KeyLookup =
  | { readonly kind: 'key'; readonly key: VerificationKey }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'unavailable'; readonly detail: DetailOf<'keys_unavailable'> };

export interface KeySetLimits {
  readonly refreshMs: number;
  readonly maxAgeMs: number;
  readonly cooldownMs: number;
  /** How long an unknown kid may wait for the refresh it asked for. */
  readonly waitMs: number;
  readonly maxWaiters: number;
  /** Bound of the negative cache, and of the kids that are owed a fetch. */
  readonly maxUnknownKids: number;
}

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
  /** Failed fetches in a row. */
  readonly failures: number;
  readonly lastResult: 'success' | 'failure' | undefined;
  readonly lastProblem: string | undefined;
  /** One for each kid, in the order of their deadlines. */
  readonly waiters: readonly Waiter[];
  /** Kids asked for since the latest fetch started: it cannot prove that they do not exist. */
  readonly askedDuringFetch: readonly string[];
  /** Kids asked for before the fetch in flight started: its success settles them. */
  readonly askedBeforeFetch: readonly string[];
  /** The negative cache: kids asked for before the last successful fetch started, and not in its set. */
  readonly knownAbsent: ReadonlySet<string>;
  /** The source changed while a fetch was in flight. */
  readonly changed: boolean;
}

/** `jitter` is a random number from 0 up to, not including, 1. */
export type KeySetEvent =
  | { readonly kind: 'seeded'; readonly keys: ReadonlyMap<string, VerificationKey>; readonly ageMs: number }
  | { readonly kind: 'started' }
  | { readonly kind: 'woken' }
  | { readonly kind: 'asked'; readonly kid: string }
  | {
      readonly kind: 'fetched';
      readonly fetch: number;
      readonly keys: ReadonlyMap<string, VerificationKey>;
      readonly jitter: number;
    }
  | { readonly kind: 'notModified'; readonly fetch: number; readonly jitter: number }
  | { readonly kind: 'failed'; readonly fetch: number; readonly problem: string; readonly jitter: number }
  | { readonly kind: 'changed' }
  | { readonly kind: 'withdrawn' }
  | { readonly kind: 'stopped' };

export type KeySetEffect =
  | { readonly kind: 'fetch'; readonly fetch: number }
  | { readonly kind: 'abort' }
  | { readonly kind: 'answer'; readonly kid: string; readonly lookup: KeyLookup };

export interface KeySetStep {
  readonly state: KeySetState;
  readonly effects: readonly KeySetEffect[];
}

const unknown: KeyLookup = { kind: 'unknown' };

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
    failures: 0,
    lastResult: undefined,
    lastProblem: undefined,
    waiters: [],
    askedDuringFetch: [],
    askedBeforeFetch: [],
    knownAbsent: new Set(),
    changed: false,
  };
}

/** The next state and what has to be done for it. Total: an event that does not fit the phase changes nothing. */
export function reduce(state: KeySetState, event: KeySetEvent, nowMs: number): KeySetStep {
  switch (event.kind) {
    case 'seeded':
      return seeded(state, event.keys, event.ageMs, nowMs);
    case 'started':
      return state.phase === 'new' ? beginFetch(state, nowMs) : { state, effects: [] };
    case 'woken':
      return woken(state, nowMs);
    case 'asked':
      return asked(state, event.kid, nowMs);
    case 'fetched':
      if (!isInFlight(state, event.fetch)) return { state, effects: [] };
      return succeeded(state, event.keys, event.jitter, nowMs);
    case 'notModified':
      if (!isInFlight(state, event.fetch)) return { state, effects: [] };
      // Nothing that could be unmodified: an empty set must not count as confirmed.
      if (state.confirmedMs === undefined) return failed(state, 'status 304', event.jitter, nowMs);
      return succeeded(state, state.keys, event.jitter, nowMs);
    case 'failed':
      if (!isInFlight(state, event.fetch)) return { state, effects: [] };
      return failed(state, event.problem, event.jitter, nowMs);
    case 'changed':
      return changed(state, nowMs);
    case 'withdrawn':
      return changed({ ...state, keys: new Map(), confirmedMs: undefined, knownAbsent: new Set() }, nowMs);
    case 'stopped':
      return stopped(state);
  }
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

function isInFlight(state: KeySetState, fetch: number): boolean {
  return state.phase === 'fetching' && state.fetch === fetch;
}

function seeded(
  state: KeySetState,
  keys: ReadonlyMap<string, VerificationKey>,
  ageMs: number,
  nowMs: number,
): KeySetStep {
  // Not after a fetch: what the issuer says now is newer than anything on disk. The negation also refuses NaN.
  if (state.phase !== 'new' || !(ageMs >= 0 && ageMs < state.limits.maxAgeMs)) return { state, effects: [] };
  return { state: { ...state, keys, confirmedMs: nowMs - ageMs }, effects: [] };
}

function beginFetch(state: KeySetState, nowMs: number): KeySetStep {
  const fetch = state.fetch + 1;
  return {
    state: {
      ...state,
      phase: 'fetching',
      fetch,
      fetchStartedMs: nowMs,
      askedBeforeFetch: state.askedDuringFetch,
      askedDuringFetch: [],
      changed: false,
    },
    effects: [{ kind: 'fetch', fetch }],
  };
}

function woken(state: KeySetState, nowMs: number): KeySetStep {
  const late = state.waiters.filter(waiter => waiter.deadlineMs <= nowMs);
  const effects: KeySetEffect[] = late.map(({ kid }) => ({
    kind: 'answer',
    kid,
    lookup: { kind: 'unavailable', detail: `the refresh takes longer than ${state.limits.waitMs} ms` },
  }));
  const waiting = { ...state, waiters: state.waiters.slice(late.length) };
  if (waiting.phase !== 'waiting' || nowMs < waiting.nextFetchMs) return { state: waiting, effects };
  const begun = beginFetch(waiting, nowMs);
  return { state: begun.state, effects: [...effects, ...begun.effects] };
}

function asked(state: KeySetState, kid: string, nowMs: number): KeySetStep {
  const atOnce: KeySetEffect = { kind: 'answer', kid, lookup: answer(state, kid, nowMs) };
  if (atOnce.lookup.kind === 'key') return { state, effects: [atOnce] };
  switch (state.phase) {
    case 'new':
    case 'stopped':
      return { state, effects: [atOnce] };
    case 'waiting': {
      if (nowMs >= state.notBeforeMs) return wait(beginFetch(remember(state, kid), nowMs), kid, nowMs);
      // Already settled by the last successful fetch, so nothing is owed; once the cooldown is over it may ask again.
      if (atOnce.lookup.kind === 'unknown' && state.knownAbsent.has(kid)) return { state, effects: [atOnce] };
      // Not lost: this fetch comes at the end of the cooldown even if nobody asks again (product.md section 6, hard rotation).
      const owed = { ...remember(state, kid), nextFetchMs: Math.min(state.nextFetchMs, state.notBeforeMs) };
      return { state: owed, effects: [atOnce] };
    }
    case 'fetching': {
      const remembered = remember(state, kid);
      if (state.waiters.some(waiter => waiter.kid === kid)) return { state: remembered, effects: [] };
      if (state.waiters.length >= state.limits.maxWaiters) return { state: remembered, effects: [atOnce] };
      return wait({ state: remembered, effects: [] }, kid, nowMs);
    }
  }
}

function remember(state: KeySetState, kid: string): KeySetState {
  const full = state.askedDuringFetch.length >= state.limits.maxUnknownKids;
  if (full || state.askedDuringFetch.includes(kid) || state.askedBeforeFetch.includes(kid)) return state;
  return { ...state, askedDuringFetch: [...state.askedDuringFetch, kid] };
}

function wait(step: KeySetStep, kid: string, nowMs: number): KeySetStep {
  const { state, effects } = step;
  const waiter: Waiter = { kid, deadlineMs: nowMs + state.limits.waitMs };
  return { state: { ...state, waiters: [...state.waiters, waiter] }, effects };
}

/** The answer for a kid that nothing more is going to be done about now. */
function answer(state: KeySetState, kid: string, nowMs: number): KeyLookup {
  const key = usableKey(state, kid, nowMs);
  if (key !== undefined) return { kind: 'key', key };
  const decidable = state.phase !== 'stopped' && state.lastResult === 'success' && isUsable(state, nowMs);
  return decidable ? unknown : { kind: 'unavailable', detail: whyUnavailable(state, nowMs) };
}

function whyUnavailable(state: KeySetState, nowMs: number): DetailOf<'keys_unavailable'> {
  if (state.phase === 'stopped') return 'stopped';
  const problem = state.lastProblem === undefined ? '' : `, last refresh: ${state.lastProblem}`;
  if (state.confirmedMs === undefined) return `no key set yet${problem}`;
  if (!isUsable(state, nowMs)) return `key set too old${problem}`;
  return `kid not in the key set${problem}`;
}

function answerAll(state: KeySetState, nowMs: number): KeySetStep {
  const effects = state.waiters.map(
    ({ kid }): KeySetEffect => ({ kind: 'answer', kid, lookup: answer(state, kid, nowMs) }),
  );
  return { state: { ...state, waiters: [] }, effects };
}

function succeeded(
  state: KeySetState,
  keys: ReadonlyMap<string, VerificationKey>,
  jitter: number,
  nowMs: number,
): KeySetStep {
  const notBeforeMs = nowMs + state.limits.cooldownMs;
  // A kid that was asked for while the fetch was in flight may have been published after its answer was written.
  const askedDuringFetch = state.askedDuringFetch.filter(kid => !keys.has(kid));
  const owed = askedDuringFetch.length > 0 || state.changed;
  const dueMs = state.fetchStartedMs + refreshDelayMs(state.limits, jitter);
  return answerAll(
    {
      ...state,
      phase: 'waiting',
      keys,
      confirmedMs: state.fetchStartedMs,
      notBeforeMs,
      nextFetchMs: owed ? notBeforeMs : Math.max(notBeforeMs, dueMs),
      failures: 0,
      lastResult: 'success',
      lastProblem: undefined,
      askedDuringFetch,
      askedBeforeFetch: [],
      knownAbsent: stillKnownAbsent(state, keys),
      changed: false,
    },
    nowMs,
  );
}

function stillKnownAbsent(state: KeySetState, keys: ReadonlyMap<string, VerificationKey>): ReadonlySet<string> {
  const newestFirst = new Set([...state.askedBeforeFetch, ...state.knownAbsent]);
  return new Set([...newestFirst].filter(kid => !keys.has(kid)).slice(0, state.limits.maxUnknownKids));
}

function failed(state: KeySetState, problem: string, jitter: number, nowMs: number): KeySetStep {
  const failures = state.failures + 1;
  const notBeforeMs = nowMs + state.limits.cooldownMs;
  return answerAll(
    {
      ...state,
      phase: 'waiting',
      notBeforeMs,
      nextFetchMs: state.changed ? notBeforeMs : nowMs + backoffMs(state.limits, failures, jitter),
      failures,
      lastResult: 'failure',
      lastProblem: problem,
      // They were answered 503 and the retry is scheduled; owing them a fetch would defeat the backoff.
      askedDuringFetch: [],
      askedBeforeFetch: [],
      changed: false,
    },
    nowMs,
  );
}

function changed(state: KeySetState, nowMs: number): KeySetStep {
  switch (state.phase) {
    case 'new':
    case 'stopped':
      return { state, effects: [] };
    case 'fetching':
      return { state: { ...state, changed: true }, effects: [] };
    case 'waiting':
      if (nowMs >= state.notBeforeMs) return beginFetch(state, nowMs);
      return { state: { ...state, nextFetchMs: Math.min(state.nextFetchMs, state.notBeforeMs) }, effects: [] };
  }
}

function stopped(state: KeySetState): KeySetStep {
  const next: KeySetState = { ...state, phase: 'stopped', waiters: [], askedDuringFetch: [], askedBeforeFetch: [] };
  const answers = state.waiters.map(
    ({ kid }): KeySetEffect => ({ kind: 'answer', kid, lookup: { kind: 'unavailable', detail: 'stopped' } }),
  );
  return { state: next, effects: state.phase === 'fetching' ? [{ kind: 'abort' }, ...answers] : answers };
}

// Spread over the last fifth of the interval, and always a fifth of maxAge before the set would be too old.
function refreshDelayMs(limits: KeySetLimits, jitter: number): number {
  return Math.min(limits.refreshMs * (0.8 + 0.2 * jitter), limits.maxAgeMs * 0.8);
}

// Between half of the doubled delay and all of it: [c, 2c], [2c, 4c] … [refresh / 2, refresh].
function backoffMs(limits: KeySetLimits, failures: number, jitter: number): number {
  const highMs = Math.min(limits.refreshMs, limits.cooldownMs * 2 ** Math.min(failures, 32));
  const lowMs = Math.max(limits.cooldownMs, highMs / 2);
  return lowMs + (highMs - lowMs) * jitter;
}
