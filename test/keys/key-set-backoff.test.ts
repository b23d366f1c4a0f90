// How the fetches of a key set back off: retries after failures, and early refreshes while unknown kids keep coming and bring nothing new.
import { expect } from 'chai';
import type { Keys } from '../../src/keys/key-set-machine.ts';
import { describeTraces, fetches, keySet, keySetOf, loaded, type Machine, started, trace } from './key-set-trace.ts';

describe('failed fetches in a row', () => {
  /** In seconds, after each of sixty failures with this jitter. */
  function backoffs(driven: Machine, startMs: number, jitter: number): readonly number[] {
    let now = startMs;
    const waits = Array.from({ length: 60 }, () => {
      driven.failed(now, jitter);
      const backoffMs = (driven.wakeAt() ?? 0) - now;
      now += backoffMs;
      driven.wake(now);
      return backoffMs / 1000;
    });
    return [...waits.slice(0, 6), ...waits.slice(-1)];
  }

  it('back off longer and longer, to refreshSeconds or four fifths of it, with a usable key set', () => {
    const usable = () => trace(loaded({ maxAgeMs: 100_000_000 }), '300_000 woken → fetch');
    expect(backoffs(usable(), 300_000, 0)).to.deep.equal([5, 10, 20, 40, 80, 160, 240]);
    expect(backoffs(usable(), 300_000, 1)).to.deep.equal([10, 20, 40, 80, 160, 300, 300]);
  });

  it('K-002 back off at most 15 s without a usable key set', () => {
    const stale = () => trace(loaded(), '4_000_000 woken → fetch');
    for (const [driven, startMs] of [[started, 0] as const, [stale, 4e6] as const]) {
      expect(backoffs(driven(), startMs, 0)).to.deep.equal([5, 10, ...Array(5).fill(12)]);
      expect(backoffs(driven(), startMs, 1)).to.deep.equal([10, ...Array(6).fill(15)]);
    }
  });
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
    5_000 fails; due 15_000
    15_000 woken → fetch
    15_000 fetched k1
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

  /** Unknown kids trigger so many early refreshes, each as soon as it is allowed, and none sooner. Returns when the last one ended, and the waits in seconds. */
  function flood(driven: Machine, refreshes: number, jitter = 1, end = resultsWithoutNews['the same key set']) {
    let [now, endMs] = [6_000, 0];
    const waits = Array.from({ length: refreshes }, (_, i) => {
      if (i > 0) expect(fetches(driven.ask(now - 1, `unknown ${i}`))).to.equal(0);
      expect(fetches(driven.ask(now, `unknown ${i}`))).to.equal(1);
      endMs = now + 100;
      end?.(driven, endMs, jitter);
      now = driven.state().earlyNotBeforeMs;
      return (now - endMs) / 1000;
    });
    return { endMs, waits };
  }

  it('K-009 back off longer and longer, to a minute', () => {
    for (const [jitter, first] of [
      [0, [5, 5, 10, 20, 40, 48]],
      [1, [5, 10, 20, 40, 60, 60]],
    ] as const) {
      const { waits } = flood(loaded({ maxAgeMs: 100_000_000, refreshMs: 100_000_000 }), 60, jitter);
      expect(waits.slice(0, 6)).to.deep.equal(first);
      expect(new Set(waits.slice(5)).size).to.equal(1);
    }
  });

  for (const [name, end] of Object.entries(resultsWithoutNews)) {
    it(`K-009 K-010 back off if each ends with ${name}, with a usable key set and without`, () => {
      expect(flood(loaded({ maxAgeMs: 100_000_000 }), 4, 1, end).waits).to.deep.equal([5, 10, 20, 40]);
      if (name === 'the same key set') return;
      const driven = started();
      driven.failed(100);
      const { endMs, waits } = flood(driven, 3, 1, end);
      expect(waits).to.deep.equal([5, 10, 20]);
      driven.wake(endMs + 15_000);
      driven.fetched(endMs + 15_100, keySet('k1'), 1);
      expect(driven.state()).to.include({ earlyFetchesWithoutNews: 0, earlyNotBeforeMs: endMs + 20_100 });
    });
  }

  it('K-009 during the backoff a kid is unknown after a success, unavailable after a failure', () => {
    const driven = loaded();
    expect(driven.ask(flood(driven, 3).endMs + 6_000, 'next')).to.deep.equal(['next: unknown']);
    const failing = loaded();
    const { endMs } = flood(failing, 3, 1, resultsWithoutNews['a failure']);
    expect(failing.ask(endMs + 6_000, 'next')).to.deep.equal(['next: unavailable']);
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
      const { endMs } = flood(driven, 4, 1, (each, nowMs, jitter) => each.fetched(nowMs, before, jitter));
      driven.ask(endMs + 40_000, 'last');
      driven.fetched(endMs + 40_100, after, 1);
      expect(driven.state().earlyFetchesWithoutNews).to.equal(0);
      expect(fetches(driven.ask(endMs + 45_099, 'next'))).to.equal(0);
      expect(fetches(driven.ask(endMs + 45_100, 'next'))).to.equal(1);
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
      const { endMs } = flood(driven, 5);
      driven.ask(endMs, 'unknown 5');
      driven.ask(endMs + 300_000, 'k1');
      driven.ask(endMs + quietMs, 'next');
      driven.fetched(endMs + quietMs + 100, keySet('k1'), 1);
      expect(driven.state().earlyNotBeforeMs - (endMs + quietMs + 100)).to.equal(expectedMs);
    }
  });

  it('do not move background refreshes, which do not change the backoff', () => {
    const driven = loaded({ refreshMs: 10_000 });
    const { endMs } = flood(driven, 5);
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
