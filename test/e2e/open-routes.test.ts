// What a rendered Envoy serves without a check (public routes, the metadata document of RFC 9728), and for which hosts.
import { expect } from 'chai';
import { envoyVersions } from '../../lab/envoy.ts';
import { exchange, type HttpAnswer, headerValues, requestBytes } from '../../lab/raw-http.ts';
import { issuer } from '../../lab/token.ts';
import { useRunning } from '../support/use-running.ts';
import { bearer, onlyRequestOf, reasonOf, useLab } from './lab.ts';

const origin = 'https://app.example.com';
const settings = {
  routes: [{ path: '/api/subscriptions/*' }, { path: '/v1/:account_id/orders' }],
  public: [
    { path: '/healthz' },
    { path: '/assets/*' },
    { path: '/hooks/in', methods: ['POST'] },
    { path: '/hooks/*', methods: ['POST'] },
    { path: '/v1/orders' },
    { path: '/files/*', characters: 'rfc3986' },
  ],
  account: { headers: ['x-account-id'], query: ['account_id'], hosts: [':account_id.api.test', 'api.test'] },
  scopes: { billing: ['*'], 'orders:read': ['GET'] },
  protectedResource: { resource: 'https://api.test/mcp' },
};
const documentPath = '/.well-known/oauth-protected-resource/mcp';

for (const version of envoyVersions) {
  describe(`public routes and hosts behind Envoy ${version}`, () => {
    const suite = useLab(settings);
    const { lab } = suite;
    const cors = ['--cors-origin', origin, '--cors-header', 'idempotency-key'];
    const envoy = useRunning(() => suite.startRendered(cors, { version }));
    const behindProxy = useRunning(() => suite.startRendered(['--trusted-hops', '1'], { version }));

    function send(
      method: string,
      target: string,
      { host = 'api.test', lines = [] }: { readonly host?: string; readonly lines?: readonly string[] } = {},
    ): Promise<HttpAnswer> {
      return exchange(envoy.port, requestBytes(method, target, lines).replace('Host: api.test', `Host: ${host}`));
    }

    const served = [
      ['GET', '/healthz'],
      ['HEAD', '/healthz'],
      ['GET', '/healthz/'],
      ['GET', '/healthz?a=%2F..;x'],
      ['GET', '/health%7A'],
      ['GET', '/assets'],
      ['GET', '/assets/v1.2/app.css?x'],
      ['GET', '/assets/a/../b'],
      ['POST', '/hooks/in'],
      ['POST', '/hooks/7?payment_method=card&method=x&next=/?_method=1'],
      ['GET', '/healthz?a=_method'],
      ['GET', '/v1/orders'],
      ['GET', '/files/%C3%9Cbersicht%20(1).pdf'],
      ['GET', "/files/a+b,c/O'Brien/%E3%81%82"],
    ] as const;
    for (const [method, target] of served) {
      it(`serves ${method} ${target} without a token`, async () => {
        expect(await send(method, target)).to.include({ status: 200 });
        expect(onlyRequestOf(lab.upstream).method).to.equal(method);
      });
    }

    const refused = [
      ['POST', '/healthz', 404],
      ['OPTIONS', '/healthz', 404],
      ['GET', '/hooks/in', 404],
      ['GET', '/HEALTHZ', 404],
      ['GET', '/healthz/x', 404],
      ['GET', '/healthzx', 404],
      ['GET', '/healthz;x', 404],
      ['GET', '/healthz%20', 404],
      ['GET', '/assetsx', 404],
      ['GET', '/assets/a%20b', 404],
      ['GET', '/assets/a;b', 404],
      ['GET', '/assets/a+b', 404],
      ['GET', '/assets/%c3%bc', 404],
      ['GET', '/assets/a%2Fb', 400],
      ['GET', '/assets/a%5cb', 400],
      ['POST', '/v1/orders', 404],
      ['GET', '/files/a;b', 404],
      ['GET', '/files/..%20/x', 404],
      ['GET', '/files/%FF', 404],
      ['GET', '/files/%C2%85', 404],
      ['GET', '/files/a%25', 404],
      ['GET', '/files/a%3Fb', 404],
      ['GET', '/files/a%2Fb', 400],
      ['GET', '/files/%2E%2E/api/subscriptions', 401],
      ['GET', '/v1/orders;x', 400],
      ['GET', '/assets/../api/subscriptions', 401],
      ['POST', '/hooks/7?_method=DELETE', 404],
      ['POST', '/hooks/7?%255f%6Dethod=DELETE', 404],
      ['POST', '/hooks/7?%EF%BC%BFmethod=DELETE', 404],
      ['POST', '/hooks/7?\u00ef\u00bc\u00bfmethod=DELETE', 400],
      ['GET', '/v1/orders?_method=DELETE', 404],
    ] as const;
    for (const [method, target, status] of refused) {
      it(`answers ${status} to ${method} ${target}`, async () => {
        expect(await send(method, target)).to.include({ status });
        expect(lab.upstream.requests).to.deep.equal([]);
      });
    }

    it('removes owned, account, override and host headers, and the token, from a public request', async () => {
      const forged =
        'x-auth-uid x-auth-actor x.auth.role x-auth-email x-account-id x.account.id x-account.id x-original-url x-rewrite-url x-http-method-override x-http-method x-method-override x-script-name script-name x-forwarded-prefix x.script.name x.forwarded-prefix x-forwarded-host forwarded x-original-host x-host x-forwarded-server x-http-host-override x.forwarded.host x.host'.split(
          ' ',
        );
      const lines = [...forged.map(name => `${name}: evil`), `Authorization: ${await bearer()}`, 'x-kept: yes'];
      expect(await send('GET', '/healthz', { lines })).to.include({ status: 200 });
      const names = onlyRequestOf(lab.upstream).headers.map(([name]) => name.toLowerCase());
      expect(names).to.include('x-kept');
      expect(names.filter(name => [...forged, 'authorization'].includes(name))).to.deep.equal([]);
    });

    it('keeps x-forwarded-prefix of a trusted proxy on a public route alone', async () => {
      const lines = [
        'X-Forwarded-Prefix: /app',
        'X.Forwarded.Prefix: /app',
        `Authorization: ${await bearer({ scope: 'billing' })}`,
      ];
      const served: string[][] = [];
      for (const path of ['/healthz', '/api/subscriptions']) {
        lab.upstream.clear();
        expect(await exchange(behindProxy.port, requestBytes('GET', path, lines))).to.include({ status: 200 });
        served.push(onlyRequestOf(lab.upstream).headers.map(([name]) => name.toLowerCase()));
      }
      expect(served[0]).to.include('x-forwarded-prefix');
      expect(served[1]?.filter(name => name.includes('prefix'))).to.deep.equal([]);
    });

    const hosts = [
      ['api.test', 200],
      ['API.Test', 200],
      ['api.test:8080', 200],
      ['acct1.api.test', 200],
      ['acct1.API.test', 200],
      ['a-1.api.test:443', 200],
      ['ACCT1.api.test', 404],
      ['a.b.api.test', 404],
      ['-a.api.test', 404],
      ['a_b.api.test', 404],
      [`${'a'.repeat(63)}.api.test`, 200],
      [`${'a'.repeat(64)}.api.test`, 404],
      ['xapi.test', 404],
      ['other.test', 404],
      ['127.0.0.1', 404],
    ] as const;
    for (const [host, status] of hosts) {
      it(`answers ${status} to a public request for the host ${host}`, async () => {
        expect(await send('GET', '/healthz', { host })).to.include({ status });
        expect(lab.upstream.requests).to.have.length(status === 200 ? 1 : 0);
      });
    }

    it('answers 404 to a protected request for another host, whatever its token', async () => {
      const lines = [`Authorization: ${await bearer()}`];
      for (const host of ['other.test', 'api.test.evil.example', '127.0.0.1']) {
        expect(await send('GET', '/api/subscriptions', { host, lines })).to.include({ status: 404, body: '' });
      }
      expect(lab.upstream.requests).to.deep.equal([]);
    });

    it('answers preflight requests for public and protected paths, and refuses those of other origins', async () => {
      const preflight = (from: string): readonly string[] => [
        `Origin: ${from}`,
        'Access-Control-Request-Method: GET',
        'Access-Control-Request-Headers: idempotency-key',
      ];
      for (const path of ['/healthz', '/assets/x', '/v1/orders', '/api/subscriptions']) {
        const answer = await send('OPTIONS', path, { lines: preflight(origin) });
        expect(answer.status, path).to.equal(200);
        expect(headerValues(answer, 'access-control-allow-origin'), path).to.deep.equal([origin]);
        expect(headerValues(answer, 'access-control-allow-headers').join(), path).to.include('idempotency-key');
        const other = await send('OPTIONS', path, { lines: preflight('https://evil.example') });
        expect(other.status, path).to.be.oneOf([401, 404]);
        expect(headerValues(other, 'access-control-allow-origin'), path).to.deep.equal([]);
      }
      expect(lab.upstream.requests).to.deep.equal([]);
      const call = await send('GET', '/healthz', { lines: [`Origin: ${origin}`] });
      expect(headerValues(call, 'access-control-allow-origin')).to.deep.equal([origin]);
    });

    it('serves the metadata document of the resource, for its host alone', async () => {
      const answer = await send('GET', documentPath);
      expect(answer.status).to.equal(200);
      expect(headerValues(answer, 'content-type')).to.deep.equal(['application/json']);
      expect(headerValues(answer, 'access-control-allow-origin')).to.deep.equal(['*']);
      expect(JSON.parse(answer.body)).to.deep.equal({
        resource: 'https://api.test/mcp',
        authorization_servers: [issuer],
        scopes_supported: ['billing', 'orders:read'],
        bearer_methods_supported: ['header'],
      });
      expect(await send('HEAD', documentPath)).to.include({ status: 200, body: '' });
      expect(await send('POST', documentPath)).to.include({ status: 404 });
      expect(await send('GET', `${documentPath}/x`)).to.include({ status: 404 });
      expect(await send('GET', documentPath, { host: 'acct1.api.test' })).to.include({ status: 404 });
      expect(lab.upstream.requests).to.deep.equal([]);
    });

    it('checks a protected path still', async () => {
      expect(reasonOf(await send('GET', '/api/subscriptions'))).to.equal('token_missing');
      const lines = [
        `Authorization: ${await bearer({ scope: 'billing' })}`,
        'X-Forwarded-Host: evil.test',
        'Forwarded: host=evil',
      ];
      expect(await send('GET', '/api/subscriptions', { lines })).to.include({ status: 200 });
      const names = onlyRequestOf(lab.upstream).headers.map(([name]) => name.toLowerCase());
      expect(names).to.not.include.members(['x-forwarded-host']);
      expect(names).to.not.include.members(['forwarded']);
    });
  });
}
