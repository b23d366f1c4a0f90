// How the fetches of a key set back off: retries after failures, and early refreshes while unknown kids keep coming and bring nothing new.
import { expect } from 'chai';
import type { Keys } from '../../src/keys/key-set-machine.ts';
import {
  describeTraces,
  effectsOf,
  fetches,
  keySet,
  keySetOf,
  loaded,
  type Machine,
  started,
  trace,
} from './key-set-trace.ts';

describe('failed fetch', () => {
  /** The backoff after this many failures in a row, each with this jitter. */
  function backoffAfter(driven: Machine, failures: number, jitter: number, startMs: number): number {
    let now = startMs;
    for (let failure = 1; ; failure += 1) {
      driven.failed(now, jitter);
      const backoffMs = (driven.wakeAt() ?? 0) - now;
      if (failure === failures) return backoffMs;
      now += backoffMs;
      driven.wake(now);
    }
  }

  for (const [failures, minMs, maxMs] of [
    [1, 5_000, 10_000],
    [2, 10_000, 20_000],
    [3, 20_000, 40_000],
    [6, 150_000, 300_000],
    [60, 150_000, 300_000],
  ] as const) {
    it(`backs off ${minMs} to ${maxMs} ms after ${failures} in a row with a usable key set`, () => {
      const backoffMs = (jitter: number): number => {
        const driven = trace(loaded({ maxAgeMs: 100_000_000 }), '300_000 woken → fetch');
        return backoffAfter(driven, failures, jitter, 300_000);
      };
      expect([backoffMs(0), backoffMs(1)]).to.deep.equal([minMs, maxMs]);
    });
  }

  for (const [failures, minMs, maxMs] of [
    [1, 5_000, 10_000],
    [2, 7_500, 15_000],
    [60, 7_500, 15_000],
  ] as const) {
    it(`K-002 backs off ${minMs} to ${maxMs} ms after ${failures} in a row without a usable key set`, () => {
      const stale = (): Machine => trace(loaded(), '4_000_000 woken → fetch');
      for (const [jitter, expectedMs] of [
        [0, minMs],
        [1, maxMs],
      ] as const) {
        expect(backoffAfter(started(), failures, jitter, 0), 'no set yet').to.equal(expectedMs);
        expect(backoffAfter(stale(), failures, jitter, 4e6), 'set too old').to.equal(expectedMs);
      }
    });
  }
});

describeTraces('failed fetch')`
  K-003 keeps the key set usable until maxAge
    300_000 woken → fetch
    300_100 fails
    3_599_999 look; uses k1
    3_600_000 look; uses

  leads to the short backoff when the key set reaches maxAge [new]
    0 seed 3_400_000 k1
    0 started → fetch
    0 fails jitter=1; due 10_000
    10_000 woken → fetch
    10_000 fails jitter=1; due 30_000
    30_000 woken → fetch
    30_000 fails jitter=1; due 70_000
    70_000 woken → fetch
    70_000 fails jitter=1; due 150_000
    150_000 woken → fetch
    150_000 fails jitter=1; due 215_000

  K-005 leaves no backoff after a success [started]
    0 fails; due 5_000
    5_000 woken → fetch
    5_000 fails; due 12_500
    12_500 woken → fetch
    12_500 fetched k1
    300_000 woken → fetch
    300_000 fails; due 305_000

  answers waiting lookups as unavailable [started]
    10 ask k1
    100 fails → k1: unavailable
`;

describe('early refreshes without news', () => {
  type Fruitless = (driven: Machine, nowMs: number, jitter: number) => void;
  const resultsWithoutNews: Readonly<Record<string, Fruitless>> = {
    'the same key set': (driven, nowMs, jitter) => driven.fetched(nowMs, keySet('k1'), jitter),
    'status 304': (driven, nowMs, jitter) =>
      driven.send({ kind: 'notModified', fetch: driven.state().fetch, jitter }, nowMs),
    'a failure': (driven, nowMs, jitter) => driven.failed(nowMs, jitter),
  };

  /** Unknown kids trigger earlyFetchesWithoutNews early refreshes, each as soon as it is allowed. Returns the end of the last one. */
  function flood(driven: Machine, refreshes: number, jitter = 1, end = resultsWithoutNews['the same key set']): number {
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
    expect(effectsOf(driven.ask(flood(driven, 3) + 6_000, 'next'))).to.deep.equal(['next: unknown']);
    const failing = loaded();
    expect(effectsOf(failing.ask(flood(failing, 3, 1, resultsWithoutNews['a failure']) + 6_000, 'next'))).to.deep.equal(
      ['next: unavailable'],
    );
  });

  const changes: readonly (readonly [name: string, before: Keys, after: Keys])[] = [
    ['an added key', keySet('k1'), keySet('k1', 'k2')],
    ['a removed key', keySet('k0', 'k1'), keySet('k1')],
    ['a replaced key', keySet('k1'), keySet('k2')],
    ['a replaced key next to an unchanged one', keySet('k0', 'k1'), keySet('k0', 'k2')],
    ['another key under the same kid', keySet('k1'), keySetOf(['k1', 'other'])],
  ];
  for (const [name, before, after] of changes) {
    it(`restart the backoff once one returns ${name}`, () => {
      const driven = started();
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
      const driven = started();
      driven.failed(100);
      const endMs = flood(driven, 3, 1, resultsWithoutNews[result]);
      expect(driven.state().earlyNotBeforeMs).to.equal(endMs + 20_000);
      driven.wake(endMs + 15_000);
      driven.fetched(endMs + 15_100, keySet('k1'), 1);
      expect(driven.state()).to.include({ earlyFetchesWithoutNews: 0, earlyNotBeforeMs: endMs + 20_100 });
    });
  }

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

  it('K-002 do not delay the retries without a usable key set', () => {
    const driven = started();
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
});
