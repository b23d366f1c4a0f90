// The state machine of a key set: that of a fetched document (http/document-machine.ts), and what unknown kids ask for. Pure likewise.
// The caller lets an unknown kid wait while a fetch is in flight.
//
// A fetch that unknown kids asked for is an early refresh. Each one that fails or brings the set that is in force already delays the
// next one, so a flood of unknown kids costs the issuer little. Only a changed set, a usable set where there was none, or ten minutes
// without an unknown kid end this backoff. Background refreshes and retries are due regardless of it.
import type { DetailOf } from '../authz/checks.ts';
import {
  backoffMs,
  beginFetch,
  createDocumentState,
  type DocumentLimits,
  type DocumentState,
  type FetchEnded,
  isUsable,
  type LifeEvent,
  reduceDocument,
} from '../http/document-machine.ts';
import type { KeySet } from './jwks.ts';

/** The part of a key set that counts here. */
export type Keys = Pick<KeySet, 'keys' | 'kids'>;

export interface KeySetLimits extends DocumentLimits {
  /** Longest backoff of early refreshes. */
  readonly maxEarlyMs: number;
  /** After this time without an unknown kid the backoff of early refreshes starts anew. */
  readonly quietMs: number;
  /** Bound of the negative cache and of the kids that are owed a fetch. */
  readonly maxUnknownKids: number;
}

/** The limits that no setting changes. */
export const fixedLimits = { maxRetryMs: 15_000, maxEarlyMs: 60_000, quietMs: 600_000, maxUnknownKids: 1024 } as const;

export interface KeySetState extends DocumentState {
  readonly limits: KeySetLimits;
  /** The set in force, empty until there is one. */
  readonly set: Keys;
  /** The end of the cooldown or, if that is later, of the backoff of early refreshes. */
  readonly earlyNotBeforeMs: number;
  /** Early refreshes in a row that brought nothing new. */
  readonly earlyFetchesWithoutNews: number;
  /** When a kid that is not usable was last asked for. */
  readonly askedMs: number;
  /** Kids asked for after the latest fetch started: its success does not settle them. */
  readonly askedDuringFetch: readonly string[];
  /** Kids asked for before the fetch in flight started: its success settles them. */
  readonly askedBeforeFetch: readonly string[];
  /** The negative cache: kids asked for before the last successful fetch started, and not in its set. */
  readonly knownAbsent: ReadonlySet<string>;
}

type KeysFetched = FetchEnded<{ readonly kind: 'fetched'; readonly set: Keys }>;

export type KeySetEvent =
  | { readonly kind: 'seeded'; readonly set: Keys; readonly ageMs: number }
  | LifeEvent
  | { readonly kind: 'asked'; readonly kid: string }
  | KeysFetched;

/** In the usable set, not at the issuer, or undecidable now. */
export type KidAnswer =
  | { readonly kind: 'known' | 'unknown' }
  | { readonly kind: 'unavailable'; readonly detail: DetailOf<'keys_unavailable'> };

export function createKeySetState(limits: KeySetLimits): KeySetState {
  return {
    ...createDocumentState(limits),
    set: { keys: new Map(), kids: new Set() },
    earlyNotBeforeMs: 0,
    earlyFetchesWithoutNews: 0,
    askedMs: Number.NEGATIVE_INFINITY,
    askedDuringFetch: [],
    askedBeforeFetch: [],
    knownAbsent: new Set(),
  };
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
  if (event.kind === 'asked') return asked(state, event.kid, nowMs);
  const next = reduceDocument(state, event, nowMs);
  if (next === state) return state;
  if (next.fetch !== state.fetch) return withAskedBefore(next);
  switch (event.kind) {
    case 'seeded':
      return { ...next, set: event.set };
    case 'fetched':
    case 'notModified':
    case 'failed':
      return afterFetch(state, next, event, nowMs);
    default:
      return next;
  }
}

function withAskedBefore(state: KeySetState): KeySetState {
  return { ...state, askedBeforeFetch: state.askedDuringFetch, askedDuringFetch: [] };
}

function asked(state: KeySetState, kid: string, nowMs: number): KeySetState {
  const { kind } = answerNow(state, kid, nowMs);
  if (kind === 'known' || state.phase === 'new' || state.phase === 'stopped') return state;
  const isQuiet = nowMs - state.askedMs >= state.limits.quietMs;
  const asking = { ...state, askedMs: nowMs, ...(isQuiet && { earlyFetchesWithoutNews: 0 }) };
  const noted = { ...asking, askedDuringFetch: remember(state, kid) };
  if (state.phase === 'fetching') return noted;
  if (nowMs >= state.earlyNotBeforeMs) return withAskedBefore(beginFetch(noted, nowMs));
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

/** The set, the kids, and the backoff of early refreshes after a fetch that led from one state to the next. */
function afterFetch(before: KeySetState, next: KeySetState, event: KeysFetched, nowMs: number): KeySetState {
  const paced = { ...next, ...earlyPace(before, next, event, nowMs), askedBeforeFetch: [] };
  // The kids were answered 503 and the retry is scheduled; a fetch for them would defeat the backoff.
  if (next.lastResult === 'failure') return { ...paced, askedDuringFetch: [] };
  const set = event.kind === 'fetched' ? event.set : before.set;
  // The issuer may have published a kid that was asked for during the fetch after it had written its answer.
  const askedDuringFetch = before.askedDuringFetch.filter(kid => !set.kids.has(kid));
  const owedMs = askedDuringFetch.length > 0 ? paced.earlyNotBeforeMs : next.nextFetchMs;
  const absent = [...new Set([...before.askedBeforeFetch, ...before.knownAbsent])].filter(kid => !set.kids.has(kid));
  return {
    ...paced,
    set,
    nextFetchMs: Math.min(next.nextFetchMs, owedMs),
    askedDuringFetch,
    // The newest first.
    knownAbsent: new Set(absent.slice(0, before.limits.maxUnknownKids)),
  };
}

function earlyPace(
  before: KeySetState,
  { notBeforeMs }: KeySetState,
  event: KeysFetched,
  nowMs: number,
): Pick<KeySetState, 'earlyFetchesWithoutNews' | 'earlyNotBeforeMs'> {
  // A changed set, or a usable one where there was none.
  const isNews = event.kind === 'fetched' && !(isUsable(before, nowMs) && isSameSet(event.set, before.set));
  if (isNews) return { earlyFetchesWithoutNews: 0, earlyNotBeforeMs: notBeforeMs };
  const isEarly = before.askedBeforeFetch.length > 0;
  const withoutNews = before.earlyFetchesWithoutNews + (isEarly ? 1 : 0);
  const { cooldownMs, maxEarlyMs } = before.limits;
  const earlyMs = isEarly
    ? nowMs + backoffMs(cooldownMs, withoutNews - 1, maxEarlyMs, event.jitter)
    : before.earlyNotBeforeMs;
  return { earlyFetchesWithoutNews: withoutNews, earlyNotBeforeMs: Math.max(notBeforeMs, earlyMs) };
}

/** An unchanged key is the same object. */
function isSameSet({ keys }: Keys, other: Keys): boolean {
  return keys.size === other.keys.size && [...keys.keys()].every(key => other.keys.has(key));
}
