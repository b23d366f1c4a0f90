// Gets key documents in one worker thread, shared by all issuers: a flood of bytes of one issuer, which takes long to parse,
// delays no check. The thread starts with a fetch and ends some time after the last one, or when it fails.
import { Worker } from 'node:worker_threads';
import { type Problem, problem } from '../text/problem.ts';
import type { CreateKeyTransport, KeyDocument, KeyTransportSettings } from './key-transport.ts';
import { rootsInForce } from './trusted-roots.ts';

export interface KeyThread {
  readonly createTransport: CreateKeyTransport;
  /** Ends the thread and its fetches for good. */
  stop(): void;
}

export type KeyThreadTask =
  /** Before the first document over TLS. */
  | { readonly kind: 'trust'; readonly roots: readonly string[] }
  | {
      readonly kind: 'get';
      readonly id: number;
      readonly settings: KeyTransportSettings;
      readonly url: string;
      readonly etag: string | undefined;
    }
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
  hasRoots: boolean;
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

// The built script: a thread cannot run TypeScript sources.
const builtEntry = new URL('./key-thread-entry.js', import.meta.url);

export function createKeyThread(entry: URL = builtEntry, idleMs = defaultIdleMs): KeyThread {
  let running: RunningThread | undefined;
  let isStopped = false;
  let lastId = 0;

  function startThread(): RunningThread {
    const worker = new Worker(entry, {
      // Without the preloads of the service: an SDK would start in the thread again.
      execArgv: [],
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: maxHeapMegabytes, maxYoungGenerationSizeMb: 8 },
    });
    const inFlight: RunningThread['inFlight'] = new Map();
    const started: RunningThread = {
      worker,
      inFlight,
      hasRoots: false,
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

  function fetchDocument(settings: KeyTransportSettings, url: string, etag: string | undefined, signal: AbortSignal) {
    if (isStopped || signal.aborted) return stopped;
    running ??= startThread();
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
      if (!thread.hasRoots && !url.startsWith('http:')) {
        thread.hasRoots = true;
        post({ kind: 'trust', roots: rootsInForce() });
      }
      post({ kind: 'get', id, settings, url, etag });
    });
  }

  return {
    createTransport: settings => ({
      async get(url, signal, etag) {
        try {
          return await fetchDocument(settings, url, etag, signal);
        } catch {
          // The system cannot start a thread.
          return ended;
        }
      },
    }),
    stop() {
      isStopped = true;
      running?.end(stopped);
    },
  };
}
