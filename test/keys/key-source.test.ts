// The three sources of a key set: JWKS URL and discovery URL of a server that is slow, wrong or down, and file.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, deflateSync } from 'node:zlib';
import { expect } from 'chai';
import { createFetchSlots } from '../../src/keys/fetch-slots.ts';
import {
  createKeySource,
  type IssuerKeySettings,
  type KeySource,
  type SourceResult,
} from '../../src/keys/key-source.ts';
import { createKeyTransport } from '../../src/keys/key-transport.ts';
import { startConnectProxy } from '../support/connect-proxy.ts';
import { signingKey } from '../support/signing-key.ts';
import { testCertificate } from '../support/test-certificate.ts';
import {
  gzipped,
  type IssuerFault,
  startTestIssuer,
  type TestIssuer,
  type TestIssuerOptions,
} from '../support/test-issuer.ts';

const jwksText = '{"keys":[]}';

describe('key source', () => {
  const ends: (() => Promise<unknown>)[] = [];
  let directory: string;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'account-authz-source-'));
  });
  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
  });
  after(() => rm(directory, { recursive: true }));

  async function issuerWith(options: TestIssuerOptions = {}): Promise<TestIssuer> {
    const issuer = await startTestIssuer({ keys: [(await signingKey('k1')).publicJwk], ...options });
    ends.push(() => issuer.stop());
    return issuer;
  }

  function createSource(changes: Partial<IssuerKeySettings>, timeoutMs = 5_000, proxy = {}) {
    const settings = { issuer: 'https://issuer', algorithms: ['ES256'], ...changes };
    const io = { createTransport: createKeyTransport, slots: createFetchSlots() };
    return createKeySource({ settings, timeoutMs, proxy, ...io });
  }

  const jwksSource = ({ jwksUrl }: TestIssuer, timeoutMs?: number): KeySource => createSource({ jwksUrl }, timeoutMs);

  const discoverySource = (issuer: TestIssuer, timeoutMs?: number, discoveryUrl = issuer.discoveryUrl): KeySource =>
    createSource({ issuer: issuer.url, discoveryUrl }, timeoutMs);

  const fileSource = (path: string): KeySource => createSource({ jwksFile: path }, 2_000);

  const none = (): undefined => undefined;
  const read = (source: KeySource): Promise<SourceResult> => source.read(new AbortController().signal, none);

  const textOf = (result: SourceResult): string =>
    result.kind === 'body' ? Buffer.from(result.bytes).toString() : JSON.stringify(result);

  describe('JWKS URL', () => {
    it('K-001 returns the body', async () => {
      const issuer = await issuerWith();
      expect(textOf(await read(jwksSource(issuer)))).to.contain('"kid":"k1"');
    });

    it('is requested with accept for JSON and without compression', async () => {
      const issuer = await issuerWith();
      await read(jwksSource(issuer));
      const headers = issuer.requests('jwks')[0]?.headers;
      expect(headers).to.include({ 'accept-encoding': 'identity', 'user-agent': 'account-authz' });
      expect(headers?.accept).to.contain('application/json');
    });

    const slow: readonly (readonly [string, IssuerFault])[] = [
      ['K-014 a server that never answers', { kind: 'hang' }],
      ['K-014 a response without a body', { kind: 'hangAfterHeaders' }],
      ['K-014 a slowly dripping body', { kind: 'drip', intervalMs: 20 }],
      ['a late response', { kind: 'slow', delayMs: 2_000 }],
    ];
    for (const [name, fault] of slow) {
      it(`${name} fails with "timed out" at the time limit`, async () => {
        const issuer = await issuerWith();
        issuer.fault(fault);
        const startedMs = performance.now();
        expect(await read(jwksSource(issuer, 200))).to.deep.equal({ kind: 'problem', problem: 'timed out' });
        expect(performance.now() - startedMs).to.be.at.least(190);
      });
    }

    const faults: readonly (readonly [string, IssuerFault, string])[] = [
      ['a connection closed before the response', { kind: 'reset' }, 'connection closed'],
      ['an endless body', { kind: 'huge' }, 'body too large'],
      ['a content-length beyond the bound', { kind: 'huge', declared: true }, 'body too large'],
      ['a body of one byte beyond the bound', { kind: 'huge', bytes: 512 * 1024 + 1 }, 'body too large'],
      ['K-013 a gzip bomb', { kind: 'gzipBomb' }, 'body too large'],
      [
        'K-013 a compressed body beyond the bound that decodes to nothing',
        {
          kind: 'respond',
          headers: { 'content-encoding': 'gzip' },
          body: Buffer.concat(Array(30_000).fill(gzipped(''))),
        },
        'body too large',
      ],
      [
        'K-013 a doubly compressed body',
        { kind: 'respond', headers: { 'content-encoding': 'gzip, gzip' }, body: gzipped(jwksText, 2) },
        'content encoding',
      ],
      [
        'an encoding that was not requested',
        { kind: 'respond', headers: { 'content-encoding': 'zstd' } },
        'content encoding',
      ],
      ['invalid gzip', { kind: 'respond', headers: { 'content-encoding': 'gzip' } }, 'content encoding'],
      [
        'invalid brotli',
        { kind: 'respond', headers: { 'content-encoding': 'br' }, body: '\xff\xff' },
        'content encoding',
      ],
      ['K-015 a redirect', { kind: 'redirect', location: 'http://169.254.169.254/' }, 'redirect refused'],
      ['K-015 a permanent redirect', { kind: 'redirect', location: '/elsewhere', status: 308 }, 'redirect refused'],
      ['K-017 status 404', { kind: 'respond', status: 404 }, 'status 404'],
      ['K-017 status 500', { kind: 'respond', status: 500 }, 'status 500'],
      ['K-017 status 204', { kind: 'respond', status: 204, body: '' }, 'status 204'],
      ['K-017 status 206', { kind: 'respond', status: 206 }, 'status 206'],
      ['an unrequested status 304', { kind: 'respond', status: 304, body: '' }, 'status 304'],
      ['K-018 an HTML page', { kind: 'html' }, 'content type'],
      ['K-019 JSON with the type of HTML', { kind: 'contentType', type: 'text/html' }, 'content type'],
      ['JSON with the type of text', { kind: 'contentType', type: 'text/plain' }, 'content type'],
      ['a type that begins like JSON', { kind: 'contentType', type: 'application/json5' }, 'content type'],
      ['a truncated body', { kind: 'cutOff' }, 'connection closed'],
      [
        'a header of 100,000 bytes',
        { kind: 'respond', headers: { 'x-long': 'x'.repeat(100_000) } },
        'headers too large',
      ],
    ];
    for (const [name, fault, problem] of faults) {
      it(`${name} fails with "${problem}"`, async () => {
        const issuer = await issuerWith();
        issuer.fault(fault);
        expect(await read(jwksSource(issuer))).to.deep.equal({ kind: 'problem', problem });
        expect(issuer.requests()).to.have.length(1);
      });
    }

    it('a server that is down fails with "connection refused"', async () => {
      const issuer = await issuerWith();
      await issuer.stop();
      expect(await read(jwksSource(issuer))).to.deep.equal({ kind: 'problem', problem: 'connection refused' });
    });

    for (const type of ['application/json', 'application/jwk-set+json', 'Application/JSON; charset=utf-8']) {
      it(`accepts the content type ${type}`, async () => {
        const issuer = await issuerWith();
        issuer.fault({ kind: 'contentType', type });
        expect((await read(jwksSource(issuer))).kind).to.equal('body');
      });
    }

    for (const [encoding, body] of [
      ['gzip', gzipped(jwksText)],
      ['deflate', deflateSync(jwksText)],
      ['br', brotliCompressSync(jwksText)],
      ['identity', jwksText],
    ] as const) {
      it(`accepts a body in ${encoding}`, async () => {
        const issuer = await issuerWith();
        issuer.fault({ kind: 'respond', headers: { 'content-encoding': encoding }, body });
        expect(textOf(await read(jwksSource(issuer)))).to.equal(jwksText);
      });
    }

    it('accepts a body of exactly 512 KiB', async () => {
      const issuer = await issuerWith();
      issuer.fault({ kind: 'huge', bytes: 512 * 1024 });
      expect((await read(jwksSource(issuer))).kind).to.equal('body');
    });

    it('is not modified while its ETag is the same', async () => {
      const issuer = await issuerWith();
      const source = jwksSource(issuer);
      const { signal } = new AbortController();
      const first = await source.read(signal, none);
      if (first.kind !== 'body') throw new Error(textOf(first));
      expect((await source.read(signal, () => first.validator)).kind).to.equal('notModified');
      issuer.publish([(await signingKey('k2')).publicJwk]);
      expect(textOf(await source.read(signal, () => first.validator))).to.contain('"kid":"k2"');
    });

    it('never receives the ETag of another URL', async () => {
      const issuer = await issuerWith();
      await jwksSource(issuer).read(new AbortController().signal, () => ({ url: 'https://other/', etag: '"x"' }));
      expect(issuer.requests()[0]?.headers['if-none-match']).to.equal(undefined);
    });

    for (const etag of ['unquoted', `"${'x'.repeat(300)}"`]) {
      it(`ignores the invalid ETag ${etag.slice(0, 12)}`, async () => {
        const issuer = await issuerWith();
        issuer.fault({ kind: 'respond', headers: { etag } });
        expect(await read(jwksSource(issuer))).to.include({ kind: 'body', validator: undefined });
      });
    }

    it('K-054 is abandoned at once on abort, and its connection is closed', async () => {
      const issuer = await issuerWith();
      issuer.fault({ kind: 'hang' });
      const controller = new AbortController();
      const startedMs = performance.now();
      const reading = jwksSource(issuer, 60_000).read(controller.signal, none);
      while (issuer.requests().length === 0) await new Promise(resolve => setImmediate(resolve));
      controller.abort();
      expect(await reading).to.deep.equal({ kind: 'problem', problem: 'stopped' });
      while (issuer.connections() > 0) await new Promise(resolve => setImmediate(resolve));
      expect(performance.now() - startedMs).to.be.below(3_000);
    });

    it('keeps no connection open after the response', async () => {
      const issuer = await issuerWith();
      const startedMs = performance.now();
      await read(jwksSource(issuer));
      while (issuer.connections() > 0) await new Promise(resolve => setImmediate(resolve));
      expect(performance.now() - startedMs).to.be.below(3_000);
    });

    it('is not requested if the signal is already aborted', async () => {
      const issuer = await issuerWith();
      const result = await jwksSource(issuer).read(AbortSignal.abort(), none);
      expect(result).to.deep.equal({ kind: 'problem', problem: 'stopped' });
      expect(issuer.requests()).to.have.length(0);
    });
  });

  describe('discovery URL', () => {
    it('returns the key set of its jwks_uri', async () => {
      const issuer = await issuerWith();
      expect(textOf(await read(discoverySource(issuer)))).to.contain('"kid":"k1"');
      expect(issuer.requests().map(({ path }) => path)).to.deep.equal(['discovery', 'jwks']);
    });

    it('K-045 can name a jwks_uri on another host', async () => {
      const other = await issuerWith({ keys: [(await signingKey('elsewhere')).publicJwk] });
      const issuer = await issuerWith({ metadata: { jwks_uri: other.jwksUrl } });
      expect(textOf(await read(discoverySource(issuer)))).to.contain('"kid":"elsewhere"');
    });

    it('K-046 can list any algorithms, which are ignored', async () => {
      const issuer = await issuerWith({ metadata: { id_token_signing_alg_values_supported: ['none', 'HS256'] } });
      expect((await read(discoverySource(issuer))).kind).to.equal('body');
    });

    it('K-047 is requested as configured, without a well-known suffix', async () => {
      const issuer = await issuerWith();
      const source = discoverySource(issuer, 2_000, `${issuer.url}/realm`);
      expect(await read(source)).to.deep.equal({ kind: 'problem', problem: 'discovery: status 404' });
    });

    it('K-045 on another host cannot name a jwks_uri over plain http on loopback', async () => {
      const host = 'auth.account-authz.test';
      const { cert, key } = testCertificate({ dnsNames: [host] });
      const caFile = join(directory, 'discovery.pem');
      await writeFile(caFile, cert);
      const metadata = { jwks_uri: 'http://127.0.0.1/jwks' };
      const issuer = await issuerWith({ host, tls: { cert, key }, metadata });
      const proxy = await startConnectProxy(issuer.port);
      ends.push(() => proxy.stop());
      const { url, discoveryUrl } = issuer;
      const source = createSource({ issuer: url, discoveryUrl, caFile }, 5_000, { httpsProxy: proxy.url });
      expect(await read(source)).to.deep.equal({ kind: 'problem', problem: 'discovery: jwks_uri refused' });
      expect(issuer.requests('discovery')).to.have.length(1);
    });

    const metadata: readonly (readonly [string, Readonly<Record<string, unknown>>, string])[] = [
      ['a document of another issuer', { issuer: 'https://other' }, 'discovery: issuer differs'],
      ['an issuer with a trailing slash', { issuer: 'http://127.0.0.1/' }, 'discovery: issuer differs'],
      ['a missing issuer', { issuer: undefined }, 'discovery: issuer differs'],
      ['a missing jwks_uri', { jwks_uri: undefined }, 'discovery: no jwks_uri'],
      ['a jwks_uri that is a list', { jwks_uri: ['https://auth.example.com'] }, 'discovery: no jwks_uri'],
      ['K-045 a jwks_uri over plain http', { jwks_uri: 'http://auth.example.com/jwks' }, 'discovery: jwks_uri refused'],
      [
        'K-041 a jwks_uri at a link-local address',
        { jwks_uri: 'https://169.254.169.254/' },
        'discovery: jwks_uri refused',
      ],
      ['a jwks_uri with a password', { jwks_uri: 'https://a:b@auth.example.com/' }, 'discovery: jwks_uri refused'],
      ['a jwks_uri that is a file URL', { jwks_uri: 'file:///etc/passwd' }, 'discovery: jwks_uri refused'],
      ['a jwks_uri that is a data URL', { jwks_uri: 'data:application/json,{}' }, 'discovery: jwks_uri refused'],
    ];
    for (const [name, members, problem] of metadata) {
      it(`${name} fails with "${problem}"`, async () => {
        const issuer = await issuerWith({ metadata: members });
        expect(await read(discoverySource(issuer))).to.deep.equal({ kind: 'problem', problem });
        expect(issuer.requests('jwks')).to.have.length(0);
      });
    }

    const faults: readonly (readonly [string, IssuerFault, string])[] = [
      ['a duplicate member', { kind: 'respond', body: '{"issuer":"a","issuer":"b"}' }, 'discovery: a member twice'],
      ['a document that is an array', { kind: 'respond', body: '[]' }, 'discovery: not an object'],
      ['a truncated document', { kind: 'truncated' }, 'discovery: not JSON'],
      ['a redirect', { kind: 'redirect', location: 'http://169.254.169.254/' }, 'discovery: redirect refused'],
    ];
    for (const [name, fault, problem] of faults) {
      it(`${name} fails with "${problem}"`, async () => {
        const issuer = await issuerWith();
        issuer.fault(fault, 'discovery');
        expect(await read(discoverySource(issuer))).to.deep.equal({ kind: 'problem', problem });
      });
    }

    it('K-014 has one time limit for both requests', async () => {
      const issuer = await issuerWith();
      issuer.fault({ kind: 'slow', delayMs: 200 });
      const startedMs = performance.now();
      expect(await read(discoverySource(issuer, 300))).to.deep.equal({ kind: 'problem', problem: 'timed out' });
      expect(performance.now() - startedMs).to.be.at.least(290);
    });
  });

  describe('file', () => {
    it('returns its bytes', async () => {
      const path = join(directory, 'jwks.json');
      await writeFile(path, jwksText);
      expect(textOf(await read(fileSource(path)))).to.equal(jwksText);
    });

    it('that is missing fails with "no such file"', async () => {
      const result = await read(fileSource(join(directory, 'nowhere')));
      expect(result).to.deep.equal({ kind: 'problem', problem: 'no such file' });
    });

    it('that is a directory fails with "not a regular file"', async () => {
      expect(await read(fileSource(directory))).to.deep.equal({ kind: 'problem', problem: 'not a regular file' });
    });

    it('that is a device fails with "not a regular file"', async () => {
      expect(await read(fileSource('/dev/zero'))).to.deep.equal({ kind: 'problem', problem: 'not a regular file' });
    });

    it('beyond the bound fails with "body too large"', async () => {
      const path = join(directory, 'large.json');
      await writeFile(path, ' '.repeat(512 * 1024 + 1));
      expect(await read(fileSource(path))).to.deep.equal({ kind: 'problem', problem: 'body too large' });
    });
  });
});
