// The state of a key set after a fetch: the set, the time of the next fetch, and the backoff of early refreshes.
import type { VerificationKey } from './jwks.ts';
import { isUsable, type KeySetState } from './key-set-state.ts';
import { earlyDelayMs, refreshDelayMs, retryMs } from './key-set-times.ts';

/** What a fetch brought. */
export type FetchOutcome =
  | { readonly kind: 'fetched'; readonly keys: ReadonlyMap<string, VerificationKey> }
  | { readonly kind: 'notModified' }
  | { readonly kind: 'failed'; readonly problem: string };

/** `jitter` is a random number from 0 up to, not including, 1. */
export type FetchEnd = FetchOutcome & { readonly fetch: number; readonly jitter: number };

/** The waiters are left to the caller, who answers them. */
export function afterFetch(state: KeySetState, event: FetchEnd, nowMs: number): KeySetState {
  const cooled = { ...state, notBeforeMs: nowMs + state.limits.cooldownMs };
  const paced = { ...cooled, ...earlyPace(cooled, broughtNews(state, event, nowMs), event.jitter, nowMs) };
  return { ...withResult(paced, event, nowMs), phase: 'waiting', askedBeforeFetch: [], changed: false };
}

/** A changed set, or a usable set where there was none. */
function broughtNews(state: KeySetState, event: FetchEnd, nowMs: number): boolean {
  return event.kind === 'fetched' && !(isUsable(state, nowMs) && isSameSet(event.keys, state.keys));
}

function isSameSet(one: ReadonlyMap<string, VerificationKey>, other: ReadonlyMap<string, VerificationKey>): boolean {
  return one.size === other.size && [...one].every(([kid, key]) => other.get(kid)?.thumbprint === key.thumbprint);
}

function earlyPace(
  state: KeySetState,
  isNews: boolean,
  jitter: number,
  nowMs: number,
): Pick<KeySetState, 'earlyFetchesWithoutNews' | 'earlyNotBeforeMs'> {
  if (isNews) return { earlyFetchesWithoutNews: 0, earlyNotBeforeMs: state.notBeforeMs };
  const isEarly = state.askedBeforeFetch.length > 0;
  const withoutNews = state.earlyFetchesWithoutNews + (isEarly ? 1 : 0);
  const earlyMs = isEarly ? nowMs + earlyDelayMs(state.limits, withoutNews, jitter) : state.earlyNotBeforeMs;
  return { earlyFetchesWithoutNews: withoutNews, earlyNotBeforeMs: Math.max(state.notBeforeMs, earlyMs) };
}

function withResult(state: KeySetState, event: FetchEnd, nowMs: number): KeySetState {
  if (event.kind === 'failed') return afterFailure(state, event.problem, event.jitter, nowMs);
  if (event.kind === 'fetched') return afterSuccess(state, event.keys, event.jitter);
  // Without a usable set a 304 confirms nothing.
  if (!isUsable(state, nowMs)) return afterFailure(state, 'status 304', event.jitter, nowMs);
  return afterSuccess(state, state.keys, event.jitter);
}

function afterSuccess(state: KeySetState, keys: ReadonlyMap<string, VerificationKey>, jitter: number): KeySetState {
  // The issuer may have published a kid that was asked for during the fetch after it had written its answer.
  const askedDuringFetch = state.askedDuringFetch.filter(kid => !keys.has(kid));
  const dueMs = state.changed ? state.notBeforeMs : state.fetchStartedMs + refreshDelayMs(state.limits, jitter);
  const owedMs = askedDuringFetch.length > 0 ? state.earlyNotBeforeMs : dueMs;
  return {
    ...state,
    keys,
    confirmedMs: state.fetchStartedMs,
    nextFetchMs: Math.max(state.notBeforeMs, Math.min(dueMs, owedMs)),
    failures: 0,
    lastResult: 'success',
    lastProblem: undefined,
    askedDuringFetch,
    knownAbsent: stillKnownAbsent(state, keys),
    untrustedUntil: settlesTrust(state) ? undefined : state.untrustedUntil,
  };
}

function stillKnownAbsent(state: KeySetState, keys: ReadonlyMap<string, VerificationKey>): ReadonlySet<string> {
  const newestFirst = new Set([...state.askedBeforeFetch, ...state.knownAbsent]);
  return new Set([...newestFirst].filter(kid => !keys.has(kid)).slice(0, state.limits.maxUnknownKids));
}

function afterFailure(before: KeySetState, problem: string, jitter: number, nowMs: number): KeySetState {
  const state = settlesTrust(before) ? { ...before, ...noSet } : before;
  const failures = state.failures + 1;
  return {
    ...state,
    nextFetchMs: state.changed ? state.notBeforeMs : retryMs(state, failures, jitter, nowMs),
    failures,
    lastResult: 'failure',
    lastProblem: problem,
    // They were answered 503 and the retry is scheduled; a fetch for them would defeat the backoff.
    askedDuringFetch: [],
  };
}

const noSet = { keys: new Map(), confirmedMs: undefined, knownAbsent: new Set<string>(), untrustedUntil: undefined };

/** True at the end of a fetch that began after an authority was gone. */
function settlesTrust({ fetch, untrustedUntil }: KeySetState): boolean {
  return untrustedUntil !== undefined && fetch >= untrustedUntil;
}
