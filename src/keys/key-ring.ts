// A key ring, which one reads first: the keys of one source and the issuers that share it. It fetches them in the background before they
// are needed, once more where a token has an unknown kid, keeps them through an outage until they are too old, and says what it does not use.
//
//   find(header) ─ known kid ──────────────────────────→ the key, or why there is none (token-key.ts)
//                └ unknown ─→ ask ─→ key-set-machine.ts ─→ waits for an early refresh, at most 150 ms
//   http/document-keeper.ts fetches when the machine says: key-source.ts ─→ http/fetch.ts or a file ─→ jwks.ts ─→ the machine ─→ key-seed.ts
//   key-rings.ts holds all rings, across changes of the configuration.
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import {
  createDocumentKeeper,
  type DocumentKeeper,
  type DocumentStatus,
  type KeeperSurroundings,
} from '../http/document-keeper.ts';
import type { ProxySettings } from '../http/proxy.ts';
import { type KeySet, maxKidLength, parseKeySet, type SkippedKey, type VerificationKey } from './jwks.ts';
import { createKeySeed, type InheritedKeys } from './key-seed.ts';
import {
  answerNow,
  createKeySetState,
  fixedLimits,
  type KeySetEvent,
  type KeySetState,
  type KidAnswer,
  reduce,
} from './key-set-machine.ts';
import { createSource, type IssuerKeySettings, locationKey, sourceFiles } from './key-source.ts';
import { findTokenKey, type TokenKey, type TokenKeyHeader } from './token-key.ts';

/** The `keys` section of the configuration. */
export interface KeySettings {
  readonly refreshSeconds: number;
  readonly maxAgeSeconds: number;
  readonly cooldownSeconds: number;
  readonly timeoutSeconds: number;
  readonly cacheDirectory?: string | undefined;
}

/** The key of a token, none at the issuer, or undecidable now. */
export type KeyLookup = TokenKey | Extract<KidAnswer, { kind: 'unavailable' }>;

/** What one issuer sees of its ring. */
export interface IssuerRing {
  readonly issuer: string;
  /** Synchronous if the answer is known; a promise, for at most 150 ms, while an early refresh decides. Never rejects. */
  find(header: TokenKeyHeader): KeyLookup | Promise<KeyLookup>;
  /** Whether the key is one of the set in force, which is usable: for the verified-token cache. */
  isInForce(key: VerificationKey): boolean;
  status(): KeyRingStatus;
}

export interface KeyRingStatus extends DocumentStatus {
  readonly issuer: string;
  /** The number of usable keys. */
  readonly keys: number;
  /** The kids of the usable keys. */
  readonly kids: readonly string[];
  /** The keys of the last document that are not used, with reasons. */
  readonly skipped: readonly SkippedKey[];
}

/** An event names all issuers that it is about, at least one. Must not throw. */
export interface KeyRingObserver {
  onRefresh(event: {
    readonly issuers: readonly string[];
    readonly result: 'success' | 'failure';
    readonly problem: string | undefined;
    readonly keys: number;
    /** Those of a document without a usable key, or those of another one if they have changed. */
    readonly skipped: readonly SkippedKey[] | undefined;
  }): void;
  /** The first usable set, or the first one after the set was too old. */
  onUsable(issuers: readonly string[]): void;
  /** Not repeated until it changes. */
  onWarning(event: { readonly issuers: readonly string[]; readonly problem: string }): void;
}

export interface KeyRing {
  readonly issuers: ReadonlyMap<string, IssuerRing>;
  /** The usable keys, for a ring of the same location (see locationKey) with other times, files or issuers. */
  exportKeys(location: string): InheritedKeys | undefined;
  /** Does not wait for the source. Rejects with a KeyFileError only. */
  start(): Promise<void>;
  /** Resolves when the fetch in flight has ended, successful or not. */
  fetchEnded(): Promise<void>;
  /** Aborts a fetch in flight and answers every waiting caller `unavailable`. Known keys can be found until they are too old. */
  stop(): Promise<void>;
}

export interface KeyRingOptions extends KeeperSurroundings {
  /** All have the same location (see locationKey) and the same files. */
  readonly issuers: readonly [IssuerKeySettings, ...IssuerKeySettings[]];
  readonly keys: KeySettings;
  readonly observer: KeyRingObserver;
  readonly proxy: ProxySettings;
  /** Uses seeds, and never writes them. */
  readonly seedReadOnly: boolean;
  /** Asked at the start, so that their age counts on. They replace the seed. */
  readonly inherited?: (() => InheritedKeys | undefined) | undefined;
}

/** How long an unknown kid waits for the fetch in flight, and how many may wait. */
const waitMs = 150;
const maxWaiting = 1024;

/** A jwksFile is missing or broken at the start. */
export class KeyFileError extends Error {}

export function createKeyRing(options: KeyRingOptions): KeyRing {
  const { keys: settings, observer, monotonicNow, wallNow = Date.now } = options;
  const [first] = options.issuers;
  const { algorithms, jwksFile } = first;
  const location = locationKey(first);
  const issuers = options.issuers.map(({ issuer }) => issuer);
  const maxAgeMs = settings.maxAgeSeconds * 1000;
  const times = { refreshMs: settings.refreshSeconds * 1000, maxAgeMs, cooldownMs: settings.cooldownSeconds * 1000 };
  const onWarning = (problem: string): void => observer.onWarning({ issuers, problem });
  const { cacheDirectory } = settings;
  const seeding = { issuers, location, algorithms, readOnly: options.seedReadOnly, maxAgeMs, wallNow, onWarning };
  // A jwksFile has no seed: the start fails without the file, and a copy of it could only be older.
  const hasSeed = cacheDirectory !== undefined && jwksFile === undefined;
  const seed = hasSeed ? createKeySeed({ ...seeding, cacheDirectory }) : undefined;

  /** The unknown kids that wait for the fetch in flight. */
  const waiting = new Map<string, Promise<KidAnswer>>();
  let publicJwks: KeySet['publicJwks'] = [];
  let skipped: readonly SkippedKey[] = [];
  const keeper: DocumentKeeper<KeySetState, KeySetEvent> = createDocumentKeeper({
    initial: createKeySetState({ ...times, ...fixedLimits }),
    reduce,
    read: createSource(first, { ...options, timeoutMs: settings.timeoutSeconds * 1000 }),
    async parse(document) {
      const previous = keeper.state().set.keys.keys();
      const parsed = await parseKeySet(document.bytes, algorithms, { ...document, previous });
      if (parsed.kind === 'keySet') return { kind: 'fetched', set: parsed, skipped: parsed.skipped };
      const problem = document.place === undefined ? parsed.problem : `${document.place}: ${parsed.problem}`;
      return { kind: 'refused', problem, skipped: parsed.skipped };
    },
    onEnded({ brought, startedWallMs }) {
      if (brought.kind === 'fetched') ({ publicJwks } = brought.set);
      const { set, lastResult = 'failure', lastProblem: problem } = state();
      if (lastResult === 'success') seed?.save(publicJwks, startedWallMs);
      const found = brought.kind === 'fetched' || brought.kind === 'refused' ? brought.skipped : skipped;
      const isNews = brought.kind === 'refused' || !isDeepStrictEqual(found, skipped);
      skipped = found;
      const keys = hasUsableKeys() ? set.keys.size : 0;
      observer.onRefresh({ issuers, result: lastResult, problem, keys, skipped: isNews ? skipped : undefined });
    },
    onUsable: () => observer.onUsable(issuers),
    surroundings: options,
  });
  const { state, step, isUsable: hasUsableKeys } = keeper;

  // What an issuer asks.

  function find(header: TokenKeyHeader): KeyLookup | Promise<KeyLookup> {
    const { kid } = header;
    const withKey = (answer: KidAnswer): KeyLookup =>
      answer.kind === 'unavailable' ? answer : findTokenKey(state().set, header);
    const answer = answerNow(state(), kid, monotonicNow());
    if (answer.kind === 'known' || kid === undefined) return withKey(answer);
    // No set holds a longer kid: no fetch, and no memory for it.
    const asked = kid.length > maxKidLength ? ({ kind: 'unknown' } as const) : ask(kid);
    return asked instanceof Promise ? asked.then(withKey) : withKey(asked);
  }

  /** Waits for a fetch in flight, where there is room. */
  function ask(kid: string): KidAnswer | Promise<KidAnswer> {
    const asked = waiting.get(kid);
    if (asked !== undefined) return asked;
    step({ kind: 'asked', kid });
    if (state().phase !== 'fetching' || waiting.size >= maxWaiting) return answerNow(state(), kid, monotonicNow());
    const answer = Promise.race([keeper.ended(), delay(waitMs, 'late', { ref: false })]).then((late): KidAnswer => {
      waiting.delete(kid);
      if (late === undefined) return answerNow(state(), kid, monotonicNow());
      return { kind: 'unavailable', detail: `the refresh takes longer than ${waitMs} ms` };
    });
    waiting.set(kid, answer);
    return answer;
  }

  function status(issuer: string): KeyRingStatus {
    const { state: is, ageSeconds, lastResult, lastProblem } = keeper.status();
    const { keys, kids } = is === 'usable' ? state().set : { keys: new Map(), kids: [] };
    return { issuer, state: is, keys: keys.size, ageSeconds, lastResult, lastProblem, kids: [...kids], skipped };
  }

  const isInForce = (key: VerificationKey): boolean => hasUsableKeys() && state().set.keys.has(key);

  async function stop(): Promise<void> {
    keeper.stop();
    await seed?.written();
  }

  return {
    issuers: new Map(issuers.map(issuer => [issuer, { issuer, find, isInForce, status: () => status(issuer) }])),
    exportKeys(other) {
      const { set, confirmedMs = 0 } = state();
      return other === location && hasUsableKeys() ? { set, ageMs: monotonicNow() - confirmedMs } : undefined;
    },
    async start() {
      if (state().phase !== 'new') return;
      await keeper.start(sourceFiles(first), async () => {
        const given = options.inherited?.() ?? (await seed?.load());
        return given && { event: { kind: 'seeded', ...given } };
      });
      if (jwksFile === undefined || keeper.ended() === undefined) return;
      await keeper.ended();
      const { lastResult, lastProblem = 'not read' } = state();
      if (lastResult === 'success') return;
      await stop();
      throw new KeyFileError(`jwksFile of ${first.issuer}: ${lastProblem}: ${jwksFile}`);
    },
    async fetchEnded() {
      await keeper.ended();
    },
    stop,
  };
}
