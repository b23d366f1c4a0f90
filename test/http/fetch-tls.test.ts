// Fetches over TLS: which certificates they trust, which one they show, and the problem that each fault becomes.
import { rm } from 'node:fs/promises';
import { expect } from 'chai';
import { type TestCertificateOptions, testCertificate } from '../../lab/test-certificate.ts';
import type { TestIssuer, TestIssuerOptions } from '../../lab/test-issuer.ts';
import { type FetchFiles, rootsInForce } from '../../src/http/fetch.ts';
import { startConnectProxy } from '../support/connect-proxy.ts';
import { authority, get, host, own, textOf, useFetchLab } from './fetch-lab.ts';

const untrusted = testCertificate({ name: 'untrusted', isAuthority: true });
const clients = testCertificate({ name: 'clients', isAuthority: true, addresses: [] });
const client = testCertificate({ name: 'a client', authority: clients });
const untrustedClient = testCertificate({ authority: untrusted });
const certificateRequested = 'connection closed, client certificate asked for';

describe('fetchDocument over TLS', () => {
  const lab = useFetchLab();

  const rows: readonly (readonly [name: string, certificate: TestCertificateOptions, problem: string])[] = [
    ['an expired certificate', { authority, validFromHours: -48 }, 'certificate expired'],
    ['a certificate that is not yet valid', { authority, validFromHours: 24 }, 'certificate not yet valid'],
    ['a certificate for another address', { authority, addresses: ['127.0.0.2'] }, 'certificate for another name'],
    ['a self-signed certificate', {}, 'self-signed certificate'],
    ['a certificate of an untrusted authority', { authority: untrusted }, 'unknown certificate authority'],
  ];
  for (const [name, certificate, problem] of rows) {
    it(`K-043 ${name} fails with "tls: ${problem}"`, async () => {
      const issuer = await lab.issuerWith({ tls: testCertificate(certificate) });
      expect(textOf(await get(issuer.jwksUrl, { caFile: lab.trusted }))).to.equal(`tls: ${problem}`);
      expect(issuer.requests()).to.have.length(0);
    });
  }

  it('K-043 a server with TLS 1.1 fails with "tls: protocol version"', async () => {
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
    const { jwksUrl } = await lab.issuerWith({ tls: { ...own, ...old } });
    expect(textOf(await get(jwksUrl, { caFile: lab.trusted }))).to.equal('tls: protocol version');
  });

  it('a server of plain HTTP fails with "tls: not TLS"', async () => {
    const { jwksUrl } = await lab.issuerWith();
    expect(textOf(await get(jwksUrl.replace('http:', 'https:')))).to.equal('tls: not TLS');
  });

  it('K-043 certificates are verified even if NODE_TLS_REJECT_UNAUTHORIZED is 0', async () => {
    const { jwksUrl } = await lab.issuerWith({ tls: testCertificate() });
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    try {
      expect(textOf(await get(jwksUrl))).to.equal('tls: self-signed certificate');
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    }
  });

  it('certificates are verified with the current content of caFile, without a restart', async () => {
    const { jwksUrl } = await lab.issuerWith({ tls: own });
    const caFile = await lab.write('changing.pem', untrusted.cert);
    expect(textOf(await get(jwksUrl, { caFile }))).to.equal('tls: unknown certificate authority');
    await lab.write('changing.pem', authority.cert);
    expect(textOf(await get(jwksUrl, { caFile }))).to.contain('"kid":"k1"');
  });

  it('trusts the roots that Node has in force, and its own where Node does not list them', () => {
    const lists = { default: ['own', 'extra'] };
    expect(rootsInForce({ rootCertificates: ['own'], getCACertificates: type => lists[type] })).to.equal(lists.default);
    expect(rootsInForce({ rootCertificates: ['own'] })).to.deep.equal(['own']);
    expect(rootsInForce().length).to.be.above(50);
  });

  for (const [name, text, problem] of [
    ['without a certificate', 'nothing', 'CA file without certificate'],
    ['with an invalid one', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n', 'CA file not readable'],
    ['that is missing', undefined, 'CA file not readable'],
  ] as const) {
    it(`a caFile ${name} fails with "${problem}"`, async () => {
      const caFile = text === undefined ? `${lab.trusted}.none` : await lab.write('bad.pem', text);
      const { jwksUrl } = await lab.issuerWith({ tls: own });
      expect(await get(jwksUrl, { caFile })).to.deep.equal({ kind: 'problem', problem });
    });
  }

  describe('client certificate', () => {
    /** An issuer that requires a certificate of `clients`. */
    const strictIssuer = (tls: TestIssuerOptions['tls'] = own, options: TestIssuerOptions = {}): Promise<TestIssuer> =>
      lab.issuerWith({ ...options, tls: { requestCert: true, ca: clients.cert, ...tls } });

    async function write(pair: { readonly cert?: string; readonly key?: string }): Promise<FetchFiles> {
      const clientCertFile = await lab.write('client.crt', pair.cert ?? '');
      const clientKeyFile = await lab.write('client.key', pair.key ?? '');
      if (pair.cert === undefined) await rm(clientCertFile);
      if (pair.key === undefined) await rm(clientKeyFile);
      return { caFile: lab.trusted, clientCertFile, clientKeyFile };
    }

    // With TLS 1.3, the alert of the server comes after the handshake, and the end of the connection can hide it. Node's TLS server closes
    // the connection for a certificate that it refuses; others send an alert: network-problem.test.ts has its codes.
    for (const [maxVersion, problemsWithout, problem] of [
      ['TLSv1.2', ['tls: handshake failed'], 'connection closed'],
      ['TLSv1.3', ['tls: client certificate required', certificateRequested], certificateRequested],
    ] as const) {
      it(`is shown to a server that requests one with ${maxVersion}, and what is wrong with it is named`, async () => {
        const issuer = await strictIssuer({ ...own, maxVersion });
        expect(textOf(await get(issuer.jwksUrl, await write(client)))).to.contain('"kid":"k1"');
        expect(textOf(await get(issuer.jwksUrl, { caFile: lab.trusted }))).to.be.oneOf(problemsWithout);
        for (const pair of [untrustedClient, testCertificate({ authority: clients, validFromHours: -48 })])
          expect(textOf(await get(issuer.jwksUrl, await write(pair)))).to.equal(problem);
        expect(issuer.requests()).to.have.length(1);
      });
    }

    it('is not named as the problem if the server did not request one', async () => {
      const issuer = await lab.issuerWith({ tls: own });
      issuer.fault({ kind: 'reset' });
      expect(textOf(await get(issuer.jwksUrl, await write(client)))).to.equal('connection closed');
    });

    it('is never mixed up between pairs of files, which are read for each fetch', async () => {
      const { jwksUrl } = await strictIssuer();
      const pairs = Array.from({ length: 3 }, () => testCertificate({ authority: clients }));
      for (const pair of [...pairs, ...pairs])
        expect(await get(jwksUrl, await write(pair))).to.have.property('kind', 'document');
      expect(await get(jwksUrl, await write(untrustedClient))).to.have.property('kind', 'problem');
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
        expect(await get(issuer.jwksUrl, await write(files))).to.deep.equal({ kind: 'problem', problem });
        expect(issuer.connections()).to.equal(0);
      });
    }

    it('is shown to the server behind a proxy, never to the proxy', async () => {
      const issuer = await strictIssuer(testCertificate({ authority, dnsNames: [host] }), { host });
      const proxy = await startConnectProxy(issuer.port, testCertificate({ authority }));
      lab.ends.push(() => proxy.stop());
      const result = await get(issuer.jwksUrl, { ...(await write(client)), proxy: { httpsProxy: proxy.url } });
      expect(textOf(result)).to.contain('"kid":"k1"');
      expect(proxy.requested).to.deep.equal([`${host}:${issuer.port}`]);
      expect(proxy.certificates()).to.equal(0);
    });
  });
});
