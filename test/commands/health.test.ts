// The health command against a running service: it asks /readyz on the admin address of the configuration.
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { type Outcome, runCommand, runProduct } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { type ServiceLab, startServiceLab } from '../../lab/service.ts';

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

  /** Answers /readyz in this way, or never. */
  async function askStub(answer: ((response: ServerResponse) => void) | undefined): Promise<Outcome> {
    const stub = createServer((request, response) => {
      expect(request.url).to.equal('/readyz');
      answer?.(response);
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
  const respond =
    (statusCode: number, body = '') =>
    (response: ServerResponse): void => {
      response.writeHead(statusCode).end(body);
    };
  const isReady = '{"ready":true,"draining":false,"issuers":[]}';
  const isNotReady = '{"ready":false,"draining":true,"issuers":[]}';

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
    expect(await askStub(respond(503, isNotReady))).to.deep.equal({ code: 1, stdout: 'not ready\n', stderr: '' });
  });

  it('reads the state from a body that arrives in pieces, and does not wait for its end', async () => {
    const inPieces = (response: ServerResponse): void => {
      response.writeHead(200).write(isReady.slice(0, 5));
      setImmediate(() => response.write(isReady.slice(5)));
    };
    expect(await askStub(inPieces)).to.deep.equal(ready);
  });

  const others: readonly (readonly [name: string, statusCode: number, body: string])[] = [
    ['404', 404, ''],
    ['200 without a body', 200, ''],
    ['200 with a page', 200, '<!doctype html><p>ready'],
    ['200 with another word', 200, 'ok\n'],
    ['200 with the state of a service that is not ready', 200, isNotReady],
    ['503 with the state of a service that is ready', 503, isReady],
    ['503 of a proxy', 503, 'upstream connect error'],
    ['a redirect', 302, isReady],
  ];
  for (const [name, statusCode, body] of others) {
    it(`exits 1 if another program answers: ${name}`, async () => {
      const stdout = `not reached: /readyz answers ${statusCode}, and not as account-authz does\n`;
      expect(await askStub(respond(statusCode, body))).to.deep.equal({ code: 1, stdout, stderr: '' });
    });
  }

  it('exits 1 for a service that draws no answer in time', async () => {
    const stdout = 'not reached: /readyz does not answer\n';
    const headersAlone = (response: ServerResponse): void => response.writeHead(200).flushHeaders();
    for (const answer of [undefined, headersAlone])
      expect(await askStub(answer)).to.deep.equal({ code: 1, stdout, stderr: '' });
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
