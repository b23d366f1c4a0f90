// Where a source finds its keys: a discovery document, or a file.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { signingKey } from '../../lab/signing-key.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import type { IssuerFault, TestIssuer } from '../../lab/test-issuer.ts';
import type { KeySource } from '../../src/keys/key-source.ts';
import { startConnectProxy } from '../support/connect-proxy.ts';
import { createSource, endAll, ends, issuerWith, jwksText, read, textOf } from './source-lab.ts';

describe('key source', () => {
  let directory: string;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'account-authz-source-'));
  });
  afterEach(endAll);
  after(() => rm(directory, { recursive: true }));

  const discoverySource = (issuer: TestIssuer, timeoutMs?: number, discoveryUrl = issuer.discoveryUrl): KeySource =>
    createSource({ issuer: issuer.url, discoveryUrl }, timeoutMs);

  const fileSource = (path: string): KeySource => createSource({ jwksFile: path }, 2_000);

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
