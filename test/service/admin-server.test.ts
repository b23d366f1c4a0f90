// The admin HTTP server: paths, methods, headers, malformed requests, and limits under load.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { createDeferred } from '../../lab/deferred.ts';
import { exchange, type HttpAnswer, headerValues, requestBytes } from '../../lab/raw-http.ts';
import { type AdminLimits, type AdminServer, startAdminServer } from '../../src/service/admin-server.ts';
import { healthy } from './admin-page-facts.ts';

const generous: AdminLimits = { headersMs: 60_000, responseMs: 60_000, maxConnections: 256 };
const metricsText = '# HELP a_metric Something.\n';

const usualPages = {
  readiness: () => ({ ready: true, body: { ready: true } }),
  metrics: async () => ({ contentType: 'text/plain; version=0.0.4', text: metricsText }),
  facts: async () => healthy,
};

function start(
  limits: Partial<AdminLimits> = {},
  metrics = usualPages.metrics,
  { host = '127.0.0.1', port = 0, pages = usualPages } = {},
): Promise<AdminServer> {
  return startAdminServer({ host, port }, { ...pages, metrics }, { ...generous, ...limits });
}

interface Client {
  readonly socket: Socket;
  /** All bytes that arrive until the server closes the connection. */
  readonly received: Promise<string>;
}

async function open(port: number, bytes = ''): Promise<Client> {
  const socket = connect({ host: '127.0.0.1', port });
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk;
  });
  socket.on('error', () => undefined);
  // Not by `once`, which rejects on an error: what a client sends behind the last answer resets the connection.
  const received = new Promise<string>(resolve => socket.once('close', () => resolve(text)));
  await once(socket, 'connect');
  socket.write(bytes, 'latin1');
  return { socket, received };
}

function statuses(text: string): number[] {
  return Array.from(text.matchAll(/^HTTP\/1\.1 (\d{3}) /gm), match => Number(match[1]));
}

const paths = ['/', '/livez', '/readyz', '/metrics', '/runbooks.md'] as const;
const chunkedBody = ['Transfer-Encoding: chunked'];
const twoLengths = [...chunkedBody, 'Content-Length: 5'];

describe('admin server', () => {
  let admin: AdminServer;
  const ask = (method: string, target: string, lines: readonly string[] = [], body = ''): Promise<HttpAnswer> =>
    exchange(admin.port, requestBytes(method, target, lines, body));
  before(async () => {
    admin = await start();
  });
  after(() => admin.stop());

  it('fails to start, names the address and the reason, where it cannot listen', async () => {
    // An address for documentation only (RFC 3849).
    const failure = await start({}, undefined, { host: '2001:db8::1', port: 9001 }).catch((error: unknown) => error);
    expect(failure)
      .to.have.property('message')
      .that.matches(/^cannot listen on \[2001:db8::1\]:9001: E[A-Z]+$/);
  });

  it('L-003 escapes and truncates every string in the JSON of /readyz', async () => {
    const kids = ['a\u009b31m', 'b\u202ec', 'schlüssel', `${'k'.repeat(5000)}`];
    const issuers = [{ issuer: 'https://a.test', state: 'usable', keys: 4, ageSeconds: undefined, kids }];
    const readiness = () => ({ ready: true, body: { ready: true, issuers } });
    const server = await start({}, undefined, { pages: { ...usualPages, readiness } });
    try {
      const { body } = await exchange(server.port, requestBytes('GET', '/readyz'));
      const shown = ['a\\u{9b}31m', 'b\\u{202e}c', 'schlüssel', `${'k'.repeat(1023)}…`];
      expect(JSON.parse(body)).to.deep.equal({
        ready: true,
        issuers: [{ issuer: 'https://a.test', state: 'usable', keys: 4, kids: shown }],
      });
    } finally {
      await server.stop();
    }
  });

  for (const path of paths) {
    it(`answers GET ${path}, also with a query`, async () => {
      for (const target of [path, `${path}?a=b?c`]) expect((await ask('GET', target)).status, target).to.equal(200);
    });
    it(`answers HEAD ${path} as GET, without the body`, async () => {
      const { received } = await open(admin.port, requestBytes('HEAD', path, ['Connection: close']));
      const [head = '', body] = (await received).split('\r\n\r\n');
      const { body: whole } = await ask('GET', path);
      expect(body).to.equal('');
      expect(head)
        .to.contain('HTTP/1.1 200 OK')
        .and.contain(`content-length: ${Buffer.byteLength(whole)}\r\n`);
    });
    it(`sends security headers with ${path}`, async () => {
      const answer = await ask('GET', path);
      const header = (name: string): string[] => headerValues(answer, name);
      expect(header('cache-control')).to.deep.equal(['no-store']);
      expect(header('x-content-type-options')).to.deep.equal(['nosniff']);
      expect(header('x-frame-options')).to.deep.equal(['DENY']);
      expect(header('referrer-policy')).to.deep.equal(['no-referrer']);
      expect(header('cross-origin-resource-policy')).to.deep.equal(['same-origin']);
      expect(header('access-control-allow-origin')).to.deep.equal([]);
      const [policy = ''] = header('content-security-policy');
      expect(policy.split('; '))
        .to.include.members(["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"])
        .and.satisfy((directives: string[]) => directives.some(each => /^style-src 'sha256-[\w+/=]{44}'$/.test(each)));
      expect(policy).to.not.match(/unsafe|\*|script-src/);
    });
  }

  it('serves the page as HTML in UTF-8', async () => {
    expect(headerValues(await ask('GET', '/'), 'content-type')).to.deep.equal(['text/html; charset=utf-8']);
  });

  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND']) {
    it(`L-021 refuses ${method} with 405`, async () => {
      for (const path of [...paths, '/nothing']) {
        const answer = await ask(method, path);
        expect(answer.status).to.equal(405);
        expect(headerValues(answer, 'allow')).to.deep.equal(['GET, HEAD']);
      }
    });
  }
  it('does not act as a proxy', async () => {
    expect((await ask('CONNECT', 'lab.test:443')).status).to.equal(0);
    expect((await ask('GET', 'http://lab.test/metrics')).status).to.equal(404);
  });

  const unknown = ['/config', '/index.html', '/favicon.ico', '//', '/livez/', '/METRICS', '/%6detrics', '/./metrics'];
  for (const path of [...unknown, '/../etc/passwd', '/proto/validate.proto']) {
    it(`L-021 answers 404 to ${path}`, async () => {
      expect((await ask('GET', path)).status).to.equal(404);
    });
  }

  const malformed = [
    { name: 'bytes other than HTTP', bytes: 'hello\r\n\r\n', status: 400 },
    { name: 'a request without Host', bytes: 'GET / HTTP/1.1\r\n\r\n', status: 400 },
    { name: 'a space in the target', bytes: requestBytes('GET', '/ metrics'), status: 400 },
    { name: 'a header without a colon', bytes: requestBytes('GET', '/', ['nothing']), status: 400 },
    { name: 'a NUL in a header', bytes: requestBytes('GET', '/', ['a: \0']), status: 400 },
    { name: 'two lengths of a body', bytes: requestBytes('GET', '/', twoLengths, '0\r\n\r\n'), status: 400 },
    { name: 'headers above 8 KiB', bytes: requestBytes('GET', '/', [`a: ${'a'.repeat(9000)}`]), status: 431 },
    { name: 'a target above 8 KiB', bytes: requestBytes('GET', `/?${'a'.repeat(9000)}`), status: 431 },
  ];
  for (const { name, bytes, status } of malformed) {
    it(`refuses ${name} with ${status} and closes`, async () => {
      const { received } = await open(admin.port, bytes);
      expect(statuses(await received)).to.deep.equal([status]);
    });
  }

  it('answers the same for any Host, and echoes no part of a request', async () => {
    const lines = ['Referer: http://mallory.test/', 'Cookie: c=mallory', 'Authorization: Bearer mallory'];
    const plain = await ask('GET', '/');
    const { body } = await exchange(
      admin.port,
      requestBytes('GET', '/?mallory=<mallory>', lines).replace('api.test', 'mallory.test'),
    );
    expect(body).to.equal(plain.body);
    expect(body).to.not.contain('mallory');
  });

  it('answers one request on a connection, and closes it', async () => {
    const { received } = await open(admin.port, requestBytes('GET', '/livez').repeat(3));
    const text = await received;
    expect(statuses(text).filter(status => status === 200)).to.have.lengthOf(1);
    expect(text).to.match(/^connection: close\r$/im);
  });

  it('reads no request from the body of another', async () => {
    const hidden = requestBytes('GET', '/metrics');
    const { received } = await open(admin.port, requestBytes('GET', '/livez', [], 'body') + hidden);
    expect(statuses(await received)[0]).to.equal(200);
    const chunked = requestBytes('POST', '/livez', chunkedBody);
    expect(statuses(await (await open(admin.port, chunked)).received)).to.deep.equal([405]);
  });
});

describe('admin server under load', () => {
  let admin: AdminServer;
  afterEach(() => admin.stop());

  it('closes a connection that sends nothing', async () => {
    admin = await start({ headersMs: 100 });
    expect(statuses(await (await open(admin.port)).received)).to.deep.equal([408]);
  });

  it('closes a connection that sends its headers too slowly', async () => {
    admin = await start({ headersMs: 200 });
    const { socket, received } = await open(admin.port, 'GET /livez HTTP/1.1\r\nHost: api.test\r\na: ');
    const drip = setInterval(() => socket.write('a'), 10);
    const text = await received.finally(() => clearInterval(drip));
    expect(statuses(text)).to.deep.equal([408]);
  });

  it('closes a connection whose client reads the answer too slowly', async () => {
    const text = 'a'.repeat(64 * 1024 * 1024);
    admin = await start({ responseMs: 200 }, async () => ({ contentType: 'text/plain', text }));
    const { socket, received } = await open(admin.port, requestBytes('GET', '/metrics'));
    socket.on('data', () => {
      socket.pause();
      setTimeout(() => socket.resume(), 5);
    });
    expect((await received).length)
      .to.be.above(0)
      .and.below(text.length);
  });

  it('closes the oldest connection when a new one exceeds the limit', async () => {
    admin = await start({ maxConnections: 3 });
    const clients = [await open(admin.port), await open(admin.port), await open(admin.port)] as const;
    expect((await exchange(admin.port, requestBytes('GET', '/livez'))).status).to.equal(200);
    expect(statuses(await clients[0].received)).to.deep.equal([]);
    for (const { socket, received } of clients.slice(1)) {
      socket.write(requestBytes('GET', '/livez'));
      expect(statuses(await received)).to.deep.equal([200]);
    }
  });

  const big = 'a'.repeat(4 * 1024 * 1024);
  for (const [state, bytes] of [
    ['have sent nothing', ''],
    ['have sent half a request', 'GET /livez HTTP/1.1\r\nHost: a'],
    ['have sent half a body', `${requestBytes('GET', '/livez', ['Content-Length: 9'])}half`],
    ['do not read their answer', requestBytes('GET', '/metrics')],
    ['do not read the answers to pipelined requests', requestBytes('GET', '/livez').repeat(100)],
    ['have sent bytes other than HTTP', '\r\n\r\n'],
  ] as const) {
    it(`answers every probe while more connections than its limit ${state}`, async () => {
      admin = await start({ maxConnections: 20 }, async () => ({ contentType: 'text/plain', text: big }));
      const sockets: Socket[] = [];
      for (let i = 0; i < 30; i += 1) {
        const socket = connect({ host: '127.0.0.1', port: admin.port });
        socket.on('error', () => undefined);
        await once(socket, 'connect');
        // The answer is never read.
        socket.write(bytes, 'latin1');
        sockets.push(socket);
      }
      for (let i = 0; i < 25; i += 1) {
        expect((await exchange(admin.port, requestBytes('GET', '/livez'))).status).to.equal(200);
      }
      // Concurrent probes, each on a new connection.
      const probes = Array.from({ length: 15 }, () => exchange(admin.port, requestBytes('GET', '/readyz')));
      expect((await Promise.all(probes)).map(({ status }) => status)).to.deep.equal(Array(15).fill(200));
      for (const socket of sockets) socket.destroy();
    });
  }

  it('shares one rendering of a page among concurrent requests (singleflight)', async () => {
    let made = 0;
    const held = createDeferred<void>();
    admin = await start({}, async () => {
      made += 1;
      await held.promise;
      return { contentType: 'text/plain', text: metricsText };
    });
    const asked = Array.from({ length: 20 }, () => exchange(admin.port, requestBytes('GET', '/metrics')));
    // Its connection comes after theirs.
    await exchange(admin.port, requestBytes('GET', '/livez'));
    held.resolve();
    expect((await Promise.all(asked)).map(({ status }) => status)).to.deep.equal(Array(20).fill(200));
    expect(made).to.be.below(20);
    const before = made;
    await exchange(admin.port, requestBytes('GET', '/metrics'));
    expect(made).to.equal(before + 1);
  });

  it('answers 500 without details while a page cannot be rendered', async () => {
    let broken = true;
    admin = await start({}, async () => {
      if (broken) throw new Error('a secret');
      return { contentType: 'text/plain', text: metricsText };
    });
    const answer = await exchange(admin.port, requestBytes('GET', '/metrics'));
    expect(answer).to.include({ status: 500, body: 'internal error\n' });
    broken = false;
    expect((await exchange(admin.port, requestBytes('GET', '/metrics'))).status).to.equal(200);
  });
});
