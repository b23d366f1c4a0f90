// The state machine of a key set: each event in each phase. test/assurance/key-states holds its invariants over sequences of events.
import { describeTraces } from './key-set-trace.ts';

describe('key set state', () => {
  describeTraces('start')`
    starts a fetch at once [new]
      7 started → fetch; due never

    has no effect the second time
      50_000 started

    is required: a lookup before it is unavailable [new]
      0 ask k1 → k1: unavailable

    K-002 lets a lookup wait for the first fetch, which answers it [started]
      10 ask k1
      100 fetched k1 → k1: known

    uses a seed until its age reaches maxAge [new]
      0 seed 3_000_000 k1; uses k1
      599_999 look; uses k1
      600_000 look; uses

    refuses a seed as old as maxAge, which status 304 cannot confirm either [new]
      0 seed 3_600_000 k1; uses
      1 started → fetch
      2 unmodified; failed, uses

    refuses a seed from the future, and one of an age that is not a number [new]
      0 seed -1 k1; uses
      0 seed NaN k1; uses

    refuses a seed once a fetch has started [started]
      1 seed 1 old; uses

    looks for a kid known absent before a failed refresh at the end of the cooldown
      6_000 ask k2 → fetch
      6_100 fetched k1 → k2: unknown
      306_000 woken → fetch
      306_100 fails jitter=1; due 316_100
      306_101 ask k2 → k2: unavailable; due 311_100
  `;

  describeTraces('successful fetch')`
    K-001 makes its keys usable
      100 look; uses k1

    sets the age of the key set from the start of the fetch
      3_599_999 look; uses k1
      3_600_000 look; uses

    K-057 replaces the whole key set: a removed key is unusable at once
      300_000 woken → fetch
      300_100 fetched k2; uses k2

    is followed by the next one after four fifths of the refresh interval, and more with jitter
      239_999 woken
      240_000 woken → fetch
      240_000 fetched k1 jitter=0.5; due 510_000
      510_000 woken → fetch
      510_000 fetched k1 jitter=0.75; due 795_000

    is followed by the next one before the key set reaches maxAge [started maxAgeMs=300_000]
      100 fetched k1 jitter=0.999; due 240_000

    is followed by the next one no sooner than the cooldown after its end [started refreshMs=5_000]
      4_000 fetched k1; due 9_000

    with status 304 renews the age of the key set
      300_000 woken → fetch
      300_100 unmodified
      3_899_999 look; uses k1
      3_900_000 look; uses

    with status 304 is a failure if the key set is stale
      3_700_000 woken → fetch
      3_700_100 unmodified; failed, uses

    with status 304 is a failure if there is no key set [started]
      100 unmodified; failed, uses
  `;

  describeTraces('unknown kid')`
    K-006 triggers one early refresh after the cooldown and waits for it
      5_100 ask k2 → fetch
      5_200 fetched k1 k2 → k2: known

    shares the refresh in flight with other unknown kids
      5_100 ask k2 → fetch
      5_110 ask k3
      5_120 ask k2
      5_200 fetched k1 k2 → k2: known, k3: unknown

    K-009 within the cooldown after a success is unknown at once, and triggers a fetch at its end without another lookup
      200 ask k2 → k2: unknown; due 5_100
      5_099 ask k2 → k2: unknown
      5_100 woken → fetch

    known absent from the last fetch triggers the next one only after the cooldown
      5_100 ask nobody → fetch
      5_200 fetched k1 → nobody: unknown; due 245_100
      5_300 ask nobody → nobody: unknown; due 245_100
      10_200 ask nobody → fetch

    requested during a fetch that lacks it triggers another fetch
      5_100 ask k2 → fetch
      5_150 ask k3
      5_200 fetched k1 → k2: unknown, k3: unknown; due 10_200

    K-010 is unavailable within the cooldown after a failure, known kids stay usable
      300_000 woken → fetch
      300_100 fails
      300_200 ask k2 → k2: unavailable
      300_200 ask k1 → k1: known

    K-010 triggers a fetch during an outage after the cooldown, before the backoff ends
      300_000 woken → fetch
      300_100 fails
      310_100 woken → fetch
      310_200 fails
      315_199 ask k2 → k2: unavailable
      315_200 ask k2 → fetch

    K-006 of a rotation without overlap is found at the end of the cooldown
      200 ask k2 → k2: unknown
      5_100 woken → fetch
      5_150 fetched k2
      5_151 ask k2 → k2: known
      5_151 ask k1 → k1: unknown

    is answered like a known kid of an expired key set: unavailable, with a fetch
      300_000 woken → fetch
      300_100 fails
      3_600_000 ask k1 → fetch
      3_600_010 fails → k1: unavailable
      3_600_020 ask k1 → k1: unavailable
  `;

  describeTraces('changed source')`
    is fetched at once outside the cooldown
      5_100 changed → fetch

    is fetched at the end of a running cooldown
      5_099 changed; due 5_100

    has no effect before the start [new]
      0 changed

    is fetched again after a fetch in flight, whether it succeeds or fails
      300_000 woken → fetch
      300_050 changed
      300_100 fetched k1; due 305_100
      305_100 woken → fetch
      305_150 changed
      305_200 fails jitter=1; due 310_200
  `;

  describeTraces('stop')`
    K-054 aborts the fetch in flight and answers waiting lookups
      5_100 ask k2 → fetch
      5_110 stopped → abort, k2: unavailable; due never

    leaves known keys usable and every other kid unavailable
      200 stopped
      201 ask k1 → k1: known
      201 ask k2 → k2: unavailable
      900_000 woken
  `;
});
