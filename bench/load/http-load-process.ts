// A load in a process of its own, so that neither what it measures nor what it costs mixes with the rest of a bench.
// This is the side that gives orders; http-load-worker.ts is the one that obeys.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { LoadAnswer } from './http-load.ts';
import { roomyHeap } from './roomy-heap.ts';

/** What a lane sends, told to another process. Every request carries its own name in the query, as `?n=LANE.NUMBER`. */
export type LaneDescription =
  /** These bearer tokens in turn, or each of them once and then no more: running out of them is a fault. */
  | {
      readonly kind: 'tokens';
      readonly name: string;
      readonly requests: readonly { readonly path: string; readonly token: string }[];
      readonly once: boolean;
    }
  /** Well-formed tokens, each with a kid that nobody has seen and a random signature. */
  | {
      readonly kind: 'strangers';
      readonly name: string;
      readonly path: string;
      readonly payload: string;
      /** True: nothing is told of its answers, nor are they counted. What it is for: code that has not run yet is compiled when it first does. */
      readonly isRehearsal?: boolean;
    };

/** A body does not cross between the processes, only what it says of a refusal. */
export interface Answer extends Omit<LoadAnswer, 'body'> {
  /** Of a problem document (product.md section 4); undefined where the answer is none. */
  readonly reason: string | undefined;
}

export interface LoadProcessOptions {
  readonly origin: string;
  readonly connections: number;
  readonly lanes: readonly LaneDescription[];
  /** True: answers are told when rates are set and when it stops, so that nobody has work with them meanwhile. */
  readonly keepsAnswers?: boolean;
}

export type LoadOrder =
  | { readonly kind: 'start'; readonly options: LoadProcessOptions }
  | { readonly kind: 'rates'; readonly rates: Readonly<Record<string, number>> }
  | { readonly kind: 'stop' };

export type LoadReport =
  | { readonly kind: 'started' }
  | { readonly kind: 'answers'; readonly answers: readonly Answer[] }
  | { readonly kind: 'stopped'; readonly sent: number };

export interface LoadProcess {
  /** Requests a second of each lane from now on; a lane that is not named rests. */
  setRates(rates: Readonly<Record<string, number>>): void;
  /** The number of requests sent; every answer has been told before. */
  stop(): Promise<number>;
  kill(): void;
}

/** `onAnswers` is told in batches, within about a tenth of a second unless they are kept. A worker that ends too soon makes `onFault` heard. */
export async function startLoadProcess(
  options: LoadProcessOptions,
  hooks: { onAnswers(answers: readonly Answer[]): void; onFault(error: Error): void },
): Promise<LoadProcess> {
  const worker = fork(fileURLToPath(new URL('http-load-worker.ts', import.meta.url)), {
    serialization: 'advanced',
    execArgv: [...process.execArgv, ...roomyHeap],
  });
  const kill = (): void => void worker.kill('SIGKILL');
  process.once('exit', kill);
  let ending = false;
  let sent: (count: number) => void;
  const stopped = new Promise<number>(resolve => {
    sent = resolve;
  });
  const exited = once(worker, 'exit').then(([code]) => {
    process.off('exit', kill);
    if (!ending) hooks.onFault(new Error(`a load process has ended with ${code}`));
  });
  const started = new Promise<void>(resolve => {
    worker.on('message', (report: LoadReport) => {
      switch (report.kind) {
        case 'started':
          return resolve();
        case 'answers':
          return hooks.onAnswers(report.answers);
        case 'stopped':
          return sent(report.sent);
      }
    });
  });
  // A closed channel; what became of the process, its exit tells.
  worker.on('error', () => undefined);
  give(worker, { kind: 'start', options });
  await Promise.race([started, exited]);
  return {
    setRates: rates => give(worker, { kind: 'rates', rates }),
    async stop() {
      ending = true;
      give(worker, { kind: 'stop' });
      const count = await stopped;
      await exited;
      return count;
    },
    kill() {
      ending = true;
      kill();
    },
  };
}

function give(worker: ChildProcess, order: LoadOrder): void {
  worker.send(order);
}
