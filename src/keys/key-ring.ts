// A key ring: one key set and the issuers that share it. Fetches the set, drops it if a certificate authority is gone, keeps seeds.
import { accepted, fileVersions, type WatchFiles, type WatchOutcome } from '../files/file-watch.ts';
import { errorCode, type Problem } from '../text/problem.ts';
import type { FetchSlots } from './fetch-slots.ts';
import { createIssuerRing, type IssuerRing } from './issuer-ring.ts';
import { parseKeySet, type SkippedKey } from './jwks.ts';
import { type Authorities, hasAll, loadAuthorities } from './key-authorities.ts';
import { namedConnectionFiles } from './key-connection.ts';
import type { PublicJwk } from './key-material.ts';
import { createSafeObserver, type KeyRingObserver } from './key-ring-observer.ts';
import { createKeySeed, type InheritedKeys } from './key-seed.ts';
import { createKeySetDriver } from './key-set-driver.ts';
import type { FetchOutcome } from './key-set-fetched.ts';
import type { KeySetEvent } from './key-set-reducer.ts';
import { fixedLimits, isUsable } from './key-set-state.ts';
import type { ProxySettings } from './key-socket.ts';
import { createKeySource, type IssuerKeySettings, locationKey, type Validator } from './key-source.ts';
import type { GetKeyDocument } from './key-transport.ts';

/** The `keys` section of the configuration. */
export interface KeySettings {
  readonly refreshSeconds: number;
  readonly maxAgeSeconds: number;
  readonly cooldownSeconds: number;
  readonly timeoutSeconds: number;
  readonly cacheDirectory?: string | undefined;
}

export interface KeyRing {
  readonly issuers: ReadonlyMap<string, IssuerRing>;
  /** Asks for a refresh if caFile has lost an authority. The ring itself looks each time that the file changes. */
  checkAuthorities(): Promise<void>;
  /** The usable keys, for a ring of the same location with other times, TLS files or issuers. */
  exportKeys(): InheritedKeys | undefined;
  /** Does not wait for the source. Rejects only if a jwksFile is missing or broken, see isKeyFileError. */
  start(): Promise<void>;
  /** Resolves when the fetch in flight has ended, successful or not. */
  fetchEnded(): Promise<void>;
  /** Aborts a fetch in flight and answers every waiting caller `unavailable`. Known keys can be found until they are too old. */
  stop(): Promise<void>;
}

/** All have the same location (see locationKey) and the same TLS files. */
export type IssuersOfRing = readonly [IssuerKeySettings, ...IssuerKeySettings[]];

export interface KeyRingOptions {
  readonly issuers: IssuersOfRing;
  readonly keys: KeySettings;
  readonly observer: KeyRingObserver;
  readonly proxy: ProxySettings;
  /** Fetches in this thread or in a worker thread. */
  readonly getDocument: GetKeyDocument;
  /** Shared with other rings, as are the next two. */
  readonly slots: FetchSlots;
  readonly watchFiles: WatchFiles;
  readonly monotonicNow: () => number;
  /** Uses seeds, and never writes or removes them. */
  readonly seedReadOnly: boolean;
  /** They replace the seeds; their age counts on. */
  readonly inherited?: InheritedKeys | undefined;
  readonly wallNow?: () => number;
  readonly random?: () => number;
}

/** Where the keys in force come from. */
interface Origin {
  /** Those of caFile when the fetch that confirmed the keys began. */
  readonly authorities: Authorities;
  /** Only of a fetch of this ring, as is the next. */
  readonly validator: Validator | undefined;
  readonly publicJwks: readonly PublicJwk[];
}

/** What a fetch brought, and where the keys in force come from after it. */
interface Reading {
  readonly outcome: FetchOutcome;
  readonly origin: Origin;
  /** Set for a key set. */
  readonly skipped?: readonly SkippedKey[];
}

const noOrigin: Origin = { authorities: [], validator: undefined, publicJwks: [] };
const keyFileErrorCode = 'ERR_KEY_FILE';

/** True for the rejection of `start` because a jwksFile is missing or broken. */
export function isKeyFileError(error: unknown): error is Error {
  return error instanceof Error && errorCode(error) === keyFileErrorCode;
}

export function createKeyRing(options: KeyRingOptions): KeyRing {
  const { keys: settings, proxy, inherited, getDocument, slots, watchFiles, monotonicNow } = options;
  const { wallNow = Date.now, random = Math.random } = options;
  const [first] = options.issuers;
  const { algorithms, jwksFile } = first;
  const caFile = jwksFile === undefined ? first.caFile : undefined;
  const issuers = options.issuers.map(({ issuer }) => issuer);
  const maxAgeMs = settings.maxAgeSeconds * 1000;
  const timeoutMs = settings.timeoutSeconds * 1000;
  const source = createKeySource({ settings: first, timeoutMs, proxy, getDocument, slots });
  const events = createSafeObserver(issuers, options.observer);
  const seed = createKeySeed({
    issuers,
    location: locationKey(first),
    algorithms,
    // A jwksFile has no seed: the start fails without the file, and a copy of it could only be older.
    cacheDirectory: jwksFile === undefined ? settings.cacheDirectory : undefined,
    readOnly: options.seedReadOnly,
    maxAgeMs,
    wallNow,
    onResult: events.seed,
  });
  const limits = {
    refreshMs: settings.refreshSeconds * 1000,
    maxAgeMs,
    cooldownMs: settings.cooldownSeconds * 1000,
    ...fixedLimits,
  };
  const driver = createKeySetDriver(limits, monotonicNow, runFetch);
  const { state, step, fetchEnded } = driver;
  let origin = noOrigin;
  let unwatch = (): void => undefined;

  const hasUsableKeys = (): boolean => isUsable(state(), monotonicNow());

  async function runFetch(fetch: number, signal: AbortSignal): Promise<void> {
    const startedWallMs = wallNow();
    const { outcome, origin: next, skipped } = await readSource(signal);
    if (signal.aborted) return;
    stepFrom(next, { ...outcome, fetch, jitter: random() });
    const { keys, lastResult = 'failure', lastProblem } = state();
    if (skipped !== undefined) events.skipped(skipped);
    events.refresh(lastResult, lastProblem, hasUsableKeys() ? keys.size : 0, skipped?.length ?? 0);
    if (lastResult === 'success') seed.save(origin.publicJwks, origin.authorities, startedWallMs);
  }

  async function readSource(signal: AbortSignal): Promise<Reading> {
    const read = await source.read(signal, validatorFor);
    if (read.kind === 'problem') return { outcome: { ...read, kind: 'failed' }, origin };
    const { authorities } = read;
    if (read.kind === 'notModified') return { outcome: { kind: read.kind }, origin: { ...origin, authorities } };
    const keySet = await parseKeySet(read.bytes, algorithms, state().keys);
    const { skipped } = keySet;
    if (keySet.kind === 'problem') return { outcome: { kind: 'failed', problem: keySet.problem }, origin, skipped };
    const { keys, publicJwks } = keySet;
    return {
      outcome: { kind: 'fetched', keys },
      origin: { authorities, validator: read.validator, publicJwks },
      skipped,
    };
  }

  /** None for keys that were fetched under an authority that is gone: whoever has its key chose their ETag. */
  function validatorFor(authorities: Authorities): Validator | undefined {
    return hasUsableKeys() && hasAll(authorities, origin.authorities) ? origin.validator : undefined;
  }

  function stepFrom(next: Origin, event: KeySetEvent): void {
    const hadKeys = state().confirmedMs !== undefined;
    const wasUsable = hasUsableKeys();
    step(event);
    const isDropped = hadKeys && state().confirmedMs === undefined;
    origin = isDropped ? noOrigin : next;
    if (isDropped) {
      seed.remove();
      events.dropped();
    }
    if (!wasUsable && hasUsableKeys()) events.usable();
  }

  /** True if an authority is gone that caFile had when the keys were fetched: they need a fetch without it. */
  function askIfUntrusted(authorities: Authorities | Problem): boolean {
    const isUntrusted = !hasAll(authorities, origin.authorities);
    if (isUntrusted) step({ kind: 'untrusted' });
    return isUntrusted;
  }

  function onFileChange(authorities: Authorities | Problem): WatchOutcome {
    if (!askIfUntrusted(authorities)) step({ kind: 'changed' });
    return accepted;
  }

  async function useFirstKeys(): Promise<void> {
    const authoritiesNow = await loadAuthorities(caFile);
    const given = inherited ?? (await seed.load(authoritiesNow));
    if (given === undefined || state().phase !== 'new') return;
    const { keys, ageMs, authorities } = given;
    stepFrom({ ...noOrigin, authorities }, { kind: 'seeded', keys, ageMs });
    askIfUntrusted(authoritiesNow);
  }

  async function stop(): Promise<void> {
    step({ kind: 'stopped' });
    unwatch();
    await fetchEnded();
    await seed.written();
  }

  return {
    issuers: new Map(issuers.map(issuer => [issuer, createIssuerRing(issuer, driver, monotonicNow)])),
    exportKeys() {
      const { keys, confirmedMs = 0 } = state();
      if (!hasUsableKeys()) return undefined;
      return { keys, ageMs: monotonicNow() - confirmedMs, authorities: origin.authorities };
    },
    async checkAuthorities() {
      askIfUntrusted(await loadAuthorities(caFile));
    },
    async start() {
      if (state().phase !== 'new') return;
      const files = jwksFile === undefined ? namedConnectionFiles(first) : [jwksFile];
      // Before they are read: the watch may poll for the first time after a change.
      const known = await fileVersions(files);
      await useFirstKeys();
      // No effect: stopped while the seed was read.
      if (step({ kind: 'started' }).length === 0) return;
      unwatch = watchFiles({ files, known, load: () => loadAuthorities(caFile), apply: onFileChange }).stop;
      if (jwksFile === undefined) return;
      await fetchEnded();
      const { lastResult, lastProblem = 'not read' } = state();
      if (lastResult === 'success') return;
      await stop();
      const message = `jwksFile of ${first.issuer}: ${lastProblem}: ${jwksFile}`;
      throw Object.assign(new Error(message), { code: keyFileErrorCode });
    },
    fetchEnded,
    stop,
  };
}
