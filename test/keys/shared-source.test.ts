// Issuers on one URL: one fetch serves those with the same algorithms and TLS files, and each other one has its own.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { signingKey } from '../../lab/signing-key.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import { startTestIssuer, type TestIssuer } from '../../lab/test-issuer.ts';
import { until } from '../../lab/until.ts';
import type { IssuerRing, KeyRingObserver, KeySettings } from '../../src/keys/key-ring.ts';
import type { KeyRings } from '../../src/keys/key-rings.ts';
import type { IssuerKeySettings } from '../../src/keys/key-source.ts';
import { current, startKeyRings, withKid } from '../support/key-rings.ts';

type Refresh = Parameters<KeyRingObserver['onRefresh']>[0];

const names = ['https://a.test', 'https://b.test'] as const;
const [a, b] = names;
const times: KeySettings = { refreshSeconds: 300, maxAgeSeconds: 3600, cooldownSeconds: 0.05, timeoutSeconds: 3 };

describe('issuers with a shared source', () => {
  const ends: (() => Promise<unknown>)[] = [];
  let folder: string;
  let server: TestIssuer;
  let rings: KeyRings;
  let refreshes: Refresh[];

  const jwk = async (kid: string, alg = 'ES256') => (await signingKey(kid, alg)).publicJwk;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'account-authz-shared-'));
    ends.push(() => rm(folder, { recursive: true }));
    server = await startTestIssuer({ keys: [await jwk('k1')] });
    ends.push(() => server.stop());
    rings = startRings();
  });
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  function startRings(): KeyRings {
    refreshes = [];
    const observer: Partial<KeyRingObserver> = { onRefresh: event => refreshes.push(event) };
    return startKeyRings(ends, { observer });
  }

  const settings = (issuer: string, changes: Partial<IssuerKeySettings> = {}): IssuerKeySettings => ({
    issuer,
    algorithms: ['ES256'],
    jwksUrl: server.jwksUrl,
    ...changes,
  });

  async function activate(issuers: readonly IssuerKeySettings[], keys: Partial<KeySettings> = {}) {
    const prepared = await rings.prepare(issuers, { ...times, ...keys });
    prepared.activate();
    return (issuer: string): IssuerRing => {
      const ring = prepared.rings.get(issuer);
      if (ring === undefined) throw new Error('no ring');
      return ring;
    };
  }

  const isUsable = (ring: IssuerRing) => (): boolean => ring.status().state === 'usable';

  /** Both rings, after their first fetch. */
  async function both(changesOfB: Partial<IssuerKeySettings> = {}, keys: Partial<KeySettings> = {}) {
    const ringOf = await activate([settings(a), settings(b, changesOfB)], keys);
    const [ringA, ringB] = [ringOf(a), ringOf(b)];
    await until(() => [ringA, ringB].every(ring => ring.status().lastResult !== undefined));
    return { ringA, ringB };
  }

  it('share one fetch and its keys', async () => {
    const { ringA, ringB } = await both();
    expect(current(ringA, 'k1')).to.equal(current(ringB, 'k1')).and.not.equal(undefined);
    expect(server.requests()).to.have.length(1);
    expect(refreshes).to.deep.equal([
      { issuers: names, result: 'success', problem: undefined, keys: 1, skipped: undefined },
    ]);
    expect(rings.active().map(ring => ring.status().issuer)).to.deep.equal(names);
  });

  it('share one early refresh for an unknown kid', async () => {
    const { ringA, ringB } = await both({}, { cooldownSeconds: 0.3 });
    server.publish([await jwk('k2')]);
    expect(ringA.find(withKid('k2'))).to.deep.equal({ kind: 'none', detail: 'kid is not a key of the issuer' });
    expect(ringB.find(withKid('k2'))).to.deep.equal({ kind: 'none', detail: 'kid is not a key of the issuer' });
    await until(() => refreshes.length === 2);
    expect(current(ringA, 'k2')).to.equal(current(ringB, 'k2')).and.not.equal(undefined);
    expect(server.requests()).to.have.length(2);
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
      expect(server.requests()).to.have.length(2);
    });
  }

  describe('with different algorithms', () => {
    const rsa = { algorithms: ['RS256'] };

    it('fetch separately, and each uses the keys for its algorithms', async () => {
      server.publish([await jwk('ec'), await jwk('rsa', 'RS256')]);
      const { ringA, ringB } = await both(rsa);
      expect(ringA.status().kids).to.deep.equal(['ec']);
      expect(ringB.status().kids).to.deep.equal(['rsa']);
      expect(server.requests()).to.have.length(2);
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
      server = await startTestIssuer({ keys: [await jwk('k1')], metadata });
      ends.push(() => server.stop());
      const changes = { ...discovery, discoveryUrl: server.discoveryUrl };
      const ringOf = await activate([settings(a, changes), settings(b, changes)], { refreshSeconds: 0.2 });
      await until(isUsable(ringOf(a)));
      await until(() => ringOf(b).status().lastResult !== undefined);
      expect(server.requests().filter(({ path }) => path === 'jwks')).to.have.length(1);
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
      await server.stop();
      const ringOf = await activate([settings(a), settings(b), settings('https://c.test')]);
      for (const issuer of [...names, 'https://c.test']) expect(current(ringOf(issuer), 'k1')).to.equal(before);
      expect(before).to.not.equal(undefined);
    });

    it('keep their keys when one of them is removed', async () => {
      const { ringB } = await both();
      await server.stop();
      const ringOf = await activate([settings(b)]);
      expect(current(ringOf(b), 'k1'))
        .to.equal(current(ringB, 'k1'))
        .and.not.equal(undefined);
      expect(rings.active()).to.have.length(1);
    });

    it('keep the keys of one when the other changes its algorithms', async () => {
      server.publish([await jwk('ec'), await jwk('rsa', 'RS256')]);
      const { ringA } = await both();
      const before = current(ringA, 'ec');
      await server.stop();
      const ringOf = await activate([settings(a), settings(b, { algorithms: ['RS256'] })]);
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
      await server.stop();
      rings = startRings();
    }

    it('write a seed with which one of them can start alone', async () => {
      await both({}, cached());
      await restartWithoutIssuer();
      const ringOf = await activate([settings(b)], cached());
      expect(isUsable(ringOf(b))()).to.equal(true);
    });

    it('write no seed that another issuer of the same source could use', async () => {
      await both({}, cached());
      await restartWithoutIssuer();
      const ringOf = await activate([settings('https://c.test')], cached());
      expect(ringOf('https://c.test').status().state).to.equal('loading');
    });
  });
});
