// Mutual TLS between a real Envoy and the built product, with the bootstrap and the files beside it that `render` makes for `tls`.
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Document, isMap } from 'yaml';
import { runCommand } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { defaultEnvoyVersion, envoyVersions, type RunningEnvoy, startEnvoy } from '../../lab/envoy.ts';
import { clusterPath } from '../../lab/envoy-bootstrap.ts';
import { exchange, requestBytes } from '../../lab/raw-http.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import { until } from '../../lab/until.ts';
import { freshFolder } from '../support/fresh-folder.ts';
import { mountSecret } from '../support/secret-mount.ts';
import { useRunning } from '../support/use-running.ts';
import { bearer, configuration, installEnvoys, onlyRequestOf, reasonOf, startLab } from './lab.ts';

const path = '/api/subscriptions/accounts/acct1/items';
const serverCa = testCertificate({ name: 'server ca', isAuthority: true });
const clientCa = testCertificate({ name: 'client ca', isAuthority: true });
const otherCa = testCertificate({ name: 'client ca', isAuthority: true });

function serviceSecret() {
  const own = testCertificate({ name: 'account-authz', dnsNames: ['account-authz'], authority: serverCa });
  return { 'tls.crt': own.cert, 'tls.key': own.key, 'ca.crt': clientCa.cert };
}

describe('mTLS between Envoy and the service', () => {
  const secret = useRunning(async () => {
    await installEnvoys();
    const mount = await mountSecret(serviceSecret());
    return { ...mount, stop: () => undefined };
  });
  const tls = () => ({
    certFile: secret.path('tls.crt'),
    keyFile: secret.path('tls.key'),
    clientCaFile: secret.path('ca.crt'),
  });
  const lab = useRunning(() => startLab({ tls: tls() }));
  let owner: string;
  before(async () => {
    owner = await bearer();
  });
  beforeEach(() => lab.upstream.clear());

  interface Files {
    /** The authority of Envoy's own certificate. */
    readonly issuedBy?: typeof clientCa;
    /** The one that Envoy trusts. */
    readonly trusts?: typeof serverCa;
  }

  /** The bootstrap as in the container, with folders of this machine. */
  async function start(
    version: string,
    { issuedBy = clientCa, trusts = serverCa }: Files = {},
    edit?: (bootstrap: Document) => void,
  ): Promise<RunningEnvoy> {
    const folder = freshFolder();
    const own = testCertificate({ name: 'envoy', authority: issuedBy });
    const files = { 'tls.crt': own.cert, 'tls.key': own.key, 'ca.crt': trusts.cert };
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    const settings = { ...configuration('https://auth.example.com/jwks'), listen: lab.service.address, tls: tls() };
    const args = ['envoy', '--config', writeFixture('tls.yaml', settings), '--out', folder];
    expect(await runCommand('render', args)).to.include({ code: 0, stderr: '' });
    for (const name of (await readdir(folder)).filter(each => each.endsWith('.yaml'))) {
      const text = await readFile(join(folder, name), 'utf8');
      const moved = text.replaceAll('/etc/envoy-tls', folder).replaceAll('/etc/envoy/', `${folder}/`);
      await writeFile(join(folder, name), moved);
    }
    const bootstrap = await readFile(join(folder, 'envoy.yaml'), 'utf8');
    return startEnvoy({ version, bootstrap, upstream: lab.upstream.port, ...(edit && { edit }) });
  }
  const send = ({ port }: RunningEnvoy, lines: readonly string[] = [`Authorization: ${owner}`]) =>
    exchange(port, requestBytes('GET', path, lines));

  for (const version of envoyVersions) {
    it(`Envoy ${version} is served, also while the certificate of the service is replaced`, async () => {
      const envoy = await start(version);
      expect((await send(envoy)).status).to.equal(200);
      expect(onlyRequestOf(lab.upstream).path).to.equal(path);
      expect(reasonOf(await send(envoy, []))).to.equal('token_missing');

      const reloads = () => lab.service.log().filter(({ msg }) => msg === 'tls files reloaded').length;
      const before = reloads();
      await secret.update(serviceSecret());
      await until(() => reloads() === before + 1);
      const next = await start(version);
      for (const each of [envoy, next]) expect((await send(each)).status).to.equal(200);
      await Promise.all([envoy.stop(), next.stop()]);
    });
  }

  const cluster = (bootstrap: Document) => clusterPath(bootstrap, 'account-authz');
  const withoutOwn = (bootstrap: Document): void => {
    const context = [...cluster(bootstrap), 'transport_socket', 'typed_config', 'common_tls_context'];
    const node = bootstrap.getIn(context);
    if (!isMap(node)) throw new Error('no TLS context');
    for (const { key } of [...node.items]) if (/^tls_certificate/.test(String(key))) node.delete(key);
  };
  const refused: readonly (readonly [name: string, files: Files, edit?: (bootstrap: Document) => void])[] = [
    ['speaks no TLS', {}, bootstrap => void bootstrap.deleteIn([...cluster(bootstrap), 'transport_socket'])],
    ['has no certificate', {}, withoutOwn],
    ['has a certificate of another authority', { issuedBy: otherCa }],
    ['trusts another authority', { trusts: otherCa }],
  ];
  for (const [name, files, edit] of refused) {
    it(`an Envoy that ${name} gets no answer, and its requests end in 503`, async () => {
      const checks = () => lab.service.log().filter(({ msg }) => msg === 'check').length;
      const before = checks();
      const envoy = await start(defaultEnvoyVersion, files, edit);
      const answer = await send(envoy);
      expect({ status: answer.status, reason: reasonOf(answer) }).to.deep.equal({ status: 503, reason: undefined });
      expect(lab.upstream.requests).to.deep.equal([]);
      expect(checks()).to.equal(before);
      await envoy.stop();
    });
  }
});
