// Reduces the state of a key set: state, event, monotonic now → state, effects. No I/O, timers or randomness.
// The caller performs the effects, sends `woken` no later than nextWakeMs(state), and supplies the jitter.
//
// phase \ event | started  woken                  asked (kid not usable)                       fetched, notModified  failed               changed        stopped
// --------------+----------------------------------------------------------------------------------------------------------------------------------------
// new           | fetching –                      unavailable                                  –                     –                    –              stopped
// waiting       | –        fetching once it is    early refresh allowed: fetching, and the kid –                     –                    fetching, or   stopped
//               |          due                    waits; else: unknown after a success, else                                              owed at the
//               |                                 unavailable; a fetch is owed when allowed                                               cooldown's end
// fetching      | –        waiters past 150 ms:   waits; no room: answered at once             waiting; waiters      waiting, backoff;    owed after     stopped
//               |          unavailable                                                         answered              waiters unavailable  this one       (abort)
// stopped       | –        –                      unavailable                                  –                     –                    –              –
//
// `untrusted` acts as `changed`, and the set is dropped unless the next fetch to start succeeds: an authority that it was fetched under
// is gone from caFile. In the phase `new` that is the first fetch.
// `seeded` gives a new machine a set from disk with its age. A result of a fetch that is not in flight is ignored.
// A key is usable while its set was confirmed less than maxAge ago, counted from the start of the fetch that confirmed it.
// A fetch starts no sooner than the cooldown after the end of the one before, whatever its result and whoever asks.
// A fetch that unknown kids asked for is an early refresh. Each one that fails or brings the set that is in force already delays the
// next one (key-set-times.ts), so a flood of unknown kids costs the issuer little. Only a changed set, a usable set where there was none,
// or ten minutes without an unknown kid end this backoff. Background refreshes and retries are due regardless of it.
import type { DetailOf } from '../authz/checks.ts';
import type { VerificationKey } from './jwks.ts';
import { afterFetch, type FetchEnd } from './key-set-fetched.ts';
import { isUsable, type KeyLookup, type KeySetState, usableKey, type Waiter } from './key-set-state.ts';

export type KeySetEvent =
  | { readonly kind: 'seeded'; readonly keys: ReadonlyMap<string, VerificationKey>; readonly ageMs: number }
  | { readonly kind: 'started' }
  | { readonly kind: 'woken' }
  | { readonly kind: 'asked'; readonly kid: string }
  | FetchEnd
  | { readonly kind: 'changed' }
  | { readonly kind: 'untrusted' }
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
      return answerAll(afterFetch(state, event, nowMs), nowMs);
    case 'changed':
      return changed(state, nowMs);
    case 'untrusted':
      return changed({ ...state, untrustedUntil: state.fetch + 1 }, nowMs);
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
  if (atOnce.lookup.kind === 'key' || state.phase === 'new' || state.phase === 'stopped')
    return { state, effects: [atOnce] };
  const isQuiet = nowMs - state.askedMs >= state.limits.quietMs;
  const earlyFetchesWithoutNews = isQuiet ? 0 : state.earlyFetchesWithoutNews;
  const noted = { ...state, askedMs: nowMs, earlyFetchesWithoutNews, askedDuringFetch: remember(state, kid) };
  if (state.phase === 'waiting') {
    if (nowMs >= state.earlyNotBeforeMs) return wait(beginFetch(noted, nowMs), kid, nowMs);
    // The last successful fetch settled it, so no fetch is owed. After the backoff it may ask again.
    if (atOnce.lookup.kind === 'unknown' && state.knownAbsent.has(kid))
      return { state: { ...noted, askedDuringFetch: state.askedDuringFetch }, effects: [atOnce] };
    // Hard rotation (docs/keys.md): the fetch comes at the end of the backoff even if nobody asks again.
    const nextFetchMs = Math.min(state.nextFetchMs, state.earlyNotBeforeMs);
    return { state: { ...noted, nextFetchMs }, effects: [atOnce] };
  }
  if (state.waiters.some(waiter => waiter.kid === kid)) return { state: noted, effects: [] };
  if (state.waiters.length >= state.limits.maxWaiters) return { state: noted, effects: [atOnce] };
  return wait({ state: noted, effects: [] }, kid, nowMs);
}

/** The kids asked for during the fetch, with this one unless it is settled by the fetch in flight or there is no room. */
function remember({ limits, askedDuringFetch, askedBeforeFetch }: KeySetState, kid: string): readonly string[] {
  const full = askedDuringFetch.length >= limits.maxUnknownKids;
  if (full || askedDuringFetch.includes(kid) || askedBeforeFetch.includes(kid)) return askedDuringFetch;
  return [...askedDuringFetch, kid];
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
