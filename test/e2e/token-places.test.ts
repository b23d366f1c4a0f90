// Tokens in a header, a cookie and a subprotocol through real Envoys: what the service gets, which pages may send a cookie, and a real Chromium.
import { createHash } from 'node:crypto';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import { runCommand } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { envoyVersions, startRenderedEnvoy } from '../../lab/envoy.ts';
import { renderedEnvoyOf } from '../../lab/envoy-bootstrap.ts';
import { exchange, headerValues, http2Exchange, requestBytes } from '../../lab/raw-http.ts';
import { startBrowser } from '../support/browser.ts';
import { useRunning } from '../support/use-running.ts';
import { bearer, configuration, identity, onlyRequestOf, ownedFields, reasonOf, startLab, useLab } from './lab.ts';

const path = '/api/subscriptions/accounts/acct1';
const ownOrigin = 'https://app.example.com';
const settings = {
  token: {
    from: ['authorization', { header: 'x-id-token' }, { cookie: '__Host-token' }, { subprotocol: 'bearer' }],
    origins: [ownOrigin],
  },
  public: [{ path: '/open/*' }],
};
const websocket = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: eA=='];
const bytes = (text: string): string => Buffer.from(text).toString('latin1');

describe('places of the token', () => {
  const suite = useLab(settings);
  const { lab } = suite;
  let token: string;
  before(() => {
    token = suite.owner.slice('Bearer '.length);
  });

  for (const version of envoyVersions) {
    describe(`Envoy ${version}`, () => {
      const envoy = useRunning(() =>
        suite.startRendered(['--upgrade', 'websocket', '--max-headers-kib', '200'], { version }),
      );

      const send = (method: string, lines: readonly string[], target = path) =>
        exchange(envoy.port, requestBytes(method, target, lines));
      const seen = (name: string): readonly string[] => headerValues(onlyRequestOf(lab.upstream), name);
      const cookie = (others = ''): string => `Cookie: ${others}__Host-token=${token}`;

      const others: readonly (readonly [name: string, lines: () => readonly string[], left: readonly string[]])[] = [
        ['no other', () => [cookie()], []],
        ['others around it', () => [`${cookie('a=1; ')}; b="x y"; c`], ['a=1; b="x y"; c']],
        ['others in lines of their own', () => ['Cookie: a=1', cookie(), 'Cookie: b=2'], ['a=1; b=2']],
        ['others in UTF-8', () => [`${cookie()}; name=${bytes('Zoë')}`], [`name=${bytes('Zoë')}`]],
        ['100 KiB of others', () => [`${cookie()}; a=${'x'.repeat(100_000)}`], [`a=${'x'.repeat(100_000)}`]],
        ['none of the token', () => [`X-Id-Token: ${token}`, 'Cookie: a=1;b=2'], ['a=1;b=2']],
      ];
      for (const [name, lines, left] of others) {
        it(`removes the token, and leaves the other cookies as they were sent: ${name}`, async () => {
          expect(await send('GET', lines())).to.include({ status: 200 });
          expect(seen('cookie')).to.deep.equal(left);
          expect(ownedFields(onlyRequestOf(lab.upstream))).to.deep.equal(identity);
          expect(JSON.stringify(onlyRequestOf(lab.upstream))).to.not.include(token);
        });
      }

      it('takes the cookies of HTTP/2, one in a line', async () => {
        const headers = { ':path': path, cookie: ['a=1', `__Host-token=${token}`, 'b=2'] };
        expect(await http2Exchange(envoy.port, { headers })).to.include({ status: 200 });
        expect(seen('cookie')).to.deep.equal(['a=1; b=2']);
      });

      const socket = (...lines: string[]): string[] => [
        ...websocket,
        `Origin: ${ownOrigin}`,
        ...lines.map(line => `Sec-WebSocket-Protocol: ${line}`),
      ];

      it('takes the token of a WebSocket from its subprotocols, which the service gets without it', async () => {
        for (const lines of [
          [`graphql-ws, bearer, ${token}`],
          ['graphql-ws', 'bearer', token],
          [`graphql-ws,bearer,,${token}`],
        ]) {
          expect(await send('GET', [...socket(...lines), 'Cookie: a=1'])).to.include({ status: 101 });
          expect(seen('sec-websocket-protocol')).to.deep.equal(['graphql-ws, bearer']);
          expect(seen('cookie')).to.deep.equal(['a=1']);
          expect(ownedFields(onlyRequestOf(lab.upstream))).to.deep.equal(identity);
          expect(JSON.stringify(onlyRequestOf(lab.upstream))).to.not.include(token);
          lab.upstream.clear();
        }
      });

      // One of each reason: test/authz/token-places.test.ts has every form.
      const handshakes: readonly (readonly [reason: string, lines: () => readonly string[]])[] = [
        ['request_invalid', () => socket(`bearer, ${token}`, `bearer, ${token}`)],
        ['request_invalid', () => [...socket(`bearer, ${token}`), cookie()]],
        ['token_missing', () => [`Origin: ${ownOrigin}`, `Sec-WebSocket-Protocol: bearer, ${token}`]],
        [
          'origin_forbidden',
          () => [...websocket, 'Origin: https://evil.example', `Sec-WebSocket-Protocol: bearer, ${token}`],
        ],
        ['token_invalid', () => socket(`bearer, graphql-ws, ${token}`)],
      ];
      for (const [i, [reason, lines]] of handshakes.entries()) {
        it(`answers handshake ${i} with ${reason}`, async () => {
          expect(reasonOf(await send('GET', lines()))).to.equal(reason);
          expect(lab.upstream.requests).to.deep.equal([]);
        });
      }

      it('takes a change and a WebSocket with a cookie from a page of origins alone', async () => {
        const refused = [[cookie()], [cookie(), 'Origin: https://evil.example'], [cookie(), 'Origin: null']];
        for (const lines of refused) {
          expect(reasonOf(await send('POST', [...lines, 'Content-Length: 0']))).to.equal('origin_forbidden');
          expect(reasonOf(await send('GET', [...lines, ...websocket]))).to.equal('origin_forbidden');
        }
        expect(lab.upstream.requests).to.deep.equal([]);
        const own = [cookie(), `Origin: ${ownOrigin}`];
        expect(await send('POST', [...own, 'Content-Length: 0'])).to.include({ status: 200 });
        expect(await send('GET', [...own, ...websocket])).to.include({ status: 101 });
        expect(await send('POST', [`X-Id-Token: ${token}`, 'Content-Length: 0'])).to.include({ status: 200 });
      });

      it('removes the headers on a public route, and keeps cookie as it was sent', async () => {
        const named = [`X-Id-Token: ${token}`, `X.Id.Token: ${token}`, `Authorization: Bearer ${token}`];
        const lines = [cookie('a=1; '), ...named];
        expect(await send('GET', lines, '/open/x')).to.include({ status: 200 });
        expect(seen('cookie')).to.deep.equal([cookie('a=1; ').slice('Cookie: '.length)]);
        const names = onlyRequestOf(lab.upstream).headers.map(([name]) => name.toLowerCase());
        expect(names.filter(name => /token|authorization/.test(name))).to.deep.equal([]);
      });
    });
  }

  it('passes check-config --envoy', async () => {
    const bootstrap = writeFixture(
      'token-places-envoy.yaml',
      await renderedEnvoyOf(suite.file, ['--cors-origin', ownOrigin]),
    );
    const outcome = await runCommand('check-config', ['--config', suite.file, '--envoy', bootstrap]);
    expect(outcome.stderr).to.not.match(/token-places-envoy\.yaml/);
    expect(outcome).to.include({ code: 0 });
  });
});

describe('a token in a subprotocol alone', () => {
  const suite = useLab({ token: { from: [{ subprotocol: 'bearer' }], origins: [ownOrigin] } });
  const envoy = useRunning(() => suite.startRendered(['--upgrade', 'websocket']));

  it('is sent in a handshake by explain, from a page of origins unless a header names another, and by verify', async () => {
    const input = suite.owner.slice('Bearer '.length);
    const explain = async (...headers: string[]) => {
      const more = headers.flatMap(each => ['--header', each]);
      const { code, stdout, stderr } = await runCommand('explain', ['--config', suite.file, '--path', path, ...more], {
        input,
      });
      return `${code} ${/^(?:allow|deny): .*$/m.exec(stdout)?.[0] ?? stderr.trim()}`;
    };
    expect(await explain()).to.equal('0 allow: 200 allowed');
    expect(await explain('origin: https://evil.example')).to.equal('3 deny: 403 origin_forbidden');
    expect(await explain('sec-websocket-protocol: v2')).to.equal('0 allow: 200 allowed');
    expect(await explain('sec-websocket-protocol: v2, bearer, x')).to.match(/^1 .*must not be a place of the token/);
    const verified = await runCommand('verify', [`http://127.0.0.1:${envoy.port}`, '--config', suite.file], { input });
    expect([verified.code, verified.stdout], verified.stderr).to.match(/^0,/);
    expect(verified.stdout).to.not.include(input);
  });
});

describe('a token in a cookie or a subprotocol, in Chromium', () => {
  const reached: string[] = [];
  const serve = (server: Server) => async () => {
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    return { port, origin: `http://127.0.0.1:${port}`, stop: () => server.close().closeAllConnections() };
  };
  const answer = (_: unknown, response: ServerResponse): unknown => response.end('<!doctype html><title>page</title>');
  // Another port is another origin of the same site, so that the browser sends the cookie for both.
  const [ownPage, otherPage] = [createServer(answer), createServer(answer)].map(server => useRunning(serve(server)));
  const service = useRunning(serve(startService()));
  const from = [{ cookie: 'token' }, { subprotocol: 'bearer' }];
  const config = () => ({ token: { from, origins: [ownPage?.origin] } });
  const lab = useRunning(() => startLab(config()));
  const envoy = useRunning(() => {
    const written = { ...configuration(lab.jwksUrl), ...config(), listen: lab.service.address };
    const cors = ['--cors-origin', String(ownPage?.origin), '--cors-expose', 'x-total-count'];
    const options = [...cors, '--upgrade', 'websocket'];
    return startRenderedEnvoy(written, { upstream: service.port }, options);
  });
  let context: BrowserContext;
  let own: Page;
  let other: Page;
  let value: string;

  before(async () => {
    const browser = await startBrowser();
    context = await browser.newContext();
    value = (await bearer()).slice('Bearer '.length);
    const url = `http://127.0.0.1:${envoy.port}`;
    await context.addCookies([{ name: 'token', value, url, httpOnly: true, sameSite: 'Lax' }]);
    own = await context.newPage();
    await own.goto(String(ownPage?.origin));
    other = await context.newPage();
    await other.goto(String(otherPage?.origin));
  });
  after(() => context?.browser()?.close());
  beforeEach(() => reached.splice(0));

  function startService(): Server {
    const server = createServer((request, response) => {
      reached.push(
        `${request.method} ${request.url} ${request.headers['x-auth-uid'] === undefined ? 'unchecked' : 'checked'}`,
      );
      if (request.url?.endsWith('/events'))
        response.setHeader('content-type', 'text/event-stream').end('data: hello\n\n');
      else {
        for (const name of ['etag', 'x-total-count', 'x-mine']) response.setHeader(name, '7');
        response.setHeader('access-control-expose-headers', 'x-mine').end('secret');
      }
    });
    server.on('upgrade', (request, socket) => {
      const offered = request.headers['sec-websocket-protocol'];
      reached.push(`${request.method} ${request.url} socket${offered === undefined ? '' : ` ${offered}`}`);
      const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
      const accept = createHash('sha1').update(key).digest('base64');
      const head = [
        'HTTP/1.1 101 Switching Protocols',
        'Connection: Upgrade',
        'Upgrade: websocket',
        `Sec-WebSocket-Accept: ${accept}`,
        ...(offered === undefined ? [] : ['Sec-WebSocket-Protocol: bearer']),
      ];
      socket.end(
        Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), Buffer.from([0x81, 5]), Buffer.from('hello')]),
      );
    });
    return server;
  }

  /** What a script of the page sees. */
  const call = (page: Page, method: string, headers: Readonly<Record<string, string>> = {}): Promise<unknown> =>
    page.evaluate(`fetch('http://127.0.0.1:${envoy.port}${path}', ${JSON.stringify({ method, headers, credentials: 'include' })})
      .then(async answer => answer.status + ' ' + await answer.text(), error => String(error))`);
  const listen = (page: Page, script: string): Promise<unknown> =>
    page.evaluate(`new Promise(resolve => {
      const source = ${script};
      source.onmessage = ({ data }) => resolve(data);
      source.onerror = () => resolve('failed');
    })`);
  const socket = (): string => `new WebSocket('ws://127.0.0.1:${envoy.port}${path}')`;
  const events = (): string =>
    `new EventSource('http://127.0.0.1:${envoy.port}${path}/events', { withCredentials: true })`;

  it('lets a page of origins read, write, open a WebSocket and an EventSource', async () => {
    expect(await call(own, 'GET')).to.equal('200 secret');
    expect(await call(own, 'PUT', { 'content-type': 'application/json' })).to.equal('200 secret');
    expect(await listen(own, socket())).to.equal('hello');
    expect(await listen(own, events())).to.equal('hello');
    expect(reached).to.deep.equal([
      `GET ${path} checked`,
      `PUT ${path} checked`,
      `GET ${path} socket`,
      `GET ${path}/events checked`,
    ]);
  });

  it('lets a page of origins read etag and the headers of --cors-expose, in place of those that the API names', async () => {
    const script = `fetch('http://127.0.0.1:${envoy.port}${path}', { credentials: 'include' })
      .then(({ headers }) => ['etag', 'x-total-count', 'x-mine'].map(name => headers.get(name)))`;
    expect(await own.evaluate(script)).to.deep.equal(['7', '7', null]);
  });

  it('lets a page of origins without a cookie open a WebSocket with a token in its subprotocols, and no other page', async () => {
    const fresh = await context.browser()?.newContext();
    const page = await fresh?.newPage();
    if (page === undefined) throw new Error('no page');
    const open = () =>
      page.evaluate(`new Promise(resolve => {
        const source = new WebSocket('ws://127.0.0.1:${envoy.port}${path}', ['v2', 'bearer', '${value}']);
        source.onmessage = ({ data }) => resolve(source.protocol + ' ' + data);
        source.onerror = () => resolve('failed');
      })`);
    await page.goto(String(ownPage?.origin));
    expect(await open()).to.equal('bearer hello');
    await page.goto(String(otherPage?.origin));
    expect(await open()).to.equal('failed');
    expect(reached).to.deep.equal([`GET ${path} socket v2, bearer`]);
    await fresh?.close();
  });

  it('lets a page of another origin change nothing, open no WebSocket, and read nothing', async () => {
    expect(await call(other, 'POST', { 'content-type': 'text/plain' })).to.match(/Failed to fetch/);
    expect(await call(other, 'PUT')).to.match(/Failed to fetch/);
    expect(await listen(other, socket())).to.equal('failed');
    const form = `<form method=post action='http://127.0.0.1:${envoy.port}${path}'></form>`;
    const [answer] = await Promise.all([
      other.waitForNavigation(),
      other.evaluate(`document.body.innerHTML = ${JSON.stringify(form)}; document.forms[0].submit()`),
    ]);
    expect(answer?.status()).to.equal(403);
    expect(reached).to.deep.equal([]);
  });

  it('lets a page of another origin read no answer and no event', async () => {
    const page = await context.newPage();
    await page.goto(
      other.url().includes(String(envoy.port)) ? own.url().replace('127.0.0.1', 'localhost') : other.url(),
    );
    expect(await call(page, 'GET')).to.match(/Failed to fetch/);
    expect(await listen(page, events())).to.equal('failed');
    await page.close();
  });
});
