// Keeps a document from a URL or a file up to date: runs its state machine, begins and aborts fetches as the state says, wakes it in time, and
// asks for a refresh when a file of the connection changes. What is read from the document is the caller's: a key set, a revocation list.
import { accepted, fileVersions, type WatchFiles, type WatchOutcome } from '../files/file-watch.ts';
import { type DocumentState, type FetchEnded, isUsable, type LifeEvent, nextWakeMs } from './document-machine.ts';
import type { FetchedDocument, FetchResult, Validator } from './fetch.ts';

/** What a keeper takes from its surroundings; shared by all keepers of a process. */
export interface KeeperSurroundings {
  /** Runs a fetch once fewer are in flight than may be. */
  readonly limitFetches: <Result>(fetch: () => Promise<Result>) => Promise<Result>;
  readonly watchFiles: WatchFiles;
  readonly monotonicNow: () => number;
  readonly wallNow?: (() => number) | undefined;
  readonly random?: (() => number) | undefined;
}

export interface DocumentStatus {
  /** `loading`: no document yet; `stale`: one that was not confirmed for maxAgeSeconds, which is not used. */
  readonly state: 'loading' | 'usable' | 'stale';
  /** Since the start of the fetch that confirmed it. */
  readonly ageSeconds: number | undefined;
  readonly lastResult: 'success' | 'failure' | undefined;
  readonly lastProblem: string | undefined;
}

type RefusedDocument = { readonly kind: 'refused'; readonly problem: string };

/** A fetch that has ended, after the state has changed. */
interface EndedFetch<Parsed> {
  /** What came in the document, or why it is refused, or why no document came. */
  readonly brought: Parsed | Exclude<FetchResult, FetchedDocument>;
  /** Where the document came from, for a conditional request. */
  readonly validator: Validator | undefined;
  /** Wall time, of its start. */
  readonly startedWallMs: number;
}

export interface DocumentKeeper<State, Event> {
  state(): State;
  /** Whether the document was confirmed less than maxAge ago. */
  isUsable(): boolean;
  status(): DocumentStatus;
  step(event: Event | LifeEvent): void;
  /** Resolves when the fetch in flight has ended, successful or not; undefined before the first one. */
  ended(): Promise<void> | undefined;
  /** Once. Watches the files from then on, and begins the first fetch after `seed` has brought what there is. */
  start(files: readonly string[], seed: () => Promise<Seeded<Event> | undefined>): Promise<void>;
  /** Aborts a fetch in flight. */
  stop(): void;
}

interface Seeded<Event> {
  readonly event: Event;
  readonly validator?: Validator | undefined;
}

// A timer stands still while the machine is suspended, the clock of the times does not. An early wake-up changes nothing.
const maxDelayMs = 5_000;

export function createDocumentKeeper<
  State extends DocumentState,
  Event,
  Good extends { readonly kind: 'fetched' },
  Parsed extends Good | RefusedDocument,
>(options: {
  readonly initial: State;
  readonly reduce: (state: State, event: Event | LifeEvent | FetchEnded<Good>, nowMs: number) => State;
  /** Must settle soon after the signal has aborted, and never reject. */
  readonly read: (signal: AbortSignal, validator: Validator | undefined) => Promise<FetchResult>;
  /** Never rejects. */
  readonly parse: (document: FetchedDocument) => Promise<Parsed>;
  /** The state has changed. Must not throw. */
  readonly onEnded: (ended: EndedFetch<Parsed>) => void;
  /** The first usable document, or the first one after it was too old. */
  readonly onUsable: () => void;
  readonly surroundings: KeeperSurroundings;
}): DocumentKeeper<State, Event> {
  const { reduce, read, parse, onEnded, onUsable, surroundings } = options;
  const { limitFetches, watchFiles, monotonicNow, wallNow = Date.now, random = Math.random } = surroundings;
  let state = options.initial;
  let inFlight: { readonly controller: AbortController; readonly done: Promise<void> } | undefined;
  let timer: NodeJS.Timeout | undefined;
  /** Of the document in force. */
  let validator: Validator | undefined;
  let unwatch = (): void => undefined;

  const isUsableNow = (): boolean => isUsable(state, monotonicNow());

  // Each event changes the state, and a fetch begins or is aborted as the state says.
  function step(event: Event | LifeEvent | FetchEnded<Good>): void {
    const nowMs = monotonicNow();
    const before = state;
    state = reduce(before, event, nowMs);
    if (state.fetch !== before.fetch) begin(state.fetch);
    if (state.phase === 'stopped') inFlight?.controller.abort();
    clearTimeout(timer);
    const wakeMs = nextWakeMs(state);
    if (wakeMs !== undefined)
      timer = setTimeout(step, Math.min(Math.max(Math.ceil(wakeMs - nowMs), 1), maxDelayMs), { kind: 'woken' }).unref();
    if (!isUsable(before, nowMs) && isUsable(state, nowMs)) onUsable();
  }

  function begin(fetch: number): void {
    const controller = new AbortController();
    inFlight = { controller, done: limitFetches(() => refresh(fetch, controller.signal)) };
  }

  async function refresh(fetch: number, signal: AbortSignal): Promise<void> {
    const startedWallMs = wallNow();
    const result = await read(signal, isUsableNow() ? validator : undefined);
    const brought = result.kind === 'document' ? await parse(result) : result;
    if (signal.aborted) return;
    // The validator of a refused document is never used.
    if (result.kind === 'document' && brought.kind === 'fetched') ({ validator } = result);
    const end = { fetch, jitter: random() };
    const outcome: Good | RefusedDocument | Exclude<FetchResult, FetchedDocument> = brought;
    if (outcome.kind === 'problem' || outcome.kind === 'refused')
      step({ kind: 'failed', problem: outcome.problem, ...end });
    else step({ ...outcome, ...end });
    onEnded({ brought, validator, startedWallMs });
  }

  return {
    state: () => state,
    isUsable: isUsableNow,
    status() {
      const { confirmedMs, lastResult, lastProblem } = state;
      if (confirmedMs === undefined) return { state: 'loading', ageSeconds: undefined, lastResult, lastProblem };
      const ageSeconds = (monotonicNow() - confirmedMs) / 1000;
      return { state: isUsableNow() ? 'usable' : 'stale', ageSeconds, lastResult, lastProblem };
    },
    step,
    ended: () => inFlight?.done,
    async start(files, seed) {
      if (state.phase !== 'new') return;
      // Before they are read: the watch may poll for the first time after a change.
      const known = await fileVersions(files);
      const seeded = await seed();
      if (seeded !== undefined) {
        ({ validator } = seeded);
        step(seeded.event);
      }
      step({ kind: 'started' });
      // Stopped while the seed was read.
      if (inFlight === undefined) return;
      const onChange = (): WatchOutcome => {
        step({ kind: 'changed' });
        return accepted;
      };
      unwatch = watchFiles({ files, known, load: () => Promise.resolve(), apply: onChange }).stop;
    },
    stop() {
      step({ kind: 'stopped' });
      unwatch();
    },
  };
}

/** Runs at most so many at once, the others in the order of the calls. */
export function createLimit(max: number): KeeperSurroundings['limitFetches'] {
  const queue: (() => void)[] = [];
  let running = 0;
  return async work => {
    if (running < max) running += 1;
    else await new Promise<void>(resolve => queue.push(resolve));
    try {
      return await work();
    } finally {
      const next = queue.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
