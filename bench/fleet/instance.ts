// One instance of a fleet in virtual time: the product's own state machine of a key set, its requests, and the authentication service.
// An instance never notices another one, so each runs alone.
import type { VerificationKey } from '../../src/keys/jwks.ts';
import { type KeySetEvent, reduce } from '../../src/keys/key-set-reducer.ts';
import { createKeySetState, isUsable, type KeySetLimits, nextWakeMs, usableKey } from '../../src/keys/key-set-state.ts';
import type { Random } from './random.ts';

export type Kid = 'k1' | 'k2';

/** What happens around an instance. Times are those of the scenario. */
export interface Surroundings {
  readonly limits: KeySetLimits;
  readonly endMs: number;
  /** What a fetch brings that reaches the authentication service now: its only key, undefined while it is down. */
  publishedAt(ms: number): Kid | undefined;
  /** The key that signs good tokens now. */
  signingAt(ms: number): Kid;
  /** Tokens a second at each instance. Good ones come once it is ready. */
  readonly goodPerSecond: number;
  readonly strangersPerSecond: number;
  readonly strangersFromMs: number;
}

export type Verdict = 'allowed' | 'invalid' | 'unavailable';

export interface InstanceObserver {
  fetch(ms: number): void;
  /** A good token that came then. */
  good(ms: number, verdict: Verdict): void;
  /** Good tokens of this key are allowed from now on. */
  usable(ms: number, kid: Kid): void;
}

/** How long an answer of the authentication service takes, a refused connection too. */
export const latencyMs = { least: 20, most: 100 } as const;

const sets: Readonly<Record<Kid, ReadonlyMap<string, VerificationKey>>> = { k1: setOf('k1'), k2: setOf('k2') };

export function runInstance(around: Surroundings, startMs: number, random: Random, observer: InstanceObserver): void {
  let state = createKeySetState(around.limits);
  let nowMs = startMs;
  let answer: { readonly atMs: number; readonly event: KeySetEvent } | undefined;
  let strangers = 0;
  let goodMs = Number.POSITIVE_INFINITY;
  let strangerMs = firstAfter(Math.max(startMs, around.strangersFromMs), around.strangersPerSecond);
  let waiting: number[] = [];
  let usableKid: Kid | undefined;

  send({ kind: 'started' });
  for (;;) {
    const wakeMs = nextWakeMs(state) ?? Number.POSITIVE_INFINITY;
    const answerMs = answer?.atMs ?? Number.POSITIVE_INFINITY;
    nowMs = Math.max(nowMs, Math.min(wakeMs, answerMs, goodMs, strangerMs));
    if (nowMs > around.endMs) return;
    if (answer !== undefined && answerMs <= nowMs) {
      const { event } = answer;
      answer = undefined;
      send(event);
    } else if (wakeMs <= nowMs) send({ kind: 'woken' });
    else if (goodMs <= nowMs) {
      goodMs += 1000 / around.goodPerSecond;
      askGood();
    } else {
      strangerMs += 1000 / around.strangersPerSecond;
      strangers += 1;
      send({ kind: 'asked', kid: `stranger ${strangers}` });
    }
  }

  /** Returns whether somebody was answered. */
  function send(event: KeySetEvent): boolean {
    const { state: next, effects } = reduce(state, event, nowMs);
    state = next;
    for (const effect of effects) {
      if (effect.kind === 'fetch') beginFetch(effect.fetch);
      else if (effect.kind === 'answer' && effect.kid.startsWith('k')) {
        const asked = event.kind === 'asked' ? [nowMs] : waiting;
        if (event.kind !== 'asked') waiting = [];
        const { kind } = effect.lookup;
        for (const ms of asked) observer.good(ms, kind === 'key' ? 'allowed' : kind === 'unknown' ? 'invalid' : kind);
      }
    }
    const kid = around.signingAt(nowMs);
    if (usableKid !== kid && usableKey(state, kid, nowMs) !== undefined) {
      observer.usable(nowMs, kid);
      usableKid = kid;
      if (goodMs === Number.POSITIVE_INFINITY) goodMs = firstAfter(nowMs, around.goodPerSecond);
    } else if (usableKid !== undefined && !isUsable(state, nowMs)) usableKid = undefined;
    return effects.some(effect => effect.kind === 'answer');
  }

  function askGood(): void {
    const kid = around.signingAt(nowMs);
    if (usableKey(state, kid, nowMs) !== undefined) observer.good(nowMs, 'allowed');
    else if (!send({ kind: 'asked', kid })) waiting.push(nowMs);
  }

  function beginFetch(fetch: number): void {
    observer.fetch(nowMs);
    const tookMs = latencyMs.least + (latencyMs.most - latencyMs.least) * random();
    const kid = around.publishedAt(nowMs + tookMs / 2);
    const jitter = random();
    const event: KeySetEvent =
      kid === undefined
        ? { kind: 'failed', fetch, problem: 'connection refused', jitter }
        : { kind: 'fetched', fetch, keys: sets[kid], jitter };
    answer = { atMs: nowMs + tookMs, event };
  }

  function firstAfter(ms: number, perSecond: number): number {
    return perSecond > 0 ? ms + (random() * 1000) / perSecond : Number.POSITIVE_INFINITY;
  }
}

function setOf(kid: Kid): ReadonlyMap<string, VerificationKey> {
  return new Map([[kid, { kid, thumbprint: kid, cryptoKeyFor: () => undefined }]]);
}
