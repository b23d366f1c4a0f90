// The clock of key ages: the larger advance of the monotonic clock and of the uptime.
import { expect } from 'chai';
import { createAgeClock } from '../../src/http/age-clock.ts';

describe('age clock', () => {
  function clock() {
    const at = { monotonicMs: 50_000, uptimeSeconds: 7_000, looks: 0 };
    const now = createAgeClock(
      () => at.monotonicMs,
      () => {
        at.looks += 1;
        return at.uptimeSeconds;
      },
    );
    const startMs = now();
    return { at, advance: () => now() - startMs };
  }

  it('advances with the monotonic clock while the machine runs', () => {
    const { at, advance } = clock();
    at.monotonicMs += 90_000;
    at.uptimeSeconds += 90;
    expect(advance()).to.equal(90_000);
  });

  it('counts the time for which the machine was suspended', () => {
    const { at, advance } = clock();
    at.monotonicMs += 200;
    at.uptimeSeconds += 4_000;
    expect(advance()).to.equal(4_000_000);
    at.monotonicMs += 1_000;
    at.uptimeSeconds += 1;
    expect(advance()).to.equal(4_001_000);
  });

  it('never goes back, whatever the uptime says', () => {
    const { at, advance } = clock();
    at.monotonicMs += 1_000;
    at.uptimeSeconds -= 6_000;
    expect(advance()).to.equal(1_000);
    at.uptimeSeconds += 10_000;
    at.monotonicMs += 1_000;
    expect(advance()).to.equal(4_000_000);
    at.uptimeSeconds -= 4_000;
    at.monotonicMs += 1_000;
    expect(advance()).to.equal(4_001_000);
  });

  it('looks at the uptime at most ten times a second', () => {
    const { at, advance } = clock();
    const { looks } = at;
    for (let i = 0; i < 1_000; i += 1) {
      at.monotonicMs += 1;
      advance();
    }
    expect(at.looks - looks).to.equal(10);
  });
});
