// The state machine of a document that is fetched in the background, confirmed, and after a time too old: state, event, monotonic now →
// state. Pure: no I/O, timers or randomness. keys/key-set-machine.ts adds the kids of a key set; a revocation list needs nothing more.
// The caller begins a fetch when `fetch` grows, and aborts it after `stopped`. It sends `woken` no later than nextWakeMs(state), and supplies
// the jitter.
//
// `seeded` gives a new machine a document from disk with its age. A result of a fetch that is not in flight is ignored.
// A document is usable while it was confirmed less than maxAge ago, counted from the start of the fetch that confirmed it.
// A fetch starts no sooner than the cooldown after the end of the one before, whatever its result and whoever asks.

export interface DocumentLimits {
  readonly refreshMs: number;
  readonly maxAgeMs: number;
  readonly cooldownMs: number;
  /** Longest backoff while there is no usable document. */
  readonly maxRetryMs: number;
  /** Shortest and longest backoff after failures. Defaults to the cooldown and to `refreshMs`. */
  readonly backoff?: { readonly fromMs: number; readonly toMs: number };
}

export interface DocumentState {
  readonly limits: DocumentLimits;
  readonly phase: 'new' | 'waiting' | 'fetching' | 'stopped';
  /** The start of the fetch that confirmed the document; undefined until there is one. */
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
  /** The source changed while a fetch was in flight. */
  readonly changed: boolean;
}

/**
 * What a fetch brought: a good document, with what the state keeps of it, a confirmation of the one in force, or neither. `jitter` is a random
 * number from 0 up to, not including, 1.
 */
export type FetchEnded<Content extends object = object> = (
  | ({ readonly kind: 'fetched' } & Content)
  | { readonly kind: 'notModified' }
  | { readonly kind: 'failed'; readonly problem: string }
) & { readonly fetch: number; readonly jitter: number };

export interface LifeEvent {
  readonly kind: 'started' | 'woken' | 'changed' | 'stopped';
}

type DocumentEvent = { readonly kind: 'seeded'; readonly ageMs: number } | LifeEvent | FetchEnded;

export function createDocumentState<Limits extends DocumentLimits>(limits: Limits) {
  const state = {
    phase: 'new',
    confirmedMs: undefined,
    fetch: 0,
    fetchStartedMs: 0,
    nextFetchMs: 0,
    notBeforeMs: 0,
    failures: 0,
    lastResult: undefined,
    lastProblem: undefined,
    changed: false,
  } as const satisfies Omit<DocumentState, 'limits'>;
  return { limits, ...state };
}

/** When `woken` is due next, undefined when nothing waits for time to pass. */
export function nextWakeMs(state: DocumentState): number | undefined {
  return state.phase === 'waiting' ? state.nextFetchMs : undefined;
}

/** True while there is a document that was confirmed less than maxAge ago. */
export function isUsable(state: DocumentState, nowMs: number): boolean {
  return state.confirmedMs !== undefined && nowMs - state.confirmedMs < state.limits.maxAgeMs;
}

/** The next state. An event that does not fit the phase changes nothing, and gives the same object back. */
export function reduceDocument<State extends DocumentState>(state: State, event: DocumentEvent, nowMs: number): State {
  switch (event.kind) {
    case 'seeded':
      // Not after a fetch: the answer of the source is newer than the seed. The negation also refuses NaN.
      if (state.phase !== 'new' || !(event.ageMs >= 0 && event.ageMs < state.limits.maxAgeMs)) return state;
      return { ...state, confirmedMs: nowMs - event.ageMs };
    case 'started':
      return state.phase === 'new' ? beginFetch(state, nowMs) : state;
    case 'woken':
      return state.phase === 'waiting' && nowMs >= state.nextFetchMs ? beginFetch(state, nowMs) : state;
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

export function beginFetch<State extends DocumentState>(state: State, nowMs: number): State {
  return { ...state, phase: 'fetching', fetch: state.fetch + 1, fetchStartedMs: nowMs, changed: false };
}

function changed<State extends DocumentState>(state: State, nowMs: number): State {
  if (state.phase === 'fetching') return { ...state, changed: true };
  if (state.phase !== 'waiting') return state;
  if (nowMs >= state.notBeforeMs) return beginFetch(state, nowMs);
  return { ...state, nextFetchMs: Math.min(state.nextFetchMs, state.notBeforeMs) };
}

function afterFetch<State extends DocumentState>(state: State, event: FetchEnded, nowMs: number): State {
  const cooled = { ...state, notBeforeMs: nowMs + state.limits.cooldownMs };
  return { ...withResult(cooled, event, nowMs), phase: 'waiting', changed: false };
}

function withResult<State extends DocumentState>(state: State, event: FetchEnded, nowMs: number): State {
  switch (event.kind) {
    case 'failed':
      return afterFailure(state, event.problem, event.jitter, nowMs);
    case 'fetched':
      return afterSuccess(state, event.jitter);
    case 'notModified':
      // Without a usable document a 304 confirms nothing.
      if (!isUsable(state, nowMs)) return afterFailure(state, 'status 304', event.jitter, nowMs);
      return afterSuccess(state, event.jitter);
  }
}

function afterSuccess<State extends DocumentState>(state: State, jitter: number): State {
  const dueMs = state.changed ? state.notBeforeMs : state.fetchStartedMs + refreshDelayMs(state.limits, jitter);
  return {
    ...state,
    confirmedMs: state.fetchStartedMs,
    nextFetchMs: Math.max(state.notBeforeMs, dueMs),
    failures: 0,
    lastResult: 'success',
    lastProblem: undefined,
  };
}

function afterFailure<State extends DocumentState>(
  state: State,
  problem: string,
  jitter: number,
  nowMs: number,
): State {
  const failures = state.failures + 1;
  const nextFetchMs = state.changed ? state.notBeforeMs : retryMs(state, failures, jitter, nowMs);
  return { ...state, nextFetchMs, failures, lastResult: 'failure', lastProblem: problem };
}

/** After a success. Spread over the last fifth of the interval, and at least a fifth of maxAge before the document is too old. */
function refreshDelayMs(limits: DocumentLimits, jitter: number): number {
  return Math.min(limits.refreshMs * (0.8 + 0.2 * jitter), limits.maxAgeMs * 0.8);
}

/** When to retry after this many failures in a row. The backoff is short from the moment when the document is too old. */
function retryMs({ limits, confirmedMs }: DocumentState, failures: number, jitter: number, nowMs: number): number {
  const { cooldownMs, refreshMs, maxRetryMs } = limits;
  const { fromMs, toMs } = limits.backoff ?? { fromMs: cooldownMs, toMs: refreshMs };
  const tooOldMs = confirmedMs === undefined ? nowMs : Math.max(nowMs, confirmedMs + limits.maxAgeMs);
  const longMs = backoffMs(fromMs, failures, toMs, jitter);
  const shortMs = backoffMs(fromMs, failures, Math.min(toMs, maxRetryMs), jitter);
  return Math.min(nowMs + longMs, tooOldMs + shortMs);
}

/**
 * Between half of the shortest backoff doubled so often and all of it, and never below the shortest: [s, 2s], [2s, 4s] … the cap. There the
 * jitter narrows to a fifth: with half of it, a flood of unknown kids would cause a third more fetches.
 */
export function backoffMs(fromMs: number, times: number, capMs: number, jitter: number): number {
  const doubledMs = fromMs * 2 ** Math.min(times, 32);
  const lowMs = Math.max(fromMs, Math.min(doubledMs / 2, capMs * 0.8));
  const highMs = Math.max(fromMs, Math.min(doubledMs, capMs));
  return lowMs + (highMs - lowMs) * jitter;
}
