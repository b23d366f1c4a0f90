// The servers of a bench while it runs: started when first needed, checked, warmed, and stopped together.
import { type CallsForm, measureCalls } from './calls.ts';
import type { Contender, RunningContender, SetName } from './contender.ts';
import type { BenchLab } from './lab.ts';
import { type PreflightCase, preflight } from './preflight.ts';

export interface Stable {
  /** A process that may have served before. */
  standing(contender: Contender): Promise<RunningContender>;
  /** A new process, warmed with a token that is not among those of the contender's own set where these must be new. */
  fresh(contender: Contender): Promise<RunningContender>;
  stop(): Promise<void>;
}

export interface StableOptions {
  readonly cases: readonly PreflightCase[];
  readonly allow: Buffer;
  readonly account: string;
  readonly warm: CallsForm;
}

export function createStable(lab: BenchLab, { cases, allow, account, warm }: StableOptions): Stable {
  const standing = new Map<string, RunningContender>();
  async function fresh(contender: Contender): Promise<RunningContender> {
    const running = await contender.start();
    try {
      await preflight(contender, running, cases, allow, account);
      const set: SetName = contender.startsAnew ? 'known' : contender.set;
      await measureCalls(lab, { ...contender, set }, running, warm);
      return running;
    } catch (error) {
      await running.stop();
      throw error;
    }
  }
  return {
    fresh,
    async standing(contender) {
      const known = standing.get(contender.name);
      if (known !== undefined) return known;
      const running = await fresh(contender);
      standing.set(contender.name, running);
      return running;
    },
    async stop() {
      await Promise.all(Array.from(standing.values(), running => running.stop()));
      standing.clear();
    },
  };
}
