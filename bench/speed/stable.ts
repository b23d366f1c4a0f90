// The servers of a bench while it runs: started when first needed, checked, warmed, and stopped together.
import type { Contender, RunningContender } from './contender.ts';
import type { BenchForm } from './form.ts';
import type { BenchLab } from './lab.ts';
import { measureCalls } from './loops.ts';
import { preflight } from './preflight.ts';

export interface Stable {
  /** Its process for one turn, warmed; it stays for the turns to come. */
  lend<Value>(contender: Contender, use: (running: RunningContender) => Promise<Value>): Promise<Value>;
  /** The process that stays. */
  standing(contender: Contender): Promise<RunningContender>;
  stop(): Promise<void>;
}

export function createStable(lab: BenchLab, form: BenchForm, allow: Buffer): Stable {
  const { connections, inFlight, startWarmMs, turnWarmMs } = form;
  const kept = new Map<string, RunningContender>();

  async function warm(contender: Contender, running: RunningContender, measureMs: number): Promise<void> {
    await measureCalls(lab, running, contender.set, { connections, inFlight, warmMs: 0, measureMs });
  }

  async function standing(contender: Contender): Promise<RunningContender> {
    const known = kept.get(contender.name);
    if (known !== undefined) return known;
    const running = await contender.start();
    kept.set(contender.name, running);
    await preflight(contender, running, lab.tokens, allow);
    await warm(contender, running, startWarmMs);
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
