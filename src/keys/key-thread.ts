// Gets key documents in one worker thread, shared by all issuers: a flood of bytes of one issuer, which takes long to parse,
// delays no check. The thread starts with a fetch and ends some time after the last one, or when it fails.
import type { Worker } from 'node:worker_threads';
import { startThread } from '../built-thread.ts';
import { packageFile } from '../package.ts';
import { type Problem, problem } from '../text/problem.ts';
import type { GetKeyDocument, KeyDocument, KeyRequest } from './key-transport.ts';
import { rootsInForce } from './trusted-roots.ts';

export interface KeyThread {
  readonly getDocument: GetKeyDocument;
  /** Ends the thread and its fetches for good. */
  stop(): void;
}

export interface KeyThreadData {
  /** PEM of the authorities that the process trusts. */
  readonly roots: readonly string[];
}

export type KeyThreadTask =
  | { readonly kind: 'get'; readonly id: number; readonly request: KeyRequest }
  | { readonly kind: 'abort'; readonly id: number };

export interface KeyThreadAnswer {
  readonly id: number;
  readonly result: KeyDocument;
}

interface RunningThread {
  readonly worker: Worker;
  readonly inFlight: Map<number, (result: KeyDocument) => void>;
  /** Fails what is in flight. */
  end(problem: Problem): void;
  /** Runs while nothing is in flight. */
  idle: NodeJS.Timeout | undefined;
}

const maxHeapMegabytes = 64;
// The thread answers an abort at once, unless it is busy or hangs.
const graceMs = 2000;
// Between two refreshes the thread would hold 13 MB.
const defaultIdleMs = 10_000;
const ended = problem('fetch thread ended');
const stopped = problem('stopped');

const builtScript = packageFile('dist/key-thread-entry.js');

export function createKeyThread(script = builtScript, idleMs = defaultIdleMs): KeyThread {
  let running: RunningThread | undefined;
  let isStopped = false;
  let lastId = 0;

  function start(): RunningThread {
    const data: KeyThreadData = { roots: rootsInForce() };
    const worker = startThread(script, { maxHeapMegabytes, workerData: data });
    const inFlight: RunningThread['inFlight'] = new Map();
    const started: RunningThread = {
      worker,
      inFlight,
      idle: undefined,
      end(problem) {
        if (running === started) running = undefined;
        clearTimeout(started.idle);
        for (const settle of [...inFlight.values()]) settle(problem);
        worker.terminate();
      },
    };
    worker.on('message', ({ id, result }: KeyThreadAnswer) => inFlight.get(id)?.(result));
    worker.on('error', () => started.end(ended));
    worker.on('exit', () => started.end(ended));
    worker.unref();
    return started;
  }

  function fetchDocument(request: KeyRequest, signal: AbortSignal): Problem | Promise<KeyDocument> {
    if (isStopped || signal.aborted) return stopped;
    running ??= start();
    const thread = running;
    const { worker, inFlight, end } = thread;
    clearTimeout(thread.idle);
    lastId += 1;
    const id = lastId;
    const post = (task: KeyThreadTask): void => worker.postMessage(task);
    return new Promise<KeyDocument>(resolve => {
      let overdue: NodeJS.Timeout | undefined;
      const abort = (): void => {
        post({ kind: 'abort', id });
        overdue = setTimeout(() => end(ended), graceMs).unref();
      };
      inFlight.set(id, result => {
        inFlight.delete(id);
        if (inFlight.size === 0) thread.idle = setTimeout(() => end(ended), idleMs).unref();
        clearTimeout(overdue);
        signal.removeEventListener('abort', abort);
        resolve(result);
      });
      signal.addEventListener('abort', abort);
      post({ kind: 'get', id, request });
    });
  }

  return {
    async getDocument(request, signal) {
      try {
        return await fetchDocument(request, signal);
      } catch {
        // The system cannot start a thread.
        return ended;
      }
    },
    stop() {
      isStopped = true;
      running?.end(stopped);
    },
  };
}
