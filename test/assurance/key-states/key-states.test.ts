// The state machine of a key set, explored exhaustively to a small depth. `npm run key-states` goes as deep as a minute allows.
import { expect } from 'chai';
import { type KeySetEvent, type KeySetState, type KeySetStep, reduce } from '../../../src/keys/key-set-machine.ts';
import { explore, smallLimits } from './explore.ts';
import type { Reduce } from './transitions.ts';

describe('every sequence of a few events around the limits of a key set', () => {
  for (const maxWaiters of [1, 2]) {
    it(`keeps the invariants if at most ${maxWaiters} kid${maxWaiters === 1 ? '' : 's'} may wait`, () => {
      const limits = { ...smallLimits, maxWaiters, maxUnknownKids: maxWaiters };
      const { states, levels } = explore({ limits, maxDepth: 5 });
      expect(levels).to.have.length(6);
      expect(states).to.be.above(1_000);
    });
  }

  const seconds = Number(process.env.KEY_STATES_SECONDS ?? 0);
  if (seconds > 0)
    it(`keeps the invariants as deep as ${seconds} s allow`, () => {
      const endMs = performance.now() + 1000 * seconds;
      const limits = { ...smallLimits, maxWaiters: 2, maxUnknownKids: 2 };
      const { states } = explore({ limits, maxDepth: 1000, isOver: () => performance.now() > endMs });
      expect(states).to.be.above(1_000);
    });

  type Change = (state: KeySetState, event: KeySetEvent) => KeySetState;
  /** A machine in a wrong state; it still ignores late results. */
  const inState = (change: Change): Reduce => {
    return (state, event, nowMs) => {
      const isLate = 'fetch' in event && (state.phase !== 'fetching' || event.fetch !== state.fetch);
      return reduce(isLate ? state : change(state, event), event, nowMs);
    };
  };
  /** A machine with a wrong step after a failure. */
  const afterFailure = (change: (step: KeySetStep) => KeySetStep): Reduce => {
    return (state, event, nowMs) => {
      const step = reduce(state, event, nowMs);
      return event.kind === 'failed' && step.state !== state ? change(step) : step;
    };
  };
  const broken: readonly (readonly [name: string, problem: RegExp, reduceState: Reduce])[] = [
    [
      'fetches within the cooldown',
      /^a fetch starts within the cooldown/,
      inState(state => ({ ...state, notBeforeMs: 0, earlyNotBeforeMs: 0 })),
    ],
    [
      'has no backoff of early refreshes',
      /^an early refresh defeats the backoff/,
      inState(state => ({ ...state, earlyNotBeforeMs: state.notBeforeMs })),
    ],
    [
      'ends the backoff at an unknown kid',
      /^an early refresh defeats the backoff/,
      inState((state, event) => (event.kind === 'asked' ? { ...state, earlyFetchesWithoutNews: 0 } : state)),
    ],
    [
      'uses a stale set',
      /has the wrong key/,
      inState(state => ({ ...state, limits: { ...state.limits, maxAgeMs: smallLimits.maxAgeMs + 1 } })),
    ],
    [
      'takes status 304 for a stale set as a success',
      /has the wrong key|is answered unknown without/,
      inState((state, event) => ({
        ...state,
        confirmedMs: event.kind === 'notModified' ? state.confirmedMs && state.fetchStartedMs : state.confirmedMs,
      })),
    ],
    [
      'accepts a late result',
      /has the wrong key|^a late result changes something/,
      (state, event, nowMs) => reduce(state, 'fetch' in event ? { ...event, fetch: state.fetch } : event, nowMs),
    ],
    [
      'loses the waiters when a fetch fails',
      /^a waiting kid is lost/,
      afterFailure(step => ({ ...step, effects: [] })),
    ],
    [
      'keeps a waiter when a fetch fails',
      /^a kid waits after the fetch/,
      afterFailure(({ state }) => ({ state: { ...state, waiters: [{ kid: 'a', deadlineMs: 0 }] }, effects: [] })),
    ],
    [
      'schedules no fetch after a failure',
      /^the set does not become usable in time/,
      afterFailure(step => ({ ...step, state: { ...step.state, nextFetchMs: Number.POSITIVE_INFINITY } })),
    ],
    [
      'backs off without a usable set as with one',
      /^the set does not become usable in time/,
      inState(state => ({ ...state, limits: { ...state.limits, maxRetryMs: smallLimits.refreshMs } })),
    ],
  ];
  for (const [name, problem, reduceState] of broken) {
    it(`detects a machine that ${name}`, () => {
      expect(() => explore({ reduceState, maxDepth: 6 })).to.throw(problem);
    });
  }
});
