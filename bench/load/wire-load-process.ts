// Runs the load of wire-load.ts in a child process, which can be pinned to its own core; wire-load-worker.ts is the child.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { programFile } from '../../lab/compiled.ts';
import { pin } from '../measure/pinning.ts';
import { loadHeapOptions } from './heap-options.ts';
import type { RequestSet, RunFigures, RunTarget } from './wire-load.ts';

export type LoadRun =
  | { readonly kind: 'closed'; readonly run: RunTarget; readonly set: string; readonly inFlight: number }
  | {
      readonly kind: 'open';
      readonly run: RunTarget;
      readonly lanes: readonly { readonly set: string; readonly perSecond: number }[];
    };

export type WireLoadOrder =
  | { readonly kind: 'define'; readonly name: string; readonly set: RequestSet }
  /** Restarts the set at its first request. */
  | LoadRun;

export type WireLoadReport =
  | { readonly kind: 'taken' }
  | { readonly kind: 'figures'; readonly figures: RunFigures }
  | { readonly kind: 'fault'; readonly message: string };

export interface WireLoadProcess {
  define(name: string, set: RequestSet): Promise<void>;
  run(run: LoadRun): Promise<RunFigures>;
  stop(): void;
}

/** One run at a time. */
export async function startWireLoadProcess(core: number | undefined): Promise<WireLoadProcess> {
  const worker = fork(programFile('bench/load/wire-load-worker.ts'), {
    serialization: 'advanced',
    execArgv: [...process.execArgv, ...loadHeapOptions],
  });
  const kill = (): void => void worker.kill('SIGKILL');
  process.once('exit', kill);
  const exited = once(worker, 'exit').then(([code]) => {
    process.off('exit', kill);
    throw new Error(`the load process has ended with ${code}`);
  });
  exited.catch(() => undefined);
  await Promise.race([once(worker, 'spawn'), exited]);
  await pin(worker.pid ?? 0, core);

  async function send(order: WireLoadOrder): Promise<WireLoadReport> {
    const answered = once(worker, 'message');
    worker.send(order);
    const [report] = (await Promise.race([answered, exited])) as [WireLoadReport];
    if (report.kind === 'fault') throw new Error(report.message);
    return report;
  }

  return {
    async define(name, set) {
      await send({ kind: 'define', name, set });
    },
    async run(run) {
      const report = await send(run);
      if (report.kind !== 'figures') throw new Error('the load process reported no figures');
      return report.figures;
    },
    stop: kill,
  };
}
