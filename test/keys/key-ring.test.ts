// A running key ring against a test issuer: rotation, outage, floods, slow answers, clocks, seeds, files and the stop.
import { mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { JWK } from 'jose';
import {
  createKeyRing,
  type IssuerRing,
  isKeyFileError,
  type KeyLookup,
  type KeyRing,
  type KeyRingObserver,
  type KeyRingOptions,
} from '../../src/keys/key-ring.ts';
import type { IssuerKeySettings } from '../../src/keys/key-source.ts';
import { createKeyTransport } from '../../src/keys/key-transport.ts';
import { signingKey } from '../support/signing-key.ts';
import { startTestIssuer, type TestIssuer, type TestIssuerOptions } from '../support/test-issuer.ts';

type Refresh = Parameters<KeyRingObserver['onRefresh']>[0];

/**
 * A ring whose clocks a test sets, and everything that its observer received. By default the monotonic clock is frozen, so that a slow
 * machine makes no difference.
 */
interface RingLab {
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

describe('key ring', () => {
  const ends: (() => Promise<unknown>)[] = [];
  let directory: string;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'account-authz-ring-'));
  });
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
    await rm(directory, { recursive: true });
  });

  const jwk = async (kid: string): Promise<JWK> => (await signingKey(kid)).publicJwk;

  async function issuerWith(kids: readonly string[], options: TestIssuerOptions = {}): Promise<TestIssuer> {
    const issuer = await startTestIssuer({ keys: await Promise.all(kids.map(jwk)), ...options });
    ends.push(() => issuer.stop());
    return issuer;
  }

  function ringLab(
    source: Partial<IssuerKeySettings>,
    keys: Partial<KeyRingOptions['keys']> = {},
    observer: Partial<KeyRingObserver> = {},
    clock: 'frozen' | 'running' = 'frozen',
  ): RingLab {
    const refreshes: Refresh[] = [];
    const usable: string[] = [];
    const warnings: string[] = [];
    const waiting: { count: number; resolve: (refresh: Refresh) => void }[] = [];
    let advancedMs = 0;
    let wallShiftMs = 0;
    const created = createKeyRing({
      createTransport: createKeyTransport,
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
  async function loaded(...parameters: Parameters<typeof ringLab>): Promise<RingLab> {
    const lab = ringLab(...parameters);
    await lab.ring.start();
    await lab.refreshed(1);
    return lab;
  }

  const kindOf = async (lookup: KeyLookup | Promise<KeyLookup>): Promise<KeyLookup['kind']> => (await lookup).kind;

  describe('start', () => {
    it('K-001 makes the keys of the issuer usable and notifies the observer', async () => {
      const { jwksUrl } = await issuerWith(['k1', 'k2']);
      const { ring, refreshes, usable } = await loaded({ jwksUrl });
      expect(ring.current('k1')?.cryptoKeyFor('ES256')).to.not.equal(undefined);
      expect(ring.find('k2')).to.deep.equal({ kind: 'key', key: ring.current('k2') });
      expect(refreshes).to.deep.equal([
        { issuers: ['https://issuer'], result: 'success', problem: undefined, keys: 2, skipped: 0 },
      ]);
      expect(usable).to.deep.equal(['https://issuer']);
    });

    it('reports its state as loading, usable and stale', async () => {
      const { jwksUrl } = await issuerWith(['k1']);
      const { ring, refreshed, advance } = ringLab({ jwksUrl });
      expect(ring.status()).to.include({ state: 'loading', keys: 0, ageSeconds: undefined, lastResult: undefined });
      await ring.start();
      await refreshed(1);
      expect(ring.status()).to.include({ state: 'usable', keys: 1, lastResult: 'success', lastProblem: undefined });
      expect(ring.status().kids).to.deep.equal(['k1']);
      advance(3600);
      expect(ring.status()).to.deep.include({ state: 'stale', keys: 0, kids: [] });
      expect(ring.status().ageSeconds).to.be.within(3600, 3660);
    });

    it('K-002 succeeds while the issuer is down, and the ring recovers by itself', async () => {
      const issuer = await issuerWith(['k1']);
      await issuer.stop();
      const times = { cooldownSeconds: 0.05, refreshSeconds: 0.2 };
      const { ring, usable, refreshes, refreshed } = await loaded({ jwksUrl: issuer.jwksUrl }, times, {}, 'running');
      expect(refreshes[0]).to.include({ result: 'failure', problem: 'connection refused', keys: 0 });
      expect(await kindOf(ring.find('k1'))).to.equal('unavailable');
      expect(usable).to.deep.equal([]);
      await issuer.restart();
      while ((await refreshed(refreshes.length + 1)).result === 'failure');
      expect(await kindOf(ring.find('k1'))).to.equal('key');
      expect(usable).to.deep.equal(['https://issuer']);
    });

    it('K-006 lets the first lookups wait for the first key set', async () => {
      const issuer = await issuerWith(['k1']);
      issuer.fault({ kind: 'slow', delayMs: 50 });
      const { ring } = ringLab({ jwksUrl: issuer.jwksUrl });
      await ring.start();
      expect(await kindOf(ring.find('k1'))).to.equal('key');
    });

    it('is required before a lookup can find a key', () => {
      expect(ringLab({ jwksUrl: 'http://127.0.0.1:1/' }).ring.find('k1')).to.include({ kind: 'unavailable' });
    });

    it('fetches the keys that a discovery document names', async () => {
      const issuer = await issuerWith(['k1']);
      const { ring } = await loaded({ issuer: issuer.url, discoveryUrl: issuer.discoveryUrl });
      expect(ring.current('k1')?.kid).to.equal('k1');
    });
  });

  describe('rotation', () => {
    it('K-006 K-007 makes a new key known with one early refresh for 50 concurrent lookups', async () => {
      const issuer = await issuerWith(['k1']);
      const { ring, advance } = await loaded({ jwksUrl: issuer.jwksUrl });
      issuer.publish([await jwk('k1'), await jwk('k2')]);
      advance(6);
      const lookups = await Promise.all(Array.from({ length: 50 }, () => ring.find('k2')));
      expect(new Set(lookups.map(({ kind }) => kind))).to.deep.equal(new Set(['key']));
      expect(await kindOf(ring.find('k1'))).to.equal('key');
      expect(issuer.requests()).to.have.length(2);
    });

    it('K-006 without overlap refuses the new key until the cooldown ends, then finds it by itself', async () => {
      const issuer = await issuerWith(['k1']);
      const { ring, refreshed } = await loaded({ jwksUrl: issuer.jwksUrl }, { cooldownSeconds: 0.3 }, {}, 'running');
      issuer.publish([await jwk('k2')]);
      expect(ring.find('k2')).to.deep.equal({ kind: 'unknown' });
      await refreshed(2);
      expect(ring.find('k2')).to.include({ kind: 'key' });
      expect(ring.current('k1')).to.equal(undefined);
      expect(ring.find('k1')).to.deep.equal({ kind: 'unknown' });
    });

    it('K-057 replaces the whole key set', async () => {
      const issuer = await issuerWith(['a']);
      const { ring, advance, refreshed } = await loaded({ jwksUrl: issuer.jwksUrl });
      for (const [fetches, here, gone] of [
        [2, 'b', 'a'],
        [3, 'a', 'b'],
      ] as const) {
        issuer.publish([await jwk(here)]);
        advance(6);
        ring.find(`unknown ${fetches}`);
        await refreshed(fetches);
        expect(ring.current(here)?.kid).to.equal(here);
        expect(ring.current(gone)).to.equal(undefined);
      }
    });

    it('keeps the object of an unchanged key', async () => {
      const issuer = await issuerWith(['k1'], { etag: false });
      const { ring, advance, refreshed } = await loaded({ jwksUrl: issuer.jwksUrl });
      const before = ring.current('k1');
      issuer.publish([await jwk('k0'), await jwk('k1')]);
      advance(6);
      await ring.find('k0');
      await refreshed(2);
      expect(ring.current('k1')).to.equal(before);
      issuer.publish([{ ...(await jwk('k0')), kid: 'k1' }]);
      advance(6);
      ring.find('unknown');
      await refreshed(3);
      expect(ring.current('k1')).to.not.equal(before);
    });

    it('is checked with the ETag, and status 304 confirms the key set', async () => {
      const issuer = await issuerWith(['k1']);
      const { ring, advance, refreshed } = await loaded({ jwksUrl: issuer.jwksUrl });
      advance(3_000);
      ring.find('unknown');
      expect(await refreshed(2)).to.include({ result: 'success', keys: 1 });
      expect(issuer.requests().map(({ status }) => status)).to.deep.equal([200, 304]);
      advance(3_000);
      expect(ring.current('k1')?.kid).to.equal('k1');
    });

    it('never uses the ETag of a refused key set', async () => {
      const issuer = await issuerWith([]);
      const { ring, advance, refreshed } = await loaded({ jwksUrl: issuer.jwksUrl });
      advance(6);
      ring.find('k1');
      expect(await refreshed(2)).to.include({ problem: 'no usable key' });
      expect(issuer.requests()[1]?.headers['if-none-match']).to.equal(undefined);
    });
  });

  describe('background refresh', () => {
    for (const [name, headers] of [
      ['max-age=0', { 'cache-control': 'max-age=0' }],
      ['no-store', { 'cache-control': 'no-store' }],
      ['max-age of a year', { 'cache-control': 'max-age=31536000, immutable', expires: 'garbage' }],
    ] as const) {
      it(`K-049 follows refreshSeconds and ignores cache headers (${name})`, async () => {
        const issuer = await issuerWith(['k1'], { headers });
        const times = { refreshSeconds: 1, cooldownSeconds: 0.01 };
        const { refreshed } = await loaded({ jwksUrl: issuer.jwksUrl }, times, {}, 'running');
        await refreshed(2);
        const [first, second] = issuer.requests();
        // random() is 0 here, so the jitter shortens the interval by a fifth; a busy machine shortens it by what the first request was late.
        expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).to.be.above(400);
        expect(issuer.requests()).to.have.length(2);
      });
    }
  });

  describe('outage', () => {
    it('K-003 K-005 keeps keys usable until maxAgeSeconds, then unavailable until the issuer recovers', async () => {
      const issuer = await issuerWith(['k1']);
      const { ring, advance, refreshed, usable } = await loaded({ jwksUrl: issuer.jwksUrl });
      await issuer.stop();
      advance(3_500);
      expect(await kindOf(ring.find('unknown'))).to.equal('unavailable');
      expect(ring.find('k1')).to.include({ kind: 'key' });
      expect(ring.status()).to.include({ state: 'usable', lastResult: 'failure', lastProblem: 'connection refused' });
      advance(100);
      expect(ring.current('k1')).to.equal(undefined);
      expect(await kindOf(ring.find('k1'))).to.equal('unavailable');
      await issuer.restart();
      advance(6);
      expect(await kindOf(ring.find('k1'))).to.equal('key');
      expect((await refreshed(4)).result).to.equal('success');
      expect(usable).to.have.length(2);
    });

    for (const [name, fault, problem] of [
      ['K-018 an HTML page', { kind: 'html' }, 'content type'],
      ['K-017 an error status', { kind: 'respond', status: 500 }, 'status 500'],
      ['K-022 an empty key set', { kind: 'respond', body: '{"keys":[]}' }, 'no usable key'],
      ['a truncated document', { kind: 'truncated' }, 'not JSON'],
      ['K-021 a document of another kind', { kind: 'respond', body: '{}' }, 'not a key set'],
    ] as const) {
      it(`${name} fails the refresh and keeps the last good key set`, async () => {
        const issuer = await issuerWith(['k1']);
        const { ring, advance, refreshed } = await loaded({ jwksUrl: issuer.jwksUrl });
        issuer.fault(fault);
        advance(6);
        expect(await kindOf(ring.find('unknown'))).to.equal('unavailable');
        expect(await refreshed(2)).to.include({ result: 'failure', problem, keys: 1 });
        expect(ring.current('k1')?.kid).to.equal('k1');
      });
    }

    it('K-050 is timed on the monotonic clock: a wall clock jump of an hour changes nothing', async () => {
      const { jwksUrl } = await issuerWith(['k1']);
      const { ring, shiftWallClock } = await loaded({ jwksUrl });
      for (const seconds of [3600, -3600]) {
        shiftWallClock(seconds);
        expect(ring.current('k1')?.kid).to.equal('k1');
        expect(ring.find('unknown')).to.deep.equal({ kind: 'unknown' });
        expect(ring.status().ageSeconds).to.be.within(0, 60);
      }
    });
  });

  describe('unknown kids', () => {
    it('K-006 wait at most 150 ms for a slow issuer, known keys do not wait', async () => {
      const issuer = await issuerWith(['k1']);
      const { ring, advance } = await loaded({ jwksUrl: issuer.jwksUrl }, {}, {}, 'running');
      issuer.fault({ kind: 'hang' });
      advance(6);
      const startedMs = performance.now();
      const lookup = ring.find('unknown');
      expect(lookup).to.be.instanceOf(Promise);
      expect(ring.find('k1')).to.include({ kind: 'key' });
      expect(await lookup).to.deep.equal({ kind: 'unavailable', detail: 'the refresh takes longer than 150 ms' });
      expect(performance.now() - startedMs).to.be.within(140, 2_500);
    });

    it('K-009 K-011 in a flood are refused at once and cost one fetch per cooldown', async () => {
      const issuer = await issuerWith(['k1']);
      const { ring, refreshes } = await loaded({ jwksUrl: issuer.jwksUrl });
      const lookups = Array.from({ length: 20_000 }, (_, i) => ring.find(`unknown ${i}`));
      expect(lookups.every(lookup => 'kind' in lookup && lookup.kind === 'unknown')).to.equal(true);
      expect(ring.find('k1')).to.include({ kind: 'key' });
      expect(issuer.requests()).to.have.length(1);
      expect(refreshes).to.have.length(1);
    });

    it('K-009 that keep coming make early refreshes back off until one brings a new key', async () => {
      const issuer = await issuerWith(['k1']);
      const { ring, advance } = await loaded({ jwksUrl: issuer.jwksUrl });
      for (const [index, seconds] of [5, 5, 5, 10, 20, 40, 48].entries()) {
        advance(seconds - 1);
        expect(ring.find(`early unknown ${index}`)).to.deep.equal({ kind: 'unknown' });
        advance(1);
        expect(await ring.find(`unknown ${index}`)).to.deep.equal({ kind: 'unknown' });
        expect(issuer.requests()).to.have.length(2 + index);
      }
      expect(new Set(issuer.requests().map(({ status }) => status))).to.deep.equal(new Set([200, 304]));
      issuer.publish([await jwk('k2')]);
      advance(48);
      expect(await ring.find('k2')).to.include({ kind: 'key' });
      advance(5);
      expect(await ring.find('unknown')).to.deep.equal({ kind: 'unknown' });
      expect(issuer.requests()).to.have.length(10);
    });

    it('K-009 wait in bounded number, and every waiting lookup is answered', async () => {
      const issuer = await issuerWith(['k1']);
      const { ring, advance } = await loaded({ jwksUrl: issuer.jwksUrl });
      advance(6);
      const lookups = Array.from({ length: 2_000 }, (_, i) => ring.find(`unknown ${i}`));
      expect(lookups.filter(lookup => lookup instanceof Promise)).to.have.length(1024);
      expect(new Set(await Promise.all(lookups.map(kindOf)))).to.deep.equal(new Set(['unknown']));
      expect(issuer.requests()).to.have.length(2);
    });

    it('K-010 in a flood during an outage are unavailable and cost one fetch per cooldown', async () => {
      const issuer = await issuerWith(['k1']);
      const { ring, advance, refreshed } = await loaded({ jwksUrl: issuer.jwksUrl });
      issuer.fault({ kind: 'respond', status: 500 });
      advance(6);
      await ring.find('first');
      await refreshed(2);
      const lookups = Array.from({ length: 20_000 }, (_, i) => ring.find(`unknown ${i}`));
      expect(lookups.every(lookup => 'kind' in lookup && lookup.kind === 'unavailable')).to.equal(true);
      expect(ring.find('k1')).to.include({ kind: 'key' });
      expect(issuer.requests()).to.have.length(2);
    });

    it('K-037 longer than 256 characters are unknown and trigger no fetch', async () => {
      const issuer = await issuerWith(['k1']);
      const { ring, advance } = await loaded({ jwksUrl: issuer.jwksUrl });
      advance(6);
      expect(ring.find('k'.repeat(257))).to.deep.equal({ kind: 'unknown' });
      expect(issuer.requests()).to.have.length(1);
      expect(await kindOf(ring.find('k'.repeat(256)))).to.equal('unknown');
      expect(issuer.requests()).to.have.length(2);
    });

    it('K-037 named like members of Object.prototype are unknown', async () => {
      const { jwksUrl } = await issuerWith(['k1']);
      const { ring } = await loaded({ jwksUrl });
      for (const kid of ['__proto__', 'constructor', 'toString', '']) {
        expect(ring.find(kid)).to.deep.equal({ kind: 'unknown' });
        expect(ring.current(kid)).to.equal(undefined);
      }
    });
  });

  it('K-051 does not share the key of a kid between two issuers', async () => {
    const one = await issuerWith(['one']);
    const other = await issuerWith([]);
    other.publish([{ ...(await jwk('other')), kid: 'one' }]);
    const rings = [await loaded({ jwksUrl: one.jwksUrl }), await loaded({ jwksUrl: other.jwksUrl })];
    const thumbprints = rings.map(({ ring }) => ring.current('one')?.thumbprint);
    expect(new Set(thumbprints).size).to.equal(2);
    expect(thumbprints).to.not.include(undefined);
  });

  describe('observer', () => {
    it('is warned once of skipped keys, with kid and reason', async () => {
      const issuer = await issuerWith(['k1'], { etag: false });
      const bad = [
        { kty: 'oct', k: 'AAAA', kid: 'shared "secret"' },
        { kty: 'RSA', n: 'AQAB', e: 'AQAB', kid: 'we\u009b31m\u202eak' },
      ];
      issuer.publish([await jwk('k1'), ...bad, { ...(await jwk('k2')), use: 'enc' }]);
      const { ring, advance, refreshed, refreshes, warnings } = await loaded({ jwksUrl: issuer.jwksUrl });
      advance(6);
      ring.find('unknown');
      await refreshed(2);
      expect(refreshes.map(({ skipped }) => skipped)).to.deep.equal([3, 3]);
      expect(warnings).to.deep.equal([
        'keys not used: symmetric key (kid "shared \\"secret\\""), RSA modulus (kid "we\\u{9b}31m\\u{202e}ak")',
      ]);
    });

    it('is not warned again of the same skipped keys after an outage', async () => {
      const issuer = await issuerWith([], { etag: false });
      issuer.publish([await jwk('k1'), { kty: 'oct', kid: 'shared' }]);
      const { ring, advance, refreshed, warnings } = await loaded({ jwksUrl: issuer.jwksUrl });
      issuer.fault({ kind: 'respond', status: 500 });
      advance(6);
      ring.find('unknown');
      await refreshed(2);
      issuer.healthy();
      advance(6);
      ring.find('unknown');
      await refreshed(3);
      expect(warnings).to.have.length(1);
    });

    it('can throw without breaking the ring', async () => {
      const fail = (): never => {
        throw new Error('hook');
      };
      const issuer = await issuerWith(['k1']);
      issuer.publish([await jwk('k1'), { kty: 'oct', kid: 'shared' }]);
      const observer = { onRefresh: fail, onUsable: fail, onWarning: fail };
      const { ring } = ringLab({ jwksUrl: issuer.jwksUrl }, {}, observer);
      await ring.start();
      expect(await kindOf(ring.find('k1'))).to.equal('key');
    });
  });

  describe('stop', () => {
    it('K-054 aborts the fetch in flight and answers waiting lookups at once', async () => {
      const issuer = await issuerWith(['k1']);
      issuer.fault({ kind: 'hang' });
      const { ring, refreshes } = ringLab({ jwksUrl: issuer.jwksUrl }, { timeoutSeconds: 60 });
      await ring.start();
      const lookup = ring.find('k1');
      const startedMs = performance.now();
      await ring.stop();
      expect(performance.now() - startedMs).to.be.below(10_000);
      expect(await lookup).to.deep.equal({ kind: 'unavailable', detail: 'stopped' });
      expect(refreshes).to.deep.equal([]);
    });

    it('leaves known keys usable for requests in flight and fetches no others', async () => {
      const issuer = await issuerWith(['k1']);
      const { ring, advance } = await loaded({ jwksUrl: issuer.jwksUrl });
      await ring.stop();
      advance(6);
      expect(ring.find('k1')).to.include({ kind: 'key' });
      expect(ring.find('unknown')).to.deep.equal({ kind: 'unavailable', detail: 'stopped' });
      expect(issuer.requests()).to.have.length(1);
    });

    it('can come before the end of the start, and twice', async () => {
      const issuer = await issuerWith(['k1']);
      const { ring } = ringLab({ jwksUrl: issuer.jwksUrl, caFile: undefined }, { cacheDirectory: directory });
      const starting = ring.start();
      await ring.stop();
      await starting;
      await ring.stop();
      expect(issuer.requests()).to.have.length(0);
    });

    it('leaves no timer, and a running ring has none that keeps the process alive', async () => {
      const { jwksUrl } = await issuerWith(['k1']);
      const timers = (): number => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length;
      const before = timers();
      const { ring } = await loaded({ jwksUrl });
      expect(timers()).to.be.at.most(before);
      await ring.stop();
      expect(timers()).to.be.at.most(before);
    });
  });

  describe('seed', () => {
    const writeSeed = async (issuer: TestIssuer): Promise<void> => {
      const { ring } = await loaded({ jwksUrl: issuer.jwksUrl }, { cacheDirectory: directory });
      await ring.stop();
      await issuer.stop();
    };

    it('K-002 makes the last good key set usable while the issuer is down', async () => {
      const issuer = await issuerWith(['k1']);
      await writeSeed(issuer);
      const { ring, usable } = ringLab({ jwksUrl: issuer.jwksUrl }, { cacheDirectory: directory });
      await ring.start();
      expect(ring.find('k1')).to.include({ kind: 'key' });
      expect(ring.status().state).to.equal('usable');
      expect(usable).to.deep.equal(['https://issuer']);
      expect(await kindOf(ring.find('unknown'))).to.equal('unavailable');
    });

    it('is used until it reaches maxAgeSeconds', async () => {
      const issuer = await issuerWith(['k1']);
      await writeSeed(issuer);
      const { ring, advance } = ringLab({ jwksUrl: issuer.jwksUrl }, { cacheDirectory: directory });
      await ring.start();
      advance(3_590);
      expect(ring.current('k1')?.kid).to.equal('k1');
      advance(10);
      expect(ring.current('k1')).to.equal(undefined);
    });

    for (const [seconds, problem] of [
      [3_601, 'seed not used: too old'],
      [-3_600, 'seed not used: from the future'],
    ] as const) {
      it(`is not used at an age of ${seconds} s on the wall clock: ${problem}`, async () => {
        const issuer = await issuerWith(['k1']);
        await writeSeed(issuer);
        const { ring, shiftWallClock, warnings } = ringLab({ jwksUrl: issuer.jwksUrl }, { cacheDirectory: directory });
        shiftWallClock(seconds);
        await ring.start();
        expect(ring.current('k1')).to.equal(undefined);
        expect(warnings).to.deep.equal([problem]);
      });
    }

    it('is replaced by the first successful fetch', async () => {
      const issuer = await issuerWith(['k1']);
      await writeSeed(issuer);
      await issuer.restart();
      issuer.publish([await jwk('k2')]);
      const { ring } = await loaded({ jwksUrl: issuer.jwksUrl }, { cacheDirectory: directory });
      expect(ring.current('k1')).to.equal(undefined);
      expect(ring.current('k2')?.kid).to.equal('k2');
    });

    it('is confirmed on disk by a status 304', async () => {
      const issuer = await issuerWith(['k1']);
      const { ring, advance, refreshed } = await loaded({ jwksUrl: issuer.jwksUrl }, { cacheDirectory: directory });
      advance(1_000);
      ring.find('unknown');
      await refreshed(2);
      await ring.stop();
      const [name = ''] = await readdir(directory);
      const { confirmedAt } = JSON.parse(await readFile(join(directory, name), 'utf8'));
      expect(confirmedAt - Date.now()).to.be.within(990_000, 1_000_000);
    });

    it('causes one warning and no error if it cannot be written', async () => {
      const issuer = await issuerWith(['k1'], { etag: false });
      const file = join(directory, 'file');
      await writeFile(file, '');
      const { ring, advance, refreshed, warnings } = await loaded(
        { jwksUrl: issuer.jwksUrl },
        { cacheDirectory: file },
      );
      advance(6);
      ring.find('unknown');
      await refreshed(2);
      await ring.stop();
      expect(ring.current('k1')?.kid).to.equal('k1');
      expect(warnings).to.have.length(1);
      expect(warnings[0]).to.match(/^seed not written: /);
    });
  });

  describe('jwksFile', () => {
    const replace = async (path: string, text: string): Promise<void> => {
      await writeFile(`${path}.new`, text);
      await rename(`${path}.new`, path);
    };

    it('is loaded once start has resolved', async () => {
      const path = join(directory, 'jwks.json');
      await writeFile(path, JSON.stringify({ keys: [await jwk('k1')] }));
      const { ring } = ringLab({ jwksFile: path });
      await ring.start();
      expect(ring.current('k1')?.kid).to.equal('k1');
    });

    for (const [name, text, problem] of [
      ['that is missing', undefined, 'no such file'],
      ['that is malformed', '{', 'not JSON'],
      ['without a usable key', '{"keys":[]}', 'no usable key'],
    ] as const) {
      it(`${name} fails the start with an error that names the file: ${problem}`, async () => {
        const path = join(directory, 'jwks.json');
        if (text !== undefined) await writeFile(path, text);
        const { ring } = ringLab({ jwksFile: path });
        const error: unknown = await ring.start().catch((reason: unknown) => reason);
        expect(isKeyFileError(error)).to.equal(true);
        expect(ring.find('k1')).to.deep.equal({ kind: 'unavailable', detail: 'stopped' });
        expect(String(error)).to.equal(`Error: jwksFile of https://issuer: ${problem}: ${path}`);
      });
    }

    it('is never written to the cache directory', async () => {
      const path = join(directory, 'jwks.json');
      await writeFile(path, JSON.stringify({ keys: [await jwk('k1')] }));
      const { ring } = await loaded({ jwksFile: path }, { cacheDirectory: join(directory, 'cache') });
      await ring.stop();
      expect(await readdir(directory)).to.deep.equal(['jwks.json']);
    });

    it('is reloaded when it changes, and a malformed version keeps the last good key set', async () => {
      const path = join(directory, 'jwks.json');
      await writeFile(path, JSON.stringify({ keys: [await jwk('k1')] }));
      const times = { cooldownSeconds: 0.01 };
      const { ring, refreshed, refreshes } = await loaded({ jwksFile: path }, times, {}, 'running');
      await replace(path, '{');
      expect(await refreshed(2)).to.include({ result: 'failure', problem: 'not JSON', keys: 1 });
      expect(ring.current('k1')?.kid).to.equal('k1');
      await replace(path, JSON.stringify({ keys: [await jwk('k2')] }));
      // On a busy machine a retry may still read the malformed version.
      while ((await refreshed(refreshes.length + 1)).result === 'failure');
      expect(ring.current('k1')).to.equal(undefined);
      expect(ring.current('k2')?.kid).to.equal('k2');
    });

    it('is read again every refreshSeconds without a change event', async () => {
      const path = join(directory, 'jwks.json');
      await writeFile(path, JSON.stringify({ keys: [await jwk('k1')] }));
      const times = { cooldownSeconds: 0.01, refreshSeconds: 0.1 };
      const { refreshed } = await loaded({ jwksFile: path }, times, {}, 'running');
      expect(await refreshed(3)).to.include({ result: 'success' });
    });
  });

  it('isKeyFileError rejects other errors', () => {
    expect(isKeyFileError(new Error('other'))).to.equal(false);
    expect(isKeyFileError('ERR_KEY_FILE')).to.equal(false);
  });
});
