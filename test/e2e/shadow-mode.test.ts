// render --shadow on real Envoys: every request gets the answer that it gets without account-authz, and what would be refused is recorded.
import { execFile } from 'node:child_process';
import { createServer, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { expect } from 'chai';
import { runCommand } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { envoyBinary, envoyVersions } from '../../lab/envoy.ts';
import { renderedEnvoyOf } from '../../lab/envoy-bootstrap.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { exchange, http2Exchange, requestBytes } from '../../lab/raw-http.ts';
import { until } from '../../lab/until.ts';
import { listen } from '../support/listen.ts';
import { rawHttp2Exchange } from '../support/raw-http2.ts';
import { useRunning } from '../support/use-running.ts';
import { http2Fields, useLab } from './lab.ts';

const settings = {
  public: [{ path: '/open/*' }],
  account: { headers: ['x-account-id'], query: ['account_id'], hosts: [':account_id.api.test', 'api.test'] },
  protectedResource: { resource: 'https://api.test/mcp' },
};
const path = '/api/subscriptions/accounts/acct1';
const websocket = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: eA=='];

/** What the client sends, and the decision that the trial records: `deny` where the strict form would refuse. */
function requestsOf(token: string): Readonly<Record<string, readonly [bytes: string, decision: string | null]>> {
  const get = (target: string, lines: readonly string[] = []) => requestBytes('GET', target, lines);
  const withToken = (target: string, lines: readonly string[] = []) => get(target, [token, ...lines]);
  return {
    'a good token': [withToken(path, ['X-Auth-Uid: evil']), 'allow'],
    'no token': [get(path), 'deny'],
    'another account': [withToken('/api/subscriptions/accounts/acct2'), 'deny'],
    'a token that is none': [get(path, ['Authorization: Bearer x']), 'deny'],
    'an encoded slash': [withToken('/api/subscriptions/a%2Fb'), 'deny'],
    'dot segments and empty ones': [withToken('/api//subscriptions/../x/./%2e%2e/y;z=1?q=%zz&_method=x'), 'deny'],
    'underscores and forged names': [
      withToken('/x', ['x_auth_uid: evil', 'X-Original-URL: /y', 'X-Forwarded-For: 1.2.3.4', 'X-Request-Id: mine']),
      'deny',
    ],
    'an unknown path': [get('/nowhere'), 'deny'],
    'another host with a dot and a port': [withToken(path).replace('Host: api.test', 'Host: Other.Test.:99'), 'deny'],
    'the path of the metadata document': [get('/.well-known/oauth-protected-resource/mcp'), 'deny'],
    'a preflight request': [
      requestBytes('OPTIONS', path, ['Origin: https://app.example.com', 'Access-Control-Request-Method: GET']),
      'deny',
    ],
    'a method of its own': [requestBytes('PURGE', path, [token]), 'deny'],
    'large headers': [withToken(path, [`X-Large: ${'a'.repeat(12_000)}`]), 'allow'],
    'many headers': [
      withToken(
        path,
        Array.from({ length: 190 }, (_, i) => `X-H${i}: 1`),
      ),
      'allow',
    ],
    'a long target': [withToken(`${path}?${'a'.repeat(9000)}`), 'deny'],
    'a body': [requestBytes('POST', path, [token], 'abc'), 'allow'],
    'a chunked body': [
      `${requestBytes('POST', path, [token, 'Transfer-Encoding: chunked'])}3\r\nabc\r\n0\r\n\r\n`,
      'allow',
    ],
    'HTTP/1.0': [withToken(path).replace('HTTP/1.1', 'HTTP/1.0'), 'allow'],
    'an expectation that the service refuses': [
      requestBytes('POST', '/too-large', ['Expect: 100-continue', 'Content-Length: 3']),
      'deny',
    ],
    'a large answer': [get('/large'), 'deny'],
    'a WebSocket': [get('/socket', websocket), 'deny'],
    'a public path': [withToken('/open/a', ['X-Auth-Uid: evil', 'X-Account-Id: evil']), null],
  };
}

// Of one connection alone (RFC 9110 section 7.6.1), and what every Envoy adds.
const ofConnection = new Set(
  'connection keep-alive transfer-encoding date x-forwarded-proto content-length'.split(' '),
);

function endToEnd(raw: readonly string[]): readonly string[] {
  const fields = raw.flatMap((name, i) => (i % 2 === 0 ? `${name}: ${raw[i + 1]}` : []));
  return fields.filter(field => !ofConnection.has(field.slice(0, field.indexOf(':')).toLowerCase()));
}

/** Records what arrives, and answers the same bytes to all, in its own letters. */
async function startService(): Promise<{ readonly port: number; readonly seen: unknown[]; stop(): void }> {
  const seen: unknown[] = [];
  const record = async (request: IncomingMessage): Promise<void> => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    seen.push({ method: request.method, target: request.url, headers: endToEnd(request.rawHeaders), body });
  };
  const server = createServer({ keepAliveTimeout: 0, maxHeaderSize: 100_000 }, async (request, response) => {
    await record(request);
    const large = request.url === '/large' ? ['X-Large', 'a'.repeat(100_000)] : [];
    response.writeHead(404, ['X-Of-Service', 'One', 'X-Of-Service', 'Two', 'Content-Type', 'text/plain', ...large]);
    response.end('the service knows no such page\n');
  });
  server.on('checkContinue', async (request, response) => {
    seen.push({ method: request.method, target: request.url, headers: endToEnd(request.rawHeaders), body: '' });
    response.writeHead(413, { connection: 'close' }).end('too large\n');
  });
  server.on('upgrade', (request, socket) => {
    seen.push({ method: request.method, target: request.url, headers: endToEnd(request.rawHeaders), body: '' });
    socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello');
  });
  return { port: await listen(server), seen, stop: () => server.close().closeAllConnections() };
}

/** Everything after the head, too, of an upgrade. */
async function converse(port: number, bytes: string): Promise<unknown> {
  if (bytes.includes('Upgrade: websocket')) return upgraded(port, bytes);
  const { status, headers, body } = await exchange(port, bytes);
  return { status, headers: endToEnd(headers.flat()), body };
}

function upgraded(port: number, bytes: string): Promise<string> {
  return new Promise(resolve => {
    let text = '';
    const socket = connect({ host: '127.0.0.1', port });
    socket
      .setEncoding('latin1')
      .on('data', each => (text += each))
      .on('close', () => resolve(text.slice(text.indexOf('\r\n\r\n'))));
    socket.write(bytes, 'latin1');
  });
}

describe('render --shadow', () => {
  const suite = useLab(settings);
  const service = useRunning(startService);
  const requests = () => requestsOf(`Authorization: ${suite.owner}`);
  beforeEach(() => service.seen.splice(0));

  for (const version of envoyVersions.slice(1)) {
    describe(`on Envoy ${version}`, () => {
      const shadow = ['--shadow'];
      const envoy = useRunning(() => suite.startRendered(shadow, { version, upstream: service.port }));
      const alone = useRunning(async () => {
        const authz = `127.0.0.1:${(await freePorts(1))[0]}`;
        return suite.startRendered(shadow, { version, upstream: service.port, authz });
      });
      let sent = 0;

      it('changes no request and no answer, whatever account-authz says', async () => {
        for (const [name, [bytes]] of Object.entries(requests())) {
          const direct = await converse(service.port, bytes);
          const [expected] = service.seen.splice(0);
          sent += 1;
          for (const { port } of [envoy, alone]) {
            expect(await converse(port, bytes), name).to.deep.equal(direct);
            expect(service.seen.splice(0), name).to.deep.equal([expected]);
          }
        }
      });

      it('records each decision in the access log, and counts what would be refused', async () => {
        const denied = async () => (await envoy.stats()).get('http.public.ext_authz.account.shadow_denied') ?? 0;
        await until(() => envoy.accessLog().length >= sent);
        const [before, lines] = [await denied(), envoy.accessLog().length];
        for (const [bytes] of Object.values(requests())) await converse(envoy.port, bytes);
        const decisions = Object.values(requests()).map(([, decision]) => decision);
        await until(() => envoy.accessLog().length >= lines + decisions.length);
        const logged = envoy.accessLog().slice(lines);
        expect(logged.map(({ decision }) => decision)).to.have.members(decisions);
        expect(logged.find(({ path: each }) => each === '/nowhere')).to.include({
          reason: 'route_unknown',
          status: 404,
        });
        expect((await denied()) - before).to.equal(decisions.filter(each => each === 'deny').length);
      });

      it('passes offers of other protocols, HTTP/2, its WebSockets and HTTP/1.0 without a host as well', async () => {
        for (const offer of ['TLS/1.2', 'h2c', 'foo/2'])
          expect(
            await exchange(envoy.port, requestBytes('POST', '/x', ['Connection: Upgrade', `Upgrade: ${offer}`], 'abc')),
            offer,
          ).to.include({ status: 404, body: 'the service knows no such page\n' });
        expect(await exchange(envoy.port, 'GET /x HTTP/1.0\r\n\r\n')).to.include({ status: 404 });
        const handshake = [[':method', 'CONNECT'], [':protocol', 'websocket'], ...http2Fields('/x').slice(1)] as const;
        expect(await rawHttp2Exchange(envoy.port, handshake)).to.include({ status: 200, body: 'hello' });
        expect(await http2Exchange(envoy.port, { headers: { ':path': '/a%2Fb', x_auth_uid: 'x' } })).to.include({
          status: 404,
        });
      });
    });
  }

  it('is refused by an Envoy before 1.38', async () => {
    const bootstrap = writeFixture('shadow-envoy.yaml', await renderedEnvoyOf(suite.file, ['--shadow']));
    const binary = await envoyBinary('1.36.4');
    const output = await new Promise(resolve =>
      execFile(binary, ['--mode', 'validate', '-c', bootstrap], (_, stdout, stderr) => resolve(stdout + stderr)),
    );
    expect(output).to.match(/shadow_mode/);
  });

  it('is reported as dangerous by check-config', async () => {
    const bootstrap = writeFixture('shadow-envoy.yaml', await renderedEnvoyOf(suite.file, ['--shadow']));
    const { code, stderr } = await runCommand('check-config', ['--config', suite.file, '--envoy', bootstrap]);
    expect(code).to.equal(1);
    expect(stderr).to.match(/\[shadow-mode\]/);
  });
});
