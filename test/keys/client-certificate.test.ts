// The client certificate of key fetches, against a TLS server that requires one: replaced without a restart, broken and repaired.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { signingKey } from '../../lab/signing-key.ts';
import { type TestCertificate, testCertificate } from '../../lab/test-certificate.ts';
import { startTestIssuer, type TestIssuer } from '../../lab/test-issuer.ts';
import { until } from '../../lab/until.ts';
import type { KeyRings } from '../../src/keys/key-rings.ts';
import type { IssuerKeySettings } from '../../src/keys/key-source.ts';
import { startKeyRings } from '../support/key-rings.ts';

const authority = testCertificate({ name: 'servers', isAuthority: true, addresses: [] });
const firstClients = testCertificate({ name: 'first clients', isAuthority: true, addresses: [] });
const secondClients = testCertificate({ name: 'second clients', isAuthority: true, addresses: [] });
const firstClient = testCertificate({ name: 'client', authority: firstClients });
const secondClient = testCertificate({ name: 'client', authority: secondClients });

describe('client certificate of key fetches', () => {
  const ends: (() => Promise<unknown>)[] = [];
  let folder: string;
  let clientAuthority: TestCertificate;
  let issuer: TestIssuer;
  let problems: string[];

  beforeEach(async () => {
    problems = [];
    folder = await mkdtemp(join(tmpdir(), 'account-authz-client-'));
    ends.push(() => rm(folder, { recursive: true }));
    clientAuthority = firstClients;
    issuer = await startStrictIssuer('k1');
    await writeFile(join(folder, 'ca.pem'), authority.cert);
    await writeClientFiles(firstClient);
  });
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  async function startStrictIssuer(kid: string, metadata = {}): Promise<TestIssuer> {
    const server = testCertificate({ authority });
    const started = await startTestIssuer({
      keys: [(await signingKey(kid)).publicJwk],
      metadata,
      get tls() {
        return { ...server, requestCert: true, ca: clientAuthority.cert };
      },
    });
    ends.push(() => started.stop());
    return started;
  }

  async function writeClientFiles({ cert, key }: TestCertificate): Promise<void> {
    await writeFile(join(folder, 'client.crt'), cert);
    await writeFile(join(folder, 'client.key'), key);
  }

  const startRings = (): KeyRings =>
    startKeyRings(ends, { observer: { onRefresh: ({ problem }) => problems.push(problem ?? 'none') } });

  const settings = (changes: Partial<IssuerKeySettings> = {}): IssuerKeySettings => ({
    issuer: issuer.url,
    algorithms: ['ES256'],
    jwksUrl: issuer.jwksUrl,
    caFile: join(folder, 'ca.pem'),
    clientCertFile: join(folder, 'client.crt'),
    clientKeyFile: join(folder, 'client.key'),
    ...changes,
  });
  const times = { refreshSeconds: 300, maxAgeSeconds: 3600, cooldownSeconds: 0.05, timeoutSeconds: 60 };

  async function activate(rings: KeyRings, changes: Partial<IssuerKeySettings> = {}) {
    const prepared = await rings.prepare([settings(changes)], times);
    prepared.activate();
    const keys = prepared.rings.get(issuer.url);
    if (keys === undefined) throw new Error('no keys');
    return keys;
  }

  it('is required to fetch the keys of an issuer that asks for one', async () => {
    const rings = startRings();
    const withoutCertificate = await activate(rings, { clientCertFile: undefined, clientKeyFile: undefined });
    await until(() => problems.length > 0);
    expect(withoutCertificate.current('k1')).to.equal(undefined);
    // The end of the connection can hide the alert of the server (key-transport-clients.test.ts).
    expect(problems[0]).to.be.oneOf([
      'tls: client certificate required',
      'connection closed, client certificate asked for',
    ]);
    const keys = await activate(rings);
    await until(() => keys.current('k1') !== undefined);
  });

  it('is presented for the discovery document and to the host of its jwks_uri', async () => {
    const other = await startStrictIssuer('elsewhere');
    issuer = await startStrictIssuer('k1', { jwks_uri: other.jwksUrl });
    const keys = await activate(startRings(), { jwksUrl: undefined, discoveryUrl: issuer.discoveryUrl });
    await until(() => keys.current('elsewhere') !== undefined);
  });

  it('is replaced without a restart: the changed files trigger a refresh', async () => {
    const keys = await activate(startRings());
    await until(() => keys.current('k1') !== undefined);
    clientAuthority = secondClients;
    await issuer.restart();
    issuer.publish([(await signingKey('k2')).publicJwk]);
    await writeClientFiles(secondClient);
    await until(() => keys.current('k2') !== undefined);
    expect(problems.at(-1)).to.equal('none');
  });

  it('fails the refresh while it is broken, keeps the keys, and recovers once repaired', async () => {
    const keys = await activate(startRings());
    await until(() => keys.current('k1') !== undefined);
    await writeFile(join(folder, 'client.key'), 'nothing');
    await until(() => problems.includes('client key not usable'));
    expect(keys.current('k1')).to.not.equal(undefined);
    await rm(join(folder, 'client.crt'));
    await until(() => problems.includes('client certificate not usable'));
    expect(keys.current('k1')).to.not.equal(undefined);
    issuer.publish([(await signingKey('k2')).publicJwk]);
    await writeClientFiles(firstClient);
    await until(() => keys.current('k2') !== undefined);
  });

  it('can be removed at a reload without losing the keys', async () => {
    const rings = startRings();
    const before = await activate(rings);
    await until(() => before.current('k1') !== undefined);
    await issuer.stop();
    const after = await activate(rings, { clientCertFile: undefined, clientKeyFile: undefined });
    expect(after.current('k1')).to.equal(before.current('k1')).and.not.equal(undefined);
  });
});
