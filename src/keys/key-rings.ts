// The key rings of all issuers across changes of the configuration: reuses a ring, lets a new one inherit its keys, or starts one
// without keys. Issuers with the same location and files share a ring. New rings run beside the active ones until they are activated.
import { setTimeout as delay } from 'node:timers/promises';
import { createFileWatch, type WatchFiles } from '../files/file-watch.ts';
import { createAgeClock } from '../http/age-clock.ts';
import { createLimit } from '../http/document-keeper.ts';
import { removeLeftovers } from '../http/document-seed.ts';
import type { ProxySettings } from '../http/proxy.ts';
import {
  createKeyRing,
  type IssuerRing,
  type KeyRing,
  type KeyRingObserver,
  type KeyRingOptions,
  type KeySettings,
} from './key-ring.ts';
import type { InheritedKeys } from './key-seed.ts';
import { type IssuerKeySettings, locationKey } from './key-source.ts';

export interface KeyRings {
  /** What each issuer uses now, in the order of the configuration. */
  active(): readonly IssuerRing[];
  /**
   * Starts the new rings of these settings beside the active ones. Waits for no source, except for a moment where usable keys are
   * replaced by none. Rejects and stops what it started if a jwksFile is missing or broken, with a KeyFileError.
   */
  prepare(issuers: readonly IssuerKeySettings[], keys: KeySettings): Promise<PreparedKeyRings>;
  /** Stops all rings, also those in preparation. */
  stop(): Promise<void>;
}

export interface PreparedKeyRings {
  /** By issuer, in the order of the configuration. */
  readonly rings: ReadonlyMap<string, IssuerRing>;
  /** Resolves when the first fetch of each new ring has ended, successful or not. */
  fetched(): Promise<void>;
  /** Makes these rings the active ones and stops the others. */
  activate(): void;
  /** Stops the rings that were started. */
  discard(): Promise<void>;
}

// Enough for most fetches, and short within the five seconds of a reload.
const usualHeadStartMs = 1000;
const usualMaxFetches = 32;

export function createKeyRings(options: {
  readonly observer: KeyRingObserver;
  readonly proxy: ProxySettings;
  readonly headStartMs?: number;
  /** Uses seeds, and never writes or removes them. */
  readonly seedReadOnly?: boolean;
  /** The limit of fetches in flight. Defaults to 32. */
  readonly maxFetches?: number;
  readonly watchFiles?: WatchFiles;
}): KeyRings {
  const { headStartMs = usualHeadStartMs, maxFetches = usualMaxFetches } = options;
  const { seedReadOnly = false, watchFiles = createFileWatch() } = options;
  const limitFetches = createLimit(maxFetches);
  const shared = { ...options, seedReadOnly, watchFiles, limitFetches, monotonicNow: createAgeClock() };
  const running = new Set<KeyRing>();
  /** By all that they are made from, see groupByRing. */
  let activeRings: ReadonlyMap<string, KeyRing> = new Map();
  /** In the order of the configuration. */
  let activeIssuers: ReadonlyMap<string, IssuerRing> = new Map();
  let isStopped = false;

  async function stopRing(ring: KeyRing): Promise<void> {
    await ring.stop();
    running.delete(ring);
  }

  /** Those of a ring of the same location that one of these issuers uses now. */
  function keysFor(issuers: KeyRingOptions['issuers']): InheritedKeys | undefined {
    const location = locationKey(issuers[0]);
    return [...activeRings.values()]
      .filter(ring => issuers.some(({ issuer }) => ring.issuers.has(issuer)))
      .map(ring => ring.exportKeys(location))
      .find(keys => keys !== undefined);
  }

  async function prepare(issuers: readonly IssuerKeySettings[], keys: KeySettings): Promise<PreparedKeyRings> {
    const nextRings = new Map<string, KeyRing>();
    const added = new Set<KeyRing>();
    const byIssuer = new Map<string, IssuerRing>();
    for (const [id, members] of groupByRing(issuers, keys)) {
      const ring =
        activeRings.get(id) ?? createKeyRing({ ...shared, issuers: members, keys, inherited: () => keysFor(members) });
      nextRings.set(id, ring);
      if (!activeRings.has(id)) added.add(ring);
      for (const [issuer, used] of ring.issuers) byIssuer.set(issuer, used);
    }
    const next = new Map(
      issuers.flatMap(({ issuer }) => {
        const used = byIssuer.get(issuer);
        return used === undefined ? [] : [[issuer, used] as const];
      }),
    );
    const discard = async (): Promise<void> => {
      await Promise.all(Array.from(added, stopRing));
    };
    if (!seedReadOnly && keys.cacheDirectory !== undefined) await removeLeftovers(keys.cacheDirectory);
    try {
      for (const ring of added) running.add(ring);
      await Promise.all(Array.from(added, ring => ring.start()));
    } catch (error) {
      await discard();
      throw error;
    }
    const losesKeys = (ring: KeyRing): boolean =>
      [...ring.issuers].some(([issuer, used]) => isUsable(activeIssuers.get(issuer)) && !isUsable(used));
    const losing = [...added].filter(losesKeys);
    if (losing.length > 0) await Promise.race([fetched(losing), delay(headStartMs, undefined, { ref: false })]);
    // Stopped meanwhile: `stop` may not have seen these rings.
    if (isStopped) await discard();
    return {
      rings: next,
      fetched: () => fetched(added),
      activate() {
        const before = activeRings;
        activeRings = nextRings;
        activeIssuers = next;
        for (const [id, ring] of before) if (!nextRings.has(id)) void stopRing(ring);
      },
      discard,
    };
  }

  return {
    active: () => [...activeIssuers.values()],
    prepare,
    async stop() {
      isStopped = true;
      await Promise.all(Array.from(running, stopRing));
    },
  };
}

function isUsable(ring: IssuerRing | undefined): boolean {
  return ring?.status().state === 'usable';
}

async function fetched(rings: Iterable<KeyRing>): Promise<void> {
  await Promise.all(Array.from(rings, ring => ring.fetchEnded()));
}

/**
 * The issuers of each ring, by all that it is made from. Those of the same location and files share one: what the source answers may depend
 * on who asks, and whom to trust is theirs to say.
 */
function groupByRing(issuers: readonly IssuerKeySettings[], keys: KeySettings) {
  const groups = new Map<string, [IssuerKeySettings, ...IssuerKeySettings[]]>();
  for (const issuer of issuers) {
    const { caFile, clientCertFile, clientKeyFile, bearerTokenFile, allowHttp } = issuer;
    const files = [caFile, clientCertFile, clientKeyFile, bearerTokenFile];
    const id = JSON.stringify([locationKey(issuer), files, allowHttp]);
    const group = groups.get(id);
    if (group === undefined) groups.set(id, [issuer]);
    else group.push(issuer);
  }
  return Array.from(groups, ([id, members]) => {
    const names = members.map(({ issuer }) => issuer);
    return [JSON.stringify([id, names, keys]), members] as const;
  });
}
