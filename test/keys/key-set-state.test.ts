// The state machine of a key set: each row of its table. test/assurance/key-states holds its invariants over sequences of events.
import { expect } from 'chai';
import type { VerificationKey } from '../../src/keys/jwks.ts';
import { type KeySetEvent, type KeySetStep, reduce } from '../../src/keys/key-set-reducer.ts';
import { createKeySetState, isUsable, type KeySetLimits, nextWakeMs, usableKey } from '../../src/keys/key-set-state.ts';

const limits: KeySetLimits = {
  refreshMs: 300_000,
  maxAgeMs: 3_600_000,
  cooldownMs: 5_000,
  maxRetryMs: 15_000,
  maxEarlyMs: 60_000,
  quietMs: 600_000,
  waitMs: 150,
  maxWaiters: 4,
  maxUnknownKids: 4,
};

type Keys = ReadonlyMap<string, VerificationKey>;

function key(kid: string): VerificationKey {
  return { kid, thumbprint: kid, cryptoKeyFor: () => undefined };
}

function keySet(...kids: readonly string[]): Keys {
  return new Map(kids.map(kid => [kid, key(kid)]));
}

/** A state machine to which a test sends one event at a time. */
function machine(overrides: Partial<KeySetLimits> = {}) {
  let state = createKeySetState({ ...limits, ...overrides });
  const send = (event: KeySetEvent, nowMs: number): KeySetStep => {
    const step = reduce(state, event, nowMs);
    state = step.state;
    return step;
  };
  return {
    send,
    state: () => state,
    fetched: (nowMs: number, keys: Keys, jitter = 0) =>
      send({ kind: 'fetched', fetch: state.fetch, keys, jitter }, nowMs),
    failed: (nowMs: number, jitter = 0) =>
      send({ kind: 'failed', fetch: state.fetch, problem: 'status 500', jitter }, nowMs),
    ask: (nowMs: number, kid: string) => send({ kind: 'asked', kid }, nowMs),
    wake: (nowMs: number) => send({ kind: 'woken' }, nowMs),
    wakeAt: () => nextWakeMs(state),
  };
}

/** A machine whose first fetch ran from 0 to 100 ms and returned the key k1. */
function loaded(overrides: Partial<KeySetLimits> = {}) {
  const driven = machine(overrides);
  driven.send({ kind: 'started' }, 0);
  driven.fetched(100, keySet('k1'));
  return driven;
}

function fetches({ effects }: KeySetStep): number {
  return effects.filter(effect => effect.kind === 'fetch').length;
}

function answers({ effects }: KeySetStep): readonly string[] {
  return effects.flatMap(effect => (effect.kind === 'answer' ? [`${effect.kid}: ${effect.lookup.kind}`] : []));
}

describe('key set state', () => {
  describe('start', () => {
    it('starts a fetch at once', () => {
      const driven = machine();
      expect(fetches(driven.send({ kind: 'started' }, 7))).to.equal(1);
      expect(driven.wakeAt()).to.equal(undefined);
    });

    it('has no effect the second time', () => {
      const driven = loaded();
      expect(fetches(driven.send({ kind: 'started' }, 50_000))).to.equal(0);
    });

    it('is required: a lookup before it is unavailable', () => {
      expect(answers(machine().ask(0, 'k1'))).to.deep.equal(['k1: unavailable']);
    });

    it('K-002 lets a lookup wait for the first fetch, which answers it', () => {
      const driven = machine();
      driven.send({ kind: 'started' }, 0);
      expect(driven.ask(10, 'k1').effects).to.deep.equal([]);
      expect(answers(driven.fetched(100, keySet('k1')))).to.deep.equal(['k1: key']);
    });

    it('uses a seed until its age reaches maxAge', () => {
      const driven = machine();
      driven.send({ kind: 'seeded', keys: keySet('k1'), ageMs: 3_000_000 }, 0);
      expect(usableKey(driven.state(), 'k1', 599_999)?.kid).to.equal('k1');
      expect(usableKey(driven.state(), 'k1', 600_000)).to.equal(undefined);
    });

    for (const [name, ageMs] of [
      ['as old as maxAge', 3_600_000],
      ['from the future', -1],
      ['of an age that is not a number', Number.NaN],
    ] as const) {
      it(`refuses a seed ${name}, which status 304 cannot confirm either`, () => {
        const driven = machine();
        driven.send({ kind: 'seeded', keys: keySet('k1'), ageMs }, 0);
        expect(isUsable(driven.state(), 0)).to.equal(false);
        driven.send({ kind: 'started' }, 1);
        driven.send({ kind: 'notModified', fetch: 1, jitter: 0 }, 2);
        expect(usableKey(driven.state(), 'k1', 2)).to.equal(undefined);
      });
    }

    it('refuses a seed once a fetch has started', () => {
      const driven = machine();
      driven.send({ kind: 'started' }, 0);
      driven.send({ kind: 'seeded', keys: keySet('old'), ageMs: 1 }, 1);
      expect(driven.state().keys.size).to.equal(0);
    });
  });

  describe('detail for the log', () => {
    const detailsOf = ({ effects }: KeySetStep): readonly string[] =>
      effects.flatMap(effect =>
        effect.kind === 'answer' && effect.lookup.kind === 'unavailable' ? [effect.lookup.detail] : [],
      );
    const rows: readonly (readonly [detail: string, answer: () => KeySetStep])[] = [
      ['no key set yet', () => machine().ask(0, 'k1')],
      [
        'no key set yet, last refresh: status 500',
        () => {
          const driven = machine();
          driven.send({ kind: 'started' }, 0);
          driven.failed(10);
          return driven.ask(11, 'k1');
        },
      ],
      [
        'no key set yet, last refresh: status 304',
        () => {
          const driven = machine();
          driven.send({ kind: 'started' }, 0);
          driven.ask(1, 'k1');
          return driven.send({ kind: 'notModified', fetch: 1, jitter: 0 }, 10);
        },
      ],
      [
        'key set too old',
        () => {
          const driven = machine();
          driven.send({ kind: 'seeded', keys: keySet('k1'), ageMs: 0 }, 0);
          return driven.ask(3_600_000, 'k1');
        },
      ],
      [
        'key set too old, last refresh: status 500',
        () => {
          const driven = loaded();
          driven.wake(3_700_000);
          driven.failed(3_700_100);
          return driven.ask(3_700_101, 'k1');
        },
      ],
      [
        'kid not in the key set',
        () => {
          const driven = machine();
          driven.send({ kind: 'seeded', keys: keySet('k1'), ageMs: 0 }, 0);
          return driven.ask(1, 'k2');
        },
      ],
      [
        'kid not in the key set, last refresh: status 500',
        () => {
          const driven = loaded();
          driven.wake(300_000);
          driven.failed(300_100);
          return driven.ask(300_101, 'k2');
        },
      ],
      [
        'the refresh takes longer than 150 ms',
        () => {
          const driven = machine();
          driven.send({ kind: 'started' }, 0);
          driven.ask(1, 'k1');
          return driven.wake(151);
        },
      ],
      [
        'stopped',
        () => {
          const driven = loaded();
          driven.send({ kind: 'stopped' }, 200);
          return driven.ask(201, 'k2');
        },
      ],
      [
        'stopped',
        () => {
          const driven = machine();
          driven.send({ kind: 'started' }, 0);
          driven.ask(1, 'k1');
          return driven.send({ kind: 'stopped' }, 2);
        },
      ],
    ];
    for (const [detail, answer] of rows) {
      it(`is "${detail}"`, () => {
        expect(detailsOf(answer())).to.deep.equal([detail]);
      });
    }
  });

  describe('pending work', () => {
    const nothingPending = { waiters: [], askedDuringFetch: [], askedBeforeFetch: [], changed: false };

    it('is empty before the start', () => {
      expect(createKeySetState(limits)).to.deep.include({ ...nothingPending, phase: 'new' });
    });

    it('is empty after a fetch that returned every requested kid', () => {
      const driven = loaded();
      driven.ask(6_000, 'k2');
      driven.ask(6_001, 'k3');
      driven.fetched(6_100, keySet('k2', 'k3'));
      expect(driven.state()).to.deep.include({ ...nothingPending, lastResult: 'success', phase: 'waiting' });
      driven.wake(400_000);
      driven.send({ kind: 'changed' }, 400_001);
      driven.fetched(400_100, keySet('k2'));
      expect(driven.state()).to.deep.include(nothingPending);
    });

    it('is empty after a failed fetch', () => {
      const driven = loaded();
      driven.ask(6_000, 'k2');
      driven.ask(6_001, 'k3');
      driven.send({ kind: 'changed' }, 6_002);
      driven.failed(6_100);
      expect(driven.state()).to.deep.include({ ...nothingPending, lastResult: 'failure', lastProblem: 'status 500' });
    });

    it('is empty after the stop, and later events change nothing', () => {
      const driven = loaded();
      driven.ask(6_000, 'k2');
      driven.ask(6_001, 'k3');
      driven.send({ kind: 'stopped' }, 6_002);
      const stopped = driven.state();
      expect(stopped).to.deep.include({ ...nothingPending, phase: 'stopped' });
      for (const kind of ['stopped', 'changed', 'started', 'woken'] as const) {
        expect(driven.send({ kind }, 7_000)).to.deep.equal({ state: stopped, effects: [] });
      }
    });

    it('is not woken by a source change within the cooldown or during a fetch', () => {
      expect(machine().send({ kind: 'changed' }, 0).effects).to.deep.equal([]);
      const driven = loaded();
      expect(driven.send({ kind: 'changed' }, 200).effects).to.deep.equal([]);
      driven.wake(10_000);
      expect(driven.send({ kind: 'changed' }, 10_001).effects).to.deep.equal([]);
    });
  });

  it('a seed has no effects, before or after the start', () => {
    const driven = machine();
    const seed = { kind: 'seeded', keys: keySet('k1'), ageMs: 0 } as const;
    expect(driven.send(seed, 0).effects).to.deep.equal([]);
    driven.send({ kind: 'started' }, 1);
    expect(driven.send(seed, 2).effects).to.deep.equal([]);
  });

  it('a kid known absent before a failed refresh triggers a fetch at the end of the cooldown', () => {
    const driven = loaded();
    driven.ask(6_000, 'k2');
    driven.fetched(6_100, keySet('k1'));
    driven.wake(306_000);
    driven.failed(306_100, 1);
    expect(driven.wakeAt()).to.equal(316_100);
    expect(answers(driven.ask(306_101, 'k2'))).to.deep.equal(['k2: unavailable']);
    expect(driven.wakeAt()).to.equal(311_100);
  });

  describe('successful fetch', () => {
    it('K-001 makes its keys usable', () => {
      expect(usableKey(loaded().state(), 'k1', 100)?.kid).to.equal('k1');
    });

    it('sets the age of the key set from the start of the fetch', () => {
      const { state } = loaded();
      expect(isUsable(state(), 3_599_999)).to.equal(true);
      expect(isUsable(state(), 3_600_000)).to.equal(false);
    });

    it('K-057 replaces the whole key set: a removed key is unusable at once', () => {
      const driven = loaded();
      driven.wake(300_000);
      driven.fetched(300_100, keySet('k2'));
      expect(usableKey(driven.state(), 'k1', 300_100)).to.equal(undefined);
      expect(usableKey(driven.state(), 'k2', 300_100)?.kid).to.equal('k2');
    });

    for (const [jitter, dueMs] of [
      [0, 240_000],
      [0.5, 270_000],
      [0.999, 299_940],
    ] as const) {
      it(`is followed by the next one ${dueMs} ms after its start with jitter ${jitter}`, () => {
        const driven = machine();
        driven.send({ kind: 'started' }, 0);
        driven.fetched(100, keySet('k1'), jitter);
        expect(driven.wakeAt()).to.be.closeTo(dueMs, 1e-6);
        expect(fetches(driven.wake(dueMs - 1))).to.equal(0);
        expect(fetches(driven.wake(dueMs + 1))).to.equal(1);
      });
    }

    it('is followed by the next one before the key set reaches maxAge', () => {
      const driven = machine({ maxAgeMs: 300_000 });
      driven.send({ kind: 'started' }, 0);
      driven.fetched(100, keySet('k1'), 0.999);
      expect(driven.wakeAt()).to.equal(240_000);
    });

    it('is followed by the next one no sooner than the cooldown after its end', () => {
      const driven = machine({ refreshMs: 5_000 });
      driven.send({ kind: 'started' }, 0);
      driven.fetched(4_000, keySet('k1'));
      expect(driven.wakeAt()).to.equal(9_000);
    });

    it('with status 304 renews the age of the key set', () => {
      const driven = loaded();
      driven.wake(300_000);
      driven.send({ kind: 'notModified', fetch: 2, jitter: 0 }, 300_100);
      expect(isUsable(driven.state(), 3_899_999)).to.equal(true);
      expect(isUsable(driven.state(), 3_900_000)).to.equal(false);
    });

    it('with status 304 is a failure if the key set is stale', () => {
      const driven = loaded();
      driven.wake(3_700_000);
      driven.send({ kind: 'notModified', fetch: 2, jitter: 0 }, 3_700_100);
      expect(isUsable(driven.state(), 3_700_100)).to.equal(false);
      expect(driven.state()).to.include({ lastResult: 'failure', lastProblem: 'status 304' });
    });

    it('with status 304 is a failure if there is no key set', () => {
      const driven = machine();
      driven.send({ kind: 'started' }, 0);
      driven.send({ kind: 'notModified', fetch: 1, jitter: 0 }, 100);
      expect(isUsable(driven.state(), 100)).to.equal(false);
      expect(driven.state().lastProblem).to.equal('status 304');
    });
  });

  describe('failed fetch', () => {
    it('K-003 keeps the key set usable until maxAge', () => {
      const driven = loaded();
      driven.wake(300_000);
      driven.failed(300_100);
      expect(usableKey(driven.state(), 'k1', 3_599_999)?.kid).to.equal('k1');
      expect(usableKey(driven.state(), 'k1', 3_600_000)).to.equal(undefined);
    });

    /** The backoff after this many failures in a row, each with this jitter. */
    function backoffAfter(
      driven: ReturnType<typeof machine>,
      failures: number,
      jitter: number,
      startMs: number,
    ): number {
      let now = startMs;
      for (let failure = 1; ; failure += 1) {
        driven.failed(now, jitter);
        const backoffMs = (driven.wakeAt() ?? 0) - now;
        if (failure === failures) return backoffMs;
        now += backoffMs;
        driven.wake(now);
      }
    }

    const withSet: readonly (readonly [number, number, number])[] = [
      [1, 5_000, 10_000],
      [2, 10_000, 20_000],
      [3, 20_000, 40_000],
      [6, 150_000, 300_000],
      [60, 150_000, 300_000],
    ];
    for (const [failures, minMs, maxMs] of withSet) {
      it(`backs off ${minMs} to ${maxMs} ms after ${failures} in a row with a usable key set`, () => {
        for (const [jitter, expectedMs] of [
          [0, minMs],
          [1, maxMs],
        ] as const) {
          const driven = loaded({ maxAgeMs: 100_000_000 });
          driven.wake(300_000);
          expect(backoffAfter(driven, failures, jitter, 300_000)).to.equal(expectedMs);
        }
      });
    }

    const withoutSet: readonly (readonly [number, number, number])[] = [
      [1, 5_000, 10_000],
      [2, 7_500, 15_000],
      [60, 7_500, 15_000],
    ];
    for (const [failures, minMs, maxMs] of withoutSet) {
      it(`K-002 backs off ${minMs} to ${maxMs} ms after ${failures} in a row without a usable key set`, () => {
        for (const [jitter, expectedMs] of [
          [0, minMs],
          [1, maxMs],
        ] as const) {
          const unloaded = machine();
          unloaded.send({ kind: 'started' }, 0);
          expect(backoffAfter(unloaded, failures, jitter, 0), 'no set yet').to.equal(expectedMs);
          const stale = loaded();
          stale.wake(4_000_000);
          expect(backoffAfter(stale, failures, jitter, 4_000_000), 'set too old').to.equal(expectedMs);
        }
      });
    }

    it('switches to the short backoff when the key set reaches maxAge', () => {
      const driven = machine();
      driven.send({ kind: 'seeded', keys: keySet('k1'), ageMs: 3_400_000 }, 0);
      driven.send({ kind: 'started' }, 0);
      const failedMs = [0, 10_000, 30_000, 70_000, 150_000];
      for (const now of failedMs) {
        driven.wake(now);
        driven.failed(now, 1);
      }
      expect(driven.wakeAt()).to.equal(200_000 + 15_000);
    });

    for (const [name, overrides, expectedMs] of [
      ['no shorter than a long cooldown', { cooldownMs: 20_000 }, [20_000, 20_000]],
      ['no longer than a short refresh interval', { refreshMs: 6_000 }, [5_000, 6_000]],
    ] as const) {
      it(`keeps the backoff without a usable key set ${name}`, () => {
        for (const [index, jitter] of [0, 1].entries()) {
          const driven = machine(overrides);
          driven.send({ kind: 'started' }, 0);
          expect(backoffAfter(driven, 3, jitter, 0)).to.equal(expectedMs[index]);
        }
      });
    }

    it('K-005 restarts the backoff after a success', () => {
      const driven = machine();
      driven.send({ kind: 'started' }, 0);
      driven.failed(0);
      driven.wake(5_000);
      driven.failed(5_000);
      driven.wake(15_000);
      driven.fetched(15_000, keySet('k1'));
      driven.wake(300_000);
      driven.failed(300_000);
      expect(driven.wakeAt()).to.equal(305_000);
    });

    it('answers waiting lookups as unavailable', () => {
      const driven = machine();
      driven.send({ kind: 'started' }, 0);
      driven.ask(10, 'k1');
      expect(answers(driven.failed(100))).to.deep.equal(['k1: unavailable']);
    });
  });

  describe('unknown kid', () => {
    it('K-006 triggers one early refresh after the cooldown and waits for it', () => {
      const driven = loaded();
      const step = driven.ask(5_100, 'k2');
      expect(fetches(step)).to.equal(1);
      expect(answers(step)).to.deep.equal([]);
      expect(answers(driven.fetched(5_200, keySet('k1', 'k2')))).to.deep.equal(['k2: key']);
    });

    it('shares the refresh in flight with other unknown kids', () => {
      const driven = loaded();
      driven.ask(5_100, 'k2');
      expect(driven.ask(5_110, 'k3').effects).to.deep.equal([]);
      expect(driven.ask(5_120, 'k2').effects).to.deep.equal([]);
      expect(answers(driven.fetched(5_200, keySet('k1', 'k2')))).to.deep.equal(['k2: key', 'k3: unknown']);
    });

    it('K-006 is unavailable if the refresh takes longer than 150 ms', () => {
      const driven = loaded();
      driven.ask(5_100, 'k2');
      expect(driven.wakeAt()).to.equal(5_250);
      expect(answers(driven.wake(5_249))).to.deep.equal([]);
      expect(answers(driven.wake(5_250))).to.deep.equal(['k2: unavailable']);
    });

    it('K-009 is unknown at once within the cooldown after a success', () => {
      const driven = loaded();
      const step = driven.ask(5_099, 'k2');
      expect(answers(step)).to.deep.equal(['k2: unknown']);
      expect(fetches(step)).to.equal(0);
    });

    it('within the cooldown triggers a fetch at its end without another lookup', () => {
      const driven = loaded();
      driven.ask(200, 'k2');
      expect(driven.wakeAt()).to.equal(5_100);
      expect(fetches(driven.wake(5_100))).to.equal(1);
    });

    it('known absent from the last fetch triggers the next one only after the cooldown', () => {
      const driven = loaded();
      driven.ask(5_100, 'nobody');
      driven.fetched(5_200, keySet('k1'));
      const due = driven.wakeAt();
      expect(answers(driven.ask(5_300, 'nobody'))).to.deep.equal(['nobody: unknown']);
      expect(driven.wakeAt()).to.equal(due);
      expect(fetches(driven.ask(10_200, 'nobody'))).to.equal(1);
    });

    it('in the negative cache makes room for newer ones beyond maxUnknownKids', () => {
      const driven = loaded({ maxUnknownKids: 2, maxWaiters: 2 });
      for (const [askedMs, kids] of [
        [6_000, ['a', 'b']],
        [20_000, ['c', 'd']],
      ] as const) {
        for (const kid of kids) driven.ask(askedMs, kid);
        driven.fetched(askedMs + 100, keySet('k1'));
        driven.wake(askedMs + 6_000);
        driven.fetched(askedMs + 6_100, keySet('k1'));
      }
      expect(driven.state().knownAbsent.size).to.equal(2);
    });

    it('K-011 leaves the negative cache once a fetch returns it', () => {
      const driven = loaded();
      driven.ask(5_100, 'k2');
      driven.fetched(5_200, keySet('k1'));
      expect([...driven.state().knownAbsent]).to.deep.equal(['k2']);
      driven.wake(300_000);
      driven.fetched(300_100, keySet('k2'));
      expect([...driven.state().knownAbsent]).to.deep.equal([]);
    });

    it('requested during a fetch that lacks it triggers another fetch', () => {
      const driven = loaded();
      driven.ask(5_100, 'k2');
      driven.ask(5_150, 'k3');
      expect(answers(driven.fetched(5_200, keySet('k1')))).to.deep.equal(['k2: unknown', 'k3: unknown']);
      expect(driven.wakeAt()).to.equal(10_200);
    });

    it('K-010 is unavailable within the cooldown after a failure, known kids stay usable', () => {
      const driven = loaded();
      driven.wake(300_000);
      driven.failed(300_100);
      const step = driven.ask(300_200, 'k2');
      expect(answers(step)).to.deep.equal(['k2: unavailable']);
      expect(fetches(step)).to.equal(0);
      expect(answers(driven.ask(300_200, 'k1'))).to.deep.equal(['k1: key']);
    });

    it('K-010 triggers a fetch during an outage after the cooldown, before the backoff ends', () => {
      const driven = loaded();
      driven.wake(300_000);
      driven.failed(300_100);
      driven.wake(310_100);
      driven.failed(310_200);
      expect(fetches(driven.ask(315_199, 'k2'))).to.equal(0);
      expect(fetches(driven.ask(315_200, 'k2'))).to.equal(1);
    });

    it('K-006 of a rotation without overlap is found at the end of the cooldown', () => {
      const driven = loaded();
      expect(answers(driven.ask(200, 'k2'))).to.deep.equal(['k2: unknown']);
      driven.wake(5_100);
      driven.fetched(5_150, keySet('k2'));
      expect(answers(driven.ask(5_151, 'k2'))).to.deep.equal(['k2: key']);
      expect(answers(driven.ask(5_151, 'k1'))).to.deep.equal(['k1: unknown']);
    });

    it('is answered like a known kid of an expired key set: unavailable, with a fetch', () => {
      const driven = loaded();
      driven.wake(300_000);
      driven.failed(300_100);
      expect(fetches(driven.ask(3_600_000, 'k1'))).to.equal(1);
      expect(answers(driven.failed(3_600_010))).to.deep.equal(['k1: unavailable']);
      expect(answers(driven.ask(3_600_020, 'k1'))).to.deep.equal(['k1: unavailable']);
    });

    it('K-011 beyond maxWaiters is unknown at once', () => {
      const driven = loaded();
      for (const kid of ['a', 'b', 'c', 'd']) driven.ask(5_100, kid);
      expect(answers(driven.ask(5_100, 'e'))).to.deep.equal(['e: unknown']);
    });

    it('K-011 beyond maxWaiters is unavailable at once while there is no key set', () => {
      const driven = machine();
      driven.send({ kind: 'started' }, 0);
      for (const kid of ['a', 'b', 'c', 'd']) driven.ask(10, kid);
      expect(answers(driven.ask(10, 'e'))).to.deep.equal(['e: unavailable']);
    });
  });

  describe('early refreshes without news', () => {
    type Fruitless = (driven: ReturnType<typeof machine>, nowMs: number, jitter: number) => void;
    const resultsWithoutNews: Readonly<Record<string, Fruitless>> = {
      'the same key set': (driven, nowMs, jitter) => driven.fetched(nowMs, keySet('k1'), jitter),
      'status 304': (driven, nowMs, jitter) =>
        driven.send({ kind: 'notModified', fetch: driven.state().fetch, jitter }, nowMs),
      'a failure': (driven, nowMs, jitter) => driven.failed(nowMs, jitter),
    };

    /** Unknown kids trigger earlyFetchesWithoutNews early refreshes, each as soon as it is allowed. Returns the end of the last one. */
    function flood(
      driven: ReturnType<typeof machine>,
      refreshes: number,
      jitter = 1,
      end = resultsWithoutNews['the same key set'],
    ): number {
      let now = 6_000;
      for (let refresh = 1; ; refresh += 1) {
        expect(fetches(driven.ask(now, `unknown ${refresh}`)), `refresh ${refresh}`).to.equal(1);
        end?.(driven, now + 100, jitter);
        if (refresh === refreshes) return now + 100;
        now = driven.state().earlyNotBeforeMs;
      }
    }

    const steps: readonly (readonly [number, number, number])[] = [
      [1, 5_000, 5_000],
      [2, 5_000, 10_000],
      [3, 10_000, 20_000],
      [4, 20_000, 40_000],
      [5, 40_000, 60_000],
      [6, 48_000, 60_000],
      [60, 48_000, 60_000],
    ];
    for (const [refreshes, minMs, maxMs] of steps) {
      it(`K-009 back off ${minMs} to ${maxMs} ms after ${refreshes} in a row`, () => {
        for (const [jitter, expectedMs] of [
          [0, minMs],
          [1, maxMs],
        ] as const) {
          const driven = loaded({ maxAgeMs: 100_000_000, refreshMs: 100_000_000 });
          const endMs = flood(driven, refreshes, jitter);
          expect(fetches(driven.ask(endMs + expectedMs - 1, 'next'))).to.equal(0);
          expect(driven.wakeAt()).to.equal(endMs + expectedMs);
          expect(fetches(driven.ask(endMs + expectedMs, 'next'))).to.equal(1);
        }
      });
    }

    for (const [name, end] of Object.entries(resultsWithoutNews)) {
      it(`K-009 K-010 back off if each ends with ${name}`, () => {
        const driven = loaded({ maxAgeMs: 100_000_000 });
        const endMs = flood(driven, 3, 1, end);
        expect(fetches(driven.ask(endMs + 19_999, 'next'))).to.equal(0);
        expect(fetches(driven.ask(endMs + 20_000, 'next'))).to.equal(1);
      });
    }

    it('K-009 during the backoff a kid is unknown after a success, unavailable after a failure', () => {
      const driven = loaded();
      expect(answers(driven.ask(flood(driven, 3) + 6_000, 'next'))).to.deep.equal(['next: unknown']);
      const failing = loaded();
      expect(answers(failing.ask(flood(failing, 3, 1, resultsWithoutNews['a failure']) + 6_000, 'next'))).to.deep.equal(
        ['next: unavailable'],
      );
    });

    it('schedule no other one for a kid known absent from the last one', () => {
      const driven = loaded();
      const endMs = flood(driven, 3);
      const due = driven.wakeAt();
      expect(answers(driven.ask(endMs + 6_000, 'unknown 3'))).to.deep.equal(['unknown 3: unknown']);
      expect(driven.wakeAt()).to.equal(due);
    });

    it('schedule the next one after the backoff for a kid requested during the last one', () => {
      const driven = loaded();
      const endMs = flood(driven, 2);
      driven.ask(endMs + 10_000, 'third');
      driven.ask(endMs + 10_050, 'too late');
      driven.fetched(endMs + 10_100, keySet('k1'), 1);
      expect(driven.wakeAt()).to.equal(endMs + 10_100 + 20_000);
    });

    const changes: readonly (readonly [name: string, before: Keys, after: Keys])[] = [
      ['an added key', keySet('k1'), keySet('k1', 'k2')],
      ['a removed key', keySet('k0', 'k1'), keySet('k1')],
      ['a replaced key', keySet('k1'), keySet('k2')],
      ['a replaced key next to an unchanged one', keySet('k0', 'k1'), keySet('k0', 'k2')],
      ['another key under the same kid', keySet('k1'), new Map([['k1', { ...key('k1'), thumbprint: 'other' }]])],
    ];
    for (const [name, before, after] of changes) {
      it(`restart the backoff once one returns ${name}`, () => {
        const driven = machine();
        driven.send({ kind: 'started' }, 0);
        driven.fetched(100, before);
        const endMs = flood(driven, 4, 1, (each, nowMs, jitter) => each.fetched(nowMs, before, jitter));
        driven.ask(endMs + 40_000, 'last');
        driven.fetched(endMs + 40_100, after, 1);
        expect(driven.state().earlyFetchesWithoutNews).to.equal(0);
        expect(fetches(driven.ask(endMs + 45_099, 'next'))).to.equal(0);
        expect(fetches(driven.ask(endMs + 45_100, 'next'))).to.equal(1);
      });
    }

    for (const result of ['status 304', 'a failure']) {
      it(`K-010 back off without a usable key set if each ends with ${result}`, () => {
        const driven = machine();
        driven.send({ kind: 'started' }, 0);
        driven.failed(100);
        const endMs = flood(driven, 3, 1, resultsWithoutNews[result]);
        expect(driven.state().earlyNotBeforeMs).to.equal(endMs + 20_000);
        driven.wake(endMs + 15_000);
        driven.fetched(endMs + 15_100, keySet('k1'), 1);
        expect(driven.state()).to.include({ earlyFetchesWithoutNews: 0, earlyNotBeforeMs: endMs + 20_100 });
      });
    }

    it('K-010 back off while the key set is expired', () => {
      const driven = loaded();
      driven.wake(4_000_000);
      driven.failed(4_000_000);
      for (const askedMs of [4_005_000, 4_010_000]) {
        expect(fetches(driven.ask(askedMs, 'k1'))).to.equal(1);
        driven.failed(askedMs, 1);
      }
      expect(driven.state()).to.include({ earlyFetchesWithoutNews: 2, earlyNotBeforeMs: 4_020_000 });
    });

    it('restart the backoff once one makes an expired key set usable', () => {
      const driven = loaded();
      flood(driven, 4, 1, resultsWithoutNews['a failure']);
      driven.wake(4_000_000);
      driven.fetched(4_000_100, keySet('k1'), 1);
      expect(driven.state().earlyFetchesWithoutNews).to.equal(0);
      expect(fetches(driven.ask(4_005_100, 'next'))).to.equal(1);
    });

    it('restart the backoff after ten minutes without an unknown kid', () => {
      for (const [quietMs, expectedMs] of [
        [600_000, 5_000],
        [599_999, 60_000],
      ] as const) {
        const driven = loaded();
        const endMs = flood(driven, 5);
        driven.ask(endMs, 'unknown 5');
        driven.ask(endMs + 300_000, 'k1');
        driven.ask(endMs + quietMs, 'next');
        driven.fetched(endMs + quietMs + 100, keySet('k1'), 1);
        expect(driven.state().earlyNotBeforeMs - (endMs + quietMs + 100)).to.equal(expectedMs);
      }
    });

    it('do not move background refreshes, which do not change the backoff', () => {
      const driven = loaded({ refreshMs: 10_000 });
      const endMs = flood(driven, 5);
      expect(driven.wakeAt()).to.equal(endMs - 100 + 10_000);
      expect(fetches(driven.wake(endMs + 9_900))).to.equal(1);
      driven.fetched(endMs + 10_000, keySet('k1'), 1);
      expect(driven.state()).to.include({ earlyFetchesWithoutNews: 5, earlyNotBeforeMs: endMs + 60_000 });
    });

    it('observe the cooldown after a background refresh at the end of the backoff', () => {
      const driven = loaded({ refreshMs: 10_000 });
      const endMs = flood(driven, 2);
      driven.wake(endMs + 9_900);
      driven.fetched(endMs + 10_000, keySet('k1'), 1);
      expect(fetches(driven.ask(endMs + 14_999, 'next'))).to.equal(0);
      expect(fetches(driven.ask(endMs + 15_000, 'next'))).to.equal(1);
    });

    it('include a background refresh that finds requested kids absent', () => {
      const driven = loaded({ refreshMs: 10_000 });
      const endMs = flood(driven, 2);
      driven.ask(endMs + 1, 'next');
      driven.wake(endMs + 9_900);
      driven.fetched(endMs + 10_000, keySet('k1'), 1);
      expect(driven.state()).to.include({ earlyFetchesWithoutNews: 3, earlyNotBeforeMs: endMs + 30_000 });
    });

    it('K-002 do not delay the retries without a usable key set', () => {
      const driven = machine();
      driven.send({ kind: 'started' }, 0);
      driven.failed(100, 1);
      let now = 100;
      for (let refresh = 1; refresh < 20; refresh += 1) {
        driven.ask(now + 1, `good ${refresh}`);
        const due = driven.wakeAt() ?? Number.POSITIVE_INFINITY;
        expect(due - now, `retry ${refresh}`).to.be.within(5_000, 15_000);
        now = due;
        driven.wake(now);
        driven.failed(now, 1);
      }
    });

    it('do not delay the fetch of a changed source', () => {
      const driven = loaded();
      const endMs = flood(driven, 5);
      driven.send({ kind: 'changed' }, endMs + 1);
      expect(driven.wakeAt()).to.equal(endMs + 5_000);
    });
  });

  describe('changed source', () => {
    it('is fetched at once outside the cooldown', () => {
      expect(fetches(loaded().send({ kind: 'changed' }, 5_100))).to.equal(1);
    });

    it('is fetched at the end of a running cooldown', () => {
      const driven = loaded();
      expect(fetches(driven.send({ kind: 'changed' }, 5_099))).to.equal(0);
      expect(driven.wakeAt()).to.equal(5_100);
    });

    for (const result of ['fetched', 'failed'] as const) {
      it(`is fetched again after a fetch in flight has ${result === 'fetched' ? 'succeeded' : result}`, () => {
        const driven = loaded();
        driven.wake(300_000);
        driven.send({ kind: 'changed' }, 300_050);
        if (result === 'fetched') driven.fetched(300_100, keySet('k1'));
        else driven.failed(300_100, 1);
        expect(driven.wakeAt()).to.equal(305_100);
      });
    }
  });

  describe('untrusted key set', () => {
    it('stays until the refresh that it causes has ended, and is dropped if that failed', () => {
      const driven = loaded();
      expect(fetches(driven.send({ kind: 'untrusted' }, 5_100))).to.equal(1);
      expect(usableKey(driven.state(), 'k1', 5_200)?.kid).to.equal('k1');
      driven.failed(5_300);
      expect(driven.state()).to.deep.include({ keys: new Map(), confirmedMs: undefined, lastResult: 'failure' });
    });

    it('is replaced if the refresh succeeds, and a later failure drops nothing', () => {
      const driven = loaded();
      driven.send({ kind: 'untrusted' }, 5_100);
      driven.fetched(5_200, keySet('k2'));
      driven.wake(400_000);
      driven.failed(400_100);
      expect(usableKey(driven.state(), 'k2', 400_100)?.kid).to.equal('k2');
    });

    it('needs a fetch begun after the change: neither success nor failure of one in flight counts', () => {
      for (const end of ['fetched', 'failed'] as const) {
        const driven = loaded();
        driven.wake(300_000);
        driven.send({ kind: 'untrusted' }, 300_001);
        if (end === 'fetched') driven.fetched(300_100, keySet('k1'));
        else driven.failed(300_100);
        expect(usableKey(driven.state(), 'k1', 300_100)?.kid, end).to.equal('k1');
        expect(fetches(driven.wake(305_100))).to.equal(1);
        driven.failed(305_200);
        expect(usableKey(driven.state(), 'k1', 305_200), end).to.equal(undefined);
      }
    });

    it('is refreshed as soon as the cooldown allows', () => {
      const driven = loaded();
      expect(fetches(driven.send({ kind: 'untrusted' }, 200))).to.equal(0);
      expect(driven.wakeAt()).to.equal(5_100);
    });

    it('inherited from another ring needs the success of the first fetch', () => {
      const driven = machine();
      driven.send({ kind: 'seeded', keys: keySet('k1'), ageMs: 0 }, 0);
      driven.send({ kind: 'untrusted' }, 0);
      driven.send({ kind: 'started' }, 0);
      driven.failed(100);
      expect(driven.state()).to.include({ confirmedMs: undefined });
    });
  });

  describe('late result', () => {
    it('K-053 of an earlier fetch changes nothing', () => {
      const driven = loaded();
      driven.wake(300_000);
      const before = driven.state();
      const late: readonly KeySetEvent[] = [
        { kind: 'fetched', fetch: 1, keys: keySet('old'), jitter: 0 },
        { kind: 'failed', fetch: 1, problem: 'late', jitter: 0 },
        { kind: 'notModified', fetch: 1, jitter: 0 },
      ];
      for (const event of late) {
        const { state, effects } = driven.send(event, 300_050);
        expect(state).to.equal(before);
        expect(effects).to.deep.equal([]);
      }
    });

    it('K-054 after the stop changes nothing', () => {
      const driven = machine();
      driven.send({ kind: 'started' }, 0);
      driven.send({ kind: 'stopped' }, 10);
      driven.fetched(20, keySet('k1'));
      expect(isUsable(driven.state(), 20)).to.equal(false);
    });
  });

  describe('stop', () => {
    it('K-054 aborts the fetch in flight and answers waiting lookups', () => {
      const driven = loaded();
      driven.ask(5_100, 'k2');
      const step = driven.send({ kind: 'stopped' }, 5_110);
      expect(step.effects[0]).to.deep.equal({ kind: 'abort' });
      expect(answers(step)).to.deep.equal(['k2: unavailable']);
      expect(driven.wakeAt()).to.equal(undefined);
    });

    it('leaves known keys usable and every other kid unavailable', () => {
      const driven = loaded();
      driven.send({ kind: 'stopped' }, 200);
      expect(answers(driven.ask(201, 'k1'))).to.deep.equal(['k1: key']);
      expect(answers(driven.ask(201, 'k2'))).to.deep.equal(['k2: unavailable']);
      expect(fetches(driven.wake(900_000))).to.equal(0);
    });
  });
});
