// The running servers of a bench: started on first use, checked, warmed up, and stopped together.
import type { Contender, RunningContender } from './contender.ts';
import type { BenchForm } from './form.ts';
import type { BenchLab } from './lab.ts';
import { measureCalls } from './loops.ts';
import { preflight } from './preflight.ts';

export interface ServerPool {
  /** Its process for one turn, warmed up; kept for later turns. */
  use<Value>(contender: Contender, work: (running: RunningContender) => Promise<Value>): Promise<Value>;
  /** The kept process. */
  get(contender: Contender): Promise<RunningContender>;
  stop(): Promise<void>;
}

export function createServerPool(lab: BenchLab, form: BenchForm, allow: Buffer): ServerPool {
  const { connections, inFlight, startWarmMs, turnWarmMs } = form;
  const kept = new Map<string, RunningContender>();

  async function warm(contender: Contender, running: RunningContender, measureMs: number): Promise<void> {
    await measureCalls(lab, running, contender.set, { connections, inFlight, warmMs: 0, measureMs });
  }

  async function get(contender: Contender): Promise<RunningContender> {
    const known = kept.get(contender.name);
    if (known !== undefined) return known;
    const running = await contender.start();
    kept.set(contender.name, running);
    if (contender.isUnexamined !== true) await preflight(contender, running, lab.tokens, allow);
    await warm(contender, running, startWarmMs);
    return running;
  }

  return {
    get,
    async use(contender, work) {
      const wasRunning = kept.has(contender.name);
      const running = await get(contender);
      if (wasRunning) await warm(contender, running, turnWarmMs);
      return work(running);
    },
    async stop() {
      await Promise.all(Array.from(kept.values(), running => running.stop()));
      kept.clear();
    },
  };
}
