// Drives the state machine of key-set-reducer.ts: performs its effects, wakes it in time, and lets callers wait for their answers.
import { createDeferred, type Deferred } from './deferred.ts';
import { type KeySetEffect, type KeySetEvent, reduce } from './key-set-reducer.ts';
import { createKeySetState, type KeyLookup, type KeySetLimits, type KeySetState, nextWakeMs } from './key-set-state.ts';

export interface KeySetDriver {
  state(): KeySetState;
  /** Returns the effects, which have been performed. */
  step(event: KeySetEvent): readonly KeySetEffect[];
  /** Synchronous if the answer is known. */
  ask(kid: string): KeyLookup | Promise<KeyLookup>;
  /** Resolves when the last fetch has ended. */
  fetchEnded(): Promise<void>;
}

// A timer stands still while the machine is suspended, the clock of the times does not. An early wake-up changes nothing.
const maxDelayMs = 5_000;

export function createKeySetDriver(
  limits: KeySetLimits,
  monotonicNow: () => number,
  runFetch: (fetch: number, signal: AbortSignal) => Promise<void>,
): KeySetDriver {
  let state = createKeySetState(limits);
  const waiting = new Map<string, Deferred<KeyLookup>>();
  let inFlight: { readonly controller: AbortController; readonly done: Promise<void> } | undefined;
  let timer: NodeJS.Timeout | undefined;
  let timerMs: number | undefined;

  function step(event: KeySetEvent): readonly KeySetEffect[] {
    const nowMs = monotonicNow();
    const next = reduce(state, event, nowMs);
    state = next.state;
    for (const effect of next.effects) perform(effect);
    setTimer(nowMs);
    return next.effects;
  }

  function setTimer(nowMs: number): void {
    const wakeMs = nextWakeMs(state);
    if (wakeMs !== timerMs) {
      clearTimeout(timer);
      timerMs = wakeMs;
      timer =
        wakeMs === undefined
          ? undefined
          : setTimeout(wake, Math.min(Math.max(Math.ceil(wakeMs - nowMs), 1), maxDelayMs));
    }
    // A caller who waits keeps the process alive, a refresh to come does not.
    if (state.waiters.length > 0) timer?.ref();
    else timer?.unref();
  }

  function wake(): void {
    timerMs = undefined;
    step({ kind: 'woken' });
  }

  function perform(effect: KeySetEffect): void {
    switch (effect.kind) {
      case 'fetch': {
        const controller = new AbortController();
        inFlight = { controller, done: runFetch(effect.fetch, controller.signal) };
        return;
      }
      case 'abort':
        inFlight?.controller.abort();
        return;
      case 'answer':
        waiting.get(effect.kid)?.resolve(effect.lookup);
        waiting.delete(effect.kid);
        return;
    }
  }

  return {
    state: () => state,
    step,
    ask(kid) {
      const known = waiting.get(kid);
      if (known !== undefined) return known.promise;
      const answer = step({ kind: 'asked', kid }).find(effect => effect.kind === 'answer' && effect.kid === kid);
      if (answer?.kind === 'answer') return answer.lookup;
      const asker = createDeferred<KeyLookup>();
      waiting.set(kid, asker);
      return asker.promise;
    },
    async fetchEnded() {
      await inFlight?.done;
    },
  };
}
