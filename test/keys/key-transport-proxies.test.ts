// Proxies of key fetches.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { getDocument as getInThread } from '../../lab/key-thread.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import type { TestIssuer } from '../../lab/test-issuer.ts';
import type { GetKeyDocument, KeyDocument } from '../../src/keys/key-transport.ts';
import { type ConnectProxy, startConnectProxy } from '../support/connect-proxy.ts';
import { authority, get, host, own, useTransportLab, withVariable } from './transport-lab.ts';

const named = testCertificate({ authority, dnsNames: [host] });

describe('proxies of key fetches', () => {
  const lab = useTransportLab();
  let issuer: TestIssuer;
  let proxy: ConnectProxy;

  beforeEach(async () => {
    issuer = await lab.issuerWith({ tls: named, host });
    proxy = await startConnectProxy(issuer.port);
    lab.ends.push(() => proxy.stop());
  });

  const getBehindProxy = (getDocument?: GetKeyDocument): Promise<KeyDocument> =>
    get(issuer.jwksUrl, { caFile: lab.trusted, proxy: { httpsProxy: proxy.url } }, getDocument);

  for (const [place, getDocument] of [
    ['here', undefined],
    ['in the key thread', getInThread],
  ] as const) {
    it(`tunnel https, and the certificate of the issuer is verified (${place})`, async () => {
      expect(await getBehindProxy(getDocument)).to.have.property('kind', 'body');
      expect(proxy.requested).to.deep.equal([`${host}:${issuer.port}`]);
    });

    it(`are never read from the environment of the process (${place})`, async () => {
      const read = await withVariable('https_proxy', proxy.url, () =>
        get(issuer.jwksUrl, { caFile: lab.trusted }, getDocument),
      );
      expect(read.kind).to.equal('problem');
      expect(proxy.requested).to.deep.equal([]);
    });
  }

  it('do not lift the bound on a compressed body', async () => {
    const body = Buffer.concat(Array(30_000).fill(gzipSync('')));
    issuer.fault({ kind: 'respond', headers: { 'content-encoding': 'gzip' }, body });
    expect(await getBehindProxy()).to.deep.equal({ kind: 'problem', problem: 'body too large' });
    expect(proxy.requested).to.have.length(1);
  });

  it('do not make an untrusted certificate trusted', async () => {
    const read = await get(issuer.jwksUrl, { proxy: { httpsProxy: proxy.url } });
    expect(read).to.deep.equal({ kind: 'problem', problem: 'tls: unknown certificate authority' });
  });

  it('are not used for a host in noProxy', async () => {
    const settings = { httpsProxy: proxy.url, noProxy: '.account-authz.test' };
    const read = await get(issuer.jwksUrl, { caFile: lab.trusted, proxy: settings });
    expect(read.kind).to.equal('problem');
    expect(proxy.requested).to.deep.equal([]);
  });

  it('are never used for loopback', async () => {
    const local = await lab.issuerWith({ tls: own });
    const read = await get(local.jwksUrl, { caFile: lab.trusted, proxy: { httpsProxy: proxy.url } });
    expect(read.kind).to.equal('body');
    expect(proxy.requested).to.deep.equal([]);
  });

  it('that refuse the tunnel cause "proxy refused"', async () => {
    const server = createServer();
    server.on('connect', (_request, client: Socket) => client.end('HTTP/1.1 403 Forbidden\r\n\r\n'));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    lab.ends.push(() => server.close());
    const httpsProxy = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const read = await get(`https://${host}/jwks`, { proxy: { httpsProxy } });
    expect(read).to.deep.equal({ kind: 'problem', problem: 'proxy refused' });
  });

  it('that are not a URL cause "proxy URL"', async () => {
    const read = await get(`https://${host}/jwks`, { proxy: { httpsProxy: 'not a url' } });
    expect(read).to.deep.equal({ kind: 'problem', problem: 'proxy URL' });
  });
});
