// The long form of the fuzzing of one target: changes what is known, keeps what does something new, and boils down what breaks.
import { type Coverage, startCoverage } from './coverage.ts';
import { createRandom, mutate, pick } from './mutator.ts';
import type { FuzzTarget } from './targets.ts';

export interface CampaignEvents {
  /** Before each run: whoever watches from outside then knows what hangs. */
  onRun(input: Buffer): void;
  /** An input that ran a block that none ran before, or came to an outcome that none came to. */
  onNew(input: Buffer): void;
  /** Each way to break once, as small as it would get. */
  onBroken(input: Buffer, problem: string): void;
}

export interface CampaignReport {
  readonly runs: number;
  /** Inputs that the mutations start from. */
  readonly corpus: number;
  /** Blocks and outcomes that were seen. */
  readonly reached: number;
  readonly outcomes: ReadonlyMap<string, number>;
  readonly broken: number;
}

export interface Campaign {
  /** Goes on for this long. */
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

  // A look takes longer than many runs: one for a whole batch, and only where that did something new, one for each of its inputs.
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
    // What ran once and not again, such as the making of a cache.
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
