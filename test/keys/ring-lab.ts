// Key rings against test issuers, for the tests of a running ring; an afterEach hook stops what they started.
import type { JWK } from 'jose';
import { signingKey } from '../../lab/signing-key.ts';
import { startTestIssuer, type TestIssuer, type TestIssuerOptions } from '../../lab/test-issuer.ts';
import { createFileWatch } from '../../src/files/file-watch.ts';
import { createFetchSlots } from '../../src/keys/fetch-slots.ts';
import type { IssuerRing } from '../../src/keys/issuer-ring.ts';
import { createKeyRing, type KeyRing, type KeyRingOptions } from '../../src/keys/key-ring.ts';
import type { KeyRingObserver } from '../../src/keys/key-ring-observer.ts';
import type { KeyLookup } from '../../src/keys/key-set-state.ts';
import type { IssuerKeySettings } from '../../src/keys/key-source.ts';
import { getKeyDocument } from '../../src/keys/key-transport.ts';

type Refresh = Parameters<KeyRingObserver['onRefresh']>[0];

/**
 * A ring whose clocks a test sets, and everything that its observer received. By default the monotonic clock is frozen, so that a slow
 * machine makes no difference.
 */
export interface RingLab {
  readonly ring: KeyRing & IssuerRing;
  readonly refreshes: Refresh[];
  readonly usable: string[];
  readonly warnings: string[];
  /** Advances the monotonic clock and the wall clock. */
  advance(seconds: number): void;
  /** Shifts the wall clock alone. */
  shiftWallClock(seconds: number): void;
  /** Resolves once that many fetches have ended. */
  refreshed(count: number): Promise<Refresh>;
}

const ends: (() => Promise<unknown>)[] = [];

/** Stops the rings and issuers that a test has started. */
export async function stopRings(): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end();
}

export const jwk = async (kid: string): Promise<JWK> => (await signingKey(kid)).publicJwk;

export async function issuerWith(kids: readonly string[], options: TestIssuerOptions = {}): Promise<TestIssuer> {
  const issuer = await startTestIssuer({ keys: await Promise.all(kids.map(jwk)), ...options });
  ends.push(() => issuer.stop());
  return issuer;
}

export function ringLab(
  source: Partial<IssuerKeySettings>,
  keys: Partial<KeyRingOptions['keys']> = {},
  observer: Partial<KeyRingObserver> = {},
  clock: 'frozen' | 'running' = 'frozen',
  { watchFiles = createFileWatch() }: Partial<Pick<KeyRingOptions, 'watchFiles'>> = {},
): RingLab {
  const refreshes: Refresh[] = [];
  const usable: string[] = [];
  const warnings: string[] = [];
  const waiting: { count: number; resolve: (refresh: Refresh) => void }[] = [];
  let advancedMs = 0;
  let wallShiftMs = 0;
  const created = createKeyRing({
    getDocument: getKeyDocument,
    proxy: {},
    slots: createFetchSlots(),
    watchFiles,
    seedReadOnly: false,
    issuers: [{ issuer: 'https://issuer', algorithms: ['ES256'], ...source }],
    keys: { refreshSeconds: 300, maxAgeSeconds: 3600, cooldownSeconds: 5, timeoutSeconds: 3, ...keys },
    observer: {
      onRefresh(event) {
        refreshes.push(event);
        for (const { resolve } of waiting.filter(({ count }) => count === refreshes.length)) resolve(event);
      },
      onUsable: issuers => usable.push(...issuers),
      onWarning: ({ problem }) => warnings.push(problem),
      ...observer,
    },
    monotonicNow: () => (clock === 'frozen' ? 1_000_000 : performance.now()) + advancedMs,
    wallNow: () => Date.now() + advancedMs + wallShiftMs,
    random: () => 0,
  });
  ends.push(() => created.stop());
  const [issuerRing] = created.issuers.values();
  if (issuerRing === undefined) throw new Error('no issuer');
  return {
    ring: { ...created, ...issuerRing },
    refreshes,
    usable,
    warnings,
    advance(seconds) {
      advancedMs += seconds * 1000;
    },
    shiftWallClock(seconds) {
      wallShiftMs = seconds * 1000;
    },
    refreshed: count =>
      new Promise(resolve => {
        const last = refreshes.at(-1);
        if (last !== undefined && refreshes.length >= count) resolve(last);
        else waiting.push({ count, resolve });
      }),
  };
}

/** A started ring whose first fetch has ended. */
export async function loaded(...parameters: Parameters<typeof ringLab>): Promise<RingLab> {
  const lab = ringLab(...parameters);
  await lab.ring.start();
  await lab.refreshed(1);
  return lab;
}

export async function kindOf(lookup: KeyLookup | Promise<KeyLookup>): Promise<KeyLookup['kind']> {
  return (await lookup).kind;
}
