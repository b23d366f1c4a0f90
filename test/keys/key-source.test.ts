// One fetch of keys from a JWKS URL: what it asks, what it accepts, how it fails.
import { brotliCompressSync, deflateSync } from 'node:zlib';
import { expect } from 'chai';
import { signingKey } from '../../lab/signing-key.ts';
import { gzipped, type IssuerFault, type TestIssuer } from '../../lab/test-issuer.ts';
import type { KeySource } from '../../src/keys/key-source.ts';
import { createSource, endAll, issuerWith, jwksText, none, read, textOf } from './source-lab.ts';

describe('key source', () => {
  afterEach(endAll);

  const jwksSource = ({ jwksUrl }: TestIssuer, timeoutMs?: number): KeySource => createSource({ jwksUrl }, timeoutMs);

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
      expect(performance.now() - startedMs).to.be.below(30_000);
    });

    it('keeps no connection open after the response', async () => {
      const issuer = await issuerWith();
      const startedMs = performance.now();
      await read(jwksSource(issuer));
      while (issuer.connections() > 0) await new Promise(resolve => setImmediate(resolve));
      // Node's server ends an idle connection after 5 s.
      expect(performance.now() - startedMs).to.be.below(4_500);
    });

    it('is not requested if the signal is already aborted', async () => {
      const issuer = await issuerWith();
      const result = await jwksSource(issuer).read(AbortSignal.abort(), none);
      expect(result).to.deep.equal({ kind: 'problem', problem: 'stopped' });
      expect(issuer.requests()).to.have.length(0);
    });
  });
});
