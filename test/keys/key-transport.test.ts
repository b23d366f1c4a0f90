// How key documents travel: trust in certificates, proxies, and the names that network errors get.
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createNetServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { KeyConnectionFiles } from '../../src/keys/key-connection.ts';
import { createKeyThread } from '../../src/keys/key-thread.ts';
import {
  type CreateKeyTransport,
  createKeyTransport,
  type KeyDocument,
  type ProxySettings,
} from '../../src/keys/key-transport.ts';
import { networkProblem } from '../../src/keys/network-problem.ts';
import { keyThreadEntry } from '../support/key-thread.ts';
import { startTestIssuer, type TestIssuer, type TestIssuerOptions } from '../support/test-issuer.ts';
import { type ConnectProxy, startConnectProxy } from './connect-proxy.ts';
import { type TestCertificateOptions, testCertificate } from './test-certificate.ts';

const authority = testCertificate({ name: 'test authority', isAuthority: true, addresses: [] });

const host = 'auth.account-authz.test';

const thread = createKeyThread(keyThreadEntry);
const transports: readonly (readonly [string, CreateKeyTransport])[] = [
  ['key transport', createKeyTransport],
  ['key transport in a thread of its own', thread.createTransport],
];

after(() => thread.stop());

for (const [title, createTransport] of transports) {
  describe(title, () => {
    const ends: (() => Promise<unknown>)[] = [];
    let directory: string;

    before(async () => {
      directory = await mkdtemp(join(tmpdir(), 'account-authz-transport-'));
    });
    afterEach(async () => {
      for (const end of ends.splice(0)) await end();
    });
    after(() => rm(directory, { recursive: true }));

    async function issuerWith(options: TestIssuerOptions): Promise<TestIssuer> {
      const issuer = await startTestIssuer(options);
      ends.push(() => issuer.stop());
      return issuer;
    }

    async function caFile(name: string, text: string): Promise<string> {
      const path = join(directory, name);
      await writeFile(path, text);
      return path;
    }

    function get(url: string, trust?: string, proxy: ProxySettings = {}): Promise<KeyDocument> {
      const transport = createTransport({ caFile: trust, proxy, timeoutMs: 2_000 });
      return transport.use(new AbortController().signal, fetch => fetch(url));
    }

    describe('certificates', () => {
      const rows: readonly (readonly [string, TestCertificateOptions, Partial<TestIssuerOptions>, string])[] = [
        ['expired', { authority, validFromHours: -48 }, {}, 'tls: certificate expired'],
        ['not yet valid', { authority, validFromHours: 24 }, {}, 'tls: certificate not yet valid'],
        ['for another address', { authority, addresses: ['127.0.0.2'] }, {}, 'tls: certificate for another name'],
        ['self-signed', {}, {}, 'tls: self-signed certificate'],
        [
          'of an authority that nobody trusts',
          { authority: { ...testCertificate({ name: 'stranger', isAuthority: true }) } },
          {},
          'tls: unknown certificate authority',
        ],
      ];
      for (const [name, certificate, options, problem] of rows) {
        it(`K-043 ${name}: ${problem}`, async () => {
          const issuer = await issuerWith({ tls: testCertificate(certificate), ...options });
          const trusted = await caFile('authority.pem', authority.cert);
          expect(await get(issuer.jwksUrl, trusted)).to.deep.equal({ kind: 'problem', problem });
          expect(issuer.requests()).to.have.length(0);
        });
      }

      it('K-043 TLS 1.1: tls: protocol version', async () => {
        const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
        const issuer = await issuerWith({ tls: { ...testCertificate({ authority }), ...old } });
        const trusted = await caFile('authority.pem', authority.cert);
        expect(await get(issuer.jwksUrl, trusted)).to.deep.equal({ kind: 'problem', problem: 'tls: protocol version' });
      });

      it('K-043 are verified though NODE_TLS_REJECT_UNAUTHORIZED is 0', async () => {
        const issuer = await issuerWith({ tls: testCertificate() });
        const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
        process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
        try {
          const problem = 'tls: self-signed certificate';
          expect(await get(issuer.jwksUrl)).to.deep.equal({ kind: 'problem', problem });
        } finally {
          if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
          else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
        }
      });

      it('of an authority in caFile are trusted', async () => {
        const issuer = await issuerWith({ tls: testCertificate({ authority }) });
        expect((await get(issuer.jwksUrl, await caFile('authority.pem', authority.cert))).kind).to.equal('body');
      });

      it('of an authority in caFile are trusted after it changes, without a restart', async () => {
        const issuer = await issuerWith({ tls: testCertificate({ authority }) });
        const path = await caFile('changing.pem', testCertificate({ name: 'another', isAuthority: true }).cert);
        const transport = createTransport({ caFile: path, proxy: {}, timeoutMs: 2_000 });
        const read = () => transport.use(new AbortController().signal, fetch => fetch(issuer.jwksUrl));
        expect((await read()).kind).to.equal('problem');
        await caFile('changing.pem', authority.cert);
        expect((await read()).kind).to.equal('body');
      });

      for (const [name, text, problem] of [
        ['without a certificate', 'nothing', 'CA file without certificate'],
        ['with a broken one', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n', 'CA file not readable'],
      ] as const) {
        it(`a caFile ${name}: ${problem}`, async () => {
          const issuer = await issuerWith({ tls: testCertificate({ authority }) });
          expect(await get(issuer.jwksUrl, await caFile('bad.pem', text))).to.deep.equal({ kind: 'problem', problem });
        });
      }

      it('a caFile that is not there: CA file not readable', async () => {
        const read = await get('https://127.0.0.1:1/', join(directory, 'nowhere.pem'));
        expect(read).to.deep.equal({ kind: 'problem', problem: 'CA file not readable' });
      });

      it('a server that speaks plain HTTP: tls: not TLS', async () => {
        const issuer = await issuerWith({});
        const read = await get(issuer.jwksUrl.replace('http:', 'https:'));
        expect(read).to.deep.equal({ kind: 'problem', problem: 'tls: not TLS' });
      });
    });

    describe('client certificates', () => {
      const clients = testCertificate({ name: 'clients', isAuthority: true, addresses: [] });
      const client = testCertificate({ name: 'a client', authority: clients });
      const stranger = testCertificate({
        authority: testCertificate({ name: 'strangers', isAuthority: true, addresses: [] }),
      });
      const askedFor = 'connection closed, client certificate asked for';
      let trusted: string;

      beforeEach(async () => {
        trusted = await caFile('authority.pem', authority.cert);
      });

      /** Demands a certificate of `clients`. */
      const strictIssuer = (options: Partial<TestIssuerOptions> = {}): Promise<TestIssuer> =>
        issuerWith({
          ...options,
          tls: {
            ...testCertificate({ authority, dnsNames: [host] }),
            requestCert: true,
            ca: clients.cert,
            ...options.tls,
          },
        });

      async function write(shown: { readonly cert?: string; readonly key?: string }): Promise<KeyConnectionFiles> {
        const [clientCertFile, clientKeyFile] = [join(directory, 'client.crt'), join(directory, 'client.key')];
        for (const [file, text] of [
          [clientCertFile, shown.cert],
          [clientKeyFile, shown.key],
        ] as const)
          await (text === undefined ? rm(file, { force: true }) : writeFile(file, text));
        return { caFile: trusted, clientCertFile, clientKeyFile };
      }

      function getWith(url: string, files: KeyConnectionFiles, proxy: ProxySettings = {}): Promise<KeyDocument> {
        const transport = createTransport({ ...files, proxy, timeoutMs: 2_000 });
        return transport.use(new AbortController().signal, fetch => fetch(url));
      }

      for (const [maxVersion, missed] of [
        ['TLSv1.2', 'tls: handshake failed'],
        ['TLSv1.3', askedFor],
      ] as const) {
        describe(`with ${maxVersion}`, () => {
          const issuerOf = (): Promise<TestIssuer> =>
            strictIssuer({ tls: { ...testCertificate({ authority }), maxVersion } });

          it('are shown to a server that asks for one', async () => {
            const issuer = await issuerOf();
            expect(await getWith(issuer.jwksUrl, await write(client))).to.have.property('kind', 'body');
          });

          it(`are missed by such a server: ${missed}`, async () => {
            const issuer = await issuerOf();
            const got = await getWith(issuer.jwksUrl, { caFile: trusted });
            expect(got).to.deep.equal({ kind: 'problem', problem: missed });
          });

          // A server of Node closes the connection; others send an alert, see the table of codes below.
          const refused: readonly (readonly [string, () => typeof client])[] = [
            ['of another authority', () => stranger],
            ['expired', () => testCertificate({ authority: clients, validFromHours: -48 })],
          ];
          for (const [name, shown] of refused) {
            const problem = maxVersion === 'TLSv1.2' ? 'connection closed' : askedFor;
            it(`are refused, ${name}: ${problem}`, async () => {
              const issuer = await issuerOf();
              const got = await getWith(issuer.jwksUrl, await write(shown()));
              expect(got).to.deep.equal({ kind: 'problem', problem });
              expect(issuer.requests()).to.deep.equal([]);
            });
          }
        });
      }

      it('that nobody asks for are not the problem where the connection is closed', async () => {
        const issuer = await issuerWith({ tls: testCertificate({ authority }) });
        issuer.fault({ kind: 'reset' });
        const got = await getWith(issuer.jwksUrl, await write(client));
        expect(got).to.deep.equal({ kind: 'problem', problem: 'connection closed' });
      });

      it('are read again for each fetch', async () => {
        const issuer = await strictIssuer();
        const transport = createTransport({ ...(await write(stranger)), proxy: {}, timeoutMs: 2_000 });
        const read = () => transport.use(new AbortController().signal, fetch => fetch(issuer.jwksUrl));
        expect(await read()).to.have.property('kind', 'problem');
        await write(client);
        expect(await read()).to.have.property('kind', 'body');
      });

      it('are those of their own files, however many issuers there are', async () => {
        const issuer = await strictIssuer();
        const pairs = Array.from({ length: 10 }, () => testCertificate({ authority: clients }));
        for (const pair of [...pairs, ...pairs])
          expect(await getWith(issuer.jwksUrl, await write(pair))).to.have.property('kind', 'body');
        expect(await getWith(issuer.jwksUrl, await write(stranger))).to.have.property('kind', 'problem');
      });

      const unusable: readonly (readonly [string, Parameters<typeof write>[0], string])[] = [
        ['no certificate file', { key: client.key }, 'client certificate not usable'],
        ['a broken certificate', { ...client, cert: client.cert.slice(0, 200) }, 'client certificate not usable'],
        ['no key file', { cert: client.cert }, 'client key not usable'],
        ['half a key', { ...client, key: client.key.slice(0, 60) }, 'client key not usable'],
        ['a key that belongs to another one', { ...client, key: stranger.key }, 'client key not usable'],
      ];
      for (const [name, files, problem] of unusable) {
        it(`with ${name}: ${problem}, and nothing is sent`, async () => {
          const issuer = await strictIssuer();
          expect(await getWith(issuer.jwksUrl, await write(files))).to.deep.equal({ kind: 'problem', problem });
          expect(issuer.connections()).to.equal(0);
        });
      }

      it('go through a proxy to the server, and not to the proxy', async () => {
        const issuer = await strictIssuer({ host });
        const proxy = await startConnectProxy(issuer.port, testCertificate({ authority, dnsNames: ['localhost'] }));
        ends.push(() => proxy.stop());
        const read = await getWith(issuer.jwksUrl, await write(client), { httpsProxy: proxy.url });
        expect(read).to.have.property('kind', 'body');
        expect(proxy.asked).to.deep.equal([`${host}:${issuer.port}`]);
        expect(proxy.certificates()).to.equal(0);
      });
    });

    describe('proxies', () => {
      async function proxyTo(port: number): Promise<ConnectProxy> {
        const proxy = await startConnectProxy(port);
        ends.push(() => proxy.stop());
        return proxy;
      }

      async function behindProxy(): Promise<{ issuer: TestIssuer; proxy: ConnectProxy; trusted: string }> {
        const issuer = await issuerWith({ tls: testCertificate({ authority, dnsNames: [host] }), host });
        const trusted = await caFile('authority.pem', authority.cert);
        return { issuer, proxy: await proxyTo(issuer.port), trusted };
      }

      it('are used for https, and the certificate is still that of the issuer', async () => {
        const { issuer, proxy, trusted } = await behindProxy();
        const read = await get(issuer.jwksUrl, trusted, { httpsProxy: proxy.url });
        expect(read.kind).to.equal('body');
        expect(proxy.asked).to.deep.equal([`${host}:${issuer.port}`]);
      });

      it('get no body beyond the bound, compressed or not', async () => {
        const { issuer, proxy, trusted } = await behindProxy();
        const body = Buffer.concat(Array(30_000).fill(gzipSync('')));
        issuer.fault({ kind: 'respond', headers: { 'content-encoding': 'gzip' }, body });
        const read = await get(issuer.jwksUrl, trusted, { httpsProxy: proxy.url });
        expect(read).to.deep.equal({ kind: 'problem', problem: 'body too large' });
        expect(proxy.asked).to.have.length(1);
      });

      it('cannot put another certificate in its place', async () => {
        const { issuer, proxy } = await behindProxy();
        const read = await get(issuer.jwksUrl, undefined, { httpsProxy: proxy.url });
        expect(read).to.deep.equal({ kind: 'problem', problem: 'tls: unknown certificate authority' });
      });

      it('are not used for a host in noProxy', async () => {
        const { issuer, proxy, trusted } = await behindProxy();
        const read = await get(issuer.jwksUrl, trusted, { httpsProxy: proxy.url, noProxy: '.account-authz.test' });
        expect(read.kind).to.equal('problem');
        expect(proxy.asked).to.deep.equal([]);
      });

      it('are never used for loopback', async () => {
        const issuer = await issuerWith({ tls: testCertificate({ authority }) });
        const proxy = await proxyTo(issuer.port);
        const trusted = await caFile('authority.pem', authority.cert);
        expect((await get(issuer.jwksUrl, trusted, { httpsProxy: proxy.url })).kind).to.equal('body');
        expect(proxy.asked).to.deep.equal([]);
      });

      it('come from what is passed in, not from the environment of the process', async () => {
        const { issuer, proxy, trusted } = await behindProxy();
        const before = process.env.https_proxy;
        process.env.https_proxy = proxy.url;
        try {
          expect((await get(issuer.jwksUrl, trusted)).kind).to.equal('problem');
          expect(proxy.asked).to.deep.equal([]);
        } finally {
          if (before === undefined) delete process.env.https_proxy;
          else process.env.https_proxy = before;
        }
      });

      it('that refuse: proxy refused', async () => {
        const server = createServer();
        server.on('connect', (_request, client: Socket) => client.end('HTTP/1.1 403 Forbidden\r\n\r\n'));
        server.listen(0, '127.0.0.1');
        await once(server, 'listening');
        ends.push(async () => server.close());
        const httpsProxy = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
        const read = await get(`https://${host}/jwks`, undefined, { httpsProxy });
        expect(read).to.deep.equal({ kind: 'problem', problem: 'proxy refused' });
      });

      it('that are not a URL: proxy URL', async () => {
        const read = await get(`https://${host}/jwks`, undefined, { httpsProxy: 'not a url' });
        expect(read).to.deep.equal({ kind: 'problem', problem: 'proxy URL' });
      });
    });

    it('a server that speaks no HTTP: not HTTP', async () => {
      const server = createNetServer(socket => socket.on('error', () => undefined).end('SSH-2.0-OpenSSH\r\n'));
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      ends.push(async () => server.close());
      const read = await get(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
      expect(read).to.deep.equal({ kind: 'problem', problem: 'not HTTP' });
    });
  });
}

describe('network errors by code', () => {
  const rows: readonly (readonly [unknown, string])[] = [
    ['ECONNREFUSED', 'connection refused'],
    ['ECONNRESET', 'connection closed'],
    ['ENOTFOUND', 'name not found'],
    ['EAI_AGAIN', 'name lookup failed'],
    ['EHOSTUNREACH', 'network unreachable'],
    ['UND_ERR_CONNECT_TIMEOUT', 'timed out'],
    ['UND_ERR_HEADERS_OVERFLOW', 'headers too large'],
    ['CERT_HAS_EXPIRED', 'tls: certificate expired'],
    ['CERT_SIGNATURE_FAILURE', 'tls: certificate refused'],
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'tls: client certificate required'],
    ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'tls: client certificate refused'],
    ['ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_EXPIRED', 'tls: client certificate refused'],
    ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', 'tls: handshake failed'],
    ['HPE_INVALID_CONSTANT', 'not HTTP'],
    ['Z_DATA_ERROR', 'content encoding'],
    ['EMFILE', 'network error EMFILE'],
    ['with a token in it', 'network error'],
    [42, 'network error'],
    [undefined, 'network error'],
  ];
  for (const [code, problem] of rows) {
    it(`${String(code)}: ${problem}`, () => {
      expect(networkProblem(Object.assign(new Error('message'), { code }))).to.equal(problem);
    });
  }

  it('something that is not an error: network error', () => {
    expect(networkProblem('thrown')).to.equal('network error');
  });
});
