// The three sources of a key set against a real server that is slow, wrong or down, and against files.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, deflateSync } from 'node:zlib';
import { expect } from 'chai';
import { createFetchSlots } from '../../src/keys/fetch-slots.ts';
import type { KeyConnectionFiles } from '../../src/keys/key-connection.ts';
import { createKeySource, type KeyPlace, type KeySource, type SourceResult } from '../../src/keys/key-source.ts';
import { createKeyTransport } from '../../src/keys/key-transport.ts';
import { signingKey } from '../support/signing-key.ts';
import {
  gzipped,
  type IssuerFault,
  startTestIssuer,
  type TestIssuer,
  type TestIssuerOptions,
} from '../support/test-issuer.ts';
import { startConnectProxy } from './connect-proxy.ts';
import { testCertificate } from './test-certificate.ts';

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

  function createSource(
    place: KeyPlace & KeyConnectionFiles,
    issuers: readonly string[],
    timeoutMs = 5_000,
    proxy = {},
  ) {
    const io = { createTransport: createKeyTransport, slots: createFetchSlots() };
    return createKeySource({ place, issuers, timeoutMs, proxy, ...io });
  }

  const jwksSource = (issuer: TestIssuer, timeoutMs?: number): KeySource =>
    createSource({ jwksUrl: issuer.jwksUrl }, [issuer.url], timeoutMs);

  const discoverySource = (issuer: TestIssuer, timeoutMs?: number, discoveryUrl = issuer.discoveryUrl): KeySource =>
    createSource({ discoveryUrl }, [issuer.url], timeoutMs);

  const fileSource = (path: string): KeySource => createSource({ jwksFile: path }, ['https://issuer'], 2_000);

  const read = (source: KeySource): Promise<SourceResult> => source.read(new AbortController().signal, undefined);

  const textOf = (result: SourceResult): string =>
    result.kind === 'body' ? Buffer.from(result.bytes).toString() : JSON.stringify(result);

  describe('a JWKS URL', () => {
    it('K-001 gives the body', async () => {
      const issuer = await issuerWith();
      expect(textOf(await read(jwksSource(issuer)))).to.contain('"kid":"k1"');
    });

    it('asks for JSON without compression', async () => {
      const issuer = await issuerWith();
      await read(jwksSource(issuer));
      const headers = issuer.requests('jwks')[0]?.headers;
      expect(headers).to.include({ 'accept-encoding': 'identity', 'user-agent': 'account-authz' });
      expect(headers?.accept).to.contain('application/json');
    });

    const slow: readonly (readonly [string, IssuerFault])[] = [
      ['K-014 no answer', { kind: 'hang' }],
      ['K-014 headers and no body', { kind: 'hangAfterHeaders' }],
      ['K-014 a body that drips', { kind: 'drip', intervalMs: 20 }],
      ['an answer too late', { kind: 'slow', delayMs: 2_000 }],
    ];
    for (const [name, fault] of slow) {
      it(`${name}: timed out, when the time is over`, async () => {
        const issuer = await issuerWith();
        issuer.fault(fault);
        const startedMs = performance.now();
        expect(await read(jwksSource(issuer, 200))).to.deep.equal({ kind: 'problem', problem: 'timed out' });
        expect(performance.now() - startedMs).to.be.within(190, 700);
      });
    }

    const faults: readonly (readonly [string, IssuerFault, string])[] = [
      ['a connection closed before the answer', { kind: 'reset' }, 'connection closed'],
      ['a body without end', { kind: 'huge' }, 'body too large'],
      ['a length beyond the bound', { kind: 'huge', declared: true }, 'body too large'],
      ['one byte beyond the bound', { kind: 'huge', bytes: 512 * 1024 + 1 }, 'body too large'],
      ['K-013 a gzip bomb', { kind: 'gzipBomb' }, 'body too large'],
      [
        'K-013 more than the bound that decodes to nothing',
        {
          kind: 'respond',
          headers: { 'content-encoding': 'gzip' },
          body: Buffer.concat(Array(30_000).fill(gzipped(''))),
        },
        'body too large',
      ],
      [
        'K-013 gzip upon gzip',
        { kind: 'respond', headers: { 'content-encoding': 'gzip, gzip' }, body: gzipped(jwksText, 2) },
        'content encoding',
      ],
      [
        'an encoding that was not asked for',
        { kind: 'respond', headers: { 'content-encoding': 'zstd' } },
        'content encoding',
      ],
      ['gzip that is none', { kind: 'respond', headers: { 'content-encoding': 'gzip' } }, 'content encoding'],
      [
        'brotli that is none',
        { kind: 'respond', headers: { 'content-encoding': 'br' }, body: '\xff\xff' },
        'content encoding',
      ],
      ['K-015 a redirect', { kind: 'redirect', location: 'http://169.254.169.254/' }, 'redirect refused'],
      ['K-015 a permanent redirect', { kind: 'redirect', location: '/elsewhere', status: 308 }, 'redirect refused'],
      ['K-017 404', { kind: 'respond', status: 404 }, 'status 404'],
      ['K-017 500', { kind: 'respond', status: 500 }, 'status 500'],
      ['K-017 204', { kind: 'respond', status: 204, body: '' }, 'status 204'],
      ['K-017 206', { kind: 'respond', status: 206 }, 'status 206'],
      ['304 that nobody asked for', { kind: 'respond', status: 304, body: '' }, 'status 304'],
      ['K-018 a login page', { kind: 'html' }, 'content type'],
      ['K-019 JSON called HTML', { kind: 'contentType', type: 'text/html' }, 'content type'],
      ['JSON called text', { kind: 'contentType', type: 'text/plain' }, 'content type'],
      ['a type that only begins like JSON', { kind: 'contentType', type: 'application/json5' }, 'content type'],
      ['a body cut off', { kind: 'cutOff' }, 'connection closed'],
      ['headers without end', { kind: 'respond', headers: { 'x-long': 'x'.repeat(100_000) } }, 'headers too large'],
    ];
    for (const [name, fault, problem] of faults) {
      it(`${name}: ${problem}`, async () => {
        const issuer = await issuerWith();
        issuer.fault(fault);
        expect(await read(jwksSource(issuer))).to.deep.equal({ kind: 'problem', problem });
        expect(issuer.requests()).to.have.length(1);
      });
    }

    it('that is down: connection refused', async () => {
      const issuer = await issuerWith();
      await issuer.stop();
      expect(await read(jwksSource(issuer))).to.deep.equal({ kind: 'problem', problem: 'connection refused' });
    });

    for (const type of ['application/json', 'application/jwk-set+json', 'Application/JSON; charset=utf-8']) {
      it(`takes ${type}`, async () => {
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
      it(`takes a body in ${encoding}`, async () => {
        const issuer = await issuerWith();
        issuer.fault({ kind: 'respond', headers: { 'content-encoding': encoding }, body });
        expect(textOf(await read(jwksSource(issuer)))).to.equal(jwksText);
      });
    }

    it('takes a body of exactly 512 KiB', async () => {
      const issuer = await issuerWith();
      issuer.fault({ kind: 'huge', bytes: 512 * 1024 });
      expect((await read(jwksSource(issuer))).kind).to.equal('body');
    });

    it('with an ETag is not read again while it is the same', async () => {
      const issuer = await issuerWith();
      const source = jwksSource(issuer);
      const { signal } = new AbortController();
      const first = await source.read(signal, undefined);
      if (first.kind !== 'body') throw new Error(textOf(first));
      expect((await source.read(signal, first.validator)).kind).to.equal('notModified');
      issuer.publish([(await signingKey('k2')).publicJwk]);
      expect(textOf(await source.read(signal, first.validator))).to.contain('"kid":"k2"');
    });

    it('does not get the ETag of another URL', async () => {
      const issuer = await issuerWith();
      await jwksSource(issuer).read(new AbortController().signal, {
        url: 'https://other/',
        etag: '"x"',
        metadataIssuer: undefined,
      });
      expect(issuer.requests()[0]?.headers['if-none-match']).to.equal(undefined);
    });

    for (const etag of ['unquoted', `"${'x'.repeat(300)}"`]) {
      it(`with the ETag ${etag.slice(0, 12)} has none`, async () => {
        const issuer = await issuerWith();
        issuer.fault({ kind: 'respond', headers: { etag } });
        expect(await read(jwksSource(issuer))).to.include({ kind: 'body', validator: undefined });
      });
    }

    it('K-054 is left at once when it is aborted, and the connection is closed', async () => {
      const issuer = await issuerWith();
      issuer.fault({ kind: 'hang' });
      const controller = new AbortController();
      const startedMs = performance.now();
      const reading = jwksSource(issuer, 10_000).read(controller.signal, undefined);
      while (issuer.requests().length === 0) await new Promise(resolve => setImmediate(resolve));
      controller.abort();
      expect(await reading).to.deep.equal({ kind: 'problem', problem: 'stopped' });
      expect(performance.now() - startedMs).to.be.below(1_000);
      while (issuer.connections() > 0) await new Promise(resolve => setImmediate(resolve));
      expect(performance.now() - startedMs).to.be.below(1_000);
    });

    it('is left without an open connection', async () => {
      const issuer = await issuerWith();
      const startedMs = performance.now();
      await read(jwksSource(issuer));
      while (issuer.connections() > 0) await new Promise(resolve => setImmediate(resolve));
      expect(performance.now() - startedMs).to.be.below(1_000);
    });

    it('is not asked at all when it was aborted before', async () => {
      const issuer = await issuerWith();
      const read = await jwksSource(issuer).read(AbortSignal.abort(), undefined);
      expect(read).to.deep.equal({ kind: 'problem', problem: 'stopped' });
    });
  });

  describe('a discovery URL', () => {
    it('gives the set that its jwks_uri names', async () => {
      const issuer = await issuerWith();
      expect(textOf(await read(discoverySource(issuer)))).to.contain('"kid":"k1"');
      expect(issuer.requests().map(({ path }) => path)).to.deep.equal(['discovery', 'jwks']);
    });

    it('K-045 may name a set on another host', async () => {
      const other = await issuerWith({ keys: [(await signingKey('elsewhere')).publicJwk] });
      const issuer = await issuerWith({ metadata: { jwks_uri: other.jwksUrl } });
      expect(textOf(await read(discoverySource(issuer)))).to.contain('"kid":"elsewhere"');
    });

    it('K-046 may list algorithms, which nobody reads', async () => {
      const issuer = await issuerWith({ metadata: { id_token_signing_alg_values_supported: ['none', 'HS256'] } });
      expect((await read(discoverySource(issuer))).kind).to.equal('body');
    });

    it('K-047 is used as it is written, nothing is joined to it', async () => {
      const issuer = await issuerWith();
      const source = discoverySource(issuer, 2_000, `${issuer.url}/realm`);
      expect(await read(source)).to.deep.equal({ kind: 'problem', problem: 'discovery: status 404' });
    });

    it('K-045 may not point from elsewhere to plain http on this machine', async () => {
      const host = 'auth.account-authz.test';
      const { cert, key } = testCertificate({ dnsNames: [host] });
      const caFile = join(directory, 'discovery.pem');
      await writeFile(caFile, cert);
      const metadata = { jwks_uri: 'http://127.0.0.1/jwks' };
      const issuer = await issuerWith({ host, tls: { cert, key }, metadata });
      const proxy = await startConnectProxy(issuer.port);
      ends.push(() => proxy.stop());
      const { url, discoveryUrl } = issuer;
      const source = createSource({ discoveryUrl, caFile }, [url], 5_000, { httpsProxy: proxy.url });
      expect(await read(source)).to.deep.equal({ kind: 'problem', problem: 'discovery: jwks_uri refused' });
      expect(issuer.requests('discovery')).to.have.length(1);
    });

    const metadata: readonly (readonly [string, Readonly<Record<string, unknown>>, string])[] = [
      ['another issuer', { issuer: 'https://other' }, 'discovery: issuer differs'],
      ['an issuer with a slash more', { issuer: 'http://127.0.0.1/' }, 'discovery: issuer differs'],
      ['no issuer', { issuer: undefined }, 'discovery: issuer differs'],
      ['no jwks_uri', { jwks_uri: undefined }, 'discovery: no jwks_uri'],
      ['a jwks_uri that is a list', { jwks_uri: ['https://auth.example.com'] }, 'discovery: no jwks_uri'],
      ['K-045 a jwks_uri over plain http', { jwks_uri: 'http://auth.example.com/jwks' }, 'discovery: jwks_uri refused'],
      [
        'K-041 a jwks_uri at a link-local address',
        { jwks_uri: 'https://169.254.169.254/' },
        'discovery: jwks_uri refused',
      ],
      ['a jwks_uri with a password', { jwks_uri: 'https://a:b@auth.example.com/' }, 'discovery: jwks_uri refused'],
      ['a jwks_uri that is a file', { jwks_uri: 'file:///etc/passwd' }, 'discovery: jwks_uri refused'],
      ['a jwks_uri that is data', { jwks_uri: 'data:application/json,{}' }, 'discovery: jwks_uri refused'],
    ];
    for (const [name, members, problem] of metadata) {
      it(`with ${name}: ${problem}`, async () => {
        const issuer = await issuerWith({ metadata: members });
        expect(await read(discoverySource(issuer))).to.deep.equal({ kind: 'problem', problem });
        expect(issuer.requests('jwks')).to.have.length(0);
      });
    }

    const faults: readonly (readonly [string, IssuerFault, string])[] = [
      ['a member twice', { kind: 'respond', body: '{"issuer":"a","issuer":"b"}' }, 'discovery: a member twice'],
      ['an array', { kind: 'respond', body: '[]' }, 'discovery: not an object'],
      ['half a document', { kind: 'truncated' }, 'discovery: not JSON'],
      ['a redirect', { kind: 'redirect', location: 'http://169.254.169.254/' }, 'discovery: redirect refused'],
    ];
    for (const [name, fault, problem] of faults) {
      it(`with ${name}: ${problem}`, async () => {
        const issuer = await issuerWith();
        issuer.fault(fault, 'discovery');
        expect(await read(discoverySource(issuer))).to.deep.equal({ kind: 'problem', problem });
      });
    }

    it('K-014 has one time limit over both requests', async () => {
      const issuer = await issuerWith();
      issuer.fault({ kind: 'slow', delayMs: 200 });
      const startedMs = performance.now();
      expect(await read(discoverySource(issuer, 300))).to.deep.equal({ kind: 'problem', problem: 'timed out' });
      expect(performance.now() - startedMs).to.be.within(290, 900);
    });
  });

  describe('a file', () => {
    it('gives its bytes', async () => {
      const path = join(directory, 'jwks.json');
      await writeFile(path, jwksText);
      expect(textOf(await read(fileSource(path)))).to.equal(jwksText);
    });

    it('that is not there: no such file', async () => {
      const result = await read(fileSource(join(directory, 'nowhere')));
      expect(result).to.deep.equal({ kind: 'problem', problem: 'no such file' });
    });

    it('that is a directory: not a regular file', async () => {
      expect(await read(fileSource(directory))).to.deep.equal({ kind: 'problem', problem: 'not a regular file' });
    });

    it('that has no end: not a regular file', async () => {
      expect(await read(fileSource('/dev/zero'))).to.deep.equal({ kind: 'problem', problem: 'not a regular file' });
    });

    it('beyond the bound: body too large', async () => {
      const path = join(directory, 'large.json');
      await writeFile(path, ' '.repeat(512 * 1024 + 1));
      expect(await read(fileSource(path))).to.deep.equal({ kind: 'problem', problem: 'body too large' });
    });
  });
});
