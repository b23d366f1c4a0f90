// The health command against a running service: over each kind of address and of TLS, and by the configuration alone.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { writeFixture } from '../config/config-file.ts';
import { testCertificate } from '../keys/test-certificate.ts';
import { type Outcome, runCommand, runProduct } from '../support/command.ts';
import { type ServiceLab, startServiceLab } from '../support/service.ts';

const ca = testCertificate({ name: 'ca', isAuthority: true });
const clientCa = testCertificate({ name: 'client ca', isAuthority: true });
const own = testCertificate({ name: 'own', dnsNames: ['authz.internal'], addresses: ['192.0.2.1'], authority: ca });
const other = testCertificate({ name: 'own', dnsNames: ['authz.internal'], addresses: ['192.0.2.1'], authority: ca });
const caller = testCertificate({ name: 'caller', authority: clientCa });
const files = {
  certFile: writeFixture('health.crt', own.cert),
  keyFile: writeFixture('health.key', own.key),
};
const otherFile = writeFixture('health-other.crt', other.cert);
const caFile = writeFixture('health-ca.crt', ca.cert);
const clientCaFile = writeFixture('health-client-ca.crt', clientCa.cert);
const asCaller = [
  ...['--cert', writeFixture('health-caller.crt', caller.cert)],
  ...['--key', writeFixture('health-caller.key', caller.key)],
];

const ask = (...args: readonly string[]): Promise<Outcome> => runCommand('health', args);
const serving: Outcome = { code: 0, stdout: 'SERVING\n', stderr: '' };

/** What is not about the place stays out of the file: it does not matter. */
function configFile(settings: Readonly<Record<string, unknown>>): string {
  return writeFixture('health.yaml', settings);
}

describe('health', () => {
  const labs: ServiceLab[] = [];
  const start = async (config: Readonly<Record<string, unknown>> = {}): Promise<ServiceLab> => {
    const lab = await startServiceLab({ config });
    labs.push(lab);
    return lab;
  };
  afterEach(async () => {
    await Promise.all(labs.splice(0).map(lab => lab.stop()));
  });
  const at = (lab: ServiceLab, host = '127.0.0.1'): string => `${host}:${lab.service.ports.listen}`;

  for (const [name, host] of [
    ['the loopback address', '127.0.0.1'],
    ['every address', '0.0.0.0'],
    ['every address of IPv6', '[::]'],
    ['every address of IPv6, written out', '[0:0:0:0:0:0:0:0]'],
  ] as const) {
    it(`asks where the configuration listens: ${name}`, async () => {
      const lab = await start({ listen: host === '127.0.0.1' ? `${host}:0` : '[::]:0', listenInsecure: true });
      expect(await ask('--config', configFile({ listen: at(lab, host) }))).to.deep.equal(serving);
    });
  }

  it('asks on the Unix socket of the configuration, with and without tls', async () => {
    const listen = `unix:${join(dirname(caFile), 'health.sock')}`;
    const lab = await start({ listen });
    expect(await ask('--config', configFile({ listen }))).to.deep.equal(serving);
    await lab.stop();
    labs.pop();
    await start({ listen, tls: files });
    expect(await ask('--config', configFile({ listen, tls: files }))).to.deep.equal(serving);
  });

  it('takes the certificate of the configuration for the service, whatever its name and issuer', async () => {
    const lab = await start({ tls: files });
    const config = configFile({ listen: at(lab), tls: { certFile: 'health.crt', keyFile: 'health.key' } });
    expect(await ask('--config', config)).to.deep.equal(serving);
  });

  it('takes no other certificate, of the same name, issuer and address', async () => {
    const lab = await start({ tls: files });
    const { code, stdout } = await ask(
      ...['--config', configFile({ listen: at(lab), tls: { ...files, certFile: otherFile } })],
    );
    expect(code).to.equal(1);
    expect(stdout).to.match(/^not reached: /);
  });

  it('asks for a name that is given, by --ca and by the configuration', async () => {
    const lab = await start({ tls: files });
    const config = ['--config', configFile({ listen: at(lab), tls: files })];
    const byCa = ['--address', at(lab), '--ca', caFile];
    for (const args of [config, byCa]) {
      expect(await ask(...args, '--server-name', 'authz.internal')).to.deep.equal(serving);
      expect(await ask(...args, '--server-name', '192.0.2.1')).to.deep.equal(serving);
      const wrong = await ask(...args, '--server-name', 'other.internal');
      expect(wrong.code).to.equal(1);
      expect(wrong.stdout).to.match(/^not reached: .*other\.internal/);
    }
    expect((await ask(...byCa)).code).to.equal(1);
    expect((await ask('--address', at(lab), '--server-name', 'authz.internal')).code, 'no trust').to.equal(1);
  });

  it('asks a service that wants a certificate with the one that is given, else for its readiness', async () => {
    const lab = await start({ tls: { ...files, clientCaFile } });
    const config = configFile({
      listen: at(lab),
      tls: { ...files, clientCaFile },
      admin: `0.0.0.0:${lab.service.ports.admin}`,
    });
    expect(await ask('--config', config)).to.deep.equal(serving);
    expect(await ask('--config', config, ...asCaller)).to.deep.equal(serving);
    expect((await ask('--config', config, '--service', 'x')).stderr).to.contain('--service needs --cert and --key');
    expect((await ask('--config', config, '--address', at(lab))).code, 'no certificate').to.equal(1);
  });

  it('tells a service that is not ready from one that is not there, by its readiness too', async () => {
    const admin = createServer((_, response) => response.writeHead(503).end());
    await new Promise<void>(resolve => {
      admin.listen(0, '127.0.0.1', resolve);
    });
    const { port } = admin.address() as AddressInfo;
    const config = configFile({ tls: { ...files, clientCaFile }, admin: `127.0.0.1:${port}` });
    expect(await ask('--config', config)).to.deep.equal({ code: 1, stdout: 'NOT_SERVING\n', stderr: '' });
    await new Promise(resolve => admin.close(resolve));
    const { code, stdout } = await ask('--config', config);
    expect(code).to.equal(1);
    expect(stdout).to.match(/^not reached: .*ECONNREFUSED/);
  });

  it('does not mind what is wrong elsewhere in the configuration', async () => {
    const lab = await start();
    expect(await ask('--config', configFile({ listen: at(lab), issuers: 1, colour: 'red' }))).to.deep.equal(serving);
  });

  const wrongs: readonly (readonly [name: string, args: () => readonly string[], stderr: RegExp])[] = [
    ['a configuration that is not there', () => ['--config', '/nowhere.yaml'], /^\/nowhere\.yaml:1:1: the file does/],
    ['a broken one', () => ['--config', writeFixture('b.yaml', 'listen: [')], /b\.yaml:\d+:\d+: /],
    ['an address that is none', () => ['--config', configFile({ listen: 5 })], /: listen: must be text/],
    [
      'an address with any port',
      () => ['--config', configFile({ listen: '127.0.0.1:0' })],
      /port must not be 0 .* --address/,
    ],
    ['a broken --address', () => ['--address', 'x'], /^--address must be /],
    ['--cert alone', () => ['--cert', caFile], /^--cert and --key must be given together/],
    ['a --ca that is not there', () => ['--ca', '/nowhere'], /^--ca: the file does not exist/],
    [
      'a --key that is none',
      () => ['--cert', caFile, '--key', caFile],
      /^--key: the file must contain a PEM private key/,
    ],
    ['a pair that is none', () => ['--cert', caFile, '--key', files.keyFile], /^--key must belong to --cert/],
  ];
  for (const [name, args, stderr] of wrongs) {
    it(`is told of ${name} in one line, exit 1`, async () => {
      const outcome = await ask(...args());
      expect(outcome).to.include({ code: 1, stdout: '' });
      expect(outcome.stderr.trimEnd()).to.not.contain('\n');
      expect(outcome.stderr.replace('account-authz health: ', '')).to.match(stderr);
    });
  }

  it('L-003 escapes what the server answers', async () => {
    const { stdout } = await ask('--address', '127.0.0.1:1');
    expect(stdout).to.match(/^not reached: [ -~]+\n$/);
  });

  it('is built with all that it needs, and warns of nothing', async () => {
    const lab = await start({ tls: files });
    const config = configFile({ listen: at(lab), tls: files });
    expect(await runProduct(['health', '--config', config])).to.deep.equal(serving);
  });
});
