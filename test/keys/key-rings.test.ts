// The key rings across reloads: which rings are reused, which keys a new ring takes over, and what is cleaned up. Issuers on one URL: one fetch
// serves those with the same algorithms and TLS files.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { signingKey } from '../../lab/signing-key.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import { startTestIssuer, type TestIssuer, type TestIssuerOptions } from '../../lab/test-issuer.ts';
import { until } from '../../lab/until.ts';
import type { IssuerRing, KeyRingObserver, KeySettings } from '../../src/keys/key-ring.ts';
import type { KeyRings, PreparedKeyRings } from '../../src/keys/key-rings.ts';
import type { IssuerKeySettings } from '../../src/keys/key-source.ts';
import { freshFolder } from '../support/fresh-folder.ts';
import { current, startKeyRings, withKid } from '../support/key-rings.ts';
import { useEnds } from '../support/use-ends.ts';

const times: KeySettings = { refreshSeconds: 300, maxAgeSeconds: 3600, cooldownSeconds: 5, timeoutSeconds: 60 };
const name = 'https://issuer.test';
/** Of two issuers with one key set. */
const names = ['https://a.test', 'https://b.test'] as const;
const [a, b] = names;

describe('key rings', () => {
  const ends = useEnds();
  let refreshes: Parameters<KeyRingObserver['onRefresh']>[0][];
  let rings: KeyRings;
  let issuer: TestIssuer;
  let folder: string;
  let caFile: string;

  beforeEach(async () => {
    folder = freshFolder();
    caFile = join(folder, 'ca.pem');
    await writeFile(caFile, testCertificate({ name: 'one', isAuthority: true }).cert);
    issuer = await startIssuer();
    rings = startRings();
  });

  const jwk = async (kid: string, alg = 'ES256') => (await signingKey(kid, alg)).publicJwk;

  async function startIssuer(kid = 'k1', options: TestIssuerOptions = {}): Promise<TestIssuer> {
    const started = await startTestIssuer({ keys: [await jwk(kid)], ...options });
    ends.push(() => started.stop());
    return started;
  }

  function startRings(headStartMs = 1000): KeyRings {
    refreshes = [];
    return startKeyRings(ends, { headStartMs, observer: { onRefresh: event => refreshes.push(event) } });
  }

  const settings = (changes: Partial<IssuerKeySettings> = {}): IssuerKeySettings => ({
    issuer: name,
    algorithms: ['ES256', 'RS256'],
    jwksUrl: issuer.jwksUrl,
    ...changes,
  });

  function ringOf(prepared: PreparedKeyRings, of = name): IssuerRing {
    const ring = prepared.rings.get(of);
    if (ring === undefined) throw new Error('no ring');
    return ring;
  }

  async function activate(issuers: readonly IssuerKeySettings[], keys = times): Promise<IssuerRing> {
    const prepared = await rings.prepare(issuers, keys);
    prepared.activate();
    return ringOf(prepared);
  }

  const isUsable = (ring: IssuerRing) => (): boolean => ring.status().state === 'usable';

  /** An active ring with its keys. */
  async function usable(changes: Partial<IssuerKeySettings> = {}): Promise<IssuerRing> {
    const ring = await activate([settings(changes)]);
    await until(isUsable(ring));
    return ring;
  }

  it('become active only once the prepared configuration takes over', async () => {
    const prepared = await rings.prepare([settings()], times);
    expect(rings.active()).to.deep.equal([]);
    prepared.activate();
    expect(rings.active()).to.deep.equal([ringOf(prepared)]);
  });

  describe('after a reload with equal settings', () => {
    const rows: readonly (readonly [string, () => Partial<IssuerKeySettings>])[] = [
      ['identical', () => ({})],
      ['algorithms in another order', () => ({ algorithms: ['RS256', 'ES256'] })],
    ];
    for (const [what, changes] of rows) {
      it(`are reused without a fetch (${what})`, async () => {
        const ring = await usable({ caFile });
        expect(await activate([settings({ caFile, ...changes() })])).to.equal(ring);
        expect(issuer.requests()).to.have.lengthOf(1);
        expect(ring.find(withKid('k1'))).to.have.property('kind', 'key');
      });
    }
  });

  describe('after a reload with other times', () => {
    it('keep the same key objects and their age', async () => {
      const ring = await usable();
      await issuer.stop();
      const next = await activate([settings()], { ...times, refreshSeconds: 100 });
      expect(next).to.not.equal(ring);
      expect(current(next, 'k1')).to.equal(current(ring, 'k1')).and.not.equal(undefined);
      const [before = 0, after = 0, later = 0] = [ring, next, ring].map(each => each.status().ageSeconds);
      expect(after).to.be.within(before - 0.001, later + 0.001);
    });

    it('drop keys older than the new maxAgeSeconds', async () => {
      const ring = await usable();
      await issuer.stop();
      await until(() => (ring.status().ageSeconds ?? 0) > 1);
      const next = await activate([settings()], { ...times, refreshSeconds: 1, cooldownSeconds: 1, maxAgeSeconds: 1 });
      expect(current(next, 'k1')).to.equal(undefined);
    });
  });

  describe('after a reload with another source', () => {
    const changes: readonly (readonly [name: string, change: () => Promise<Partial<IssuerKeySettings>>])[] = [
      ['another jwksUrl', async () => ({ jwksUrl: `${issuer.jwksUrl}?other` })],
      ['discoveryUrl in place of jwksUrl', async () => ({ jwksUrl: undefined, discoveryUrl: issuer.discoveryUrl })],
      ['other algorithms', async () => ({ algorithms: ['ES256'] })],
    ];
    for (const [what, change] of changes) {
      it(`do not keep the keys of the old source (${what})`, async () => {
        rings = startRings(0);
        await usable({ caFile });
        await issuer.stop();
        const next = await activate([settings({ caFile, ...(await change()) })]);
        expect(current(next, 'k1')).to.equal(undefined);
      });
    }

    it('fetch their keys before they take over (head start)', async () => {
      await usable();
      const other = await startIssuer();
      other.fault({ kind: 'slow', delayMs: 100 });
      const next = await activate([settings({ jwksUrl: other.jwksUrl })]);
      expect(current(next, 'k1')).to.not.equal(undefined);
    });

    it('take over without keys when the source hangs longer than the head start', async () => {
      rings = startRings(50);
      await usable();
      const other = await startIssuer();
      other.fault({ kind: 'hang' });
      const next = await activate([settings({ jwksUrl: other.jwksUrl })], { ...times, timeoutSeconds: 1000 });
      expect(next.status().state).to.equal('loading');
    });

    it('take over at once if the old ring has no keys to lose', async () => {
      rings = startRings(3_600_000);
      const other = await startIssuer();
      issuer.fault({ kind: 'hang' });
      other.fault({ kind: 'hang' });
      const slow = { ...times, timeoutSeconds: 1000 };
      await activate([settings()], slow);
      const added = settings({ issuer: 'https://added.test', jwksUrl: other.jwksUrl });
      const next = await activate([settings({ jwksUrl: other.jwksUrl }), added], slow);
      expect(next.status().state).to.equal('loading');
    });
  });

  it('answer a waiting lookup as unavailable when its issuer is removed', async () => {
    await usable();
    issuer.fault({ kind: 'hang' });
    const next = await activate([settings()], { ...times, timeoutSeconds: 1000 });
    const lookup = next.find(withKid('unknown'));
    expect(lookup).to.be.a('promise');
    (await rings.prepare([], times)).activate();
    expect(await lookup).to.deep.equal({ kind: 'unavailable', detail: 'stopped' });
    await until(() => issuer.connections() === 0);
    expect(rings.active()).to.deep.equal([]);
  });

  it('abort every prepared fetch if a jwksFile is unusable, and keep the active rings', async () => {
    const ring = await usable();
    const other = await startIssuer();
    other.fault({ kind: 'hang' });
    const endless = { ...times, timeoutSeconds: 1000 };
    const file = settings({ issuer: 'https://file.test', jwksUrl: undefined, jwksFile: join(folder, 'none.json') });
    const refused = await rings.prepare([settings({ jwksUrl: other.jwksUrl }), file], endless).catch(error => error);
    const message = `jwksFile of https://file.test: the file does not exist: ${file.jwksFile}`;
    expect(refused).to.have.property('message', message);
    await until(() => other.connections() === 0);
    expect(rings.active()).to.deep.equal([ring]);
    expect(isUsable(ring)()).to.equal(true);
  });

  it('abort the fetches of a prepared configuration on stop', async () => {
    rings = startRings(3_600_000);
    await usable();
    const other = await startIssuer();
    other.fault({ kind: 'hang' });
    const preparing = rings.prepare([settings({ jwksUrl: other.jwksUrl })], { ...times, timeoutSeconds: 1000 });
    await until(() => other.connections() === 1);
    await rings.stop();
    await until(() => other.connections() === 0);
    (await preparing).activate();
  });

  describe('of issuers with a shared source', () => {
    const settingsOf = (of: string, changes: Partial<IssuerKeySettings> = {}) =>
      settings({ issuer: of, algorithms: ['ES256'], ...changes });

    async function activateAll(issuers: readonly IssuerKeySettings[], keys: Partial<KeySettings> = {}) {
      const quick = { ...times, cooldownSeconds: 0.05, timeoutSeconds: 3 };
      const prepared = await rings.prepare(issuers, { ...quick, ...keys });
      prepared.activate();
      return (of: string): IssuerRing => ringOf(prepared, of);
    }

    /** Both rings, after their first fetch. */
    async function both(changesOfB: Partial<IssuerKeySettings> = {}, keys: Partial<KeySettings> = {}) {
      const ringOf = await activateAll([settingsOf(a), settingsOf(b, changesOfB)], keys);
      const [ringA, ringB] = [ringOf(a), ringOf(b)];
      await until(() => [ringA, ringB].every(ring => ring.status().lastResult !== undefined));
      return { ringA, ringB };
    }

    it('share one fetch and its keys', async () => {
      const { ringA, ringB } = await both();
      expect(current(ringA, 'k1')).to.equal(current(ringB, 'k1')).and.not.equal(undefined);
      expect(issuer.requests()).to.have.length(1);
      expect(refreshes).to.deep.equal([
        { issuers: names, result: 'success', problem: undefined, keys: 1, skipped: undefined },
      ]);
      expect(rings.active().map(ring => ring.status().issuer)).to.deep.equal(names);
    });

    it('share one early refresh for an unknown kid', async () => {
      const { ringA, ringB } = await both({}, { cooldownSeconds: 0.3 });
      issuer.publish([await jwk('k2')]);
      expect(ringA.find(withKid('k2'))).to.deep.equal({ kind: 'none', detail: 'kid is not a key of the issuer' });
      expect(ringB.find(withKid('k2'))).to.deep.equal({ kind: 'none', detail: 'kid is not a key of the issuer' });
      await until(() => refreshes.length === 2);
      expect(current(ringA, 'k2')).to.equal(current(ringB, 'k2')).and.not.equal(undefined);
      expect(issuer.requests()).to.have.length(2);
    });

    const differentFiles: readonly (readonly [string, () => Promise<Partial<IssuerKeySettings>>])[] = [
      [
        'caFile',
        async () => {
          const caFile = join(folder, 'ca.pem');
          await writeFile(caFile, testCertificate({ isAuthority: true }).cert);
          return { caFile };
        },
      ],
      [
        'client certificate',
        async () => {
          const [clientCertFile, clientKeyFile] = [join(folder, 'client.crt'), join(folder, 'client.key')];
          const { cert, key } = testCertificate();
          await writeFile(clientCertFile, cert);
          await writeFile(clientKeyFile, key);
          return { clientCertFile, clientKeyFile };
        },
      ],
    ];
    for (const [what, change] of differentFiles) {
      it(`fetch separately if their ${what} differs`, async () => {
        await both(await change());
        expect(issuer.requests()).to.have.length(2);
      });
    }

    describe('with different algorithms', () => {
      const rsa = { algorithms: ['RS256'] };

      it('fetch separately, and each uses the keys for its algorithms', async () => {
        issuer.publish([await jwk('ec'), await jwk('rsa', 'RS256')]);
        const { ringA, ringB } = await both(rsa);
        expect(ringA.status().kids).to.deep.equal(['ec']);
        expect(ringB.status().kids).to.deep.equal(['rsa']);
        expect(issuer.requests()).to.have.length(2);
      });

      it('are unavailable if the source has no key for their algorithms', async () => {
        const noUsableKey = 'no usable key: k1 (alg ES256 is not one of algorithms)';
        const { ringA, ringB } = await both(rsa);
        expect(ringA.status()).to.include({ state: 'usable', lastResult: 'success' });
        expect(ringB.status()).to.include({ state: 'loading', lastResult: 'failure', lastProblem: noUsableKey });
        const detail = `no key set yet, last refresh: ${noUsableKey}`;
        expect(await ringB.find(withKid('k1'))).to.deep.equal({ kind: 'unavailable', detail });
        // A failure is tried again.
        expect([...new Set(refreshes.map(({ issuers, result }) => `${issuers.join()} ${result}`))]).to.have.members([
          `${a} success`,
          `${b} failure`,
        ]);
      });
    });

    describe('with a shared discovery document', () => {
      const discovery = { jwksUrl: undefined, discoveryUrl: '' };
      const otherIssuer = (theirs: string, ours: string): string =>
        `discovery: the issuer of the metadata is "${theirs}", not "${ours}" (jwksUrl needs no metadata)`;

      it('fetch separately, and only the issuer that the document names gets keys', async () => {
        const metadata = { issuer: a as string };
        issuer = await startIssuer('k1', { metadata });
        const changes = { ...discovery, discoveryUrl: issuer.discoveryUrl };
        const ringOf = await activateAll([settingsOf(a, changes), settingsOf(b, changes)], { refreshSeconds: 0.2 });
        await until(isUsable(ringOf(a)));
        await until(() => ringOf(b).status().lastResult !== undefined);
        expect(issuer.requests().filter(({ path }) => path === 'jwks')).to.have.length(1);
        expect(ringOf(b).status()).to.include({ state: 'loading', lastProblem: otherIssuer(a, b) });
        metadata.issuer = b;
        await until(isUsable(ringOf(b)));
        await until(() => ringOf(a).status().lastProblem === otherIssuer(b, a));
        expect(isUsable(ringOf(a))()).to.equal(true);
      });
    });

    describe('after a reload', () => {
      it('keep their keys, and an added issuer has them at once', async () => {
        const { ringA } = await both();
        const before = current(ringA, 'k1');
        await issuer.stop();
        const ringOf = await activateAll([settingsOf(a), settingsOf(b), settingsOf('https://c.test')]);
        for (const issuer of [...names, 'https://c.test']) expect(current(ringOf(issuer), 'k1')).to.equal(before);
        expect(before).to.not.equal(undefined);
      });

      it('keep their keys when one of them is removed', async () => {
        const { ringB } = await both();
        await issuer.stop();
        const ringOf = await activateAll([settingsOf(b)]);
        expect(current(ringOf(b), 'k1'))
          .to.equal(current(ringB, 'k1'))
          .and.not.equal(undefined);
        expect(rings.active()).to.have.length(1);
      });

      it('keep the keys of one when the other changes its algorithms', async () => {
        issuer.publish([await jwk('ec'), await jwk('rsa', 'RS256')]);
        const { ringA } = await both();
        const before = current(ringA, 'ec');
        await issuer.stop();
        const ringOf = await activateAll([settingsOf(a), settingsOf(b, { algorithms: ['RS256'] })]);
        expect(current(ringOf(a), 'ec'))
          .to.equal(before)
          .and.not.equal(undefined);
        expect(ringOf(b).status().state).to.equal('loading');
      });
    });

    describe('with a cache directory', () => {
      const cached = (): Partial<KeySettings> => ({ cacheDirectory: join(folder, 'cache') });

      async function restartWithoutIssuer(): Promise<void> {
        await rings.stop();
        await issuer.stop();
        rings = startRings();
      }

      it('write a seed with which one of them can start alone', async () => {
        await both({}, cached());
        await restartWithoutIssuer();
        const ringOf = await activateAll([settingsOf(b)], cached());
        expect(isUsable(ringOf(b))()).to.equal(true);
      });

      it('write no seed that another issuer of the same source could use', async () => {
        await both({}, cached());
        await restartWithoutIssuer();
        const ringOf = await activateAll([settingsOf('https://c.test')], cached());
        expect(ringOf('https://c.test').status().state).to.equal('loading');
      });
    });
  });
});
