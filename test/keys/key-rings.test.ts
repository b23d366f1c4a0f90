// The key rings across reloads: which rings are reused, which keys a new ring takes over, and what is cleaned up.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { signingKey } from '../../lab/signing-key.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import { startTestIssuer, type TestIssuer } from '../../lab/test-issuer.ts';
import { until } from '../../lab/until.ts';
import type { IssuerRing, KeySettings } from '../../src/keys/key-ring.ts';
import type { KeyRings, PreparedKeyRings } from '../../src/keys/key-rings.ts';
import type { IssuerKeySettings } from '../../src/keys/key-source.ts';
import { current, startKeyRings, withKid } from '../support/key-rings.ts';

const times: KeySettings = { refreshSeconds: 300, maxAgeSeconds: 3600, cooldownSeconds: 5, timeoutSeconds: 60 };
const name = 'https://issuer.test';

describe('key rings', () => {
  const ends: (() => Promise<unknown>)[] = [];
  let rings: KeyRings;
  let issuer: TestIssuer;
  let folder: string;
  let caFile: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'account-authz-rings-'));
    caFile = join(folder, 'ca.pem');
    await writeFile(caFile, testCertificate({ name: 'one', isAuthority: true }).cert);
    issuer = await startIssuer();
    rings = startRings();
  });
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
    await rm(folder, { recursive: true });
  });

  async function startIssuer(kid = 'k1'): Promise<TestIssuer> {
    const started = await startTestIssuer({ keys: [(await signingKey(kid)).publicJwk] });
    ends.push(() => started.stop());
    return started;
  }

  const startRings = (headStartMs = 1000): KeyRings => startKeyRings(ends, { headStartMs });

  const settings = (changes: Partial<IssuerKeySettings> = {}): IssuerKeySettings => ({
    issuer: name,
    algorithms: ['ES256', 'RS256'],
    jwksUrl: issuer.jwksUrl,
    ...changes,
  });

  function ringOf(prepared: PreparedKeyRings): IssuerRing {
    const ring = prepared.rings.get(name);
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
    expect(refused).to.have.property(
      'message',
      `jwksFile of https://file.test: the file does not exist: ${file.jwksFile}`,
    );
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
});
