// Runs a scenario for a fleet, and counts the fetches at the authentication service and the verdicts on good tokens.
import { type Environment, type InstanceObserver, runInstance, type Verdict } from './instance.ts';
import { createRandom, type Random } from './random.ts';

export interface Scenario extends Environment {
  readonly name: string;
  readonly what: string;
  /** When instance number `index` of this many starts. */
  startMs(index: number, instances: number, random: Random): number;
  /** Usable keys are published from then on. The time to usable counts from here or from the start of the instance; infinite: always. */
  readonly usableFromMs: number;
  /** Good tokens that arrive from 0 to here count. */
  readonly goodUntilMs: number;
  readonly bars: readonly Bar[];
}

export interface Bar {
  readonly text: string;
  isMet(outcome: Outcome): boolean;
}

export interface Outcome {
  readonly instances: number;
  /** Fetches of the whole fleet in a second from 0 on. */
  readonly mean: number;
  readonly peak: number;
  /** The mean from the second minute on. */
  readonly afterFirstMinute: number;
  readonly good: Readonly<Record<Verdict, number>>;
  /** The time within which this share of the instances allowed good tokens; infinite if not all of them did. */
  usableSeconds(share: number): number;
}

export function runFleet(
  scenario: Scenario,
  { instances, seed }: { readonly instances: number; readonly seed: number },
): Outcome {
  const random = createRandom(seed);
  const fetches = Array.from({ length: Math.ceil(scenario.endMs / 1000) }, () => 0);
  const good = { allowed: 0, invalid: 0, unavailable: 0 };
  const usableMs: number[] = [];
  for (let index = 0; index < instances; index += 1) {
    const startMs = scenario.startMs(index, instances, random);
    let usable: number | undefined;
    const observer: InstanceObserver = {
      fetch(ms) {
        const at = Math.floor(ms / 1000);
        if (at >= 0 && at < fetches.length) fetches[at] = (fetches[at] ?? 0) + 1;
      },
      good(ms, verdict) {
        if (ms >= 0 && ms < scenario.goodUntilMs) good[verdict] += 1;
      },
      usable(ms) {
        if (ms >= scenario.usableFromMs) usable ??= ms - Math.max(scenario.usableFromMs, startMs);
      },
    };
    runInstance(scenario, startMs, random, observer);
    usableMs.push(usable ?? Number.POSITIVE_INFINITY);
  }
  usableMs.sort((one, other) => one - other);
  return {
    instances,
    mean: meanOf(fetches),
    peak: Math.max(...fetches),
    afterFirstMinute: meanOf(fetches.slice(60)),
    good,
    usableSeconds: share => (usableMs[Math.ceil(share * usableMs.length) - 1] ?? Number.POSITIVE_INFINITY) / 1000,
  };
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
