// The health command against a running service: it asks /readyz on the admin address of the configuration.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { type Outcome, runCommand, runProduct } from '../support/command.ts';
import { writeFixture } from '../support/config-file.ts';
import { type ServiceLab, startServiceLab } from '../support/service.ts';

const ask = (config: string): Promise<Outcome> => runCommand('health', ['--config', config]);
const ready: Outcome = { code: 0, stdout: 'ready\n', stderr: '' };

function configFile(settings: Readonly<Record<string, unknown>>): string {
  return writeFixture('health.yaml', settings);
}

describe('health', () => {
  let lab: ServiceLab;
  before(async () => {
    lab = await startServiceLab();
  });
  after(() => lab.stop());

  /** Answers /readyz with this status code, or never. */
  async function askStub(statusCode: number | undefined): Promise<Outcome> {
    const stub = createServer((request, response) => {
      expect(request.url).to.equal('/readyz');
      if (statusCode !== undefined) response.writeHead(statusCode).end();
    });
    await new Promise<void>(resolve => {
      stub.listen(0, '127.0.0.1', resolve);
    });
    const { port } = stub.address() as AddressInfo;
    const outcome = await ask(configFile({ admin: `127.0.0.1:${port}` }));
    stub.closeAllConnections();
    await new Promise(resolve => stub.close(resolve));
    return outcome;
  }

  for (const host of ['127.0.0.1', '0.0.0.0', 'localhost']) {
    it(`asks admin of the configuration at ${host}`, async () => {
      expect(await ask(configFile({ admin: `${host}:${lab.service.ports.admin}` }))).to.deep.equal(ready);
    });
  }

  it('asks the loopback address for every IPv6 address', async () => {
    for (const host of ['[::]', '[0:0:0:0:0:0:0:0]']) {
      const { stdout } = await ask(configFile({ admin: `${host}:1` }));
      expect(stdout).to.match(/^not reached: .*::1/);
    }
  });

  it('ignores problems in other settings of the configuration', async () => {
    const admin = `127.0.0.1:${lab.service.ports.admin}`;
    expect(await ask(configFile({ admin, issuers: 1, colour: 'red' }))).to.deep.equal(ready);
  });

  it('exits 1 for a service that is not ready, with the state on standard output', async () => {
    expect(await askStub(503)).to.deep.equal({ code: 1, stdout: 'not ready\n', stderr: '' });
  });

  it('exits 1 for a service that draws no clear answer', async () => {
    expect(await askStub(404)).to.deep.equal({ code: 1, stdout: 'not reached: /readyz answers 404\n', stderr: '' });
    expect(await askStub(undefined)).to.deep.equal({
      code: 1,
      stdout: 'not reached: /readyz does not answer\n',
      stderr: '',
    });
  });

  it('L-003 prints only ASCII when the service is unreachable', async () => {
    const { code, stdout } = await ask(configFile({ admin: '127.0.0.1:1' }));
    expect(code).to.equal(1);
    expect(stdout).to.match(/^not reached: [ -~]*ECONNREFUSED[ -~]*\n$/);
  });

  const bad: readonly (readonly [name: string, config: string, stderr: RegExp])[] = [
    ['a missing configuration', '/nowhere.yaml', /^\/nowhere\.yaml:1:1: the file does not exist$/],
    ['a broken configuration', writeFixture('b.yaml', 'admin: ['), /b\.yaml:\d+:\d+: /],
    ['an admin that is not text', writeFixture('c.yaml', { admin: 5 }), /: admin: must be text/],
    ['an admin with port 0', writeFixture('d.yaml', { admin: '127.0.0.1:0' }), /: admin must have a port other than 0/],
  ];
  for (const [name, config, stderr] of bad) {
    it(`exits 1 with one line for ${name}`, async () => {
      const outcome = await ask(config);
      expect(outcome).to.include({ code: 1, stdout: '' });
      expect(outcome.stderr.trimEnd()).to.match(stderr).and.not.contain('\n');
    });
  }

  it('works in the built product without warnings', async () => {
    const config = configFile({ admin: `127.0.0.1:${lab.service.ports.admin}` });
    expect(await runProduct(['health', '--config', config])).to.deep.equal(ready);
  });
});
