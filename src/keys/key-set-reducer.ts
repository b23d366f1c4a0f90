// Reduces the state of a key set: state, event, monotonic now → state, effects. No I/O, timers or randomness.
// The caller performs the effects, sends `woken` no later than nextWakeMs(state), and supplies the jitter.
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
// `withdrawn` drops the set in every phase: no trusted authority vouches for it. Then it acts as `changed`.
// `seeded` gives a new machine a set from disk with its age. A result of a fetch that is not in flight is ignored.
// A key is usable while its set was confirmed less than maxAge ago, counted from the start of the fetch that confirmed it.
// A fetch starts no sooner than the cooldown after the end of the one before, whatever its result and whoever asks.
import type { DetailOf } from '../authz/checks.ts';
import type { VerificationKey } from './jwks.ts';
import {
  isUsable,
  type KeyLookup,
  type KeySetLimits,
  type KeySetState,
  usableKey,
  type Waiter,
} from './key-set-state.ts';

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

type FetchEnd = Extract<KeySetEvent, { kind: 'fetched' | 'notModified' | 'failed' }>;

export interface KeySetStep {
  readonly state: KeySetState;
  readonly effects: readonly KeySetEffect[];
}

const unknown: KeyLookup = { kind: 'unknown' };

/** Returns the next state and its effects. An event that does not fit the phase changes nothing. */
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
    case 'notModified':
    case 'failed':
      if (state.phase !== 'fetching' || state.fetch !== event.fetch) return { state, effects: [] };
      return fetchEnded(state, event, nowMs);
    case 'changed':
      return changed(state, nowMs);
    case 'withdrawn':
      return changed({ ...state, keys: new Map(), confirmedMs: undefined, knownAbsent: new Set() }, nowMs);
    case 'stopped':
      return stopped(state, nowMs);
  }
}

function seeded(
  state: KeySetState,
  keys: ReadonlyMap<string, VerificationKey>,
  ageMs: number,
  nowMs: number,
): KeySetStep {
  // Not after a fetch: the issuer's answer is newer than the seed. The negation also refuses NaN.
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
      // The last successful fetch settled it, so no fetch is owed. After the cooldown it may ask again.
      if (atOnce.lookup.kind === 'unknown' && state.knownAbsent.has(kid)) return { state, effects: [atOnce] };
      // Hard rotation (docs/keys.md): the fetch comes at the end of the cooldown even if nobody asks again.
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

/** The answer that the state allows now. */
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

function fetchEnded(state: KeySetState, event: FetchEnd, nowMs: number): KeySetStep {
  const notBeforeMs = nowMs + state.limits.cooldownMs;
  const common = { phase: 'waiting', notBeforeMs, askedBeforeFetch: [], changed: false } as const;
  return answerAll({ ...state, ...afterFetch(state, event, nowMs, notBeforeMs), ...common }, nowMs);
}

function afterFetch(state: KeySetState, event: FetchEnd, nowMs: number, notBeforeMs: number): Partial<KeySetState> {
  if (event.kind === 'failed') return afterFailure(state, event.problem, event.jitter, nowMs, notBeforeMs);
  if (event.kind === 'fetched') return afterSuccess(state, event.keys, event.jitter, notBeforeMs);
  // Without a set nothing can be unmodified: an empty one must not count as confirmed.
  if (state.confirmedMs === undefined) return afterFailure(state, 'status 304', event.jitter, nowMs, notBeforeMs);
  return afterSuccess(state, state.keys, event.jitter, notBeforeMs);
}

function afterSuccess(
  state: KeySetState,
  keys: ReadonlyMap<string, VerificationKey>,
  jitter: number,
  notBeforeMs: number,
): Partial<KeySetState> {
  // The issuer may have published a kid that was asked for during the fetch after it had written its answer.
  const askedDuringFetch = state.askedDuringFetch.filter(kid => !keys.has(kid));
  const owed = askedDuringFetch.length > 0 || state.changed;
  const dueMs = state.fetchStartedMs + refreshDelayMs(state.limits, jitter);
  return {
    keys,
    confirmedMs: state.fetchStartedMs,
    nextFetchMs: owed ? notBeforeMs : Math.max(notBeforeMs, dueMs),
    failures: 0,
    lastResult: 'success',
    lastProblem: undefined,
    askedDuringFetch,
    knownAbsent: stillKnownAbsent(state, keys),
  };
}

function stillKnownAbsent(state: KeySetState, keys: ReadonlyMap<string, VerificationKey>): ReadonlySet<string> {
  const newestFirst = new Set([...state.askedBeforeFetch, ...state.knownAbsent]);
  return new Set([...newestFirst].filter(kid => !keys.has(kid)).slice(0, state.limits.maxUnknownKids));
}

function afterFailure(
  state: KeySetState,
  problem: string,
  jitter: number,
  nowMs: number,
  notBeforeMs: number,
): Partial<KeySetState> {
  const failures = state.failures + 1;
  return {
    nextFetchMs: state.changed ? notBeforeMs : nowMs + backoffMs(state.limits, failures, jitter),
    failures,
    lastResult: 'failure',
    lastProblem: problem,
    // They were answered 503 and the retry is scheduled; a fetch for them would defeat the backoff.
    askedDuringFetch: [],
  };
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

function stopped(state: KeySetState, nowMs: number): KeySetStep {
  const step = answerAll({ ...state, phase: 'stopped', askedDuringFetch: [], askedBeforeFetch: [] }, nowMs);
  return state.phase === 'fetching' ? { ...step, effects: [{ kind: 'abort' }, ...step.effects] } : step;
}

// Spread over the last fifth of the interval, and at least a fifth of maxAge before the set is too old.
function refreshDelayMs(limits: KeySetLimits, jitter: number): number {
  return Math.min(limits.refreshMs * (0.8 + 0.2 * jitter), limits.maxAgeMs * 0.8);
}

// Between half of the doubled delay and all of it: [c, 2c], [2c, 4c] … [refresh / 2, refresh].
function backoffMs(limits: KeySetLimits, failures: number, jitter: number): number {
  const highMs = Math.min(limits.refreshMs, limits.cooldownMs * 2 ** Math.min(failures, 32));
  const lowMs = Math.max(limits.cooldownMs, highMs / 2);
  return lowMs + (highMs - lowMs) * jitter;
}
