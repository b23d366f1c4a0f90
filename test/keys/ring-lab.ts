// Key rings against test issuers, for the tests of a running ring; an afterEach hook stops what they started.
import type { JWK } from 'jose';
import { signingKey } from '../../lab/signing-key.ts';
import { startTestIssuer, type TestIssuer, type TestIssuerOptions } from '../../lab/test-issuer.ts';
import { createFileWatch } from '../../src/files/file-watch.ts';
import { createKeyRing, type KeyLookup, type KeyRingObserver, type KeyRingOptions } from '../../src/keys/key-ring.ts';
import type { IssuerKeySettings } from '../../src/keys/key-source.ts';
import { current, withKid } from '../support/key-rings.ts';

type Refresh = Parameters<KeyRingObserver['onRefresh']>[0];

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

/**
 * A ring whose clocks a test sets, and everything that its observer received. By default the monotonic clock is frozen, so that a slow
 * machine makes no difference.
 */
export function ringLab(
  source: Partial<IssuerKeySettings>,
  keys: Partial<KeyRingOptions['keys']> = {},
  observer: Partial<KeyRingObserver> = {},
  clock: 'frozen' | 'running' = 'frozen',
  { watchFiles = createFileWatch() }: Partial<Pick<KeyRingOptions, 'watchFiles'>> = {},
) {
  const refreshes: Refresh[] = [];
  const usable: string[] = [];
  const warnings: string[] = [];
  const waiting: { count: number; resolve: (refresh: Refresh) => void }[] = [];
  let advancedMs = 0;
  let wallShiftMs = 0;
  const created = createKeyRing({
    proxy: {},
    limitFetches: fetch => fetch(),
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
    ring: {
      ...created,
      ...issuerRing,
      current: (kid: string) => current(issuerRing, kid),
      find: (kid: string | undefined) => issuerRing.find(withKid(kid)),
    },
    refreshes,
    usable,
    warnings,
    /** Advances the monotonic clock and the wall clock. */
    advance(seconds: number) {
      advancedMs += seconds * 1000;
    },
    shiftWallClock(seconds: number) {
      wallShiftMs = seconds * 1000;
    },
    /** Resolves once that many fetches have ended. */
    refreshed: (count: number) =>
      new Promise<Refresh>(resolve => {
        const last = refreshes.at(-1);
        if (last !== undefined && refreshes.length >= count) resolve(last);
        else waiting.push({ count, resolve });
      }),
  };
}

/** A started ring whose first fetch has ended. */
export async function loaded(...parameters: Parameters<typeof ringLab>) {
  const lab = ringLab(...parameters);
  await lab.ring.start();
  await lab.refreshed(1);
  return lab;
}

/** The same, of a new issuer with these kids. */
export async function loadedWith(...parameters: Parameters<typeof issuerWith>) {
  const issuer = await issuerWith(...parameters);
  return { issuer, ...(await loaded({ jwksUrl: issuer.jwksUrl })) };
}

export async function kindOf(lookup: KeyLookup | Promise<KeyLookup>): Promise<KeyLookup['kind']> {
  return (await lookup).kind;
}
