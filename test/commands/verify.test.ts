// `verify` against gateways that answer as told: exit codes, what leaves the process, and what is printed.
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { expect } from 'chai';
import { type CommandOptions, type Outcome, runCommand } from '../../lab/command.ts';
import { changed, writeFixture } from '../../lab/config-file.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { currentToken } from '../../lab/service.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import { startTestIssuer, type TestIssuer } from '../../lab/test-issuer.ts';
import { audience, token } from '../../lab/token.ts';
import { listen } from '../support/listen.ts';

interface Seen {
  readonly url: string;
  readonly host: string | undefined;
  readonly userAgent: string | undefined;
  readonly serverName: unknown;
}

describe('verify', () => {
  let issuer: TestIssuer;
  const stops: (() => unknown)[] = [];
  before(async () => {
    issuer = await startTestIssuer({ keys: [(await signingKey('k1')).publicJwk] });
  });
  after(async () => {
    for (const stop of stops) stop();
    await issuer.stop();
  });

  const configFile = (changes: Readonly<Record<string, unknown>> = {}): string =>
    writeFixture(
      'verify.json',
      changed({ issuers: [{ issuer: issuer.url, audiences: [audience], jwksUrl: issuer.jwksUrl }], ...changes }),
    );
  const run = (args: readonly string[], options?: CommandOptions): Promise<Outcome> =>
    runCommand('verify', args, options);

  /** Answers every request with this status, header lines and body. */
  async function gateway(status: number, headers = {}, body = '', tls?: { key: string; cert: string }, most = 100) {
    const seen: Seen[] = [];
    const answer: Parameters<typeof createServer>[1] = (request, response) => {
      const serverName = (request.socket as TLSSocket).servername;
      const { host, 'user-agent': userAgent } = request.headers;
      seen.push({ url: request.url ?? '', host, userAgent, serverName });
      if (seen.length > most) return void request.socket.destroy();
      response.writeHead(status, headers);
      response.end(body);
    };
    const server = tls ? createTlsServer(tls, answer) : createServer(answer);
    const port = await listen(server);
    stops.push(() => server.close());
    return { port, seen };
  }

  const wrongUrls = [
    ...'http://gateway.test https://user@gateway.test https://gateway.test/api https://gateway.test?x'.split(' '),
    ...'https://gateway.test#x ftp://127.0.0.1 gateway.test'.split(' '),
  ];
  for (const url of wrongUrls) {
    it(`exits 1 for the URL ${url}`, async () => {
      const { code, stderr, stdout } = await run([url, '--config', configFile()]);
      expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
      expect(stderr).to.contain('URL must be https://HOST');
    });
  }

  it('exits 1 for a URL whose host no entry of account.hosts matches', async () => {
    const file = configFile({ account: { hosts: ['api.test'] } });
    const { code, stderr } = await run(['https://127.0.0.1', '--config', file]);
    expect(code).to.equal(1);
    expect(stderr).to.contain('account.hosts');
  });

  const silent: readonly (readonly [name: string, url: string, more: readonly string[], problem: string])[] = [
    ['a host that does not resolve', 'https://gateway.invalid', [], 'name not found (ENOTFOUND)'],
    ['a refused connection', 'http://127.0.0.1:PORT', [], 'connection refused (ECONNREFUSED)'],
    [
      'a refused connection to --connect-to',
      'http://gateway.test',
      ['--allow-http', '--connect-to', '127.0.0.1:PORT'],
      'at 127.0.0.1:PORT: connection refused',
    ],
    ['a --connect-to without a port', 'https://gateway.test', ['--connect-to', '[::1]'], '--connect-to must'],
    ['a socket', 'https://gateway.test', ['--connect-to', 'unix:/run/x.sock'], '--connect-to must be HOST'],
  ];
  for (const [name, url, more, problem] of silent) {
    it(`exits 1 with one line for ${name}`, async () => {
      const [port] = await freePorts(1);
      const put = (text: string): string => text.replace('PORT', String(port));
      const { code, stdout, stderr } = await run([...[url, ...more].map(put), '--config', configFile()]);
      expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
      expect(stderr)
        .to.match(/^[^\n]+\n$/)
        .and.contain(put(problem));
    });
  }

  it('counts what is left out where the answers end, and names some of it in one line', async () => {
    const routes = Array.from({ length: 12 }, (_, i) => ({ path: `/v1/r${i}` }));
    const { port } = await gateway(404, {}, '', undefined, 3);
    const { code, stdout } = await run([`http://127.0.0.1:${port}`, '--config', configFile({ routes })]);
    expect(code).to.equal(1);
    expect(stdout.match(/left out/g)).to.have.length(1);
    expect(stdout).to.match(/^24 left out \(no answer from the gateway\): GET \/v1\/r0, no token, .* and 19 more$/m);
  });

  it('connects to --connect-to, with the host of the URL in TLS and in Host', async () => {
    const { key, cert } = testCertificate({ dnsNames: ['gateway.test'] });
    const { port, seen } = await gateway(404, {}, '', { key, cert });
    const more = ['--connect-to', `127.0.0.1:${port}`, '--ca', writeFixture('verify-ca.pem', cert)];
    const asked = async (url: string) => run([url, ...more, '--config', configFile()]);
    expect((await asked('https://gateway.test')).code).to.equal(3);
    expect(seen[0]).to.include({ host: 'gateway.test', serverName: 'gateway.test' });
    expect((await asked('https://127.0.0.2')).stderr).to.contain('certificate for another name');
    expect((await asked('https://other.test')).stderr).to.contain('certificate for another name');
  });

  it('follows no redirect and says so', async () => {
    const elsewhere = await gateway(200);
    const { port } = await gateway(302, { location: `http://127.0.0.1:${elsewhere.port}/` });
    const { code, stdout } = await run([`http://127.0.0.1:${port}`, '--config', configFile()]);
    expect(code).to.equal(3);
    expect(stdout).to.contain('a redirect, which is not followed');
    expect(elsewhere.seen).to.deep.equal([]);
  });

  it('never uses a proxy, and marks its requests', async () => {
    const proxy = await gateway(502);
    const { port, seen } = await gateway(200);
    const at = `http://127.0.0.1:${proxy.port}`;
    const env = { http_proxy: at, HTTP_PROXY: at, https_proxy: at, NODE_USE_ENV_PROXY: '1' };
    await run([`http://127.0.0.1:${port}`, '--config', configFile()], { env });
    expect(proxy.seen).to.deep.equal([]);
    expect(seen[0]?.userAgent).to.match(/^account-authz-verify\//);
  });

  it('takes a problem document of another service for no refusal of account-authz', async () => {
    const body = JSON.stringify({ type: 'about:blank', reason: 'token_missing', status: 401 });
    const { port } = await gateway(401, { 'content-type': 'application/problem+json' }, body);
    const { code, stdout } = await run([`http://127.0.0.1:${port}`, '--config', configFile()]);
    expect(code).to.equal(3);
    expect(stdout).to.contain('401 application/problem+json, not from account-authz');
  });

  it('leaves out what a revocation list by URL would decide where the list cannot be had, and exits 1', async () => {
    const [closed] = await freePorts(1);
    const file = configFile({ revocation: { url: `http://127.0.0.1:${closed}/revoked.jsonl?key=secret` } });
    const { port } = await gateway(404);
    const input = await currentToken(issuer.url, {});
    const { code, stdout, stderr } = await run([`http://127.0.0.1:${port}`, '--config', file], { input });
    expect(code).to.equal(1);
    expect(stderr).to.contain('the revocation list cannot be had here');
    expect(stdout).to.match(/left out \(the revocation list cannot be had here\): .*own account/);
  });

  it('sends only requests without a token where the keys cannot be had, names the others and exits 1', async () => {
    const [closed] = await freePorts(1);
    const jwksUrl = `http://127.0.0.1:${closed}/jwks.json`;
    const file = configFile({ issuers: [{ issuer: issuer.url, audiences: [audience], jwksUrl }] });
    const { port, seen } = await gateway(404);
    const input = await token({ claims: { iss: issuer.url } });
    const { code, stdout, stderr } = await run([`http://127.0.0.1:${port}`, '--config', file], { input });
    expect(code).to.equal(1);
    expect(stderr).to.contain('the keys of the issuer cannot be had here');
    expect(stdout).to.match(
      /^\d+ left out \(the keys of .*\): GET \/api\/subscriptions, false signature, .*own account$/m,
    );
    expect(seen).to.have.length(5);
  });

  it('verifies with the tokens of the issuers whose keys can be had, and names the requests of the others', async () => {
    const audiences = [audience];
    const issuers = [
      { issuer: 'https://other.test', audiences, jwksFile: '/nowhere/jwks.json' },
      { issuer: issuer.url, audiences, jwksUrl: issuer.jwksUrl },
    ];
    const { port } = await gateway(404);
    const input = await token({ claims: { iss: issuer.url } });
    const { code, stdout, stderr } = await run([`http://127.0.0.1:${port}`, '--config', configFile({ issuers })], {
      input,
    });
    expect(code).to.equal(1);
    expect(stderr).to.contain('warning: jwksFile of https://other.test');
    expect(stdout).to.match(/^DIFF +GET \/api\/subscriptions, false signature, issuer 2 +401 token_invalid/m);
    expect(stdout).to.contain('1 left out (the keys of the issuer cannot be had here): GET /api/subscriptions, false');
  });

  it('warns of a revocation list that is not on this machine', async () => {
    const file = configFile({ revocation: { file: '/nowhere/revoked.jsonl' } });
    const { port } = await gateway(404);
    const { code, stderr } = await run([`http://127.0.0.1:${port}`, '--config', file]);
    expect(code).to.equal(3);
    expect(stderr).to.contain('warning: revocation.file');
  });

  it('trusts the authority of --ca, and shows the host of the URL alone in SNI', async () => {
    const { key, cert } = testCertificate({ dnsNames: ['localhost'] });
    const { port, seen } = await gateway(404, {}, '', { key, cert });
    const file = configFile({ account: { hosts: ['localhost', 'api.test'] } });
    const url = `https://localhost:${port}`;
    expect((await run([url, '--config', file])).code).to.equal(1);
    const { code } = await run([url, '--config', file, '--ca', writeFixture('verify-ca.pem', cert)]);
    expect(code).to.equal(3);
    expect(new Set(seen.map(({ host }) => host))).to.deep.equal(new Set([`localhost:${port}`, `api.test:${port}`]));
    expect(new Set(seen.map(({ serverName }) => serverName))).to.deep.equal(new Set(['localhost']));
  });

  it('prints the same as JSON with --json, and nothing of the token', async () => {
    const { port } = await gateway(200);
    const input = await token({ claims: { iss: issuer.url, acc: 'very-own-account' } });
    const { code, stdout } = await run([`http://127.0.0.1:${port}`, '--config', configFile(), '--json'], { input });
    expect(code).to.equal(3);
    const { requests, leftOut } = JSON.parse(stdout);
    expect(requests[0]).to.deep.include({ actual: { status: 200 }, asExpected: false });
    expect(requests[0]).to.include.keys('request', 'expected', 'meaning', 'look');
    expect(leftOut).to.deep.equal([]);
    expect(stdout).to.not.contain('very-own-account');
  });
});
