// The files of an issuer that change while it runs: each asks for a refresh, and the keys in force stay until one succeeds.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { signingKey } from '../../lab/signing-key.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import { startTestIssuer, type TestIssuer } from '../../lab/test-issuer.ts';
import { until } from '../../lab/until.ts';
import type { IssuerRing } from '../../src/keys/key-ring.ts';
import type { KeyRings } from '../../src/keys/key-rings.ts';
import type { IssuerKeySettings } from '../../src/keys/key-source.ts';
import { freshFolder } from '../support/fresh-folder.ts';
import { current, startKeyRings } from '../support/key-rings.ts';
import { useEnds } from '../support/use-ends.ts';

const authorityNamed = (name: string) => testCertificate({ name, isAuthority: true, addresses: [] });
const [first, second] = [authorityNamed('one'), authorityNamed('two')];
const [firstClients, secondClients] = [authorityNamed('first clients'), authorityNamed('second clients')];
const times = { refreshSeconds: 300, maxAgeSeconds: 3600, cooldownSeconds: 0.05, timeoutSeconds: 60 };

describe('changed files of an issuer', () => {
  const ends = useEnds();
  let folder: string;
  let issuer: TestIssuer;
  let server: ReturnType<typeof testCertificate>;
  let clients: typeof firstClients;
  let problems: string[];

  const at = (name: string): string => join(folder, name);
  const write = (name: string, text: string): Promise<void> => writeFile(at(name), text);

  async function writeClient(authority: typeof firstClients): Promise<void> {
    const { cert, key } = testCertificate({ name: 'client', authority });
    await write('client.crt', cert);
    await write('client.key', key);
  }

  beforeEach(async () => {
    problems = [];
    folder = freshFolder();
    server = testCertificate({ authority: first });
    clients = firstClients;
    issuer = await startTestIssuer({
      keys: [(await signingKey('k1')).publicJwk],
      get tls() {
        return { ...server, requestCert: true, ca: clients.cert };
      },
    });
    ends.push(() => issuer.stop());
    await write('ca.pem', first.cert);
    await write('token', 'one.token');
    await writeClient(firstClients);
  });

  async function activate(rings: KeyRings, changes: Partial<IssuerKeySettings> = {}): Promise<IssuerRing> {
    const files = { caFile: at('ca.pem'), clientCertFile: at('client.crt'), clientKeyFile: at('client.key') };
    const settings = { issuer: issuer.url, algorithms: ['ES256'], jwksUrl: issuer.jwksUrl, ...files };
    const all = { ...settings, bearerTokenFile: at('token'), ...changes };
    (await rings.prepare([all], { ...times, cacheDirectory: at('cache') })).activate();
    const [ring] = rings.active();
    if (ring === undefined) throw new Error('no ring');
    return ring;
  }

  async function started(): Promise<{ rings: KeyRings; ring: IssuerRing }> {
    const rings = startKeyRings(ends, { observer: { onRefresh: ({ problem }) => problems.push(problem ?? 'none') } });
    const ring = await activate(rings);
    await until(() => current(ring, 'k1') !== undefined);
    return { rings, ring };
  }

  const changes: readonly (readonly [file: string, change: () => Promise<void>, broken: string, problem: string])[] = [
    [
      'ca.pem',
      async () => {
        server = testCertificate({ authority: second });
        await issuer.restart();
        await write('ca.pem', second.cert);
      },
      'nothing',
      'CA file without certificate',
    ],
    [
      'client.crt',
      async () => {
        clients = secondClients;
        await issuer.restart();
        await writeClient(secondClients);
      },
      'nothing',
      'client certificate not usable',
    ],
    ['client.key', () => writeClient(firstClients), 'nothing', 'client key not usable'],
    ['token', () => write('token', 'two.token'), '', 'bearer token file without a token'],
  ];
  for (const [file, change, broken, problem] of changes) {
    it(`a changed ${file} asks for a refresh, and a broken one leaves the keys in force`, async () => {
      const { ring } = await started();
      await write(file, broken);
      await until(() => problems.includes(problem));
      expect(current(ring, 'k1')).to.not.equal(undefined);
      issuer.publish([(await signingKey('k2')).publicJwk]);
      await change();
      await until(() => current(ring, 'k2') !== undefined);
      expect(problems.at(-1)).to.equal('none');
      if (file === 'token') expect(issuer.requests().at(-1)?.headers.authorization).to.equal('Bearer two.token');
    });
  }

  it('keeps the keys and the seed while the issuer does not answer, whatever authority vouched for them', async () => {
    const { rings, ring } = await started();
    await issuer.stop();
    await write('ca.pem', second.cert);
    await until(() => problems.includes('connection refused'));
    expect(current(ring, 'k1')).to.not.equal(undefined);
    const other = await activate(rings, { caFile: undefined, clientCertFile: undefined, clientKeyFile: undefined });
    expect(current(other, 'k1')).to.equal(current(ring, 'k1'));
    await rings.stop();
    const restarted = await activate(startKeyRings(ends));
    expect(current(restarted, 'k1')).to.not.equal(undefined);
  });

  it('are read for the discovery document and for the host of its jwks_uri', async () => {
    const rings = startKeyRings(ends);
    const ring = await activate(rings, { jwksUrl: undefined, discoveryUrl: issuer.discoveryUrl });
    await until(() => current(ring, 'k1') !== undefined);
    const sent = issuer.requests().map(({ headers }) => headers.authorization);
    expect(sent).to.deep.equal(['Bearer one.token', 'Bearer one.token']);
  });
});
