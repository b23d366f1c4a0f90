// The client certificate that the transport of key documents presents, and the problem that each fault of it becomes.
import { rm } from 'node:fs/promises';
import { expect } from 'chai';
import { getDocument as getInThread } from '../../lab/key-thread.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import type { TestIssuer, TestIssuerOptions } from '../../lab/test-issuer.ts';
import type { KeyConnectionFiles } from '../../src/keys/key-connection.ts';
import { startConnectProxy } from '../support/connect-proxy.ts';
import { authority, get, host, own, useTransportLab } from './transport-lab.ts';

const clients = testCertificate({ name: 'clients', isAuthority: true, addresses: [] });
const others = testCertificate({ name: 'untrusted', isAuthority: true, addresses: [] });
const client = testCertificate({ name: 'a client', authority: clients });
const untrustedClient = testCertificate({ authority: others });
const server = testCertificate({ authority, dnsNames: [host] });
const certificateRequested = 'connection closed, client certificate asked for';

describe('client certificates of key fetches', () => {
  const lab = useTransportLab();

  /** An issuer that requires a certificate of `clients`. */
  const strictIssuer = (tls: TestIssuerOptions['tls'] = server, options: TestIssuerOptions = {}): Promise<TestIssuer> =>
    lab.issuerWith({ ...options, tls: { requestCert: true, ca: clients.cert, ...tls } });

  async function write(pair: { readonly cert?: string; readonly key?: string }): Promise<KeyConnectionFiles> {
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
    describe(`with ${maxVersion}`, () => {
      it('are presented to a server that requests one', async () => {
        const { jwksUrl } = await strictIssuer({ ...own, maxVersion });
        expect(await get(jwksUrl, await write(client))).to.have.property('kind', 'body');
      });

      it(`are required: a fetch without one fails with "${problemsWithout.join('" or "')}"`, async () => {
        const { jwksUrl } = await strictIssuer({ ...own, maxVersion });
        const document = await get(jwksUrl, { caFile: lab.trusted });
        expect(document.kind === 'problem' && document.problem).to.be.oneOf(problemsWithout);
      });

      for (const [name, pair] of [
        ['those of another authority', untrustedClient],
        ['expired ones', testCertificate({ authority: clients, validFromHours: -48 })],
      ] as const) {
        it(`${name} are refused: ${problem}`, async () => {
          const issuer = await strictIssuer({ ...own, maxVersion });
          expect(await get(issuer.jwksUrl, await write(pair))).to.deep.equal({ kind: 'problem', problem });
          expect(issuer.requests()).to.deep.equal([]);
        });
      }
    });
  }

  it('are presented by the key thread', async () => {
    const { jwksUrl } = await strictIssuer();
    expect(await get(jwksUrl, await write(client), getInThread)).to.have.property('kind', 'body');
  });

  it('are not named as the problem if the server did not request one', async () => {
    const issuer = await lab.issuerWith({ tls: own });
    issuer.fault({ kind: 'reset' });
    const document = await get(issuer.jwksUrl, await write(client));
    expect(document).to.deep.equal({ kind: 'problem', problem: 'connection closed' });
  });

  it('are read again for each fetch', async () => {
    const { jwksUrl } = await strictIssuer();
    const files = await write(untrustedClient);
    expect(await get(jwksUrl, files)).to.have.property('kind', 'problem');
    await write(client);
    expect(await get(jwksUrl, files)).to.have.property('kind', 'body');
  });

  it('are never mixed up between pairs of files', async () => {
    const { jwksUrl } = await strictIssuer();
    const pairs = Array.from({ length: 3 }, () => testCertificate({ authority: clients }));
    for (const pair of [...pairs, ...pairs])
      expect(await get(jwksUrl, await write(pair))).to.have.property('kind', 'body');
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

  it('are presented to the server behind a proxy, never to the proxy', async () => {
    const issuer = await strictIssuer(server, { host });
    const proxy = await startConnectProxy(issuer.port, testCertificate({ authority, dnsNames: ['localhost'] }));
    lab.ends.push(() => proxy.stop());
    const read = await get(issuer.jwksUrl, { ...(await write(client)), proxy: { httpsProxy: proxy.url } });
    expect(read).to.have.property('kind', 'body');
    expect(proxy.requested).to.deep.equal([`${host}:${issuer.port}`]);
    expect(proxy.certificates()).to.equal(0);
  });
});
