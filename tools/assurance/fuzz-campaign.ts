// The long form of fuzzing one target: mutates known inputs, keeps those with new behaviour, and minimizes failures.
import { createRandom, mutate, pick } from '../../test/assurance/fuzz/mutator.ts';
import type { FuzzTarget } from '../../test/assurance/fuzz/target.ts';
import { type Coverage, startCoverage } from './fuzz-coverage.ts';

export interface CampaignEvents {
  /** Called before each run, so that an observer knows the input of a hang. */
  onRun(input: Buffer): void;
  /** An input with a new block or a new outcome. */
  onNew(input: Buffer): void;
  /** Each failure once, minimized. */
  onBroken(input: Buffer, problem: string): void;
}

export interface CampaignReport {
  readonly runs: number;
  /** The seeds of the mutations. */
  readonly corpus: number;
  /** All blocks and outcomes so far. */
  readonly reached: number;
  readonly outcomes: ReadonlyMap<string, number>;
  readonly broken: number;
}

export interface Campaign {
  /** Runs for this long. */
  advance(milliseconds: number): Promise<CampaignReport>;
  stop(): void;
}

const minimisingRuns = 400;
const batchSize = 50;

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
  /** Blocks and outcomes. */
  const seen = new Set<string>();
  let runs = 0;

  async function runOnce(input: Buffer): Promise<{ outcome: string; problem: string | undefined }> {
    events.onRun(input);
    runs += 1;
    try {
      const outcome = await target.run(input);
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      return { outcome, problem: undefined };
    } catch (error) {
      return { outcome: 'broken', problem: error instanceof Error ? `${error.name}: ${error.message}` : String(error) };
    }
  }

  async function minimised(input: Buffer, problem: string): Promise<Buffer> {
    let smallest = input;
    let left = minimisingRuns;
    for (let size = Math.ceil(input.length / 2); size >= 1; size = Math.floor(size / 2)) {
      for (let at = 0; at < smallest.length && left > 0; left -= 1) {
        const shorter = Buffer.concat([smallest.subarray(0, at), smallest.subarray(at + size)]);
        if ((await runOnce(shorter)).problem === problem) smallest = shorter;
        else at += size;
      }
    }
    return smallest;
  }

  async function judge(input: Buffer): Promise<void> {
    const { problem } = await runOnce(input);
    if (problem === undefined || problems.has(problem)) return;
    problems.add(problem);
    events.onBroken(await minimised(input, problem), problem);
  }

  // Reading coverage is slower than many runs: read once per batch, and for each input only if the batch covered something new.
  async function runBatch(inputs: readonly Buffer[]): Promise<void> {
    for (const input of inputs) await judge(input);
    const ran = [...coverage.look(), ...outcomes.keys()];
    const unseen = new Set(ran.filter(each => !seen.has(each)));
    for (const input of unseen.size === 0 ? [] : inputs) {
      const { outcome } = await runOnce(input);
      const found = [...coverage.look(), outcome].filter(each => unseen.delete(each));
      if (found.length === 0) continue;
      for (const each of found) seen.add(each);
      corpus.push(input);
      events.onNew(input);
    }
    // Code that runs only once, for example the creation of a cache.
    for (const each of unseen) seen.add(each);
  }

  async function begin(): Promise<void> {
    for (const input of start.splice(0)) {
      await judge(input);
      corpus.push(input);
    }
    for (const each of [...coverage.look(), ...outcomes.keys()]) seen.add(each);
  }

  return {
    async advance(milliseconds) {
      const end = performance.now() + milliseconds;
      await begin();
      while (performance.now() < end) {
        const material = { ...target, corpus };
        await runBatch(Array.from({ length: batchSize }, () => mutate(pick(corpus, random), random, material)));
      }
      return { runs, corpus: corpus.length, reached: seen.size, outcomes, broken: problems.size };
    },
    stop: () => coverage.stop(),
  };
}
