// Simulates one instance of a fleet in virtual time: the product's own state machine of a key set, its requests, and the authentication
// service. Instances do not affect each other, so each is simulated alone.

import { isUsable, nextWakeMs } from '../../src/http/document-machine.ts';
import type { VerificationKey } from '../../src/keys/jwks.ts';
import {
  answerNow,
  createKeySetState,
  type KeySetEvent,
  type KeySetLimits,
  type Keys,
  reduce,
} from '../../src/keys/key-set-machine.ts';
import type { Random } from './random.ts';

export type Kid = 'k1' | 'k2';

/** The environment of an instance; times are those of the scenario. */
export interface Environment {
  readonly limits: KeySetLimits;
  readonly endMs: number;
  /** The only key that the authentication service publishes at this time; undefined while it is down. */
  publishedAt(ms: number): Kid | undefined;
  /** The key that signs good tokens at this time. */
  signingAt(ms: number): Kid;
  /** Good tokens per second at each instance, once it is ready. */
  readonly goodPerSecond: number;
  /** Tokens with an unknown kid per second at each instance. */
  readonly unknownKidsPerSecond: number;
  readonly unknownKidsFromMs: number;
}

export type Verdict = 'allowed' | 'invalid' | 'unavailable';

export interface InstanceObserver {
  fetch(ms: number): void;
  /** A good token that arrived at this time. */
  good(ms: number, verdict: Verdict): void;
  /** Good tokens of this key are allowed from this time on. */
  usable(ms: number, kid: Kid): void;
}

/** The latency of the authentication service, also of a refused connection. */
export const latencyMs = { min: 20, max: 100 } as const;

const sets: Readonly<Record<Kid, Keys>> = { k1: setOf('k1'), k2: setOf('k2') };

export function runInstance(
  environment: Environment,
  startMs: number,
  random: Random,
  observer: InstanceObserver,
): void {
  let state = createKeySetState(environment.limits);
  let nowMs = startMs;
  let answer: { readonly atMs: number; readonly event: KeySetEvent } | undefined;
  let unknownKids = 0;
  let goodMs = Number.POSITIVE_INFINITY;
  let unknownKidMs = firstAfter(Math.max(startMs, environment.unknownKidsFromMs), environment.unknownKidsPerSecond);
  /** Good tokens of a kid that is not known yet: the fetch in flight decides, which takes less than they may wait. */
  let waiting: { readonly ms: number; readonly kid: Kid }[] = [];
  let usableKid: Kid | undefined;

  send({ kind: 'started' });
  for (;;) {
    const wakeMs = nextWakeMs(state) ?? Number.POSITIVE_INFINITY;
    const answerMs = answer?.atMs ?? Number.POSITIVE_INFINITY;
    nowMs = Math.max(nowMs, Math.min(wakeMs, answerMs, goodMs, unknownKidMs));
    if (nowMs > environment.endMs) return;
    if (answer !== undefined && answerMs <= nowMs) {
      const { event } = answer;
      answer = undefined;
      send(event);
    } else if (wakeMs <= nowMs) send({ kind: 'woken' });
    else if (goodMs <= nowMs) {
      goodMs += 1000 / environment.goodPerSecond;
      useGoodToken();
    } else {
      unknownKidMs += 1000 / environment.unknownKidsPerSecond;
      unknownKids += 1;
      send({ kind: 'asked', kid: `unknown ${unknownKids}` });
    }
  }

  function send(event: KeySetEvent): void {
    const before = state.fetch;
    state = reduce(state, event, nowMs);
    if (state.fetch !== before) beginFetch(state.fetch);
    if (state.phase !== 'fetching') {
      for (const { ms, kid } of waiting) observer.good(ms, verdictOf(kid));
      waiting = [];
    }
    const kid = environment.signingAt(nowMs);
    if (usableKid !== kid && isKnown(kid)) {
      observer.usable(nowMs, kid);
      usableKid = kid;
      if (goodMs === Number.POSITIVE_INFINITY) goodMs = firstAfter(nowMs, environment.goodPerSecond);
    } else if (usableKid !== undefined && !isUsable(state, nowMs)) usableKid = undefined;
  }

  function verdictOf(kid: Kid): Verdict {
    const { kind } = answerNow(state, kid, nowMs);
    return kind === 'known' ? 'allowed' : kind === 'unknown' ? 'invalid' : kind;
  }

  function isKnown(kid: Kid): boolean {
    return verdictOf(kid) === 'allowed';
  }

  function useGoodToken(): void {
    const kid = environment.signingAt(nowMs);
    if (!isKnown(kid)) send({ kind: 'asked', kid });
    if (!isKnown(kid) && state.phase === 'fetching') waiting.push({ ms: nowMs, kid });
    else observer.good(nowMs, verdictOf(kid));
  }

  function beginFetch(fetch: number): void {
    observer.fetch(nowMs);
    const fetchMs = latencyMs.min + (latencyMs.max - latencyMs.min) * random();
    const kid = environment.publishedAt(nowMs + fetchMs / 2);
    const jitter = random();
    const event: KeySetEvent =
      kid === undefined
        ? { kind: 'failed', fetch, problem: 'connection refused', jitter }
        : { kind: 'fetched', fetch, set: sets[kid], jitter };
    answer = { atMs: nowMs + fetchMs, event };
  }

  function firstAfter(ms: number, perSecond: number): number {
    return perSecond > 0 ? ms + (random() * 1000) / perSecond : Number.POSITIVE_INFINITY;
  }
}

function setOf(kid: Kid): Keys {
  const key: VerificationKey = { kid, thumbprint: kid, cryptoKeyFor: () => undefined };
  return { keys: new Map([[key, new Set()]]), kids: new Set([kid]) };
}
