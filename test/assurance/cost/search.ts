// Searches the most expensive input of a target: starts from the known patterns, mutates the best, keeps what costs more processor time.
import { createRandom, mutate, pick } from '../fuzz/mutator.ts';
import type { CostTarget } from './cost-target.ts';
import { microsecondsOf } from './measure.ts';
import { isRepeated, type Pattern, repeated, shortened, toInput, unrepeated } from './pattern.ts';

export interface Costed {
  readonly pattern: Pattern;
  readonly microseconds: number;
}

export interface SearchReport {
  readonly runs: number;
  /** Measured again, the most expensive first; never empty. */
  readonly dearest: readonly [Costed, ...Costed[]];
  /** The highest growth exponent: 1 is linear, 2 is quadratic. */
  readonly growth: { readonly exponent: number; readonly pattern: Pattern } | undefined;
}

export interface Search {
  advance(milliseconds: number): Promise<SearchReport>;
}

const populationSize = 8;
const maxPumpBytes = 64;
/** Below it overhead dominates the exponent. */
const growthFloorMicroseconds = 100;

export async function costOf(target: CostTarget, pattern: Pattern, attempts: number): Promise<number> {
  return microsecondsOf(target.load(toInput(pattern)), attempts);
}

/** The growth exponent of the time when the input is doubled; doubles twice and takes the lower exponent, which tells a step from a curve. */
export async function growthOf(target: CostTarget, pattern: Pattern): Promise<number | undefined> {
  if (!isRepeated(pattern)) return undefined;
  const [whole, half, quarter] = [
    await costOf(target, pattern, 7),
    await costOf(target, shortened(pattern, 2), 7),
    await costOf(target, shortened(pattern, 4), 7),
  ];
  return whole < growthFloorMicroseconds ? undefined : Math.min(Math.log2(whole / half), Math.log2(half / quarter));
}

export function startSearch(target: CostTarget, seed: number): Search {
  const random = createRandom(seed);
  const waiting: Pattern[] = [
    ...target.known,
    // The second is the form that fails late: a run that a reader scans again from each of its characters.
    ...target.fragments.flatMap(pump => ['', '!'].map(tail => repeated(pump, target.maxBytes, Buffer.from(tail)))),
  ];
  const population: Costed[] = [];
  let runs = 0;

  async function consider(pattern: Pattern): Promise<void> {
    runs += 1;
    const cheapest = population.length < populationSize ? 0 : (population.at(-1)?.microseconds ?? 0);
    if ((await costOf(target, pattern, 2)) <= cheapest) return;
    const microseconds = await costOf(target, pattern, 5);
    if (microseconds <= cheapest) return;
    population.push({ pattern, microseconds });
    population.sort((one, other) => other.microseconds - one.microseconds);
    population.splice(populationSize);
  }

  function changed(part: Buffer): Buffer {
    const { fragments, shapes } = target;
    return mutate(part, random, { corpus: fragments, dictionary: fragments, maxBytes: maxPumpBytes, shapes });
  }

  function next(): Pattern {
    const { pattern } = pick(population, random);
    switch (random(8)) {
      case 0:
        return { ...pattern, head: changed(pattern.head) };
      case 1:
        return { ...pattern, tail: changed(pattern.tail) };
      case 2:
        return { ...pattern, pump: pick(target.fragments, random) };
      case 3:
        return { ...pattern, pump: Buffer.concat([pick(target.fragments, random), pick(target.fragments, random)]) };
      case 4:
        return { ...pattern, bytes: lengths[random(lengths.length)] ?? target.maxBytes };
      case 5: {
        const { fragments, shapes, maxBytes } = target;
        return unrepeated(
          mutate(toInput(pattern), random, { corpus: fragments, dictionary: fragments, maxBytes, shapes }),
        );
      }
      default:
        return { ...pattern, pump: changed(pattern.pump) };
    }
  }

  const lengths = [1, 2, 4, 8, 16, 32, 64].map(divisor => Math.floor(target.maxBytes / divisor));

  async function report(): Promise<SearchReport> {
    const again: Costed[] = [];
    for (const { pattern } of population.slice(0, 3)) {
      again.push({ pattern, microseconds: await costOf(target, pattern, 12) });
    }
    const [first, ...others] = again.sort((one, other) => other.microseconds - one.microseconds);
    if (first === undefined) throw new Error('nothing was measured');
    return { runs, dearest: [first, ...others], growth: await greatestGrowth() };
  }

  async function greatestGrowth(): Promise<SearchReport['growth']> {
    let greatest: SearchReport['growth'];
    for (const { pattern } of population) {
      const exponent = await growthOf(target, pattern);
      if (exponent !== undefined && exponent > (greatest?.exponent ?? 0)) greatest = { exponent, pattern };
    }
    return greatest;
  }

  return {
    async advance(milliseconds) {
      const end = performance.now() + milliseconds;
      for (const pattern of waiting.splice(0)) await consider(pattern);
      while (performance.now() < end) await consider(next());
      return report();
    },
  };
}
