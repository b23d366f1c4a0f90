// The servers of a bench while it runs: started when first needed, checked, warmed, and stopped together.
import { measureCalls } from './calls.ts';
import type { Contender, RunningContender } from './contender.ts';
import type { BenchForm } from './form.ts';
import type { BenchLab } from './lab.ts';
import { type PreflightCase, preflight } from './preflight.ts';

const newWarmMs = 700;

export interface Stable {
  /** A process for one turn, warmed: one that stays for the turns to come, or a new one where the contender wants that. */
  lend<Value>(contender: Contender, use: (running: RunningContender) => Promise<Value>): Promise<Value>;
  /** The process that stays. */
  standing(contender: Contender): Promise<RunningContender>;
  stop(): Promise<void>;
}

export interface StableOptions {
  readonly cases: readonly PreflightCase[];
  readonly allow: Buffer;
  readonly account: string;
  readonly form: BenchForm;
}

export function createStable(lab: BenchLab, { cases, allow, account, form }: StableOptions): Stable {
  const { connections, inFlight, startWarmMs, turnWarmMs } = form;
  const kept = new Map<string, RunningContender>();

  // Of what must be new, only as much is used up as the code needs to be compiled.
  async function warm(contender: Contender, running: RunningContender, measureMs: number): Promise<void> {
    const set = contender.startsAnew ? 'known' : contender.set;
    await measureCalls(lab, running, set, { connections, inFlight, warmMs: 0, measureMs });
    if (!contender.startsAnew) return;
    await lab.load.rewind(contender.set);
    await measureCalls(lab, running, contender.set, { connections, inFlight, warmMs: 0, measureMs: newWarmMs });
  }

  async function fresh(contender: Contender): Promise<RunningContender> {
    const running = await contender.start();
    try {
      await preflight(contender, running, cases, allow, account);
      await warm(contender, running, startWarmMs);
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
    standing,
    async lend(contender, use) {
      if (!contender.startsAnew) {
        const wasThere = kept.has(contender.name);
        const running = await standing(contender);
        if (wasThere) await warm(contender, running, turnWarmMs);
        return use(running);
      }
      const running = await fresh(contender);
      try {
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
