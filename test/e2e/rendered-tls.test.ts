// The bootstrap and the files beside it that `render` makes for a configuration with `tls`: a real Envoy reads its certificate and the
// CA of account-authz from them, presents the one and trusts the other.
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { runCommand } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { envoyVersions, type RunningEnvoy, startEnvoy } from '../../lab/envoy.ts';
import { exchange, requestBytes } from '../../lab/raw-http.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import { mountSecret, type SecretMount } from '../support/secret-mount.ts';
import { bearer, configuration, expectRefusal, installEnvoys, type Lab, reasonOf, startLab } from './lab.ts';

const path = '/api/subscriptions/accounts/acct1';
const serverCa = testCertificate({ name: 'server ca', isAuthority: true });
const clientCa = testCertificate({ name: 'client ca', isAuthority: true });
const otherCa = testCertificate({ name: 'server ca', isAuthority: true });

describe('rendered TLS', () => {
  let lab: Lab;
  let service: SecretMount;
  let folder: string;
  let owner: string;
  let tls: Readonly<Record<string, string>>;

  before(async () => {
    await installEnvoys();
    const own = testCertificate({ name: 'account-authz', dnsNames: ['account-authz'], authority: serverCa });
    service = await mountSecret({ 'tls.crt': own.cert, 'tls.key': own.key, 'ca.crt': clientCa.cert });
    tls = { certFile: service.path('tls.crt'), keyFile: service.path('tls.key'), clientCaFile: service.path('ca.crt') };
    lab = await startLab({ tls });
    owner = await bearer();
  });
  after(async () => {
    await lab?.stop();
    await service?.remove();
  });
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'account-authz-tls-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  /** The bootstrap as in the container, with folders of this machine. */
  async function start(version: string, authority: string): Promise<RunningEnvoy> {
    const client = testCertificate({ name: 'envoy', authority: clientCa });
    for (const [name, text] of Object.entries({ 'tls.crt': client.cert, 'tls.key': client.key, 'ca.crt': authority }))
      await writeFile(join(folder, name), text);
    const settings = { ...configuration('https://auth.example.com/jwks'), listen: lab.service.address, tls };
    const args = ['envoy', '--config', writeFixture('tls.yaml', settings), '--out', folder];
    expect(await runCommand('render', args)).to.include({ code: 0, stderr: '' });
    for (const name of (await readdir(folder)).filter(each => each.endsWith('.yaml'))) {
      const text = await readFile(join(folder, name), 'utf8');
      await writeFile(
        join(folder, name),
        text.replaceAll('/etc/envoy-tls', folder).replaceAll('/etc/envoy/', `${folder}/`),
      );
    }
    const bootstrap = await readFile(join(folder, 'envoy.yaml'), 'utf8');
    return startEnvoy({ version, bootstrap, upstream: lab.upstream.port });
  }

  for (const version of envoyVersions) {
    it(`is trusted by both sides, Envoy ${version}`, async () => {
      const envoy = await start(version, serverCa.cert);
      const send = (lines: readonly string[]) => exchange(envoy.port, requestBytes('GET', path, lines));
      expect((await send([`Authorization: ${owner}`])).status).to.equal(200);
      expectRefusal(await send([]), 401, 'token_missing');
      await envoy.stop();
    });
  }

  it('is not trusted with a certificate of another CA: every request is refused', async () => {
    const envoy = await start(envoyVersions[0], otherCa.cert);
    const answer = await exchange(envoy.port, requestBytes('GET', path, [`Authorization: ${owner}`]));
    expect({ status: answer.status, reason: reasonOf(answer) }).to.deep.equal({ status: 503, reason: undefined });
    await envoy.stop();
  });
});
