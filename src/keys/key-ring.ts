// The keys of one issuer: performs the effects of key-set-reducer.ts (fetches, timers, answers to waiting callers).
import { createDeferred, type Deferred } from '../deferred.ts';
import { type KeySet, maxKidLength, parseKeySet, type VerificationKey } from './jwks.ts';
import { createSafeObserver, type KeyRingObserver } from './key-ring-observer.ts';
import { type KeySetEffect, type KeySetEvent, reduce } from './key-set-reducer.ts';
import { createKeySetState, fixedLimits, isUsable, type KeyLookup, nextWakeMs, usableKey } from './key-set-state.ts';
import { createKeySource, type IssuerKeySettings, type Validator } from './key-source.ts';
import type { CreateKeyTransport, ProxySettings } from './key-transport.ts';
import { type Anchors, createKeyTrust } from './key-trust.ts';
import { createRingSeed } from './ring-seed.ts';
import { createWakeTimer } from './wake-timer.ts';

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

export interface KeyRingStatus {
  readonly issuer: string;
  /** `loading`: no set yet; `stale`: a set not confirmed for maxAgeSeconds, which is not used. */
  readonly state: 'loading' | 'usable' | 'stale';
  /** The number of usable keys. */
  readonly keys: number;
  /** Since the start of the fetch that confirmed the set. */
  readonly ageSeconds: number | undefined;
  readonly lastResult: 'success' | 'failure' | undefined;
  readonly lastProblem: string | undefined;
  /** Of the usable keys. */
  readonly kids: readonly string[];
}

/** The usable key set that one ring passes to the next. */
export interface HandedOverKeys {
  readonly keys: ReadonlyMap<string, VerificationKey>;
  /** Since the start of the fetch that confirmed the set. */
  readonly ageSeconds: number;
  /** The authorities that vouch for it. */
  readonly anchors: Anchors;
}

export interface KeyRing {
  readonly issuer: string;
  /** The key under this kid if it is usable now. Synchronous, for the verified-token cache. */
  current(kid: string): VerificationKey | undefined;
  /** Synchronous if the answer is known; a promise, for at most 150 ms, while an early refresh decides. Never rejects. */
  find(kid: string): KeyLookup | Promise<KeyLookup>;
  status(): KeyRingStatus;
  /** Drops the set, in memory and on disk, if no trusted authority vouches for it. The ring also checks each time caFile changes. */
  checkTrust(): Promise<void>;
  /** The usable set, for a ring of the same source with other times or another caFile. */
  handOver(): HandedOverKeys | undefined;
  /** Does not wait for the issuer. Rejects only if a jwksFile is missing or broken, see isKeyFileError. */
  start(): Promise<void>;
  /** Aborts a fetch in flight and answers every waiting caller `unavailable`. Known keys can be found until they are too old. */
  stop(): Promise<void>;
}

export interface KeyRingOptions {
  readonly issuer: IssuerKeySettings;
  readonly keys: KeySettings;
  readonly observer: KeyRingObserver;
  readonly proxy?: ProxySettings;
  /** Fetches in this thread or in a worker thread. */
  readonly createTransport: CreateKeyTransport;
  /** Uses a seed, and never writes or removes it. */
  readonly seedReadOnly?: boolean;
  /** Keys of the ring before, from the same source. Replaces the seed; its age counts on. */
  readonly handedOver?: HandedOverKeys | undefined;
  readonly monotonicNow?: () => number;
  readonly wallNow?: () => number;
  readonly random?: () => number;
}

const keyFileErrorCode = 'ERR_KEY_FILE';

/** True for the rejection of `start` because a jwksFile is missing or broken. */
export function isKeyFileError(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && error.code === keyFileErrorCode;
}

export function createKeyRing(options: KeyRingOptions): KeyRing {
  const { keys: settings, proxy = {}, handedOver } = options;
  const { monotonicNow = () => performance.now(), wallNow = Date.now, random = Math.random } = options;
  const { issuer, algorithms } = options.issuer;
  const source = createKeySource(options.issuer, settings.timeoutSeconds * 1000, proxy, options.createTransport);
  const trust = createKeyTrust(options.issuer.jwksFile === undefined ? options.issuer.caFile : undefined);
  const events = createSafeObserver(issuer, options.observer);
  const seed = createRingSeed({
    // A jwksFile has no seed: the start fails without the file, and a copy of it could only be older.
    cacheDirectory: options.issuer.jwksFile === undefined ? settings.cacheDirectory : undefined,
    issuer,
    source: `${source.kind} ${source.place}`,
    algorithms,
    readOnly: options.seedReadOnly === true,
    onResult: events.seed,
  });

  let state = createKeySetState({
    refreshMs: settings.refreshSeconds * 1000,
    maxAgeMs: settings.maxAgeSeconds * 1000,
    cooldownMs: settings.cooldownSeconds * 1000,
    ...fixedLimits,
  });
  const waiting = new Map<string, Deferred<KeyLookup>>();
  let inFlight: { readonly controller: AbortController; readonly done: Promise<void> } | undefined;
  const timer = createWakeTimer(() => step({ kind: 'woken' }));
  let unwatchers: readonly (() => void)[] = [];
  /** The authorities that vouch for the set. */
  let anchors: Anchors = [];
  let confirmed: { readonly validator: Validator | undefined; readonly keySet: KeySet } | undefined;

  function step(event: KeySetEvent): readonly KeySetEffect[] {
    const nowMs = monotonicNow();
    const wasUsable = isUsable(state, nowMs);
    const next = reduce(state, event, nowMs);
    state = next.state;
    for (const effect of next.effects) perform(effect);
    // A caller who waits keeps the process alive, a refresh to come does not.
    timer.set(nextWakeMs(state), nowMs, state.waiters.length > 0);
    if (!wasUsable && isUsable(state, nowMs)) events.usable();
    return next.effects;
  }

  function perform(effect: KeySetEffect): void {
    switch (effect.kind) {
      case 'fetch': {
        const controller = new AbortController();
        inFlight = { controller, done: runFetch(effect.fetch, controller.signal) };
        return;
      }
      case 'abort':
        inFlight?.controller.abort();
        return;
      case 'answer':
        waiting.get(effect.kid)?.resolve(effect.lookup);
        waiting.delete(effect.kid);
        return;
    }
  }

  async function runFetch(fetch: number, signal: AbortSignal): Promise<void> {
    const startedWallMs = wallNow();
    const result = await source.read(signal, confirmed?.validator);
    const parsed = result.kind === 'body' ? await parseKeySet(result.bytes, algorithms, state.keys) : result;
    const read = result.kind === 'problem' || (await isTrusted(result.anchors)) ? parsed : withdrawnDuringFetch;
    if (signal.aborted) return;
    if (result.kind !== 'problem' && read.kind !== 'problem') anchors = result.anchors;
    const jitter = random();
    switch (read.kind) {
      case 'keySet':
        confirmed = { keySet: read, validator: result.kind === 'body' ? result.validator : undefined };
        step({ kind: 'fetched', fetch, keys: read.keys, jitter });
        break;
      case 'notModified':
        step({ kind: 'notModified', fetch, jitter });
        break;
      case 'problem':
        step({ kind: 'failed', fetch, problem: read.problem, jitter });
        break;
    }
    const skipped = 'skipped' in read ? read.skipped : [];
    if (result.kind === 'body') events.skipped(skipped);
    events.refresh(state.lastResult ?? 'failure', state.lastProblem, usableKeys(), skipped.length);
    if (read.kind !== 'problem' && confirmed !== undefined)
      seed.save(confirmed.keySet.publicJwks, anchors, startedWallMs);
  }

  async function isTrusted(vouching: Anchors): Promise<boolean> {
    return (await trust.covers(vouching)) !== false;
  }

  /** Drops the set unless it is still trusted. */
  async function checkTrust(): Promise<boolean> {
    for (;;) {
      const judged = anchors;
      const isStillTrusted = await isTrusted(judged);
      // A fetch has ended meanwhile: check its anchors.
      if (judged !== anchors) continue;
      if (isStillTrusted || state.phase === 'stopped') return true;
      anchors = [];
      confirmed = undefined;
      seed.remove();
      events.withdrawn();
      step({ kind: 'withdrawn' });
      return false;
    }
  }

  function onTrustChange(): void {
    // Refreshes, so that the new authorities vouch for the set and the old ones can be removed.
    void checkTrust().then(isKept => isKept && step({ kind: 'changed' }));
  }

  async function loadSeed(): Promise<void> {
    const loaded = await seed.load();
    if (loaded.kind === 'none') return;
    if (loaded.kind === 'problem') return events.seed(loaded.problem);
    const covered = await trust.covers(loaded.anchors);
    if (covered === false) seed.remove();
    if (covered !== true) return events.seed('seed not used: fetched under an authority that is not trusted any more');
    const ageMs = wallNow() - loaded.confirmedWallMs;
    anchors = loaded.anchors;
    step({ kind: 'seeded', keys: loaded.keySet.keys, ageMs });
    if (state.confirmedMs === undefined) events.seed(`seed not used: ${ageMs < 0 ? 'from the future' : 'too old'}`);
  }

  async function takeFirstKeys(): Promise<void> {
    if (handedOver === undefined) return loadSeed();
    if (!(await isTrusted(handedOver.anchors))) {
      seed.remove();
      return events.withdrawn();
    }
    anchors = handedOver.anchors;
    step({ kind: 'seeded', keys: handedOver.keys, ageMs: handedOver.ageSeconds * 1000 });
  }

  function usableKeys(): number {
    return isUsable(state, monotonicNow()) ? state.keys.size : 0;
  }

  function find(kid: string): KeyLookup | Promise<KeyLookup> {
    const key = usableKey(state, kid, monotonicNow());
    if (key !== undefined) return { kind: 'key', key };
    // No set holds a longer kid: no fetch, and no memory for it.
    if (kid.length > maxKidLength) return { kind: 'unknown' };
    const known = waiting.get(kid);
    if (known !== undefined) return known.promise;
    const answer = step({ kind: 'asked', kid }).find(effect => effect.kind === 'answer' && effect.kid === kid);
    if (answer?.kind === 'answer') return answer.lookup;
    const asker = createDeferred<KeyLookup>();
    waiting.set(kid, asker);
    return asker.promise;
  }

  async function stop(): Promise<void> {
    step({ kind: 'stopped' });
    for (const unwatch of unwatchers) unwatch();
    await inFlight?.done;
    await seed.written();
  }

  return {
    issuer,
    current: kid => usableKey(state, kid, monotonicNow()),
    find,
    status() {
      const nowMs = monotonicNow();
      const usability = isUsable(state, nowMs) ? 'usable' : 'stale';
      return {
        issuer,
        state: state.confirmedMs === undefined ? 'loading' : usability,
        keys: usableKeys(),
        ageSeconds: state.confirmedMs === undefined ? undefined : (nowMs - state.confirmedMs) / 1000,
        lastResult: state.lastResult,
        lastProblem: state.lastProblem,
        kids: usability === 'usable' ? [...state.keys.keys()] : [],
      };
    },
    handOver() {
      const nowMs = monotonicNow();
      if (state.confirmedMs === undefined || !isUsable(state, nowMs)) return undefined;
      return { keys: state.keys, ageSeconds: (nowMs - state.confirmedMs) / 1000, anchors };
    },
    async checkTrust() {
      await checkTrust();
    },
    async start() {
      if (state.phase !== 'new') return;
      await takeFirstKeys();
      // No effect: stopped while the seed was read.
      if (step({ kind: 'started' }).length === 0) return;
      unwatchers = [source.watch(() => step({ kind: 'changed' }), events.watch), trust.watch(onTrustChange)];
      if (source.kind !== 'jwksFile') return;
      await inFlight?.done;
      if (state.lastResult !== 'failure') return;
      await stop();
      const message = `jwksFile of ${issuer}: ${state.lastProblem ?? 'not read'}: ${source.place}`;
      throw Object.assign(new Error(message), { code: keyFileErrorCode });
    },
    stop,
  };
}

const withdrawnDuringFetch = { kind: 'problem', problem: 'CA withdrawn' } as const;
