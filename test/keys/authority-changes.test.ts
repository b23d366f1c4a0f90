// The authorities of caFile, with an HTTPS issuer: a rotation keeps the keys, removing one drops those that no fetch confirms again.
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { signingKey } from '../../lab/signing-key.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import { startTestIssuer, type TestIssuer } from '../../lab/test-issuer.ts';
import { until } from '../../lab/until.ts';
import type { IssuerRing } from '../../src/keys/issuer-ring.ts';
import type { KeySettings } from '../../src/keys/key-ring.ts';
import type { KeyRings } from '../../src/keys/key-rings.ts';
import { startKeyRings } from '../support/key-rings.ts';

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
    (await rings.prepare([settings], { ...times, cacheDirectory, ...keys })).activate();
    const [ring] = rings.active();
    if (ring === undefined) throw new Error('no ring');
    return ring;
  }

  async function loaded(rings: KeyRings): Promise<IssuerRing> {
    const ring = await reload(rings);
    await until(() => ring.current('k1') !== undefined);
    return ring;
  }

  const seeds = (): Promise<readonly string[]> =>
    readdir(join(folder, 'cache'))
      .then(names => names.filter(name => name.endsWith('.json')))
      .catch(() => []);

  async function authoritiesInSeed(): Promise<number> {
    const [name] = await seeds();
    return name === undefined ? 0 : JSON.parse(await readFile(join(folder, 'cache', name), 'utf8')).authorities.length;
  }

  const changes: readonly (readonly [what: string, change: () => Promise<unknown>, keys?: Partial<KeySettings>])[] = [
    ['another authority is added', () => trust(first, second)],
    ['only comments of the file change', () => writeFile(caFile, `# again\n${first.cert}`)],
    ['another authority is added and times change', () => trust(second, first), { refreshSeconds: 299 }],
    ['another authority is added before it', () => trust(second, first)],
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
    // The changed file triggers a fetch.
    await until(async () => (await authoritiesInSeed()) === 2);
    await presentCertificateOf(second);
    await trust(second);
    await until(async () => (await authoritiesInSeed()) === 1);
    await rings.stop();
    await issuer.stop();
    const ring = await reload(startRings());
    expect(ring.current('k1')).to.not.equal(undefined);
    expect(warnings).to.deep.equal([]);
  });

  const removals: readonly (readonly [what: string, authority: Authority])[] = [
    ['another authority', second],
    ['a namesake with another key', namesake],
  ];
  for (const [what, authority] of removals) {
    it(`drops keys and seed without a reload if only ${what} is left and the issuer does not answer`, async () => {
      const rings = startRings();
      const ring = await loaded(rings);
      await until(async () => (await seeds()).length === 1);
      await until(() => issuer.connections() === 0);
      await issuer.stop();
      await trust(authority);
      await until(() => ring.current('k1') === undefined);
      expect(ring.status()).to.include({ state: 'loading', lastProblem: 'connection refused' });
      expect(warnings[0]).to.equal('keys dropped: fetched under a CA that is no longer trusted');
      await until(async () => (await seeds()).length === 0);
      await trust(first);
      expect((await reload(startRings())).current('k1')).to.equal(undefined);
    });

    it(`drops the keys after a reload if only ${what} is left and the issuer does not answer`, async () => {
      const rings = startRings();
      await loaded(rings);
      await issuer.stop();
      await trust(authority);
      const ring = await reload(rings);
      await until(() => ring.current('k1') === undefined);
    });

    it(`does not use the seed at the start if only ${what} is left`, async () => {
      const rings = startRings();
      await loaded(rings);
      await rings.stop();
      await issuer.stop();
      expect(await seeds()).to.have.length(1);
      await trust(authority);
      expect((await reload(startRings())).current('k1')).to.equal(undefined);
      expect(warnings).to.include('seed not used: fetched under an authority that is not trusted any more');
    });
  }

  it('does not use the seed at the start if one of two authorities is gone', async () => {
    await trust(first, second);
    const rings = startRings();
    await loaded(rings);
    await rings.stop();
    await issuer.stop();
    await trust(first);
    expect((await reload(startRings())).current('k1')).to.equal(undefined);
  });

  it('keeps the keys without a break if an authority is removed and the issuer answers', async () => {
    await trust(first, second);
    const rings = startRings();
    const ring = await loaded(rings);
    const before = ring.current('k1');
    const requests = issuer.requests().length;
    await trust(first);
    await until(() => issuer.requests().length > requests);
    expect(ring.current('k1')).to.equal(before);
    await until(() => ring.status().lastResult === 'success' && issuer.connections() === 0);
    expect(ring.current('k1')).to.equal(before);
    expect(warnings).to.deep.equal([]);
    // The ETag of keys that a removed authority vouched for is not asked about.
    expect(issuer.requests().at(-1)).to.deep.include({ status: 200 });
  });

  for (const [what, other] of [
    ['has no caFile any more', undefined],
    ['has another caFile', 'other.pem'],
  ] as const) {
    it(`drops the keys if the issuer ${what} and the fetch without the authority fails`, async () => {
      const rings = startRings();
      await loaded(rings);
      await writeFile(join(folder, 'other.pem'), second.cert);
      const location = { jwksUrl: issuer.jwksUrl, caFile: other === undefined ? undefined : join(folder, other) };
      const settings = { issuer: issuer.url, algorithms: ['ES256'], ...location };
      const times = { refreshSeconds: 300, maxAgeSeconds: 3600, cooldownSeconds: 5, timeoutSeconds: 3 };
      (await rings.prepare([settings], times)).activate();
      await until(() => rings.active()[0]?.current('k1') === undefined);
      expect(warnings).to.deep.equal(['keys dropped: fetched under a CA that is no longer trusted']);
    });
  }

  it('confirms the keys under the new authority after a removal', async () => {
    const rings = startRings();
    const ring = await loaded(rings);
    const before = ring.current('k1');
    await presentCertificateOf(second);
    const requests = issuer.requests().length;
    await trust(second);
    await reload(rings);
    await until(() =>
      issuer
        .requests()
        .slice(requests)
        .some(({ status }) => status === 200),
    );
    await until(() => ring.status().lastResult === 'success' && issuer.connections() === 0);
    expect(ring.current('k1')).to.equal(before).and.not.equal(undefined);
    expect(warnings).to.deep.equal([]);
  });

  it('fails a fetch during which an authority is removed: only one begun after the change counts', async () => {
    issuer.fault({ kind: 'slow', delayMs: 300 });
    const results: (string | undefined)[] = [];
    const rings = startKeyRings(ends, { observer: { onRefresh: ({ problem }) => results.push(problem) } });
    const ring = await reload(rings, { timeoutSeconds: 60 });
    await until(() => issuer.requests().length === 1);
    await trust(second);
    await until(() => results.length > 0);
    expect(results[0]).to.equal('CA withdrawn');
    expect(ring.current('k1')).to.equal(undefined);
  });
});
