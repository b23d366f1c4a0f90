// The built product with an HTTPS issuer whose CA is rotated or withdrawn while the issuer is down:
// the keys in force stay, and are restored from the seed.
import { chmod, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { checkRequest } from '../../lab/check-request.ts';
import { connect } from '../../lab/service.ts';
import { type ServiceProcess, type ServiceProcessOptions, startServiceProcess } from '../../lab/service-process.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import { startTestIssuer, type TestIssuer } from '../../lab/test-issuer.ts';
import { audience, token } from '../../lab/token.ts';
import { until } from '../../lab/until.ts';

const old = testCertificate({ name: 'old', isAuthority: true, addresses: [] });
const renewed = testCertificate({ name: 'new', isAuthority: true, addresses: [] });

describe('keys of the built product', () => {
  const ends: (() => Promise<unknown>)[] = [];
  let folder: string;
  let caFile: string;
  let shown: { readonly key: string; readonly cert: string };
  let issuer: TestIssuer;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'account-authz-authorities-'));
    ends.push(() => rm(folder, { recursive: true }));
    caFile = join(folder, 'ca.pem');
    shown = testCertificate({ authority: old });
    issuer = await startTestIssuer({
      keys: [(await signingKey('k1')).publicJwk],
      get tls() {
        return shown;
      },
    });
    ends.push(() => issuer.stop());
    await trust(old);
  });
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  const trust = (...authorities: readonly { cert: string }[]): Promise<void> =>
    writeFile(caFile, authorities.map(({ cert }) => cert).join(''));

  const config = () => ({
    listen: `unix:${join(folder, 'authz.sock')}`,
    admin: '127.0.0.1:0',
    issuers: [{ issuer: issuer.url, audiences: [audience], jwksUrl: issuer.jwksUrl, caFile }],
    keys: { cooldownSeconds: 1, cacheDirectory: join(folder, 'volume', 'keys') },
    routes: [{ path: '/api/subscriptions/:account_id/*' }],
    roles: { owner: ['*'] },
    shutdown: { graceSeconds: 0 },
  });

  async function start(options: ServiceProcessOptions = {}): Promise<ServiceProcess> {
    const service = await startServiceProcess(config(), options);
    ends.push(() => service.kill());
    return service;
  }

  async function reasonAt(service: ServiceProcess, iss = issuer.url): Promise<string | undefined> {
    const seconds = Math.floor(Date.now() / 1000);
    const bearer = await token({ claims: { iss, iat: seconds - 10, exp: seconds + 600 } });
    const client = connect(service.address);
    try {
      const message = checkRequest({
        path: '/api/subscriptions/acct1',
        headers: { authorization: `Bearer ${bearer}` },
      });
      const answer = await client.check(message);
      return answer.dynamic_metadata?.fields.reason?.stringValue;
    } finally {
      client.close();
    }
  }

  it('stay while the issuer is down, whatever CA is added or withdrawn, and so does their seed', async () => {
    const service = await start();
    await until(async () => (await seeds(join(folder, 'volume', 'keys'))).length === 1);
    await issuer.stop();
    await trust(old, renewed);
    await trust(renewed);
    expect(await reasonAt(service)).to.equal('allowed');
    await service.stop();
    expect(await reasonAt(await start())).to.equal('allowed');
  });

  it('are restored from a seed that fsGroup made group-writable, and the folder is created for its owner only', async () => {
    const volume = join(folder, 'volume');
    const cache = join(volume, 'keys');
    await mkdir(volume);
    await chmod(volume, 0o777);
    const service = await start();
    expect((await stat(join(folder, 'authz.sock'))).mode & 0o777).to.equal(0o660);
    await until(async () => (await seeds(cache)).length === 1);
    expect((await stat(cache)).mode & 0o777).to.equal(0o700);
    await service.stop();
    await issuer.stop();
    await chmod(cache, 0o2770);
    for (const name of await readdir(cache)) await chmod(join(cache, name), 0o660);
    const again = await start();
    expect(await reasonAt(again)).to.equal('allowed');
    await again.stop();
    for (const name of await readdir(cache)) await chmod(join(cache, name), 0o666);
    expect(await reasonAt(await start({ ready: false }))).to.equal('keys_unavailable');
  });
});

/** Complete seed files; the folder is created with the first. */
async function seeds(cache: string): Promise<readonly string[]> {
  const names = await readdir(cache).catch(() => []);
  return names.filter(name => name.endsWith('.json'));
}
