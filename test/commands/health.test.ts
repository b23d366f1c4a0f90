// The health command against a running service: every kind of address and TLS, by options or by the configuration.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { type Outcome, runCommand, runProduct } from '../support/command.ts';
import { writeFixture } from '../support/config-file.ts';
import { type ServiceLab, startServiceLab } from '../support/service.ts';
import { testCertificate } from '../support/test-certificate.ts';

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

/** Holds only the settings that name the address: the command ignores the rest. */
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
    ['every IPv6 address', '[::]'],
    ['every IPv6 address, written out', '[0:0:0:0:0:0:0:0]'],
  ] as const) {
    it(`calls the listen address of the configuration: ${name}`, async () => {
      const lab = await start({ listen: host === '127.0.0.1' ? `${host}:0` : '[::]:0', listenInsecure: true });
      expect(await ask('--config', configFile({ listen: at(lab, host) }))).to.deep.equal(serving);
    });
  }

  it('calls the Unix socket of the configuration, with and without TLS', async () => {
    const listen = `unix:${join(dirname(caFile), 'health.sock')}`;
    const lab = await start({ listen });
    expect(await ask('--config', configFile({ listen }))).to.deep.equal(serving);
    await lab.stop();
    labs.pop();
    await start({ listen, tls: files });
    expect(await ask('--config', configFile({ listen, tls: files }))).to.deep.equal(serving);
  });

  it('trusts the certificate of the configuration, whatever its name and issuer', async () => {
    const lab = await start({ tls: files });
    const config = configFile({ listen: at(lab), tls: { certFile: 'health.crt', keyFile: 'health.key' } });
    expect(await ask('--config', config)).to.deep.equal(serving);
  });

  it('rejects another certificate with the same name, issuer and address', async () => {
    const lab = await start({ tls: files });
    const { code, stdout } = await ask(
      ...['--config', configFile({ listen: at(lab), tls: { ...files, certFile: otherFile } })],
    );
    expect(code).to.equal(1);
    expect(stdout).to.match(/^not reached: /);
  });

  it('verifies the name of --server-name, with --ca and with the configuration', async () => {
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

  it('uses --cert against a client CA, and /readyz of the configuration without --cert', async () => {
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

  it('distinguishes an unready service from an unreachable one by /readyz', async () => {
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

  it('ignores problems in other settings of the configuration', async () => {
    const lab = await start();
    expect(await ask('--config', configFile({ listen: at(lab), issuers: 1, colour: 'red' }))).to.deep.equal(serving);
  });

  const usageErrors: readonly (readonly [name: string, args: () => readonly string[], stderr: RegExp])[] = [
    ['a missing configuration', () => ['--config', '/nowhere.yaml'], /^\/nowhere\.yaml:1:1: the file does/],
    ['a broken configuration', () => ['--config', writeFixture('b.yaml', 'listen: [')], /b\.yaml:\d+:\d+: /],
    ['a listen that is not text', () => ['--config', configFile({ listen: 5 })], /: listen: must be text/],
    [
      'a listen with port 0',
      () => ['--config', configFile({ listen: '127.0.0.1:0' })],
      /port must not be 0 .* --address/,
    ],
    ['a broken --address', () => ['--address', 'x'], /^--address must be /],
    ['--cert alone', () => ['--cert', caFile], /^--cert and --key must be given together/],
    ['a missing --ca file', () => ['--ca', '/nowhere'], /^--ca: the file does not exist/],
    [
      'a --key without a private key',
      () => ['--cert', caFile, '--key', caFile],
      /^--key: the file must contain a PEM private key/,
    ],
    [
      'a --key of another certificate',
      () => ['--cert', caFile, '--key', files.keyFile],
      /^--key must belong to --cert/,
    ],
  ];
  for (const [name, args, stderr] of usageErrors) {
    it(`exits 1 with one line for ${name}`, async () => {
      const outcome = await ask(...args());
      expect(outcome).to.include({ code: 1, stdout: '' });
      expect(outcome.stderr.trimEnd()).to.not.contain('\n');
      expect(outcome.stderr.replace('account-authz health: ', '')).to.match(stderr);
    });
  }

  it('L-003 prints only ASCII when the service is unreachable', async () => {
    const { stdout } = await ask('--address', '127.0.0.1:1');
    expect(stdout).to.match(/^not reached: [ -~]+\n$/);
  });

  it('works in the built product without warnings', async () => {
    const lab = await start({ tls: files });
    const config = configFile({ listen: at(lab), tls: files });
    expect(await runProduct(['health', '--config', config])).to.deep.equal(serving);
  });
});
