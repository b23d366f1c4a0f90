// The state machine of a key set on long random sequences of events.
// FAST_CHECK_RUNS sets the number of runs, FAST_CHECK_SEED repeats the run of a seed that a failure printed.
import fc from 'fast-check';
import { type KeySetLimits, reduce } from '../../../src/keys/key-set-machine.ts';
import { afterStep, checkRecovery } from './transitions.ts';
import { firstWorld, stepsOf } from './world.ts';

const limits: KeySetLimits = {
  refreshMs: 3_000,
  maxAgeMs: 8_000,
  cooldownMs: 500,
  maxRetryMs: 1_200,
  maxEarlyMs: 2_000,
  quietMs: 20_000,
  maxUnknownKids: 1,
};

describe('sixty random events around the limits of a key set', function () {
  this.timeout(600_000);

  it('K-009 K-010 K-011 K-053 keep every invariant, and the key set recovers afterwards', () => {
    const seed = process.env.FAST_CHECK_SEED;
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 60, size: 'max' }), choices => {
        let world = firstWorld(limits);
        for (const choice of choices) {
          const steps = stepsOf(world).filter(({ kind }) => kind !== 'stopped');
          const step = steps[choice % steps.length];
          if (step !== undefined) world = afterStep(world, step, reduce);
        }
        checkRecovery(world, reduce);
        afterStep(world, { kind: 'stopped' }, reduce);
      }),
      { numRuns: Number(process.env.FAST_CHECK_RUNS ?? 1_000), ...(seed === undefined ? {} : { seed: Number(seed) }) },
    );
  });
});
