// The servers of a bench while it runs: started when first needed, checked, warmed, and stopped together.
import { type CallsForm, measureCalls } from './calls.ts';
import type { Contender, RunningContender } from './contender.ts';
import type { BenchLab } from './lab.ts';
import { type PreflightCase, preflight } from './preflight.ts';

export interface Stable {
  /** The process of a contender that has served before, or a fresh one. */
  standing(contender: Contender): Promise<RunningContender>;
  /** A new process, checked, and warmed with a known token where its own have to be new. */
  fresh(contender: Contender): Promise<RunningContender>;
  /** With a standing process, or with a fresh one that is stopped afterwards, as the contender wants it. */
  lend<Value>(contender: Contender, use: (running: RunningContender) => Promise<Value>): Promise<Value>;
  stop(): Promise<void>;
}

export interface StableOptions {
  readonly cases: readonly PreflightCase[];
  readonly allow: Buffer;
  readonly account: string;
  readonly warm: CallsForm;
}

export function createStable(lab: BenchLab, { cases, allow, account, warm }: StableOptions): Stable {
  const kept = new Map<string, RunningContender>();

  async function fresh(contender: Contender): Promise<RunningContender> {
    const running = await contender.start();
    try {
      await preflight(contender, running, cases, allow, account);
      await measureCalls(lab, running, contender.startsAnew ? 'known' : contender.set, warm);
      return running;
    } catch (error) {
      await running.stop();
      throw error;
    }
  }

  async function standing(contender: Contender): Promise<RunningContender> {
    const known = kept.get(contender.name);
    if (known !== undefined) return known;
    const running = await fresh(contender);
    kept.set(contender.name, running);
    return running;
  }

  return {
    fresh,
    standing,
    async lend(contender, use) {
      if (!contender.startsAnew) return use(await standing(contender));
      const running = await fresh(contender);
      try {
        await lab.load.rewind(contender.set);
        return await use(running);
      } finally {
        await running.stop();
      }
    },
    async stop() {
      await Promise.all(Array.from(kept.values(), running => running.stop()));
      kept.clear();
    },
  };
}
