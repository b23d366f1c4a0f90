// Proxies of fetches: which URLs go through one, and the tunnel.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { expect } from 'chai';
import { testCertificate } from '../../lab/test-certificate.ts';
import { proxyOf } from '../../src/commands/command-input.ts';
import { proxyFor } from '../../src/http/proxy.ts';
import { startConnectProxy } from '../support/connect-proxy.ts';
import { listen } from '../support/listen.ts';
import { authority, get, host, textOf, useFetchLab } from './fetch-lab.ts';

const httpsProxy = 'http://proxy.test:3128';

describe('proxyFor', () => {
  const asked = (url: string, noProxy: string): boolean =>
    proxyFor(new URL(url), { httpsProxy, noProxy }) === undefined;

  // The rows of Go's httpproxy documentation and tests, and what curl reads alike.
  const rows: readonly (readonly [noProxy: string, direct: readonly string[], proxied: readonly string[]])[] = [
    ['', [], ['https://a.test/']],
    ['*', ['https://a.test/', 'https://10.1.2.3/'], []],
    ['corp.test', ['https://corp.test/', 'https://a.corp.test/', 'https://A.corp.test:8443/'], ['https://xcorp.test/']],
    ['.corp.test', ['https://sso.corp.test/'], ['https://corp.test/', 'https://xcorp.test/']],
    ['*.corp.test', ['https://sso.corp.test/'], ['https://corp.test/']],
    ['CORP.test', ['https://corp.test/'], []],
    ['corp.test:8443', ['https://sso.corp.test:8443/'], ['https://sso.corp.test/']],
    ['corp.test:443', ['https://corp.test/'], ['https://corp.test:8443/']],
    ['10.1.2.3', ['https://10.1.2.3/'], ['https://10.1.2.4/']],
    ['10.1.2.3:443', ['https://10.1.2.3/'], ['https://10.1.2.3:8443/']],
    ['10.0.0.0/8', ['https://10.200.1.1/'], ['https://11.0.0.1/', 'https://a.test/']],
    ['10.0.0.0/99', [], ['https://10.0.0.0/']],
    ['2001:db8::/32', ['https://[2001:db8:1::1]/'], ['https://[2001:db9::1]/', 'https://10.0.0.1/']],
    ['2001:db8::1', ['https://[2001:db8:0:0::1]/'], ['https://[2001:db8::2]/']],
    ['[2001:db8::1]:8443', ['https://[2001:db8::1]:8443/'], ['https://[2001:db8::1]/']],
    ['a.test, .b.test 10.0.0.0/8', ['https://a.test/', 'https://x.b.test/', 'https://10.0.0.1/'], ['https://c.test/']],
    [':443,/8,,:', [], ['https://a.test/']],
  ];
  for (const [noProxy, direct, proxied] of rows) {
    it(`reads NO_PROXY "${noProxy}"`, () => {
      expect(
        direct.filter(url => !asked(url, noProxy)),
        'direct',
      ).to.deep.equal([]);
      expect(
        proxied.filter(url => asked(url, noProxy)),
        'through the proxy',
      ).to.deep.equal([]);
    });
  }

  it('is read from the environment in the order of Go, where an empty variable is none', () => {
    expect(proxyOf({ HTTPS_PROXY: 'upper', https_proxy: 'lower', NO_PROXY: '', no_proxy: 'lower' })).to.deep.equal({
      httpsProxy: 'upper',
      noProxy: 'lower',
    });
    expect(proxyOf({ HTTP_PROXY: 'plain', ALL_PROXY: 'all' })).to.deep.equal({});
  });

  it('asks loopback directly, and plain http', () => {
    for (const url of ['https://localhost/', 'https://127.9.9.9/', 'https://[::1]/', 'http://keycloak.iam.svc/'])
      expect(proxyFor(new URL(url), { httpsProxy }), url).to.equal(undefined);
  });

  for (const [text, href] of [
    ['proxy.test:3128', 'http://proxy.test:3128/'],
    ['proxy.test', 'http://proxy.test/'],
    ['10.0.0.1:3128', 'http://10.0.0.1:3128/'],
    ['https://user:pass@proxy.test', 'https://user:pass@proxy.test/'],
  ] as const) {
    it(`reads HTTPS_PROXY ${text.replace('user:pass@', '…@')}`, () => {
      expect(proxyFor(new URL('https://a.test/'), { httpsProxy: text })?.href).to.equal(href);
    });
  }

  for (const text of ['socks5://proxy.test', 'http://', 'a b']) {
    it(`refuses HTTPS_PROXY ${text}`, () => {
      expect(() => proxyFor(new URL('https://a.test/'), { httpsProxy: text })).to.throw('proxy URL');
    });
  }
});

describe('fetchDocument through a proxy', () => {
  const lab = useFetchLab();

  async function issuerBehindProxy() {
    const issuer = await lab.issuerWith({ tls: testCertificate({ authority, dnsNames: [host] }), host });
    const proxy = await startConnectProxy(issuer.port);
    lab.ends.push(() => proxy.stop());
    return { issuer, proxy };
  }

  it('verifies the certificate of the issuer, not that of the proxy', async () => {
    const { issuer, proxy } = await issuerBehindProxy();
    const settings = { proxy: { httpsProxy: proxy.url.replace('http://', '') } };
    expect(textOf(await get(issuer.jwksUrl, { ...settings, caFile: lab.trusted }))).to.contain('"kid":"k1"');
    expect(textOf(await get(issuer.jwksUrl, settings))).to.equal('tls: unknown certificate authority');
    expect(proxy.requested).to.deep.equal(Array(2).fill(`${host}:${issuer.port}`));
  });

  it('is never read from the environment by the fetch', async () => {
    const { issuer, proxy } = await issuerBehindProxy();
    process.env.https_proxy = proxy.url;
    try {
      const lookup = () => Promise.resolve([{ address: '127.0.0.1' }]);
      expect(textOf(await get(issuer.jwksUrl, { caFile: lab.trusted, lookup }))).to.contain('"kid":"k1"');
    } finally {
      delete process.env.https_proxy;
    }
    expect(proxy.requested).to.deep.equal([]);
  });

  it('says why the proxy does not help', async () => {
    const server = createServer();
    const seen: (string | undefined)[] = [];
    server.on('connect', (request, client: Socket) => {
      seen.push(request.headers['proxy-authorization']);
      client.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
    });
    const at = `127.0.0.1:${await listen(server)}`;
    const problemOf = async (proxy: string) =>
      textOf(await get(`https://${host}/jwks`, { proxy: { httpsProxy: proxy } }));
    expect(await problemOf(`http://user:p%40ss@${at}`)).to.equal('proxy refused: status 407');
    expect(seen).to.deep.equal([`Basic ${Buffer.from('user:p@ss').toString('base64')}`]);
    server.close();
    await once(server, 'close');
    expect(await problemOf(at)).to.equal('proxy refused: connection refused');
    expect(await problemOf('socks5://127.0.0.1')).to.equal('proxy URL');
  });
});
