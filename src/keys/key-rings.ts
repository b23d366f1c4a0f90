// The key rings of all issuers across changes of the configuration: reuses a ring, lets a new one inherit its keys, or starts one
// without keys. Issuers with the same location and TLS files share a ring. New rings run beside the active ones until they are activated.
import { setTimeout as delay } from 'node:timers/promises';
import { createDeferred } from '../deferred.ts';
import { createFileWatch, type WatchFiles } from '../files/file-watch.ts';
import { createAgeClock } from './age-clock.ts';
import { createFetchSlots, type FetchSlots } from './fetch-slots.ts';
import type { IssuerRing } from './issuer-ring.ts';
import { createKeyRing, type KeyRing, type KeySettings } from './key-ring.ts';
import type { KeyRingObserver } from './key-ring-observer.ts';
import type { ProxySettings } from './key-socket.ts';
import { type IssuerKeySettings, locationKey } from './key-source.ts';
import { createKeyThread } from './key-thread.ts';
import type { CreateKeyTransport } from './key-transport.ts';
import type { InheritedKeys } from './ring-seed.ts';

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
  /** Makes these rings the active ones and stops the others. */
  activate(): void;
  /** Stops the rings that were started. */
  discard(): Promise<void>;
}

interface ActiveRing {
  readonly ring: KeyRing;
  /** Everything that it was made from. */
  readonly settings: string;
}

interface ActiveIssuer {
  readonly ring: KeyRing;
  readonly location: string;
  readonly used: IssuerRing;
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
  /** The script of the fetch thread, if not the built one. */
  readonly threadEntry?: URL | undefined;
  /** Fetches without the thread. */
  readonly createTransport?: CreateKeyTransport;
}): KeyRings {
  const { observer, proxy, headStartMs = usualHeadStartMs, seedReadOnly = false } = options;
  const thread = createKeyThread(options.threadEntry);
  const { createTransport = thread.createTransport, slots = createFetchSlots() } = options;
  const { watchFiles = createFileWatch() } = options;
  const monotonicNow = createAgeClock();
  const shared = { proxy, createTransport, seedReadOnly, slots, monotonicNow, watchFiles };
  const running = new Set<KeyRing>();
  /** By ringKey. */
  let activeRings: ReadonlyMap<string, ActiveRing> = new Map();
  let activeIssuers: ReadonlyMap<string, ActiveIssuer> = new Map();
  const stopping = createDeferred<void>();
  let isStopped = false;

  async function stopRing(ring: KeyRing): Promise<void> {
    await ring.stop();
    running.delete(ring);
  }

  async function prepare(issuers: readonly IssuerKeySettings[], keys: KeySettings): Promise<PreparedKeyRings> {
    const added: { readonly ring: KeyRing; readonly refreshed: Promise<void> }[] = [];
    const kept: KeyRing[] = [];
    const nextRings = new Map<string, ActiveRing>();
    const next = new Map<string, ActiveIssuer>();
    for (const [id, members] of groupByRing(issuers)) {
      const settings = JSON.stringify([keys, members.map(({ issuer }) => issuer)]);
      const before = activeRings.get(id);
      if (before?.settings === settings) {
        nextRings.set(id, before);
        kept.push(before.ring);
        continue;
      }
      const first = createDeferred<void>();
      const seen = withFirstRefresh(observer, () => first.resolve());
      const inherited = keysFor(members);
      const ring = createKeyRing({ ...shared, issuers: members, keys, inherited, observer: seen });
      added.push({ ring, refreshed: first.promise });
      nextRings.set(id, { ring, settings });
    }
    for (const settings of issuers) {
      const ring = nextRings.get(ringKey(settings))?.ring;
      const used = ring?.issuers.get(settings.issuer);
      if (ring !== undefined && used !== undefined)
        next.set(settings.issuer, { ring, used, location: locationKey(settings) });
    }
    const discard = async (): Promise<void> => {
      await Promise.all(added.map(({ ring }) => stopRing(ring)));
    };
    try {
      for (const { ring } of added) running.add(ring);
      await Promise.all([...added.map(({ ring }) => ring.start()), ...kept.map(ring => ring.checkAuthorities())]);
    } catch (error) {
      await discard();
      throw error;
    }
    const losesKeys = (issuer: string): boolean => isUsable(activeIssuers.get(issuer)) && !isUsable(next.get(issuer));
    const missed = added.filter(({ ring }) => [...ring.issuers.keys()].some(losesKeys)).map(each => each.refreshed);
    if (missed.length > 0) {
      const late = delay(headStartMs, undefined, { ref: false });
      await Promise.race([late, Promise.all(missed), stopping.promise]);
    }
    // Stopped meanwhile: `stop` may not have seen these rings.
    if (isStopped) await discard();
    return {
      rings: new Map(Array.from(next, ([issuer, { used }]) => [issuer, used])),
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

  /** From the ring that one of these issuers uses now, if it is of the same location. */
  function keysFor(issuers: readonly IssuerKeySettings[]): InheritedKeys | undefined {
    const user = issuers.find(each => activeIssuers.get(each.issuer)?.location === locationKey(each));
    return user === undefined ? undefined : activeIssuers.get(user.issuer)?.ring.exportKeys();
  }

  return {
    active: () => Array.from(activeIssuers.values(), ({ used }) => used),
    prepare,
    async stop() {
      isStopped = true;
      stopping.resolve();
      await Promise.all(Array.from(running, stopRing));
      thread.stop();
    },
  };
}

function isUsable(issuer: ActiveIssuer | undefined): boolean {
  return issuer?.used.status().state === 'usable';
}

function groupByRing(issuers: readonly IssuerKeySettings[]): ReadonlyMap<string, readonly IssuerKeySettings[]> {
  const groups = new Map<string, IssuerKeySettings[]>();
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

function withFirstRefresh(observer: KeyRingObserver, first: () => void): KeyRingObserver {
  return {
    ...observer,
    onRefresh(event) {
      first();
      observer.onRefresh(event);
    },
  };
}
