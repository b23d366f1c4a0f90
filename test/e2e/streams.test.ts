// What runs through a rendered Envoy as long as it makes progress: event streams, uploads, WebSockets, gRPC-Web; and what --idle-timeout,
// --request-timeout, --upstream with a path, --underscores, --max-headers-kib and [::] do.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { writeFixture } from '../../lab/config-file.ts';
import { envoyVersions, type RunningEnvoy, startEnvoy } from '../../lab/envoy.ts';
import { renderedEnvoyOf } from '../../lab/envoy-bootstrap.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { exchange, headerValues, http2Exchange, requestBytes } from '../../lab/raw-http.ts';
import { listen } from '../support/listen.ts';
import { rawHttp2Exchange } from '../support/raw-http2.ts';
import { useRunning } from '../support/use-running.ts';
import { http2Fields, onlyRequestOf, useLab } from './lab.ts';

const path = '/api/subscriptions/accounts/acct1';
const settings = { public: [{ path: '/open/*', methods: ['GET'] }] };
const idleSeconds = 3;
const pieces = 8;
const pieceMs = 500;

/** Answers slowly: events, a body that is counted, an echo behind an upgrade, silence. */
async function startSlowService(): Promise<{ readonly port: number; stop(): void }> {
  const sockets = new Set<Socket>();
  const server: Server = createServer(async (request, response) => {
    if (request.url?.endsWith('/silent')) return;
    if (request.url?.endsWith('/events')) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (let i = 0; i < pieces && !response.destroyed; i += 1) {
        response.write(`data: ${i}\n\n`);
        await delay(pieceMs);
      }
      response.end();
      return;
    }
    if (request.url?.endsWith('/hints')) response.writeEarlyHints({ link: '</a.css>; rel=preload' });
    response.end(String(await lengthOf(request)));
  });
  server.requestTimeout = 0;
  server.on('connection', socket => sockets.add(socket));
  server.on('upgrade', (_, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    socket.on('error', () => undefined).pipe(socket);
  });
  const port = await listen(server);
  return {
    port,
    stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

async function lengthOf(request: IncomingMessage): Promise<number> {
  let length = 0;
  for await (const chunk of request) length += (chunk as Buffer).length;
  return length;
}

/** Sends the first bytes and then a piece from time to time; returns all that arrived until the end, or until the pieces are through. */
async function converse(port: number, first: string, piece: string | undefined): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port });
  let received = '';
  let ended = false;
  socket.setEncoding('latin1').on('data', text => (received += text));
  socket.on('error', () => undefined).on('close', () => (ended = true));
  socket.write(first);
  for (let i = 0; i < pieces && piece !== undefined && !ended; i += 1) {
    await delay(pieceMs);
    socket.write(piece);
  }
  if (piece === undefined) await once(socket, 'close', { signal: AbortSignal.timeout(20_000) });
  else await delay(pieceMs);
  socket.destroy();
  return received;
}

const websocket = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: eA=='];

for (const version of envoyVersions) {
  describe(`streams through Envoy ${version}`, () => {
    const suite = useLab(settings);
    const { lab } = suite;
    const slow = useRunning(startSlowService);
    const envoys: RunningEnvoy[] = [];
    after(() => Promise.all(envoys.splice(0).map(envoy => envoy.stop())));

    async function startRendered(options: readonly string[], upstream = slow.port): Promise<RunningEnvoy> {
      const bootstrap = await renderedEnvoyOf(suite.file, ['--upstream', `127.0.0.1:${upstream}`, ...options]);
      const envoy = await startEnvoy({ version, bootstrap });
      envoys.push(envoy);
      return envoy;
    }

    const withToken = (method: string, target: string, lines: readonly string[] = [], body = ''): string =>
      requestBytes(method, target, [`Authorization: ${suite.owner}`, ...lines], body);

    it('pass for longer than --idle-timeout while they make progress, and end after it in silence', async function () {
      this.timeout(60_000);
      const { port } = await startRendered(['--idle-timeout', String(idleSeconds), '--upgrade', 'websocket']);
      const upload = withToken('POST', path, [`Content-Length: ${pieces}`]);
      const handshake = withToken('GET', path, websocket);
      const [events, uploaded, echoed, silent, idle] = await Promise.all([
        exchange(port, withToken('GET', `${path}/events`)),
        converse(port, upload, 'x'),
        converse(port, handshake, 'ping'),
        exchange(port, withToken('GET', `${path}/silent`)),
        converse(port, handshake, undefined),
      ]);
      expect(events.body.match(/data: /g)).to.have.length(pieces);
      expect(uploaded).to.match(new RegExp(`^HTTP/1.1 200 OK\\r\\n[^]*\\r\\n\\r\\n(?:1\\r\\n)?${pieces}`));
      expect(echoed).to.match(/^HTTP\/1\.1 101 /);
      expect(echoed.match(/ping/g)).to.have.length(pieces);
      expect(silent.status).to.equal(504);
      expect(idle).to.match(/^HTTP\/1\.1 101 /);
    });

    it('end at --request-timeout, a WebSocket only before its 101', async function () {
      this.timeout(60_000);
      const { port } = await startRendered(['--request-timeout', '1', '--upgrade', 'websocket']);
      const [events, silent, echoed] = await Promise.all([
        exchange(port, withToken('GET', `${path}/events`)),
        exchange(port, withToken('GET', `${path}/silent`)),
        converse(port, withToken('GET', path, websocket), 'ping'),
      ]);
      expect((events.body.match(/data: /g) ?? []).length).to.be.below(pieces);
      expect(silent.status).to.equal(504);
      expect(echoed.match(/ping/g)).to.have.length(pieces);
    });

    it('end at --request-timeout as gRPC calls too, with or without a deadline of the client', async () => {
      const service = createHttp2Server(() => undefined);
      const options = ['--request-timeout', '1', '--upstream-protocol', 'http2'];
      const { port } = await startRendered(options, await listen(service));
      for (const deadline of [{}, { 'grpc-timeout': '9S' }]) {
        const grpc = { ':method': 'POST', 'content-type': 'application/grpc' };
        const call = { ...grpc, ':path': path, authorization: suite.owner };
        const answer = await http2Exchange(port, { headers: { ...call, ...deadline } });
        expect(headerValues(answer, 'grpc-status')).to.deep.equal(['4']);
      }
      service.close();
    });

    it('ignore an offer of TLS, and take a WebSocket on checked routes alone, checked at the handshake, over HTTP/1.1 and HTTP/2', async () => {
      const { port } = await startRendered(['--upgrade', 'websocket'], lab.upstream.port);
      expect(await exchange(port, requestBytes('GET', path, websocket))).to.include({ status: 401 });
      expect(await exchange(port, requestBytes('GET', '/open/x', websocket))).to.include({ status: 403 });
      expect(await exchange(port, withToken('GET', '/nowhere', websocket))).to.include({ status: 403 });
      expect(lab.upstream.requests).to.deep.equal([]);
      expect(await exchange(port, withToken('GET', path, websocket))).to.include({ status: 101 });
      expect(onlyRequestOf(lab.upstream).headers.map(([name]) => name.toLowerCase())).to.include('x-auth-uid');
      for (const lines of [
        ['Upgrade: TLS/1.2', 'Connection: Upgrade'],
        ['Upgrade: TLS/1.3, TLS/1.2', 'Connection: close, upgrade'],
      ]) {
        lab.upstream.clear();
        expect(await exchange(port, withToken('GET', path, lines)), 'Apache HttpClient').to.include({ status: 200 });
        expect(onlyRequestOf(lab.upstream).headers.map(([name]) => name.toLowerCase())).not.to.include('upgrade');
      }
      lab.upstream.clear();
      const extended = (target: string, fields: readonly [string, string][]) =>
        rawHttp2Exchange(port, [
          [':method', 'CONNECT'],
          [':protocol', 'websocket'],
          ...http2Fields(target).slice(1),
          ...fields,
        ]);
      const token: [string, string] = ['authorization', suite.owner];
      expect(await extended(path, [])).to.include({ status: 401 });
      for (const target of ['/open/x', '/nowhere'])
        expect(await extended(target, [token]), target).to.include({ status: 403 });
      expect(lab.upstream.requests).to.deep.equal([]);
      expect(await extended(path, [token])).to.include({ status: 200 });
      expect(onlyRequestOf(lab.upstream).headers.map(([name]) => name.toLowerCase())).to.include('x-auth-uid');
    });

    it('ask for a body only where the check allows it, and bring early hints', async () => {
      const { port } = await startRendered([]);
      const upload = ['Expect: 100-continue', 'Connection: close'];
      const received = (bytes: string) => converse(port, bytes, undefined);
      expect(await received(requestBytes('POST', path, [...upload, 'Content-Length: 1']))).to.match(/^HTTP\/1\.1 401 /);
      const [asked, answered] = (await received(withToken('POST', path, upload, 'x'))).match(/HTTP\/1\.1 \d+/g) ?? [];
      expect([asked, answered]).to.deep.equal(['HTTP/1.1 100', 'HTTP/1.1 200']);
      expect(await received(withToken('GET', `${path}/hints`, ['Connection: close']))).to.match(/^HTTP\/1\.1 103 /);
    });

    it('go to the most specific --upstream, by whole segments', async () => {
      const other = `127.0.0.1:${slow.port}`;
      const { port } = await startRendered(
        ['--upstream', `${path}/files=${other}`, '--upstream', `/open/files=${other}`],
        lab.upstream.port,
      );
      for (const [target, isOther] of [
        [`${path}/files`, true],
        [`${path}/files/a?b`, true],
        [`${path}/filesystem`, false],
        [path, false],
        ['/open/files/a', true],
        ['/open/a', false],
      ] as const) {
        lab.upstream.clear();
        const { status, body } = await exchange(port, withToken('GET', target));
        expect([target, status, body === '0']).to.deep.equal([target, 200, isOther]);
        expect(lab.upstream.requests).to.have.length(isOther ? 0 : 1);
      }
    });

    it('lose a header with an underscore with --underscores drop, and may have large headers with --max-headers-kib', async () => {
      const options = ['--underscores', 'drop', '--max-headers-kib', '200'];
      const { port } = await startRendered(options, lab.upstream.port);
      const lines = ['x_auth_uid: evil', 'x_other: 1', `x-large: ${'a'.repeat(12_000)}`];
      expect(await exchange(port, withToken('GET', path, lines))).to.include({ status: 200 });
      const names = onlyRequestOf(lab.upstream).headers.map(([name]) => name.toLowerCase());
      expect(names).to.include('x-large').and.not.include.members(['x_other']);
      expect(names.filter(name => name.includes('_'))).to.deep.equal([]);
    });

    it('reach an Envoy on [::] over IPv4 and IPv6, its readiness port too, with a dot at the end of the host', async () => {
      const [listen = 0, ready = 0, admin = 0] = await freePorts(3);
      const file = writeFixture('v6.yaml', { ...suite.config, account: { hosts: ['api.test'] } });
      const ports = ['--listen', `[::]:${listen}`, '--readiness-port', `${ready}`, '--envoy-admin-port', `${admin}`];
      const bootstrap = await renderedEnvoyOf(file, ['--upstream', `127.0.0.1:${lab.upstream.port}`, ...ports]);
      envoys.push(await startEnvoy({ version, file: writeFixture('v6-envoy.yaml', bootstrap) }));
      for (const host of ['127.0.0.1', '[::1]']) {
        expect((await fetch(`http://${host}:${ready}/ready`)).status, host).to.equal(200);
        expect((await fetch(`http://${host}:${listen}/nowhere`)).status, host).to.equal(404);
      }
      const bytes = withToken('GET', path).replace('Host: api.test', 'Host: API.test.:8080');
      expect(await exchange(listen, bytes)).to.include({ status: 200 });
    });

    it('keep the request id of a trusted proxy, and of nobody else', async () => {
      for (const [options, isKept] of [
        [['--trusted-hops', '1'], true],
        [[], false],
      ] as const) {
        lab.upstream.clear();
        const { port } = await startRendered(options, lab.upstream.port);
        const answer = await exchange(port, withToken('GET', path, ['X-Request-Id: mine']));
        expect(headerValues(answer, 'x-request-id').includes('mine')).to.equal(isKept);
        expect(new Map(onlyRequestOf(lab.upstream).headers).get('x-request-id') === 'mine').to.equal(isKept);
      }
    });

    for (const protocol of ['auto', 'http2']) {
      it(`are gRPC-Web calls of pages with --grpc-web, over HTTP/2 to the service with ${protocol}`, async () => {
        const origin = 'https://app.example.com';
        const options = ['--grpc-web', '--upstream-protocol', protocol, '--cors-origin', origin];
        const { port } = await startRendered(options, lab.upstream.port);
        const web = ['Content-Type: application/grpc-web+proto', 'X-Grpc-Web: 1', `Origin: ${origin}`];
        const call = (lines: readonly string[]) =>
          exchange(port, requestBytes('POST', `${path}/List`, [...web, ...lines], '\0\0\0\0\0'));
        const answer = await call([`Authorization: ${suite.owner}`]);
        expect(answer.status).to.equal(200);
        expect(headerValues(answer, 'content-type')).to.deep.equal(['application/grpc-web+proto']);
        expect(answer.body).to.include('grpc-status:0');
        expect(onlyRequestOf(lab.upstream)).to.include({ httpVersion: '2.0', path: `${path}/List` });
        const refused = await call([]);
        expect(`${headerValues(refused, 'grpc-status')}${refused.body}`).to.match(/16/);
        const asked = 'x-grpc-web,x-user-agent,grpc-timeout,content-type';
        const preflight = await exchange(
          port,
          requestBytes('OPTIONS', path, [
            `Origin: ${origin}`,
            'Access-Control-Request-Method: POST',
            `Access-Control-Request-Headers: ${asked}`,
          ]),
        );
        expect(headerValues(preflight, 'access-control-allow-headers').join()).to.include('x-grpc-web');
        expect(headerValues(answer, 'access-control-expose-headers').join()).to.include('grpc-status');
      });
    }
  });
}
