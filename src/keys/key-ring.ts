// The keys of one issuer while the process runs: performs what key-set-reducer.ts decides (fetches, timers, waiting callers).
// The only place in keys/ with a clock; tests bring their own.
import { createDeferred, type Deferred } from '../deferred.ts';
import { type KeySet, maxKidLength, parseKeySet, type VerificationKey } from './jwks.ts';
import { createTeller, type KeyRingObserver } from './key-ring-observer.ts';
import { createKeySeed, type KeySeed } from './key-seed.ts';
import { type KeySetEffect, type KeySetEvent, reduce } from './key-set-reducer.ts';
import { createKeySetState, isUsable, type KeyLookup, nextWakeMs, usableKey } from './key-set-state.ts';
import { createKeySource, type IssuerKeySettings, type Validator } from './key-source.ts';
import type { CreateKeyTransport, ProxySettings } from './key-transport.ts';
import { type Anchors, createKeyTrust } from './key-trust.ts';

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
  /** `loading`: never had a set; `stale`: not confirmed for maxAgeSeconds, so not used. */
  readonly state: 'loading' | 'usable' | 'stale';
  /** Keys that are usable now. */
  readonly keys: number;
  /** Since the start of the fetch that confirmed the set. */
  readonly ageSeconds: number | undefined;
  readonly lastResult: 'success' | 'failure' | undefined;
  readonly lastProblem: string | undefined;
  /** Of the set in use; none while there is none, or it is too old. */
  readonly kids: readonly string[];
}

/** A key set in use, on its way from one ring to the next. */
export interface HandedOverKeys {
  readonly keys: ReadonlyMap<string, VerificationKey>;
  /** Since the start of the fetch that confirmed it. */
  readonly ageSeconds: number;
  /** Who vouches for it. */
  readonly anchors: Anchors;
}

export interface KeyRing {
  readonly issuer: string;
  /** The key under this kid if it is usable now (set within maxAgeSeconds): synchronous, for the verified-token cache. */
  current(kid: string): VerificationKey | undefined;
  /** Synchronous whenever the answer is known now; a promise (at most 150 ms) only while an early refresh decides. Never rejects. */
  find(kid: string): KeyLookup | Promise<KeyLookup>;
  status(): KeyRingStatus;
  /** Drops the set, here and on disk, if no authority that vouches for it is trusted any more. The ring does so by itself each second or two. */
  checkTrust(): Promise<void>;
  /** The set in use, for a ring with other times or another caFile at the same source; undefined where none is usable. */
  handOver(): HandedOverKeys | undefined;
  /** Resolves once started and does not wait for the issuer; rejects only where a jwksFile is missing or broken, see isKeyFileError. */
  start(): Promise<void>;
  /** Aborts a fetch in flight and answers every waiting caller `unavailable`. Known keys stay findable until they are too old. */
  stop(): Promise<void>;
}

export interface KeyRingOptions {
  readonly issuer: IssuerKeySettings;
  readonly keys: KeySettings;
  readonly observer: KeyRingObserver;
  readonly proxy?: ProxySettings;
  /** How its documents are got: in this thread or another. */
  readonly createTransport: CreateKeyTransport;
  /** True: a seed is used and never written. */
  readonly seedReadOnly?: boolean;
  /** What the ring before this one had from the same source. It goes on ageing, and takes the place of a seed. */
  readonly handedOver?: HandedOverKeys | undefined;
  readonly monotonicNow?: () => number;
  readonly wallNow?: () => number;
  readonly random?: () => number;
}

const waitMs = 150;
const maxWaiters = 1024;
const maxUnknownKids = 1024;
// setTimeout takes 31 bits; a timer that fires early finds nothing due and is set again.
const maxTimerMs = 2 ** 31 - 1;

const keyFileErrorCode = 'ERR_KEY_FILE';

/** True for the rejection of `start` over a jwksFile that is missing or broken: a misconfiguration, not a fault. */
export function isKeyFileError(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && error.code === keyFileErrorCode;
}

export function createKeyRing(options: KeyRingOptions): KeyRing {
  const { keys: settings, proxy = {}, handedOver } = options;
  const { monotonicNow = () => performance.now(), wallNow = Date.now, random = Math.random } = options;
  const { issuer, algorithms } = options.issuer;
  const source = createKeySource(options.issuer, settings.timeoutSeconds * 1000, proxy, options.createTransport);
  const seed = toSeed(options.issuer, settings.cacheDirectory, `${source.kind} ${source.place}`);
  const trust = createKeyTrust(options.issuer.jwksFile === undefined ? options.issuer.caFile : undefined);
  const tell = createTeller(issuer, options.observer);

  let state = createKeySetState({
    refreshMs: settings.refreshSeconds * 1000,
    maxAgeMs: settings.maxAgeSeconds * 1000,
    cooldownMs: settings.cooldownSeconds * 1000,
    waitMs,
    maxWaiters,
    maxUnknownKids,
  });
  const waiting = new Map<string, Deferred<KeyLookup>>();
  let inFlight: { readonly controller: AbortController; readonly done: Promise<void> } | undefined;
  let saving: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let timerMs: number | undefined;
  let unwatch: (() => void) | undefined;
  /** Of the set in use. */
  let anchors: Anchors = [];
  let confirmed: { readonly validator: Validator | undefined; readonly keySet: KeySet } | undefined;

  function step(event: KeySetEvent): readonly KeySetEffect[] {
    const nowMs = monotonicNow();
    const wasUsable = isUsable(state, nowMs);
    const next = reduce(state, event, nowMs);
    state = next.state;
    for (const effect of next.effects) perform(effect);
    setTimer(nowMs);
    if (!wasUsable && isUsable(state, nowMs)) tell.usable();
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

  function setTimer(nowMs: number): void {
    const wakeMs = nextWakeMs(state);
    if (wakeMs !== timerMs) {
      clearTimeout(timer);
      timerMs = wakeMs;
      const delayMs = wakeMs === undefined ? undefined : Math.min(Math.max(Math.ceil(wakeMs - nowMs), 1), maxTimerMs);
      timer = delayMs === undefined ? undefined : setTimeout(wake, delayMs);
    }
    // A refresh to come must not keep a process alive; a caller who waits may.
    if (state.waiters.length === 0) timer?.unref();
    else timer?.ref();
  }

  function wake(): void {
    timerMs = undefined;
    step({ kind: 'woken' });
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
    if (result.kind === 'body') tell.skipped(skipped);
    tell.refresh(state.lastResult ?? 'failure', state.lastProblem, usableKeys(), skipped.length);
    if (read.kind !== 'problem') saveSeed(startedWallMs);
  }

  async function isTrusted(vouching: Anchors): Promise<boolean> {
    return (await trust.covers(vouching)) !== false;
  }

  /** Whether the set is still trusted; else it is gone now. */
  async function checkTrust(): Promise<boolean> {
    for (;;) {
      const judged = anchors;
      const isStillTrusted = await isTrusted(judged);
      // A fetch may have ended meanwhile; what it brought is judged in its turn.
      if (judged !== anchors) continue;
      if (isStillTrusted || state.phase === 'stopped') return true;
      anchors = [];
      confirmed = undefined;
      removeSeed();
      tell.withdrawn();
      step({ kind: 'withdrawn' });
      return false;
    }
  }

  function onTrustChange(): void {
    // Confirmed under the new authorities as soon as may be, so that the old ones can go.
    void checkTrust().then(isKept => isKept && step({ kind: 'changed' }));
  }

  function removeSeed(): void {
    if (seed === undefined || options.seedReadOnly === true) return;
    saving = saving.then(async () => tell.seed(await seed.remove()));
  }

  function saveSeed(confirmedWallMs: number): void {
    if (seed === undefined || confirmed === undefined || options.seedReadOnly === true) return;
    const { publicJwks } = confirmed.keySet;
    const vouching = anchors;
    saving = saving.then(async () => tell.seed(await seed.save(publicJwks, vouching, confirmedWallMs)));
  }

  async function loadSeed(): Promise<void> {
    const loaded = await seed?.load();
    if (loaded === undefined || loaded.kind === 'none') return;
    if (loaded.kind === 'problem') return tell.seed(loaded.problem);
    const covered = await trust.covers(loaded.anchors);
    if (covered === false) removeSeed();
    if (covered !== true) return tell.seed('seed not used: fetched under an authority that is not trusted any more');
    const ageMs = wallNow() - loaded.confirmedWallMs;
    anchors = loaded.anchors;
    step({ kind: 'seeded', keys: loaded.keySet.keys, ageMs });
    if (state.confirmedMs === undefined) tell.seed(`seed not used: ${ageMs < 0 ? 'from the future' : 'too old'}`);
  }

  async function takeFirstKeys(): Promise<void> {
    if (handedOver === undefined) return loadSeed();
    if (!(await isTrusted(handedOver.anchors))) {
      removeSeed();
      return tell.withdrawn();
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
    // No set ever holds a longer one, so nobody has to be asked, and nothing of it is kept.
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
    unwatch?.();
    await inFlight?.done;
    await saving;
  }

  return {
    issuer,
    current: kid => usableKey(state, kid, monotonicNow()),
    find,
    status() {
      const nowMs = monotonicNow();
      const held = isUsable(state, nowMs) ? 'usable' : 'stale';
      return {
        issuer,
        state: state.confirmedMs === undefined ? 'loading' : held,
        keys: usableKeys(),
        ageSeconds: state.confirmedMs === undefined ? undefined : (nowMs - state.confirmedMs) / 1000,
        lastResult: state.lastResult,
        lastProblem: state.lastProblem,
        kids: held === 'usable' ? [...state.keys.keys()] : [],
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
      // Nothing to do for it: stopped while the seed was read.
      if (step({ kind: 'started' }).length === 0) return;
      const unwatchers = [source.watch(() => step({ kind: 'changed' }), tell.watch), trust.watch(onTrustChange)];
      unwatch = () => {
        for (const end of unwatchers) end();
      };
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

function toSeed(issuer: IssuerKeySettings, cacheDirectory: string | undefined, source: string): KeySeed | undefined {
  // A file is there at the start or the start fails: a copy of it would only be older.
  if (cacheDirectory === undefined || issuer.jwksFile !== undefined) return undefined;
  return createKeySeed({ cacheDirectory, issuer: issuer.issuer, source, algorithms: issuer.algorithms });
}
