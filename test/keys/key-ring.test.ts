// A running key ring against a test issuer: rotation, outage, floods, slow answers, clocks and the stop.
import { expect } from 'chai';
import { issuerWith, jwk, kindOf, loaded, loadedWith, ringLab, stopRings } from './ring-lab.ts';

/** A busy machine may take longer than the 150 ms that a lookup waits. */
const orLate = (kind: string): readonly string[] => [kind, 'unavailable'];
const unknown = { kind: 'none', detail: 'kid is not a key of the issuer' };

describe('key ring', () => {
  afterEach(stopRings);

  describe('start', () => {
    it('K-001 makes the keys of the issuer usable and notifies the observer', async () => {
      const { ring, refreshes, usable } = await loadedWith(['k1', 'k2']);
      expect(ring.current('k1')?.cryptoKeyFor('ES256')).to.not.equal(undefined);
      expect(ring.find('k2')).to.deep.equal({ kind: 'key', key: ring.current('k2') });
      expect(refreshes).to.deep.equal([
        { issuers: ['https://issuer'], result: 'success', problem: undefined, keys: 2, skipped: undefined },
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
  });

  describe('rotation', () => {
    it('K-006 K-007 makes a new key known with one early refresh for 50 concurrent lookups', async () => {
      const { issuer, ring, advance, refreshed } = await loadedWith(['k1']);
      issuer.publish([await jwk('k1'), await jwk('k2')]);
      advance(6);
      const lookups = Array.from({ length: 50 }, () => kindOf(ring.find('k2')));
      for (const kind of await Promise.all(lookups)) expect(orLate('key')).to.include(kind);
      await refreshed(2);
      expect(await kindOf(ring.find('k2'))).to.equal('key');
      expect(await kindOf(ring.find('k1'))).to.equal('key');
      expect(issuer.requests()).to.have.length(2);
    });

    it('is checked with the ETag, and status 304 confirms the key set', async () => {
      const { issuer, ring, advance, refreshed } = await loadedWith(['k1']);
      advance(3_000);
      ring.find('unknown');
      expect(await refreshed(2)).to.include({ result: 'success', keys: 1 });
      expect(issuer.requests().map(({ status }) => status)).to.deep.equal([200, 304]);
      advance(3_000);
      expect(ring.current('k1')?.kid).to.equal('k1');
    });

    it('never uses the ETag of a refused key set', async () => {
      const { issuer, ring, advance, refreshed } = await loadedWith([]);
      advance(6);
      ring.find('k1');
      expect(await refreshed(2)).to.include({ problem: 'no usable key: the list is empty' });
      expect(issuer.requests()[1]?.headers['if-none-match']).to.equal(undefined);
    });
  });

  describe('background refresh', () => {
    for (const cacheControl of ['max-age=0, no-store', 'max-age=31536000, immutable']) {
      it(`K-049 follows refreshSeconds and ignores cache-control: ${cacheControl}`, async () => {
        const headers = { 'cache-control': cacheControl, expires: 'garbage' };
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
      const { issuer, ring, advance, refreshed, usable } = await loadedWith(['k1']);
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
      ['K-018 an HTML page', { kind: 'html' }, 'text/html, not JSON'],
      ['K-017 an error status', { kind: 'respond', status: 500 }, 'status 500'],
      ['K-021 another document', { kind: 'respond', body: '{}' }, 'not a key set: an object without the list "keys"'],
    ] as const) {
      it(`${name} fails the refresh and keeps the last good key set`, async () => {
        const { issuer, ring, advance, refreshed } = await loadedWith(['k1']);
        issuer.fault(fault);
        advance(6);
        expect(await kindOf(ring.find('unknown'))).to.equal('unavailable');
        expect(await refreshed(2)).to.include({ result: 'failure', problem, keys: 1 });
        expect(ring.current('k1')?.kid).to.equal('k1');
      });
    }

    it('K-050 is timed on the monotonic clock: a wall clock jump of an hour changes nothing', async () => {
      const { ring, shiftWallClock } = await loadedWith(['k1']);
      for (const seconds of [3600, -3600]) {
        shiftWallClock(seconds);
        expect(ring.current('k1')?.kid).to.equal('k1');
        expect(ring.find('unknown')).to.deep.equal(unknown);
        expect(ring.status().ageSeconds).to.be.within(0, 60);
      }
    });
  });

  describe('tokens without a kid', () => {
    it('find the key that fits at once, and ask for no early refresh', async () => {
      const { issuer, ring, advance } = await loadedWith(['k1']);
      advance(6);
      expect(ring.find(undefined)).to.deep.equal({ kind: 'key', key: ring.current('k1') });
      issuer.publish([await jwk('k2')]);
      expect(ring.find(undefined)).to.have.property('kind', 'key');
      expect(issuer.requests()).to.have.length(1);
    });

    it('are unavailable at once without a usable set', async () => {
      const issuer = await issuerWith(['k1']);
      await issuer.stop();
      const { ring, advance } = await loaded({ jwksUrl: issuer.jwksUrl });
      advance(6);
      const detail = 'no key set yet, last refresh: connection refused';
      expect(ring.find(undefined)).to.deep.equal({ kind: 'unavailable', detail });
    });

    it('leave a cached key in force when a second one appears, until it is gone', async () => {
      const { issuer, ring, advance, refreshed } = await loadedWith(['k1'], { etag: false });
      const key = ring.current('k1');
      if (key === undefined) throw new Error('no key');
      issuer.publish([await jwk('k1'), await jwk('k2')]);
      advance(6);
      await ring.find('k2');
      expect(ring.find(undefined)).to.have.property('kind', 'none');
      expect(ring.isInForce(key)).to.equal(true);
      issuer.publish([await jwk('k2')]);
      advance(600);
      ring.find('k3');
      await refreshed(3);
      expect(ring.isInForce(key)).to.equal(false);
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
      expect(performance.now() - startedMs).to.be.at.least(140);
    });

    it('K-009 K-011 in a flood are refused at once and cost one fetch per cooldown', async () => {
      const { issuer, ring, refreshes } = await loadedWith(['k1']);
      const lookups = Array.from({ length: 20_000 }, (_, i) => ring.find(`unknown ${i}`));
      expect(lookups.every(lookup => 'kind' in lookup && lookup.kind === 'none')).to.equal(true);
      expect(ring.find('k1')).to.include({ kind: 'key' });
      expect(issuer.requests()).to.have.length(1);
      expect(refreshes).to.have.length(1);
    });

    it('K-009 wait in bounded number, and every waiting lookup is answered', async () => {
      const { issuer, ring, advance } = await loadedWith(['k1']);
      advance(6);
      const lookups = Array.from({ length: 2_000 }, (_, i) => ring.find(`unknown ${i}`));
      expect(lookups.filter(lookup => lookup instanceof Promise)).to.have.length(1024);
      for (const kind of await Promise.all(lookups.map(kindOf))) expect(orLate('none')).to.include(kind);
      expect(issuer.requests()).to.have.length(2);
    });

    it('K-037 longer than 256 characters are unknown and trigger no fetch', async () => {
      const { issuer, ring, advance } = await loadedWith(['k1']);
      advance(6);
      expect(ring.find('k'.repeat(257))).to.deep.equal(unknown);
      expect(issuer.requests()).to.have.length(1);
      expect(orLate('none')).to.include(await kindOf(ring.find('k'.repeat(256))));
      expect(issuer.requests()).to.have.length(2);
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
    it('gets the skipped keys of a usable set when they change, and of another one each time', async () => {
      const issuer = await issuerWith(['k1'], { etag: false });
      const skippedKey = { ...(await jwk('k2')), use: 'enc' };
      issuer.publish([await jwk('k1'), skippedKey]);
      const { ring, advance, refreshed, refreshes, warnings } = await loaded({ jwksUrl: issuer.jwksUrl });
      const skipped = [{ key: 'k2', reason: 'use: enc' }];
      const refresh = async (): Promise<void> => {
        advance(600);
        ring.find('unknown');
        await refreshed(refreshes.length + 1);
      };
      await refresh();
      issuer.publish([skippedKey]);
      await refresh();
      await refresh();
      expect(ring.status().skipped).to.deep.equal(skipped);
      issuer.publish([await jwk('k1')]);
      await refresh();
      expect(ring.status().skipped).to.deep.equal([]);
      expect(refreshes.map(event => event.skipped)).to.deep.equal([skipped, undefined, skipped, skipped, []]);
      expect(refreshes[2]?.problem).to.equal('no usable key: k2 (use: enc)');
      expect(warnings).to.deep.equal([]);
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
      expect(performance.now() - startedMs).to.be.below(50_000);
      expect(await lookup).to.deep.equal({ kind: 'unavailable', detail: 'stopped' });
      expect(refreshes).to.deep.equal([]);
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
});
