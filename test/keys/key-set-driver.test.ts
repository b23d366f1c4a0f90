// When the driver of a key set wakes its state machine.
import { expect } from 'chai';
import { createKeySetDriver } from '../../src/keys/key-set-driver.ts';
import { fixedLimits } from '../../src/keys/key-set-state.ts';

const limits = { ...fixedLimits, refreshMs: 300_000, maxAgeMs: 3_600_000, cooldownMs: 5000 };

describe('driver of a key set', () => {
  it('wakes nothing before a fetch is due', async () => {
    let steps = 0;
    const countedNow = (): number => {
      steps += 1;
      return 0;
    };
    const driver = createKeySetDriver(limits, countedNow, async () => undefined);
    driver.step({ kind: 'started' });
    driver.step({ kind: 'fetched', keys: new Map(), fetch: 1, jitter: 0 });
    for (let turns = 0; turns < 20; turns += 1) await new Promise(resolve => setTimeout(resolve, 1));
    expect(steps).to.equal(2);
    driver.step({ kind: 'stopped' });
  });
});
