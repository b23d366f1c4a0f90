// The long form of the fuzzing of one target: changes what is known, keeps what does something new, and boils down what breaks.
import { type Coverage, startCoverage } from './coverage.ts';
import { createRandom, mutate, pick } from './mutator.ts';
import type { FuzzTarget } from './targets.ts';

export interface CampaignEvents {
  /** Before each run: whoever watches from outside then knows what hangs. */
  onRun(input: Buffer): void;
  /** An input that went where none went before. */
  onNew(input: Buffer): void;
  /** Each way to break once, as small as it would get. */
  onBroken(input: Buffer, problem: string): void;
}

export interface CampaignReport {
  readonly runs: number;
  /** Inputs that the mutations start from. */
  readonly corpus: number;
  readonly blocks: number;
  readonly outcomes: ReadonlyMap<string, number>;
  readonly broken: number;
}

export interface Campaign {
  /** Goes on for this long. */
  advance(milliseconds: number): Promise<CampaignReport>;
  stop(): void;
}

const minimisingRuns = 400;

export function startCampaign(
  target: FuzzTarget,
  options: { readonly seed: number; readonly kept: readonly Buffer[]; readonly events: CampaignEvents },
): Campaign {
  const { events } = options;
  const random = createRandom(options.seed);
  const coverage: Coverage = startCoverage();
  const start = [...target.seeds, ...options.kept];
  const corpus: Buffer[] = [];
  const outcomes = new Map<string, number>();
  const problems = new Set<string>();
  let runs = 0;

  async function problemOf(input: Buffer): Promise<string | undefined> {
    events.onRun(input);
    runs += 1;
    try {
      const outcome = await target.run(input);
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      return undefined;
    } catch (error) {
      return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    }
  }

  async function minimised(input: Buffer, problem: string): Promise<Buffer> {
    let smallest = input;
    let left = minimisingRuns;
    for (let size = Math.ceil(input.length / 2); size >= 1; size = Math.floor(size / 2)) {
      for (let at = 0; at < smallest.length && left > 0; left -= 1) {
        const shorter = Buffer.concat([smallest.subarray(0, at), smallest.subarray(at + size)]);
        if ((await problemOf(shorter)) === problem) smallest = shorter;
        else at += size;
      }
    }
    return smallest;
  }

  async function judge(input: Buffer, isGiven: boolean): Promise<void> {
    const problem = await problemOf(input);
    if (problem !== undefined && !problems.has(problem)) {
      problems.add(problem);
      events.onBroken(await minimised(input, problem), problem);
    }
    const isNew = coverage.isNew();
    if (!isNew && !isGiven) return;
    corpus.push(input);
    if (!isGiven) events.onNew(input);
  }

  return {
    async advance(milliseconds) {
      const end = performance.now() + milliseconds;
      for (let input = start.shift(); input !== undefined; input = start.shift()) await judge(input, true);
      while (performance.now() < end) {
        const material = { corpus, dictionary: target.dictionary, maxBytes: target.maxBytes };
        await judge(mutate(pick(corpus, random), random, material), false);
      }
      return { runs, corpus: corpus.length, blocks: coverage.size(), outcomes, broken: problems.size };
    },
    stop: () => coverage.stop(),
  };
}
