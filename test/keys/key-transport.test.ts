// The transport of key documents over TLS: which certificates it trusts, and the problem that each fault becomes.
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect } from 'chai';
import { getDocument as getInThread } from '../../lab/key-thread.ts';
import { type TestCertificateOptions, testCertificate } from '../../lab/test-certificate.ts';
import { getKeyDocument } from '../../src/keys/key-transport.ts';
import { authority, get, own, useTransportLab, withVariable } from './transport-lab.ts';

const selfSigned = { kind: 'problem', problem: 'tls: self-signed certificate' };
const untrusted = testCertificate({ name: 'untrusted', isAuthority: true });

describe('key transport', () => {
  const lab = useTransportLab();

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
      const read = await get(issuer.jwksUrl, { caFile: lab.trusted });
      expect(read).to.deep.equal({ kind: 'problem', problem: `tls: ${problem}` });
      expect(issuer.requests()).to.have.length(0);
    });
  }

  it('K-043 a server with TLS 1.1 fails with "tls: protocol version"', async () => {
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
    const { jwksUrl } = await lab.issuerWith({ tls: { ...own, ...old } });
    const read = await get(jwksUrl, { caFile: lab.trusted });
    expect(read).to.deep.equal({ kind: 'problem', problem: 'tls: protocol version' });
  });

  for (const [place, getDocument] of [
    ['here', getKeyDocument],
    ['in the key thread', getInThread],
  ] as const) {
    it(`K-043 certificates are verified even if NODE_TLS_REJECT_UNAUTHORIZED is 0 (${place})`, async () => {
      const { jwksUrl } = await lab.issuerWith({ tls: testCertificate() });
      const read = await withVariable('NODE_TLS_REJECT_UNAUTHORIZED', '0', () => get(jwksUrl, {}, getDocument));
      expect(read).to.deep.equal(selfSigned);
    });

    it(`certificates are trusted if caFile contains their authority (${place})`, async () => {
      const { jwksUrl } = await lab.issuerWith({ tls: own });
      expect(await get(jwksUrl, { caFile: lab.trusted }, getDocument)).to.have.property('kind', 'body');
    });
  }

  it('certificates are verified with the current content of caFile, without a restart', async () => {
    const { jwksUrl } = await lab.issuerWith({ tls: own });
    const caFile = await lab.write('changing.pem', untrusted.cert);
    expect(await get(jwksUrl, { caFile })).to.have.property('kind', 'problem');
    await lab.write('changing.pem', authority.cert);
    expect(await get(jwksUrl, { caFile })).to.have.property('kind', 'body');
  });

  const invalid = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
  for (const [name, text, problem] of [
    ['without a certificate', 'nothing', 'CA file without certificate'],
    ['with an invalid certificate', invalid, 'CA file not readable'],
  ] as const) {
    it(`a caFile ${name} fails with "${problem}"`, async () => {
      const { jwksUrl } = await lab.issuerWith({ tls: own });
      const read = await get(jwksUrl, { caFile: await lab.write('bad.pem', text) });
      expect(read).to.deep.equal({ kind: 'problem', problem });
    });
  }

  it('a missing caFile fails with "CA file not readable"', async () => {
    const read = await get('https://127.0.0.1:1/', { caFile: `${lab.trusted}.none` });
    expect(read).to.deep.equal({ kind: 'problem', problem: 'CA file not readable' });
  });

  it('a server of plain HTTP fails with "tls: not TLS"', async () => {
    const { jwksUrl } = await lab.issuerWith({});
    const read = await get(jwksUrl.replace('http:', 'https:'));
    expect(read).to.deep.equal({ kind: 'problem', problem: 'tls: not TLS' });
  });

  it('a server of another protocol fails with "not HTTP"', async () => {
    const server = createServer(socket => socket.on('error', () => undefined).end('SSH-2.0-OpenSSH\r\n'));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    lab.ends.push(() => server.close());
    const read = await get(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    expect(read).to.deep.equal({ kind: 'problem', problem: 'not HTTP' });
  });
});
