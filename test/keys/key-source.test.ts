import { expect } from 'chai';
import { signingKey } from '../../lab/signing-key.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import type { IssuerFault, TestIssuer } from '../../lab/test-issuer.ts';
import { until } from '../../lab/until.ts';
import { createSource } from '../../src/keys/key-source.ts';
import { authority, host, read, textOf, useFetchLab } from '../http/fetch-lab.ts';

const text = '{"keys":[]}';

describe('key source', () => {
  const lab = useFetchLab();
  const { issuerWith, write } = lab;

  describe('time limit', () => {
    const slow: readonly (readonly [string, IssuerFault])[] = [
      ['a server that never answers', { kind: 'hang' }],
      ['a response without a body', { kind: 'hangAfterHeaders' }],
      ['a slowly dripping body', { kind: 'drip', intervalMs: 20 }],
      ['a late response', { kind: 'slow', delayMs: 2_000 }],
    ];
    for (const [name, fault] of slow) {
      it(`K-014 ends ${name} with "timed out"`, async () => {
        const { jwksUrl, ...issuer } = await issuerWith();
        issuer.fault(fault);
        const startedMs = performance.now();
        expect(textOf(await read({ jwksUrl }, { timeoutMs: 200 }))).to.equal('timed out');
        expect(performance.now() - startedMs).to.be.at.least(190);
        await until(() => issuer.connections() === 0);
      });
    }

    it('K-014 is one for both requests of discovery', async () => {
      const { url, discoveryUrl, ...issuer } = await issuerWith();
      issuer.fault({ kind: 'slow', delayMs: 200 });
      expect(textOf(await read({ issuer: url, discoveryUrl }, { timeoutMs: 300 }))).to.equal('timed out');
    });

    it('covers a name lookup that hangs', async () => {
      const lookup = () => new Promise<never>(() => undefined);
      expect(textOf(await read({ jwksUrl: 'https://hangs.test/' }, { timeoutMs: 50, lookup }))).to.equal('timed out');
    });

    it('K-054 ends at once on abort, and nothing is read after it', async () => {
      const { jwksUrl, ...issuer } = await issuerWith();
      issuer.fault({ kind: 'hang' });
      const settings = { issuer: 'https://issuer', algorithms: [], jwksUrl };
      const source = createSource(settings, { timeoutMs: 600_000, proxy: {} });
      const controller = new AbortController();
      const reading = source(controller.signal, undefined);
      await until(() => issuer.requests().length === 1);
      controller.abort();
      expect(textOf(await reading)).to.equal('stopped');
      expect(textOf(await source(AbortSignal.abort(), undefined))).to.equal('stopped');
      expect(issuer.requests()).to.have.length(1);
    });
  });

  it('sends an ETag to its own URL alone', async () => {
    const { jwksUrl, ...issuer } = await issuerWith();
    const source = createSource({ issuer: 'https://issuer', algorithms: [], jwksUrl }, { timeoutMs: 9_000, proxy: {} });
    const { signal } = new AbortController();
    const first = await source(signal, { url: 'https://other/', etag: '"x"' });
    if (first.kind !== 'document') throw new Error(textOf(first));
    expect(issuer.requests()[0]?.headers['if-none-match']).to.equal(undefined);
    expect(await source(signal, first.validator)).to.deep.equal({ kind: 'notModified' });
  });

  describe('discovery URL', () => {
    const discover = ({ url, discoveryUrl }: TestIssuer, changes = {}) =>
      read({ issuer: url, discoveryUrl, ...changes });

    it('leads to the key set of its jwks_uri, on another host too', async () => {
      const issuer = await issuerWith();
      expect(textOf(await discover(issuer))).to.contain('"kid":"k1"');
      expect(issuer.requests().map(({ path }) => path)).to.deep.equal(['discovery', 'jwks']);
      const other = await issuerWith({ keys: [(await signingKey('elsewhere')).publicJwk] });
      const named = await issuerWith({ metadata: { jwks_uri: other.jwksUrl } });
      expect(textOf(await discover(named))).to.contain('"kid":"elsewhere"');
    });

    it('is named with its jwks_uri where that fails, and where the bearer token is not sent', async () => {
      const other = await issuerWith();
      other.fault({ kind: 'respond', status: 403 }, 'jwks');
      const issuer = await issuerWith({ metadata: { jwks_uri: other.jwksUrl } });
      const words = `jwks_uri ${other.jwksUrl}: status 403`;
      expect(textOf(await discover(issuer))).to.equal(words);
      const bearerTokenFile = await write('bearer-of-metadata', 'one.token');
      expect(textOf(await discover(issuer, { bearerTokenFile }))).to.equal(
        `${words} (bearerTokenFile is not sent there)`,
      );
      expect(await discover(await issuerWith()))
        .to.have.property('place')
        .match(/^jwks_uri http:/);
    });

    it('K-046 may list any algorithms, which are ignored, and begin with a byte order mark', async () => {
      const issuer = await issuerWith();
      const { url, jwksUrl } = issuer;
      const metadata = { issuer: url, jwks_uri: jwksUrl, id_token_signing_alg_values_supported: ['none'] };
      issuer.fault({ kind: 'respond', body: `\uFEFF${JSON.stringify(metadata)}` }, 'discovery');
      expect(textOf(await discover(issuer))).to.contain('"kid":"k1"');
    });

    it('K-047 is requested as configured, without a well-known suffix', async () => {
      const issuer = await issuerWith();
      expect(textOf(await discover(issuer, { discoveryUrl: `${issuer.url}/realm` }))).to.equal('discovery: status 404');
    });

    it('K-045 on another host cannot name a jwks_uri over plain http on loopback, even with allowHttp', async () => {
      const tls = testCertificate({ authority, dnsNames: [host] });
      const issuer = await issuerWith({ host, tls, metadata: { jwks_uri: 'http://127.0.0.1/jwks' } });
      const lookup = () => Promise.resolve([{ address: '127.0.0.1' }]);
      const settings = { issuer: issuer.url, discoveryUrl: issuer.discoveryUrl, caFile: lab.trusted };
      for (const allowHttp of [false, true])
        expect(textOf(await read({ ...settings, allowHttp }, { lookup }))).to.equal(
          'discovery: jwks_uri must not be on loopback',
        );
    });

    it('can name a jwks_uri over http on any host with allowHttp', async () => {
      const issuer = await issuerWith({ metadata: {} });
      const jwks_uri = issuer.jwksUrl.replace('127.0.0.1', 'keycloak.iam.svc');
      const body = JSON.stringify({ issuer: issuer.url, jwks_uri });
      issuer.fault({ kind: 'respond', body }, 'discovery');
      const lookup = () => Promise.resolve([{ address: '127.0.0.1' }]);
      const settings = { issuer: issuer.url, discoveryUrl: issuer.discoveryUrl };
      expect(textOf(await read(settings, { lookup }))).to.match(/^discovery: jwks_uri must be https/);
      expect(textOf(await read({ ...settings, allowHttp: true }, { lookup }))).to.contain('"kid":"k1"');
    });

    const uri = (problem: string) => `discovery: jwks_uri ${problem}`;
    const other = (theirs: string) =>
      `discovery: the issuer of the metadata is ${theirs}, not "https://login.test/v2.0" (jwksUrl needs no metadata)`;
    const metadata: readonly (readonly [string, Readonly<Record<string, unknown>>, string])[] = [
      ['the backend of a proxy', { issuer: 'http://keycloak:8080/realms/a' }, other('"http://keycloak:8080/realms/a"')],
      ['Entra ID', { issuer: 'https://login.test/{tenantid}/v2.0' }, other('"https://login.test/{tenantid}/v2.0"')],
      ['a slash at the end', { issuer: 'https://login.test/v2.0/' }, other('"https://login.test/v2.0/"')],
      ['a line end in it', { issuer: `a\n${'b'.repeat(300)}` }, other(`"a\\u{a}${'b'.repeat(249)}…"`)],
      ['no issuer', { issuer: undefined }, other('not a string')],
      ['no jwks_uri', { jwks_uri: undefined }, 'discovery: no jwks_uri'],
      ['a list as jwks_uri', { jwks_uri: ['https://a.test'] }, 'discovery: no jwks_uri'],
      [
        'K-041 a link-local jwks_uri',
        { jwks_uri: 'https://169.254.169.254/' },
        uri('must not have a link-local address: cloud metadata services use them'),
      ],
      ['a password', { jwks_uri: 'https://a:b@a.test/' }, uri('must not contain a user name or a password')],
      ['a file', { jwks_uri: 'file:///' }, uri('must be an absolute https:// URL of visible ASCII characters')],
    ];
    for (const [name, members, problem] of metadata) {
      it(`names the problem of metadata with ${name}`, async () => {
        const issuer = await issuerWith({ metadata: { issuer: 'https://login.test/v2.0', ...members } });
        expect(textOf(await discover(issuer, { issuer: 'https://login.test/v2.0' }))).to.equal(problem);
        expect(issuer.requests('jwks')).to.have.length(0);
      });
    }

    const faults: readonly (readonly [IssuerFault, string])[] = [
      [{ kind: 'respond', body: '{"issuer":"a","issuer":"b"}' }, 'application/json, a member twice'],
      [{ kind: 'respond', body: '[]' }, 'not an object'],
      [{ kind: 'respond', body: '{"keys":[]}' }, 'not metadata: a key set, which jwksUrl reads'],
      [{ kind: 'html' }, 'text/html, not JSON'],
      [{ kind: 'redirect', location: 'http://169.254.169.254/' }, 'redirect refused'],
    ];
    for (const [fault, problem] of faults) {
      it(`fails with "discovery: ${problem}"`, async () => {
        const issuer = await issuerWith();
        issuer.fault(fault, 'discovery');
        expect(textOf(await discover(issuer))).to.equal(`discovery: ${problem}`);
      });
    }
  });

  describe('bearer token', () => {
    const sent = (issuer: TestIssuer) => issuer.requests().map(({ headers }) => headers.authorization);

    it('is read for each fetch, and sent to the configured URL and others of its origin', async () => {
      const { url, discoveryUrl, ...issuer } = await issuerWith();
      const settings = { issuer: url, discoveryUrl, bearerTokenFile: await write('token', 'first.token\n') };
      await read(settings);
      await write('token', 'second.token');
      await read(settings);
      const [first, second] = ['Bearer first.token', 'Bearer second.token'];
      expect(sent({ url, discoveryUrl, ...issuer })).to.deep.equal([first, first, second, second]);
    });

    it('is sent to no other host, and to no other port or scheme of this one', async () => {
      const other = await issuerWith();
      const issuer = await issuerWith({ metadata: { jwks_uri: other.jwksUrl } });
      const bearerTokenFile = await write('token', 'a.token');
      await read({ issuer: issuer.url, discoveryUrl: issuer.discoveryUrl, bearerTokenFile });
      expect(sent(issuer)).to.deep.equal(['Bearer a.token']);
      expect(sent(other)).to.deep.equal([undefined]);
    });

    const own = 'dXNlcjpvdXIgcGFzc3dvcmQ=';
    const urlSafe = Buffer.from(`Bearer ${own}`).toString('base64url');
    for (const [name, repeated] of [
      ['as it is', `x${own}y`],
      ['after 300 characters', 'x'.repeat(300) + own],
      ['percent-encoded', `%64${encodeURIComponent(own.slice(1))}`],
      ['in base64', `${urlSafe} y`],
      ['decoded', 'user:our password'],
    ] as const) {
      it(`that a server repeats ${name} is left out of names and types`, async () => {
        const settings = { bearerTokenFile: await write('token', own) };
        const metadata = await issuerWith({ metadata: { issuer: repeated } });
        const { url: issuer, discoveryUrl } = metadata;
        const keySet = JSON.stringify({
          keys: [
            { kid: repeated, kty: 'x' },
            { kid: 'user:our', kty: 'y' },
          ],
        });
        const { jwksUrl, ...other } = await issuerWith();
        other.fault({ kind: 'respond', headers: { 'content-type': repeated }, body: keySet });
        const named = await read({ issuer, discoveryUrl, ...settings });
        const listed = await read({ jwksUrl, ...settings });
        expect(textOf(named)).to.contain('"(left out: it repeats a secret of ours)"');
        expect(textOf(listed)).to.equal(keySet.replace(repeated, '(left out: it repeats a secret of ours)'));
        expect(listed).to.have.property('mediaType', '(left out: it repeats a secret of ours)');
        other.fault({ kind: 'respond', body: `{"jti":"${own}"}\n{"sid":"x"}` });
        const lines = '{"jti":"(left out: it repeats a secret of ours)"}\n{"sid":"x"}';
        expect(textOf(await read({ jwksUrl, ...settings }))).to.equal(lines);
      });
    }

    const broken: readonly (readonly [string, string | undefined, string])[] = [
      ['a missing file', undefined, 'bearer token file not readable'],
      ['an empty file', '\n', 'bearer token file without a token'],
      ['a second header', 'a\r\nhost: b', 'bearer token file without a token'],
    ];
    for (const [name, content, problem] of broken) {
      it(`that is ${name} fails with "${problem}", and nothing is asked`, async () => {
        const { jwksUrl, ...issuer } = await issuerWith();
        const bearerTokenFile = content === undefined ? `${lab.trusted}.none` : await write('token', content);
        expect(textOf(await read({ jwksUrl, bearerTokenFile }))).to.equal(problem);
        expect(issuer.requests()).to.have.length(0);
      });
    }
  });

  describe('file', () => {
    it('returns its bytes', async () => {
      expect(textOf(await read({ jwksFile: await write('jwks.json', text) }))).to.equal(text);
    });
  });
});
