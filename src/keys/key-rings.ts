// The key rings of all issuers across changes of the configuration: reuses a ring, hands its set over, or starts a new one.
// New rings start beside the active ones, and are not visible until they take over.
import { setTimeout as delay } from 'node:timers/promises';
import { createDeferred } from '../deferred.ts';
import { createKeyRing, type KeyRing, type KeyRingObserver, type KeySettings, type ProxySettings } from './key-ring.ts';
import type { IssuerKeySettings } from './key-source.ts';
import { createKeyThread } from './key-thread.ts';

export interface KeyRings {
  /** The active rings, in the order of the configuration. */
  inForce(): readonly KeyRing[];
  /**
   * Starts the new rings of these settings beside the active ones. Waits for no issuer, except for a moment where a usable ring is
   * replaced without its keys. Rejects and stops what it started if a jwksFile is missing or broken, see isKeyFileError.
   */
  prepare(issuers: readonly IssuerKeySettings[], keys: KeySettings): Promise<PreparedKeyRings>;
  /** Stops all rings, also those in preparation. */
  stop(): Promise<void>;
}

export interface PreparedKeyRings {
  /** By issuer. */
  readonly rings: ReadonlyMap<string, KeyRing>;
  /** Makes these rings active and stops the others. */
  takeOver(): void;
  /** Stops the rings that were started. */
  discard(): Promise<void>;
}

interface ActiveRing {
  readonly ring: KeyRing;
  /** Where the keys come from, and which of them are used. */
  readonly source: string;
  /** When keys are fetched, how long they last, and their caFile. */
  readonly terms: string;
}

// Enough for most fetches, and short within the five seconds of a reload.
const usualHeadStartMs = 1000;

export function createKeyRings(options: {
  readonly observer: KeyRingObserver;
  readonly proxy: ProxySettings;
  readonly headStartMs?: number;
  /** The script of the fetch thread, if not the built one. */
  readonly threadEntry?: URL | undefined;
}): KeyRings {
  const { observer, proxy, headStartMs = usualHeadStartMs } = options;
  const { createTransport, stop: stopThread } = createKeyThread(options.threadEntry);
  const running = new Set<KeyRing>();
  let active: ReadonlyMap<string, ActiveRing> = new Map();
  const stopping = createDeferred<void>();
  let isStopped = false;

  async function stopRing(ring: KeyRing): Promise<void> {
    await ring.stop();
    running.delete(ring);
  }

  async function prepare(issuers: readonly IssuerKeySettings[], keys: KeySettings): Promise<PreparedKeyRings> {
    const added: KeyRing[] = [];
    const kept: KeyRing[] = [];
    const missed: Promise<void>[] = [];
    const next = new Map<string, ActiveRing>();
    for (const issuer of issuers) {
      const source = sourceOf(issuer);
      const terms = JSON.stringify([keys, issuer.caFile]);
      const before = active.get(issuer.issuer);
      if (before?.source === source && before.terms === terms) {
        next.set(issuer.issuer, before);
        kept.push(before.ring);
        continue;
      }
      const handedOver = before?.source === source ? before.ring.handOver() : undefined;
      const first = createDeferred<void>();
      const seen = withFirstRefresh(observer, () => first.resolve());
      const ring = createKeyRing({ issuer, keys, proxy, createTransport, handedOver, observer: seen });
      added.push(ring);
      next.set(issuer.issuer, { ring, source, terms });
      if (handedOver === undefined && before?.ring.status().state === 'usable') missed.push(first.promise);
    }
    const discard = async (): Promise<void> => {
      await Promise.all(added.map(stopRing));
    };
    try {
      for (const ring of added) running.add(ring);
      await Promise.all([...added.map(ring => ring.start()), ...kept.map(ring => ring.checkTrust())]);
    } catch (error) {
      await discard();
      throw error;
    }
    await Promise.race([withinMs(headStartMs, missed), stopping.promise]);
    // Stopped meanwhile: `stop` may not have seen these rings.
    if (isStopped) await discard();
    return {
      rings: new Map(Array.from(next, ([issuer, { ring }]) => [issuer, ring])),
      takeOver() {
        const before = active;
        active = next;
        const staying = new Set(Array.from(next.values(), ({ ring }) => ring));
        for (const { ring } of before.values()) if (!staying.has(ring)) void stopRing(ring);
      },
      discard,
    };
  }

  return {
    inForce: () => Array.from(active.values(), ({ ring }) => ring),
    prepare,
    async stop() {
      isStopped = true;
      stopping.resolve();
      await Promise.all(Array.from(running, stopRing));
      stopThread();
    },
  };
}

/** Without caFile: the ring decides whether keys stay trusted under another one. */
function sourceOf({ jwksUrl, discoveryUrl, jwksFile, algorithms }: IssuerKeySettings): string {
  return JSON.stringify([jwksUrl, discoveryUrl, jwksFile, algorithms.toSorted()]);
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

async function withinMs(limitMs: number, waited: readonly Promise<void>[]): Promise<void> {
  if (waited.length === 0) return;
  const timer = new AbortController();
  const late = delay(limitMs, undefined, { signal: timer.signal, ref: false }).catch(() => undefined);
  await Promise.race([late, Promise.all(waited)]);
  timer.abort();
}
