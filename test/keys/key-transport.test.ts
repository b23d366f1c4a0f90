// The transport of key documents: certificates, client certificates, proxies, and the problem that each network error becomes.
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createNetServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { KeyConnectionFiles } from '../../src/keys/key-connection.ts';
import type { ProxySettings } from '../../src/keys/key-socket.ts';
import { createKeyThread } from '../../src/keys/key-thread.ts';
import { type GetKeyDocument, getKeyDocument, type KeyDocument } from '../../src/keys/key-transport.ts';
import { builtFile } from '../support/built.ts';
import { type ConnectProxy, startConnectProxy } from '../support/connect-proxy.ts';
import { type TestCertificateOptions, testCertificate } from '../support/test-certificate.ts';
import { startTestIssuer, type TestIssuer, type TestIssuerOptions } from '../support/test-issuer.ts';

const authority = testCertificate({ name: 'test authority', isAuthority: true, addresses: [] });

const host = 'auth.account-authz.test';

const thread = createKeyThread(builtFile('key-thread-entry.js'));
const transports: readonly (readonly [string, GetKeyDocument])[] = [
  ['key transport', getKeyDocument],
  ['key transport in the key thread', thread.getDocument],
];

after(() => thread.stop());

for (const [title, getDocument] of transports) {
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
      return getDocument({ url, caFile: trust, proxy }, new AbortController().signal);
    }

    describe('certificates', () => {
      const rows: readonly (readonly [string, TestCertificateOptions, Partial<TestIssuerOptions>, string])[] = [
        ['an expired certificate', { authority, validFromHours: -48 }, {}, 'tls: certificate expired'],
        [
          'a certificate that is not yet valid',
          { authority, validFromHours: 24 },
          {},
          'tls: certificate not yet valid',
        ],
        [
          'a certificate for another address',
          { authority, addresses: ['127.0.0.2'] },
          {},
          'tls: certificate for another name',
        ],
        ['a self-signed certificate', {}, {}, 'tls: self-signed certificate'],
        [
          'a certificate of an untrusted authority',
          { authority: { ...testCertificate({ name: 'untrusted', isAuthority: true }) } },
          {},
          'tls: unknown certificate authority',
        ],
      ];
      for (const [name, certificate, options, problem] of rows) {
        it(`K-043 ${name} fails with "${problem}"`, async () => {
          const issuer = await issuerWith({ tls: testCertificate(certificate), ...options });
          const trusted = await caFile('authority.pem', authority.cert);
          expect(await get(issuer.jwksUrl, trusted)).to.deep.equal({ kind: 'problem', problem });
          expect(issuer.requests()).to.have.length(0);
        });
      }

      it('K-043 a server with TLS 1.1 fails with "tls: protocol version"', async () => {
        const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
        const issuer = await issuerWith({ tls: { ...testCertificate({ authority }), ...old } });
        const trusted = await caFile('authority.pem', authority.cert);
        expect(await get(issuer.jwksUrl, trusted)).to.deep.equal({ kind: 'problem', problem: 'tls: protocol version' });
      });

      it('K-043 are verified even if NODE_TLS_REJECT_UNAUTHORIZED is 0', async () => {
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

      it('are trusted if caFile contains their authority', async () => {
        const issuer = await issuerWith({ tls: testCertificate({ authority }) });
        expect((await get(issuer.jwksUrl, await caFile('authority.pem', authority.cert))).kind).to.equal('body');
      });

      it('are verified with the current content of caFile, without a restart', async () => {
        const issuer = await issuerWith({ tls: testCertificate({ authority }) });
        const path = await caFile('changing.pem', testCertificate({ name: 'another', isAuthority: true }).cert);
        const fetchJwks = () => get(issuer.jwksUrl, path);
        expect((await fetchJwks()).kind).to.equal('problem');
        await caFile('changing.pem', authority.cert);
        expect((await fetchJwks()).kind).to.equal('body');
      });

      for (const [name, text, problem] of [
        ['without a certificate', 'nothing', 'CA file without certificate'],
        [
          'with an invalid certificate',
          '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
          'CA file not readable',
        ],
      ] as const) {
        it(`a caFile ${name} fails with "${problem}"`, async () => {
          const issuer = await issuerWith({ tls: testCertificate({ authority }) });
          expect(await get(issuer.jwksUrl, await caFile('bad.pem', text))).to.deep.equal({ kind: 'problem', problem });
        });
      }

      it('a missing caFile fails with "CA file not readable"', async () => {
        const read = await get('https://127.0.0.1:1/', join(directory, 'nowhere.pem'));
        expect(read).to.deep.equal({ kind: 'problem', problem: 'CA file not readable' });
      });

      it('a server of plain HTTP fails with "tls: not TLS"', async () => {
        const issuer = await issuerWith({});
        const read = await get(issuer.jwksUrl.replace('http:', 'https:'));
        expect(read).to.deep.equal({ kind: 'problem', problem: 'tls: not TLS' });
      });
    });

    describe('client certificates', () => {
      const clients = testCertificate({ name: 'clients', isAuthority: true, addresses: [] });
      const client = testCertificate({ name: 'a client', authority: clients });
      const untrustedClient = testCertificate({
        authority: testCertificate({ name: 'untrusted', isAuthority: true, addresses: [] }),
      });
      const certificateRequested = 'connection closed, client certificate asked for';
      let trusted: string;

      beforeEach(async () => {
        trusted = await caFile('authority.pem', authority.cert);
      });

      /** An issuer that requires a certificate of `clients`. */
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

      async function write(pair: { readonly cert?: string; readonly key?: string }): Promise<KeyConnectionFiles> {
        const [clientCertFile, clientKeyFile] = [join(directory, 'client.crt'), join(directory, 'client.key')];
        for (const [file, text] of [
          [clientCertFile, pair.cert],
          [clientKeyFile, pair.key],
        ] as const)
          await (text === undefined ? rm(file, { force: true }) : writeFile(file, text));
        return { caFile: trusted, clientCertFile, clientKeyFile };
      }

      function getWith(url: string, files: KeyConnectionFiles, proxy: ProxySettings = {}): Promise<KeyDocument> {
        return getDocument({ ...files, url, proxy }, new AbortController().signal);
      }

      // With TLS 1.3, the alert of the server comes after the handshake, and the end of the connection can hide it.
      for (const [maxVersion, problemsWithout] of [
        ['TLSv1.2', ['tls: handshake failed']],
        ['TLSv1.3', ['tls: client certificate required', certificateRequested]],
      ] as const) {
        describe(`with ${maxVersion}`, () => {
          const issuerOf = (): Promise<TestIssuer> =>
            strictIssuer({ tls: { ...testCertificate({ authority }), maxVersion } });

          it('are presented to a server that requests one', async () => {
            const issuer = await issuerOf();
            expect(await getWith(issuer.jwksUrl, await write(client))).to.have.property('kind', 'body');
          });

          it(`are required: a fetch without one fails with "${problemsWithout.join('" or "')}"`, async () => {
            const issuer = await issuerOf();
            const document = await getWith(issuer.jwksUrl, { caFile: trusted });
            expect(document.kind === 'problem' && document.problem).to.be.oneOf(problemsWithout);
          });

          // Node's TLS server closes the connection; others send an alert: see the error codes at the end of this file.
          const refused: readonly (readonly [string, () => typeof client])[] = [
            ['those of another authority', () => untrustedClient],
            ['expired ones', () => testCertificate({ authority: clients, validFromHours: -48 })],
          ];
          for (const [name, makeClient] of refused) {
            const problem = maxVersion === 'TLSv1.2' ? 'connection closed' : certificateRequested;
            it(`${name} are refused: ${problem}`, async () => {
              const issuer = await issuerOf();
              const document = await getWith(issuer.jwksUrl, await write(makeClient()));
              expect(document).to.deep.equal({ kind: 'problem', problem });
              expect(issuer.requests()).to.deep.equal([]);
            });
          }
        });
      }

      it('are not named as the problem if the server did not request one', async () => {
        const issuer = await issuerWith({ tls: testCertificate({ authority }) });
        issuer.fault({ kind: 'reset' });
        const document = await getWith(issuer.jwksUrl, await write(client));
        expect(document).to.deep.equal({ kind: 'problem', problem: 'connection closed' });
      });

      it('are read again for each fetch', async () => {
        const issuer = await strictIssuer();
        const files = await write(untrustedClient);
        const fetchJwks = () => getWith(issuer.jwksUrl, files);
        expect(await fetchJwks()).to.have.property('kind', 'problem');
        await write(client);
        expect(await fetchJwks()).to.have.property('kind', 'body');
      });

      it('are never mixed up between 10 pairs of files', async () => {
        const issuer = await strictIssuer();
        const pairs = Array.from({ length: 10 }, () => testCertificate({ authority: clients }));
        for (const pair of [...pairs, ...pairs])
          expect(await getWith(issuer.jwksUrl, await write(pair))).to.have.property('kind', 'body');
        expect(await getWith(issuer.jwksUrl, await write(untrustedClient))).to.have.property('kind', 'problem');
      });

      const unusable: readonly (readonly [string, Parameters<typeof write>[0], string])[] = [
        ['a missing certificate file', { key: client.key }, 'client certificate not usable'],
        ['a truncated certificate', { ...client, cert: client.cert.slice(0, 200) }, 'client certificate not usable'],
        ['a missing key file', { cert: client.cert }, 'client key not usable'],
        ['a truncated key', { ...client, key: client.key.slice(0, 60) }, 'client key not usable'],
        ['a key of another certificate', { ...client, key: untrustedClient.key }, 'client key not usable'],
      ];
      for (const [name, files, problem] of unusable) {
        it(`${name} fails with "${problem}" before a connection is made`, async () => {
          const issuer = await strictIssuer();
          expect(await getWith(issuer.jwksUrl, await write(files))).to.deep.equal({ kind: 'problem', problem });
          expect(issuer.connections()).to.equal(0);
        });
      }

      it('are presented to the server behind a proxy, never to the proxy', async () => {
        const issuer = await strictIssuer({ host });
        const proxy = await startConnectProxy(issuer.port, testCertificate({ authority, dnsNames: ['localhost'] }));
        ends.push(() => proxy.stop());
        const read = await getWith(issuer.jwksUrl, await write(client), { httpsProxy: proxy.url });
        expect(read).to.have.property('kind', 'body');
        expect(proxy.requested).to.deep.equal([`${host}:${issuer.port}`]);
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

      it('tunnel https, and the certificate of the issuer is verified', async () => {
        const { issuer, proxy, trusted } = await behindProxy();
        const read = await get(issuer.jwksUrl, trusted, { httpsProxy: proxy.url });
        expect(read.kind).to.equal('body');
        expect(proxy.requested).to.deep.equal([`${host}:${issuer.port}`]);
      });

      it('do not lift the bound on a compressed body', async () => {
        const { issuer, proxy, trusted } = await behindProxy();
        const body = Buffer.concat(Array(30_000).fill(gzipSync('')));
        issuer.fault({ kind: 'respond', headers: { 'content-encoding': 'gzip' }, body });
        const read = await get(issuer.jwksUrl, trusted, { httpsProxy: proxy.url });
        expect(read).to.deep.equal({ kind: 'problem', problem: 'body too large' });
        expect(proxy.requested).to.have.length(1);
      });

      it('do not make an untrusted certificate trusted', async () => {
        const { issuer, proxy } = await behindProxy();
        const read = await get(issuer.jwksUrl, undefined, { httpsProxy: proxy.url });
        expect(read).to.deep.equal({ kind: 'problem', problem: 'tls: unknown certificate authority' });
      });

      it('are not used for a host in noProxy', async () => {
        const { issuer, proxy, trusted } = await behindProxy();
        const read = await get(issuer.jwksUrl, trusted, { httpsProxy: proxy.url, noProxy: '.account-authz.test' });
        expect(read.kind).to.equal('problem');
        expect(proxy.requested).to.deep.equal([]);
      });

      it('are never used for loopback', async () => {
        const issuer = await issuerWith({ tls: testCertificate({ authority }) });
        const proxy = await proxyTo(issuer.port);
        const trusted = await caFile('authority.pem', authority.cert);
        expect((await get(issuer.jwksUrl, trusted, { httpsProxy: proxy.url })).kind).to.equal('body');
        expect(proxy.requested).to.deep.equal([]);
      });

      it('are never read from the environment of the process', async () => {
        const { issuer, proxy, trusted } = await behindProxy();
        const before = process.env.https_proxy;
        process.env.https_proxy = proxy.url;
        try {
          expect((await get(issuer.jwksUrl, trusted)).kind).to.equal('problem');
          expect(proxy.requested).to.deep.equal([]);
        } finally {
          if (before === undefined) delete process.env.https_proxy;
          else process.env.https_proxy = before;
        }
      });

      it('that refuse the tunnel cause "proxy refused"', async () => {
        const server = createServer();
        server.on('connect', (_request, client: Socket) => client.end('HTTP/1.1 403 Forbidden\r\n\r\n'));
        server.listen(0, '127.0.0.1');
        await once(server, 'listening');
        ends.push(async () => server.close());
        const httpsProxy = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
        const read = await get(`https://${host}/jwks`, undefined, { httpsProxy });
        expect(read).to.deep.equal({ kind: 'problem', problem: 'proxy refused' });
      });

      it('that are not a URL cause "proxy URL"', async () => {
        const read = await get(`https://${host}/jwks`, undefined, { httpsProxy: 'not a url' });
        expect(read).to.deep.equal({ kind: 'problem', problem: 'proxy URL' });
      });
    });

    it('a server of another protocol fails with "not HTTP"', async () => {
      const server = createNetServer(socket => socket.on('error', () => undefined).end('SSH-2.0-OpenSSH\r\n'));
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      ends.push(async () => server.close());
      const read = await get(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
      expect(read).to.deep.equal({ kind: 'problem', problem: 'not HTTP' });
    });
  });
}
