// The authorities that keys were fetched under, with an HTTPS issuer: a rotation keeps the keys, a withdrawal drops them.

import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { IssuerRing, KeySettings } from '../../src/keys/key-ring.ts';
import type { KeyRings } from '../../src/keys/key-rings.ts';
import { createKeyTransport } from '../../src/keys/key-transport.ts';
import { createKeyTrust } from '../../src/keys/key-trust.ts';
import { until } from '../support/service.ts';
import { signingKey } from '../support/signing-key.ts';
import { testCertificate } from '../support/test-certificate.ts';
import { startTestIssuer, type TestIssuer } from '../support/test-issuer.ts';
import { startKeyRings } from './started-rings.ts';

const authorityNamed = (name: string) => testCertificate({ name, isAuthority: true, addresses: [] });
const first = authorityNamed('one');
const second = authorityNamed('two');
// Many authorities are renewed under the same name with another key.
const namesake = authorityNamed('one');
type Authority = ReturnType<typeof authorityNamed>;

describe('trust in the authority of keys', () => {
  const ends: (() => Promise<unknown>)[] = [];
  let folder: string;
  let caFile: string;
  let serverPair: { readonly key: string; readonly cert: string };
  let issuer: TestIssuer;
  let warnings: string[];

  beforeEach(async () => {
    warnings = [];
    folder = await mkdtemp(join(tmpdir(), 'account-authz-trust-'));
    ends.push(() => rm(folder, { recursive: true }));
    caFile = join(folder, 'ca.pem');
    serverPair = testCertificate({ authority: first });
    issuer = await startTestIssuer({
      keys: [(await signingKey('k1')).publicJwk],
      get tls() {
        return serverPair;
      },
    });
    ends.push(() => issuer.stop());
    await trust(first);
  });
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  const trust = (...authorities: readonly Authority[]): Promise<void> =>
    writeFile(caFile, authorities.map(({ cert }) => cert).join(''));

  async function presentCertificateOf(authority: Authority): Promise<void> {
    serverPair = testCertificate({ authority });
    await issuer.restart();
  }

  const startRings = (): KeyRings =>
    startKeyRings(ends, { observer: { onWarning: ({ problem }) => warnings.push(problem) } });

  async function reload(rings: KeyRings, keys: Partial<KeySettings> = {}) {
    const settings = { issuer: issuer.url, algorithms: ['ES256'], jwksUrl: issuer.jwksUrl, caFile };
    const times = { refreshSeconds: 300, maxAgeSeconds: 3600, cooldownSeconds: 0.05, timeoutSeconds: 3 };
    const cacheDirectory = join(folder, 'cache');
    (await rings.prepare([settings], { ...times, cacheDirectory, ...keys })).takeOver();
    const [ring] = rings.active();
    if (ring === undefined) throw new Error('no ring');
    return ring;
  }

  async function loaded(rings: KeyRings): Promise<IssuerRing> {
    const ring = await reload(rings);
    await until(() => ring.current('k1') !== undefined);
    return ring;
  }

  const seeds = (): Promise<readonly string[]> => readdir(join(folder, 'cache')).catch(() => []);

  const changes: readonly (readonly [what: string, change: () => Promise<unknown>, keys?: Partial<KeySettings>])[] = [
    ['another authority is added', () => trust(first, second)],
    ['only comments of the file change', () => writeFile(caFile, `# again\n${first.cert}`)],
    ['another authority is added and times change', () => trust(second, first), { refreshSeconds: 299 }],
    ['the file is truncated', () => writeFile(caFile, second.cert.slice(0, 200))],
    ['the file is deleted', () => rm(caFile)],
  ];
  for (const [what, change, keys] of changes) {
    it(`keeps the keys at a reload while the issuer is down if ${what}`, async () => {
      const rings = startRings();
      const before = await loaded(rings);
      await issuer.stop();
      await change();
      const ring = await reload(rings, keys);
      expect(ring.current('k1')).to.equal(before.current('k1')).and.not.equal(undefined);
      expect(warnings).to.deep.equal([]);
    });
  }

  it('keeps the keys over a rotation with overlap: add the new authority, then remove the old one', async () => {
    const rings = startRings();
    await loaded(rings);
    await trust(first, second);
    const fetches = issuer.requests().length;
    await presentCertificateOf(second);
    // The changed file triggers a fetch.
    await until(() => issuer.requests().length > fetches);
    await until(async () => (await seeds()).length === 1);
    await until(() => (rings.active()[0]?.status().ageSeconds ?? 9) < 1);
    await rings.stop();
    await issuer.stop();
    await trust(second);
    const ring = await reload(startRings());
    expect(ring.current('k1')).to.not.equal(undefined);
    expect(warnings).to.deep.equal([]);
  });

  const withdrawals: readonly (readonly [what: string, authority: Authority])[] = [
    ['another authority', second],
    ['a namesake with another key', namesake],
  ];
  for (const [what, authority] of withdrawals) {
    it(`drops keys and seed without a reload if only ${what} is trusted`, async () => {
      const rings = startRings();
      const ring = await loaded(rings);
      await until(async () => (await seeds()).length === 1);
      await until(() => issuer.connections() === 0);
      await issuer.stop();
      await trust(authority);
      await until(() => ring.current('k1') === undefined);
      expect(warnings[0]).to.equal('keys dropped: fetched under a CA that is no longer trusted');
      await until(async () => (await seeds()).length === 0);
      await trust(first);
      expect((await reload(startRings())).current('k1')).to.equal(undefined);
    }).timeout(10_000);

    it(`drops the keys at a reload if only ${what} is trusted`, async () => {
      const rings = startRings();
      await loaded(rings);
      await issuer.stop();
      await trust(authority);
      expect((await reload(rings)).current('k1')).to.equal(undefined);
    });

    it(`does not use the seed at the start if only ${what} is trusted`, async () => {
      const rings = startRings();
      await loaded(rings);
      await rings.stop();
      await issuer.stop();
      expect(await seeds()).to.have.length(1);
      await trust(authority);
      expect((await reload(startRings())).current('k1')).to.equal(undefined);
      expect(warnings).to.include('seed not used: fetched under an authority that is not trusted any more');
      await until(async () => (await seeds()).length === 0);
    });
  }

  it('drops the keys when the issuer has no caFile any more', async () => {
    const rings = startRings();
    await loaded(rings);
    const settings = { issuer: issuer.url, algorithms: ['ES256'], jwksUrl: issuer.jwksUrl };
    const times = { refreshSeconds: 300, maxAgeSeconds: 3600, cooldownSeconds: 5, timeoutSeconds: 3 };
    (await rings.prepare([settings], times)).takeOver();
    expect(rings.active()[0]?.current('k1')).to.equal(undefined);
  });

  it('fetches the keys again under the new authority after a withdrawal', async () => {
    const rings = startRings();
    const ring = await loaded(rings);
    const before = ring.current('k1');
    await presentCertificateOf(second);
    await trust(second);
    await reload(rings);
    await until(() => ring.current('k1') !== undefined && ring.current('k1') !== before);
  });

  it('depends on the chain that signed, not on other certificates that the server sends', async () => {
    // The server's chain ends in the withdrawn authority; it also sends an intermediate of the same name from the trusted one.
    const honest = testCertificate({ name: 'between', isAuthority: true, addresses: [], authority: second });
    const forged = testCertificate({ name: 'between', isAuthority: true, addresses: [], authority: first });
    const leaf = testCertificate({ authority: forged });
    serverPair = { key: leaf.key, cert: `${leaf.cert}${forged.cert}${honest.cert}` };
    await issuer.restart();
    await trust(first, second);
    const transport = createKeyTransport({ caFile, proxy: {}, timeoutMs: 2_000 });
    const fetched = await transport.use(new AbortController().signal, async (get, getAnchors) => {
      const { kind } = await get(issuer.jwksUrl);
      return { kind, anchors: await getAnchors() };
    });
    expect(fetched.kind).to.equal('body');
    if (!('anchors' in fetched)) throw new Error('not fetched');
    await trust(second);
    expect(await createKeyTrust(caFile).covers(fetched.anchors)).to.equal(false);
  });

  it('requires a trusted anchor for every connection', async () => {
    const trustOfFile = createKeyTrust(caFile);
    expect(await trustOfFile.covers([])).to.equal(true);
    expect(await trustOfFile.covers([[]])).to.equal(false);
    expect(await trustOfFile.covers([['no such']])).to.equal(false);
    await rm(caFile);
    expect(await trustOfFile.covers([['no such']])).to.equal(undefined);
  });
});
