// The drain command: usage errors, and what it asks an admin interface. e2e/drain.test.ts has a real Envoy.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { type Outcome, runCommand, runProduct } from '../../lab/command.ts';
import { freePorts } from '../../lab/free-ports.ts';

const run = (...args: readonly string[]): Promise<Outcome> => runCommand('drain', args);

describe('drain', () => {
  const usageErrors: readonly (readonly string[])[] = [
    ['--seconds', 'x'],
    ['--seconds', '-1'],
    ['--seconds', '3601'],
    ['--envoy-admin', 'nonsense'],
    ['--envoy-admin', 'ftp://127.0.0.1'],
    ['--envoy-admin', 'http://user:password@127.0.0.1'],
    ['--unknown'],
  ];
  for (const args of usageErrors) {
    it(`exits 1 with one line for ${args.join(' ')}`, async () => {
      const { code, stderr } = await run(...args);
      expect(code).to.equal(1);
      expect(stderr.trim().split('\n')).to.have.lengthOf(1);
    });
  }

  it('warns and exits 0 when the admin interface does not answer', async () => {
    const [port] = await freePorts(1);
    const { code, stderr } = await run('--envoy-admin', `http://127.0.0.1:${port}`, '--seconds', '5');
    expect(code).to.equal(0);
    expect(stderr).to.contain('did not answer');
  });

  // What cannot be taken back (/drain_listeners) would outlive a restart of account-authz alone.
  it('asks for nothing but POST /healthcheck/fail and statistics', async () => {
    const asked = new Set<string>();
    const admin = createServer(({ method, url = '' }, response) => {
      asked.add(`${method} ${url.replace(/\?.*$/, '')}`);
      response.end();
    });
    await once(admin.listen(0, '127.0.0.1'), 'listening');
    const { stdout } = await run('--envoy-admin', `http://127.0.0.1:${portOf(admin)}`);
    admin.close();
    expect(stdout).to.equal('no connection is open\n');
    expect(asked).to.deep.equal(new Set(['POST /healthcheck/fail', 'GET /stats']));
  });

  const oneOpen = 'listener.0.0.0.0_8080.downstream_cx_active: 1\n';
  /** An admin whose answers to GET /stats are these in turn, the last one for good; a number is a status. */
  async function drainWith(answers: readonly (string | number)[], seconds = '20'): Promise<Outcome> {
    const left = [...answers];
    const admin = createServer(({ method }, response) => {
      const answer = method === 'POST' ? '' : (left.shift() ?? answers.at(-1));
      if (typeof answer === 'number') response.writeHead(answer).end();
      else response.end(answer);
    });
    await once(admin.listen(0, '127.0.0.1'), 'listening');
    const outcome = await run('--envoy-admin', `http://127.0.0.1:${portOf(admin)}`, '--seconds', seconds);
    admin.close();
    expect(left, 'unasked').to.deep.equal([]);
    return outcome;
  }

  it('goes on waiting when Envoy is too busy to say how many connections are open', async () => {
    const { stdout, stderr } = await drainWith([oneOpen, oneOpen, 503, oneOpen, 'listener.a.downstream_cx_active: 0']);
    expect({ stdout, stderr }).to.deep.equal({ stdout: 'no connection is open\n', stderr: '' });
  });

  it('says so when Envoy does not say it until the end', async () => {
    expect(await drainWith([503], '1')).to.deep.equal({
      code: 0,
      stdout: '',
      stderr: 'account-authz drain: Envoy did not say how many connections are open\n',
    });
    expect(await drainWith([oneOpen], '1')).to.include({ code: 0, stdout: '1 connections are still open\n' });
  });

  it('warns and exits 0 when something else answers there', async () => {
    const other = createServer((_, response) => response.writeHead(302, { location: '/healthcheck/ok' }).end());
    await once(other.listen(0, '127.0.0.1'), 'listening');
    const { code, stderr } = await run('--envoy-admin', `http://127.0.0.1:${portOf(other)}`, '--seconds', '5');
    other.close();
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: warning('it answers 302') });
  });

  // Node sends `fetch` and its global agent through a proxy where NODE_USE_ENV_PROXY says so (Node 24 and later).
  it('ignores a proxy of the environment', async () => {
    const proxied: string[] = [];
    const proxy = createServer(({ url = '' }, response) => {
      proxied.push(url);
      response.end();
    });
    await once(proxy.listen(0, '127.0.0.1'), 'listening');
    const [port] = await freePorts(1);
    const url = `http://127.0.0.1:${portOf(proxy)}`;
    const env = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: url, http_proxy: url, NO_PROXY: '' };
    const { code, stderr } = await runProduct(['drain', '--envoy-admin', `http://127.0.0.1:${port}`], { env });
    proxy.close();
    expect({ code, stderr, proxied }).to.deep.equal({ code: 0, stderr: warning('ECONNREFUSED'), proxied: [] });
  });
});

function warning(problem: string): string {
  return `account-authz drain: Envoy did not answer (${problem}), so nothing is drained: check that --envoy-admin is its admin interface\n`;
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}
