// The servers of a bench while it runs: started when first needed, checked, warmed, and stopped together.
import { measureCalls } from './calls.ts';
import type { Contender, RunningContender } from './contender.ts';
import type { BenchForm } from './form.ts';
import type { BenchLab } from './lab.ts';
import { type PreflightCase, preflight } from './preflight.ts';

export interface Stable {
  /** Its process for one turn, warmed; it stays for the turns to come. */
  lend<Value>(contender: Contender, use: (running: RunningContender) => Promise<Value>): Promise<Value>;
  /** The process that stays. */
  standing(contender: Contender): Promise<RunningContender>;
  stop(): Promise<void>;
}

export interface StableOptions {
  cases(): Promise<readonly PreflightCase[]>;
  readonly allow: Buffer;
  readonly account: string;
  readonly form: BenchForm;
}

export function createStable(lab: BenchLab, { cases, allow, account, form }: StableOptions): Stable {
  const { connections, inFlight, startWarmMs, turnWarmMs } = form;
  const kept = new Map<string, RunningContender>();

  async function warm(contender: Contender, running: RunningContender, measureMs: number): Promise<void> {
    await measureCalls(lab, running, contender.set, { connections, inFlight, warmMs: 0, measureMs });
  }

  async function fresh(contender: Contender): Promise<RunningContender> {
    const running = await contender.start();
    try {
      await preflight(contender, running, await cases(), allow, account);
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
      const wasThere = kept.has(contender.name);
      const running = await standing(contender);
      if (wasThere) await warm(contender, running, turnWarmMs);
      return use(running);
    },
    async stop() {
      await Promise.all(Array.from(kept.values(), running => running.stop()));
      kept.clear();
    },
  };
}
