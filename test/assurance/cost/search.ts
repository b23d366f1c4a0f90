// Searches the most expensive input of a target: starts from the known patterns, mutates the best, keeps what costs more processor time.
import { createRandom, mutate, pick } from '../fuzz/mutator.ts';
import type { CostTarget } from './cost-target.ts';
import { microsecondsOf, microsecondsOfEach } from './measure.ts';
import { isRepeated, type Pattern, repeated, shortened, toInput, unrepeated } from './pattern.ts';

export interface Costed {
  readonly pattern: Pattern;
  readonly microseconds: number;
}

export interface Found {
  readonly runs: number;
  /** The most expensive first; never empty. */
  readonly population: readonly Costed[];
}

export interface SearchReport {
  /** Measured again, the most expensive first; never empty. */
  readonly dearest: readonly [Costed, ...Costed[]];
  /** The highest growth exponent: 1 is linear, 2 is quadratic. */
  readonly growth: { readonly exponent: number; readonly pattern: Pattern } | undefined;
}

const populationSize = 8;
const maxPumpBytes = 64;
/** Below it overhead dominates the exponent. */
const growthFloorMicroseconds = 100;

export async function costOf(target: CostTarget, pattern: Pattern, attempts: number): Promise<number> {
  return microsecondsOf(target.load(toInput(pattern)), attempts);
}

/** Microseconds of the whole input, and of the input shortened by the factor once and twice. */
export async function costsByLength(
  target: CostTarget,
  whole: Pattern,
  factor: number,
): Promise<readonly [whole: number, once: number, twice: number]> {
  const inputs = [whole, shortened(whole, factor), shortened(whole, factor ** 2)];
  const [most = 0, middle = 0, least = 0] = await microsecondsOfEach(
    inputs.map(input => target.load(toInput(input))),
    7,
  );
  return [most, middle, least];
}

/** The growth exponent of the time when the input is doubled; doubles twice and takes the lower exponent, which tells a step from a curve. */
export async function growthOf(target: CostTarget, pattern: Pattern): Promise<number | undefined> {
  if (!isRepeated(pattern)) return undefined;
  const [whole, half, quarter] = await costsByLength(target, pattern, 2);
  return whole < growthFloorMicroseconds ? undefined : Math.min(Math.log2(whole / half), Math.log2(half / quarter));
}

export async function search(target: CostTarget, seed: number, milliseconds: number): Promise<Found> {
  const random = createRandom(seed);
  const lengths = [1, 2, 4, 8, 16, 32, 64].map(divisor => Math.floor(target.maxBytes / divisor));
  const population: Costed[] = [];
  let runs = 0;

  async function consider(pattern: Pattern): Promise<void> {
    runs += 1;
    const microseconds = await costOf(target, pattern, 3);
    if (population.length === populationSize && microseconds <= (population.at(-1)?.microseconds ?? 0)) return;
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

  const end = performance.now() + milliseconds;
  for (const pattern of target.known) await consider(pattern);
  // The second is the form that fails late: a run that a reader scans again from each of its characters.
  for (const pump of target.fragments)
    for (const tail of ['', '!']) await consider(repeated(pump, target.maxBytes, Buffer.from(tail)));
  while (performance.now() < end) await consider(next());
  return { runs, population };
}

export async function reportOf(target: CostTarget, { population }: Found): Promise<SearchReport> {
  const again: Costed[] = [];
  for (const { pattern } of population.slice(0, 3)) {
    again.push({ pattern, microseconds: await costOf(target, pattern, 12) });
  }
  const [first, ...others] = again.sort((one, other) => other.microseconds - one.microseconds);
  if (first === undefined) throw new Error('nothing was measured');
  let growth: SearchReport['growth'];
  for (const { pattern } of population) {
    const exponent = await growthOf(target, pattern);
    if (exponent !== undefined && exponent > (growth?.exponent ?? 0)) growth = { exponent, pattern };
  }
  return { dearest: [first, ...others], growth };
}
