// The key rings of all issuers across changes of the configuration: reuses a ring, lets a new one inherit its keys, or starts one
// without keys. Issuers with the same location and TLS files share a ring. New rings run beside the active ones until they are activated.
import { setTimeout as delay } from 'node:timers/promises';
import { createFileWatch, type WatchFiles } from '../files/file-watch.ts';
import { createAgeClock } from './age-clock.ts';
import { createFetchSlots, type FetchSlots } from './fetch-slots.ts';
import type { IssuerRing } from './issuer-ring.ts';
import { createKeyRing, type IssuersOfRing, type KeyRing, type KeySettings } from './key-ring.ts';
import type { KeyRingObserver } from './key-ring-observer.ts';
import type { ProxySettings } from './key-socket.ts';
import { type IssuerKeySettings, locationKey } from './key-source.ts';
import { createKeyThread } from './key-thread.ts';
import type { GetKeyDocument } from './key-transport.ts';

export interface KeyRings {
  /** What each issuer uses now, in the order of the configuration. */
  active(): readonly IssuerRing[];
  /**
   * Starts the new rings of these settings beside the active ones. Waits for no source, except for a moment where usable keys are
   * replaced by none. Rejects and stops what it started if a jwksFile is missing or broken, see isKeyFileError.
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

interface ActiveRing {
  readonly ring: KeyRing;
  readonly location: string;
  /** What it was made from besides its ringKey. */
  readonly settings: string;
}

// Enough for most fetches, and short within the five seconds of a reload.
const usualHeadStartMs = 1000;

export function createKeyRings(options: {
  readonly observer: KeyRingObserver;
  readonly proxy: ProxySettings;
  readonly headStartMs?: number;
  /** Uses seeds, and never writes or removes them. */
  readonly seedReadOnly?: boolean;
  readonly slots?: FetchSlots;
  readonly watchFiles?: WatchFiles;
  /** Defaults to a key thread of these rings. */
  readonly getDocument?: GetKeyDocument | undefined;
}): KeyRings {
  const { observer, proxy, headStartMs = usualHeadStartMs, seedReadOnly = false } = options;
  const thread = createKeyThread();
  const { getDocument = thread.getDocument, slots = createFetchSlots() } = options;
  const { watchFiles = createFileWatch() } = options;
  const monotonicNow = createAgeClock();
  const shared = { observer, proxy, getDocument, seedReadOnly, slots, monotonicNow, watchFiles };
  const running = new Set<KeyRing>();
  /** By ringKey. */
  let activeRings: ReadonlyMap<string, ActiveRing> = new Map();
  /** In the order of the configuration. */
  let activeIssuers: ReadonlyMap<string, IssuerRing> = new Map();
  let isStopped = false;

  async function stopRing(ring: KeyRing): Promise<void> {
    await ring.stop();
    running.delete(ring);
  }

  /** The ring of each group of issuers: the active one if it has the same settings, or else a new one, which is in `added` too. */
  function chooseRings(issuers: readonly IssuerKeySettings[], keys: KeySettings) {
    const usedBefore = new Map(
      [...activeRings.values()].flatMap(active => Array.from(active.ring.issuers.keys(), issuer => [issuer, active])),
    );
    const nextRings = new Map<string, ActiveRing>();
    const added = new Set<KeyRing>();
    for (const [id, members] of groupByRing(issuers)) {
      const settings = JSON.stringify([keys, members.map(({ issuer }) => issuer)]);
      const before = activeRings.get(id);
      if (before?.settings === settings) {
        nextRings.set(id, before);
        continue;
      }
      // It takes over the keys of the ring that one of its issuers uses now, if that is of the same location.
      const location = locationKey(members[0]);
      const sources = members.map(({ issuer }) => usedBefore.get(issuer));
      const inherited = sources.find(each => each?.location === location)?.ring.exportKeys();
      const ring = createKeyRing({ ...shared, issuers: members, keys, inherited });
      nextRings.set(id, { ring, location, settings });
      added.add(ring);
    }
    return { nextRings, added };
  }

  async function prepare(issuers: readonly IssuerKeySettings[], keys: KeySettings): Promise<PreparedKeyRings> {
    const { nextRings, added } = chooseRings(issuers, keys);
    const next = new Map<string, IssuerRing>();
    for (const settings of issuers) {
      const used = nextRings.get(ringKey(settings))?.ring.issuers.get(settings.issuer);
      if (used !== undefined) next.set(settings.issuer, used);
    }
    const discard = async (): Promise<void> => {
      await Promise.all(Array.from(added, stopRing));
    };
    try {
      for (const ring of added) running.add(ring);
      await Promise.all(
        Array.from(nextRings.values(), ({ ring }) => (added.has(ring) ? ring.start() : ring.checkAuthorities())),
      );
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
        const staying = new Set(Array.from(nextRings.values(), ({ ring }) => ring));
        for (const { ring } of before.values()) if (!staying.has(ring)) void stopRing(ring);
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
      thread.stop();
    },
  };
}

function isUsable(ring: IssuerRing | undefined): boolean {
  return ring?.status().state === 'usable';
}

async function fetched(rings: Iterable<KeyRing>): Promise<void> {
  await Promise.all(Array.from(rings, ring => ring.fetchEnded()));
}

function groupByRing(issuers: readonly IssuerKeySettings[]): ReadonlyMap<string, IssuersOfRing> {
  const groups = new Map<string, [IssuerKeySettings, ...IssuerKeySettings[]]>();
  for (const issuer of issuers) {
    const id = ringKey(issuer);
    const group = groups.get(id);
    if (group === undefined) groups.set(id, [issuer]);
    else group.push(issuer);
  }
  return groups;
}

/** Issuers with the same key share a ring: what the source answers may depend on the certificate, and the trust on the authorities. */
function ringKey(issuer: IssuerKeySettings): string {
  return JSON.stringify([locationKey(issuer), issuer.caFile, issuer.clientCertFile, issuer.clientKeyFile]);
}
