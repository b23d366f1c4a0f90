// The key rings of all issuers across changes of the configuration: which go on, which hand their set over, which are new. What is
// new is started beside what is in force; nothing of it shows until it takes over.
import { setTimeout as delay } from 'node:timers/promises';
import { createDeferred } from '../deferred.ts';
import { createKeyRing, type KeyRing, type KeyRingObserver, type KeySettings, type ProxySettings } from './key-ring.ts';
import type { IssuerKeySettings } from './key-source.ts';
import { createKeyThread } from './key-thread.ts';

export interface KeyRings {
  /** Those in force, in the order of the configuration. */
  inForce(): readonly KeyRing[];
  /**
   * Starts the rings that these settings need beside those in force. Waits for no issuer, but a moment for those whose ring in use
   * is to be replaced without its keys. Rejects, leaving nothing behind, where a jwksFile is missing or broken, see isKeyFileError.
   */
  prepare(issuers: readonly IssuerKeySettings[], keys: KeySettings): Promise<PreparedKeyRings>;
  /** For good, also what is being prepared. */
  stop(): Promise<void>;
}

export interface PreparedKeyRings {
  /** By issuer. */
  readonly rings: ReadonlyMap<string, KeyRing>;
  /** From now on in force; the rings that have no part in it are stopped. */
  takeOver(): void;
  /** Stops what was started. */
  discard(): Promise<void>;
}

interface HeldRing {
  readonly ring: KeyRing;
  /** What the keys depend on: where they come from, and which of them are taken. */
  readonly source: string;
  /** When they are fetched, how long they last, and which file names who may vouch for them. */
  readonly terms: string;
}

// Long enough for most fetches, and short within the five seconds that a change may take.
const usualHeadStartMs = 1000;

export function createKeyRings(options: {
  readonly observer: KeyRingObserver;
  readonly proxy: ProxySettings;
  readonly headStartMs?: number;
  /** What the thread of the fetches runs, where it is not what is built. */
  readonly threadEntry?: URL | undefined;
}): KeyRings {
  const { observer, proxy, headStartMs = usualHeadStartMs } = options;
  const { createTransport, stop: stopThread } = createKeyThread(options.threadEntry);
  const running = new Set<KeyRing>();
  let held: ReadonlyMap<string, HeldRing> = new Map();
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
    const next = new Map<string, HeldRing>();
    for (const issuer of issuers) {
      const source = sourceOf(issuer);
      const terms = JSON.stringify([keys, issuer.caFile]);
      const before = held.get(issuer.issuer);
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
    // The stop has seen to those that it knew of.
    if (isStopped) await discard();
    return {
      rings: new Map(Array.from(next, ([issuer, { ring }]) => [issuer, ring])),
      takeOver() {
        const before = held;
        held = next;
        const staying = new Set(Array.from(next.values(), ({ ring }) => ring));
        for (const { ring } of before.values()) if (!staying.has(ring)) void stopRing(ring);
      },
      discard,
    };
  }

  return {
    inForce: () => Array.from(held.values(), ({ ring }) => ring),
    prepare,
    async stop() {
      isStopped = true;
      stopping.resolve();
      await Promise.all(Array.from(running, stopRing));
      stopThread();
    },
  };
}

/** Where the keys come from and which of them are taken. Whether they may be kept under another caFile is for the ring to say. */
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
