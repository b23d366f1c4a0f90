// The keys of one source, for all issuers that have it: fetches them, checks who vouches for them, and keeps seeds.
import { accepted, createFileWatch, type WatchFiles, type WatchOutcome } from '../files/file-watch.ts';
import { createFetchSlots, type FetchSlots } from './fetch-slots.ts';
import { createIssuerRing, type IssuerRing } from './issuer-ring.ts';
import { namedConnectionFiles } from './key-connection.ts';
import { createSafeObserver, type KeyRingObserver } from './key-ring-observer.ts';
import {
  afterFetch,
  areUsable,
  type FirstKeys,
  mergeKeys,
  noKeys,
  type SelectedKeys,
  selectKeys,
  toFetchEnd,
  toKeySelections,
} from './key-selection.ts';
import { createKeySetDriver } from './key-set-driver.ts';
import type { KeySetEvent } from './key-set-reducer.ts';
import { fixedLimits } from './key-set-state.ts';
import { createKeySource, type IssuerKeySettings, type Validator } from './key-source.ts';
import type { CreateKeyTransport, ProxySettings } from './key-transport.ts';
import { type Anchors, createKeyTrust } from './key-trust.ts';
import type { FetchProblem } from './network-problem.ts';
import { createRingSeed } from './ring-seed.ts';

export type { IssuerRing, KeyRingStatus } from './issuer-ring.ts';
export type { KeyRingObserver } from './key-ring-observer.ts';
export type { KeyLookup } from './key-set-state.ts';
export type { ProxySettings } from './key-transport.ts';

/** The `keys` section of the configuration. */
export interface KeySettings {
  readonly refreshSeconds: number;
  readonly maxAgeSeconds: number;
  readonly cooldownSeconds: number;
  readonly timeoutSeconds: number;
  readonly cacheDirectory?: string | undefined;
}

/** The usable keys that one ring passes to the next, by the id of their selection. */
export type HandedOverKeys = ReadonlyMap<string, FirstKeys>;

export interface KeyRing {
  readonly issuers: ReadonlyMap<string, IssuerRing>;
  /** Drops the keys, in memory and on disk, if no trusted authority vouches for them. The ring also checks each time caFile changes. */
  checkTrust(): Promise<void>;
  /** For a ring of the same source with other times, TLS files or issuers. */
  handOver(): HandedOverKeys;
  /** Does not wait for the source. Rejects only if a jwksFile is missing or broken, see isKeyFileError. */
  start(): Promise<void>;
  /** Aborts a fetch in flight and answers every waiting caller `unavailable`. Known keys can be found until they are too old. */
  stop(): Promise<void>;
}

export interface KeyRingOptions {
  /** At least one. All have the same source and the same TLS files. */
  readonly issuers: readonly IssuerKeySettings[];
  readonly keys: KeySettings;
  readonly observer: KeyRingObserver;
  readonly proxy?: ProxySettings;
  /** Fetches in this thread or in a worker thread. */
  readonly createTransport: CreateKeyTransport;
  /** Shared with other rings, as is the next. */
  readonly slots?: FetchSlots;
  readonly watchFiles?: WatchFiles;
  /** Uses seeds, and never writes or removes them. */
  readonly seedReadOnly?: boolean;
  /** Keys of the ring before, from the same source. They replace the seeds; their age counts on. */
  readonly handedOver?: HandedOverKeys | undefined;
  readonly monotonicNow?: () => number;
  readonly wallNow?: () => number;
  readonly random?: () => number;
}

interface ConfirmedDocument {
  readonly validator: Validator | undefined;
  readonly refusals: readonly (FetchProblem | undefined)[];
}

const keyFileErrorCode = 'ERR_KEY_FILE';

/** True for the rejection of `start` because a jwksFile is missing or broken. */
export function isKeyFileError(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && error.code === keyFileErrorCode;
}

export function createKeyRing(options: KeyRingOptions): KeyRing {
  const { keys: settings, proxy = {}, handedOver, createTransport } = options;
  const { slots = createFetchSlots(), watchFiles = createFileWatch() } = options;
  const { monotonicNow = () => performance.now(), wallNow = Date.now, random = Math.random } = options;
  const [place] = options.issuers;
  if (place === undefined) throw new Error('a key ring without an issuer');
  const isFile = place.jwksFile !== undefined;
  const timeoutMs = settings.timeoutSeconds * 1000;
  const maxAgeMs = settings.maxAgeSeconds * 1000;
  const issuers = options.issuers.map(({ issuer }) => issuer);
  const source = createKeySource({ place, issuers, timeoutMs, proxy, createTransport, slots });
  const trust = createKeyTrust(isFile ? undefined : place.caFile);
  const files = place.jwksFile === undefined ? namedConnectionFiles(place) : [place.jwksFile];
  const selections = toKeySelections(options.issuers).map(selection => {
    const events = createSafeObserver(selection.issuers, options.observer);
    const seed = createRingSeed({
      ...selection,
      // A jwksFile has no seed: the start fails without the file, and a copy of it could only be older.
      cacheDirectory: isFile ? undefined : settings.cacheDirectory,
      source: `${source.kind} ${source.place}`,
      readOnly: options.seedReadOnly === true,
      maxAgeMs,
      trust,
      wallNow,
      onResult: events.seed,
    });
    return { ...selection, events, seed, selected: noKeys };
  });

  /** Of the keys of all selections together. */
  const limits = {
    refreshMs: settings.refreshSeconds * 1000,
    maxAgeMs,
    cooldownMs: settings.cooldownSeconds * 1000,
    ...fixedLimits,
  };
  const { state, step, ask, fetchEnded } = createKeySetDriver(limits, monotonicNow, runFetch);
  let unwatch = (): void => undefined;
  /** The authorities that vouch for the keys. */
  let anchors: Anchors = [];
  /** The last document with keys, and why it has none for a selection. */
  let confirmed: ConfirmedDocument = { validator: undefined, refusals: [] };

  /** With other keys of the selections from now on. */
  function stepWith(sets: readonly SelectedKeys[], event: KeySetEvent): void {
    const before = selections.map(isUsable);
    for (const [i, selection] of selections.entries()) selection.selected = sets[i] ?? noKeys;
    step(event);
    for (const [i, selection] of selections.entries())
      if (before[i] === false && isUsable(selection)) selection.events.usable();
  }

  function isUsable({ selected }: { readonly selected: SelectedKeys }): boolean {
    return areUsable(selected, maxAgeMs, monotonicNow());
  }

  async function runFetch(fetch: number, signal: AbortSignal): Promise<void> {
    const startedWallMs = wallNow();
    const { fetchStartedMs } = state();
    const { validator, refusals } = confirmed;
    const read = await source.read(signal, validator);
    const found = await Promise.all(selections.map((each, i) => selectKeys(read, each, each.selected, refusals[i])));
    const isAccepted = read.kind === 'problem' || (await isTrusted(read.anchors));
    if (signal.aborted) return;
    const results = isAccepted ? found : found.map(() => withdrawnDuringFetch);
    const sets = results.map((result, i) => afterFetch(selections[i]?.selected ?? noKeys, result, fetchStartedMs));
    const end = toFetchEnd(results, sets);
    if (end.kind !== 'failed' && read.kind !== 'problem') anchors = read.anchors;
    if (end.kind === 'fetched' && read.kind === 'body')
      confirmed = {
        validator: read.validator,
        refusals: results.map(each => (each.kind === 'problem' ? each : undefined)),
      };
    stepWith(sets, { ...end, fetch, jitter: random() });
    for (const [i, { events, seed, selected }] of selections.entries()) {
      const result = results[i];
      const skipped = result !== undefined && 'skipped' in result ? result.skipped : [];
      if (read.kind === 'body') events.skipped(skipped);
      const keys = isUsable({ selected }) ? selected.keys.size : 0;
      events.refresh(selected.lastResult ?? 'failure', selected.lastProblem, keys, skipped.length);
      if (selected.lastResult === 'success') seed.save(selected.publicJwks, anchors, startedWallMs);
    }
  }

  async function isTrusted(vouching: Anchors): Promise<boolean> {
    return (await trust.covers(vouching)) !== false;
  }

  /** Drops the keys unless they are still trusted. */
  async function checkTrust(): Promise<boolean> {
    for (;;) {
      const judged = anchors;
      const areStillTrusted = await isTrusted(judged);
      // A fetch has ended meanwhile: check its anchors.
      if (judged !== anchors) continue;
      if (areStillTrusted || state().phase === 'stopped') return true;
      anchors = [];
      confirmed = { validator: undefined, refusals: [] };
      for (const selection of selections) withdraw(selection);
      stepWith(
        selections.map(({ selected }) => ({
          ...noKeys,
          lastResult: selected.lastResult,
          lastProblem: selected.lastProblem,
        })),
        { kind: 'withdrawn' },
      );
      return false;
    }
  }

  function withdraw({ seed, events }: (typeof selections)[number]): void {
    seed.remove();
    events.withdrawn();
  }

  function onFileChange(): WatchOutcome {
    // Refreshes, so that the new authorities vouch for the keys and the old ones can be removed, and a new client certificate is used.
    void checkTrust().then(areKept => areKept && step({ kind: 'changed' }));
    return accepted;
  }

  async function firstKeysOf(selection: (typeof selections)[number]): Promise<FirstKeys | undefined> {
    const given = handedOver?.get(selection.id);
    if (given === undefined) return selection.seed.load();
    if (await isTrusted(given.anchors)) return given.ageMs < maxAgeMs ? given : undefined;
    withdraw(selection);
    return undefined;
  }

  async function takeFirstKeys(): Promise<void> {
    const first = await Promise.all(selections.map(firstKeysOf));
    const taken = first.filter(each => each !== undefined);
    if (taken.length === 0 || state().phase !== 'new') return;
    const nowMs = monotonicNow();
    anchors = [...new Set(taken.map(each => each.anchors))].flat();
    const sets = first.map(each =>
      each === undefined ? noKeys : { ...noKeys, keys: each.keys, confirmedMs: nowMs - each.ageMs },
    );
    stepWith(sets, { kind: 'seeded', keys: mergeKeys(sets), ageMs: Math.min(...taken.map(each => each.ageMs)) });
  }

  async function stop(): Promise<void> {
    step({ kind: 'stopped' });
    unwatch();
    await fetchEnded();
    await Promise.all(selections.map(({ seed }) => seed.written()));
  }

  return {
    issuers: new Map(
      selections.flatMap(selection => {
        const use = { maxAgeMs, monotonicNow, ask, selected: () => selection.selected };
        return selection.issuers.map(issuer => [issuer, createIssuerRing({ ...use, issuer })] as const);
      }),
    ),
    handOver() {
      const nowMs = monotonicNow();
      const usable = selections.filter(isUsable);
      return new Map(
        usable.map(({ id, selected: { keys, confirmedMs = nowMs } }) => [
          id,
          { keys, ageMs: nowMs - confirmedMs, anchors },
        ]),
      );
    },
    async checkTrust() {
      await checkTrust();
    },
    async start() {
      if (state().phase !== 'new') return;
      await takeFirstKeys();
      // No effect: stopped while the seed was read.
      if (step({ kind: 'started' }).length === 0) return;
      unwatch = watchFiles({ files, load: async () => undefined, apply: onFileChange }).stop;
      if (!isFile) return;
      await fetchEnded();
      const failed = selections.find(({ selected }) => selected.lastResult === 'failure');
      if (failed === undefined) return;
      await stop();
      const message = `jwksFile of ${failed.issuers[0]}: ${failed.selected.lastProblem ?? 'not read'}: ${source.place}`;
      throw Object.assign(new Error(message), { code: keyFileErrorCode });
    },
    stop,
  };
}

const withdrawnDuringFetch = { kind: 'problem', problem: 'CA withdrawn' } as const;
