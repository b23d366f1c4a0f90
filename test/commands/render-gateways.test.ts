// render for data planes of the Gateway API (Cilium, agentgateway) and for kgateway.
import { expect } from 'chai';
import type { Part } from '../toolkit/lint/shipped.ts';
import { config, filesOf, openSettings, render } from './render-lab.ts';

const service = { ...openSettings, listen: '0.0.0.0:9500', listenInsecure: true };
const namespaces = ['--namespace', 'shop', '--authz-namespace', 'authz'];
const removedOf = ({ filters = [], backendRefs = [{}] }: Part): string[] =>
  [...filters, ...(backendRefs[0].filters ?? [])].flatMap((each: Part) => each.requestHeaderModifier?.remove ?? []);

for (const [target, from, file] of [
  ['gateway-api', { group: 'gateway.networking.k8s.io', kind: 'HTTPRoute' }, 'http-route.yaml'],
  ['kgateway', { group: 'gateway.kgateway.dev', kind: 'GatewayExtension' }, 'traffic-policy.yaml'],
] as const) {
  describe(`render ${target}`, () => {
    it('grants the object that names account-authz the way into its namespace', async () => {
      const files = await filesOf(target, '--config', config(service), ...namespaces);
      const [grant] = files['reference-grant.yaml'] ?? [];
      expect([grant.metadata.namespace, grant.spec.from]).to.deep.equal(['authz', [{ ...from, namespace: 'shop' }]]);
    });

    it('leads the literal start of each route to the Service, and nothing else but the public paths', async () => {
      const files = await filesOf(target, '--config', config(service), '--upstream', 'orders:90', '--gateway', 'edge');
      const [route] = files['http-route.yaml'] ?? [];
      const [open] = files['open-routes.yaml'] ?? [];
      expect(route.spec.rules[0].matches).to.deep.equal([{ path: { type: 'PathPrefix', value: '/api/orders' } }]);
      expect([route.spec.parentRefs[0].name, route.spec.hostnames]).to.deep.equal([
        'edge',
        ['*.api.example.com', 'api.example.com'],
      ]);
      expect(route.spec.rules[0].backendRefs[0]).to.include({ name: 'orders', port: 90 });
      expect(route.spec.rules[0].timeouts).to.deep.equal({ request: '0s' });
      expect(open.spec.rules[0].matches.map((each: Part) => each.method)).to.deep.equal(['GET', 'HEAD', 'GET', 'POST']);
    });

    it('serves a public path without dot segments, which not every data plane resolves first', async () => {
      const files = await filesOf(target, '--config', config(service));
      const [, , { path }] = files['open-routes.yaml']?.[0].spec.rules[0].matches ?? [];
      const pattern = new RegExp(`^(?:${path.value})$`);
      for (const good of ['', '/', '/a', '/a/b.c/', '/..a', '/.well-known'])
        expect(`/docs/v1.2${good}`).to.match(pattern);
      for (const bad of ['/..', '/../x', '/a/./b', '/...', '//a', '/%2e%2e', '/a;b'])
        expect(`/docs/v1.2${bad}`).to.not.match(pattern);
    });

    it('refuses more spellings of account headers than it can remove', async () => {
      const headers = ['x-a-b-c-d-e', 'x-b-c-d-e-f'];
      const outcome = await render(target, '--config', config({ ...service, account: { headers } }));
      expect([outcome.code, outcome.stderr]).to.match(
        /1,account-authz render: account.headers of the configuration must be fewer/,
      );
    });

    it('says first what the data plane cannot do and which releases let requests through', async () => {
      const { stdout } = await render(target, '--config', config(service));
      const [comment] = stdout.split('\n\n');
      expect(comment).to.include(`# File: ${file}`).and.include('cannot ');
      const issues =
        target === 'kgateway' ? ['kgateway#11402'] : ['cilium#47178', '#47877', 'cloud-provider-kind#439', '200 ms'];
      for (const issue of issues) expect(comment).to.include(issue);
    });
  });
}

describe('render gateway-api', () => {
  it('asks account-authz on the checked route alone, and shows it the headers that render envoy shows', async () => {
    const files = await filesOf('gateway-api', '--config', config(service), ...namespaces);
    const [rule] = files['http-route.yaml']?.[0].spec.rules ?? [];
    expect(rule.filters[0]).to.deep.equal({
      type: 'ExternalAuth',
      externalAuth: {
        protocol: 'GRPC',
        backendRef: { group: '', kind: 'Service', name: 'account-authz', namespace: 'authz', port: 9500 },
        grpc: {
          allowedHeaders: ['authorization', 'x-request-id', 'traceparent', 'tracestate', 'connection', 'x-org-id'],
        },
      },
    });
    expect(JSON.stringify(files['open-routes.yaml'])).to.not.include('ExternalAuth');
  });

  it('removes on a checked route nothing that the check sets, shows or removes, for the modifier comes after it', async () => {
    const files = await filesOf('gateway-api', '--config', config(service));
    const removed = removedOf(files['http-route.yaml']?.[0].spec.rules[0]);
    expect(removed).to.include.members(['x-original-url', 'x-http-method-override', 'x_org_id', 'x-org_id']);
    expect(removed.filter(name => /^(x-auth-|authorization$|x-org-id$|forwarded$)/.test(name))).to.deep.equal([]);
  });

  it('removes on a public route the identity headers, the token and the account headers', async () => {
    const files = await filesOf('gateway-api', '--config', config(service));
    expect(removedOf(files['open-routes.yaml']?.[0].spec.rules[0])).to.include.members([
      ...['uid', 'app', 'acc', 'role', 'iss', 'actor'].map(field => `x-auth-${field}`),
      'authorization',
      'x-org-id',
      'x-forwarded-host',
    ]);
  });

  it('says where the metadata document belongs, which the Gateway API cannot answer', async () => {
    const { stdout } = await render('gateway-api', '--config', config(service));
    expect(stdout.replaceAll(/\n# /g, ' ')).to.match(
      /serve this at \/\.well-known\/oauth-protected-resource\/orders, without the filter: \{"resource":"https:\/\/api\.example\.com\/orders"/,
    );
  });

  it('verifies the certificate of account-authz, and warns of a client certificate, which Cilium cannot show', async () => {
    const tls = { certFile: '/tls.crt', keyFile: '/tls.key' };
    const file = config({ ...openSettings, listen: '0.0.0.0:9500', tls });
    const files = await filesOf('gateway-api', '--config', file, ...namespaces);
    expect(files['backend-tls.yaml']?.[0]).to.deep.include({ metadata: { name: 'account-authz', namespace: 'authz' } });
    const mutual = config({ ...openSettings, listen: '0.0.0.0:9500', tls: { ...tls, clientCaFile: '/ca.crt' } });
    expect((await render('gateway-api', '--config', mutual)).stderr).to.match(
      /tls.clientCaFile .* which Cilium cannot\n$/,
    );
  });
});

describe('render kgateway', () => {
  it('fails closed with 503 after half a second, on the checked route, and turns the check off on the others', async () => {
    const files = await filesOf('kgateway', '--config', config(service), '--cors-origin', 'https://app.example.com');
    const [extension, policy] = files['traffic-policy.yaml'] ?? [];
    expect(extension.spec.extAuth).to.deep.include({ failOpen: false, statusOnError: 503, clearRouteCache: false });
    expect(extension.spec.extAuth.grpcService).to.deep.include({ requestTimeout: '500ms', authority: 'account-authz' });
    expect(policy.spec.extAuth).to.deep.equal({ extensionRef: { name: extension.metadata.name } });
    const [open] = files['open-routes.yaml'] ?? [];
    expect(open.spec.rules[0].matches[0].headers[0]).to.include({ type: 'RegularExpression', name: 'host' });
    const policies = (files['open-routes.yaml'] ?? []).filter(({ kind }) => kind === 'TrafficPolicy');
    expect(policies.map(({ spec }) => [spec.targetRefs[0].name, spec.extAuth, spec.cors !== undefined])).to.deep.equal([
      ['subscriptions-public', { disable: {} }, true],
      ['subscriptions-metadata', { disable: {} }, false],
    ]);
    expect(policy.spec.cors.allowOrigins).to.deep.equal(['https://app.example.com']);
  });

  it('removes before the check what only account-authz may set, and behind it what has no room there', async () => {
    const files = await filesOf('kgateway', '--config', config(service));
    const { httpSettings } = files['listener-policy.yaml']?.[0].spec.default ?? {};
    const early: string[] = httpSettings.earlyRequestHeaderModifier.remove;
    expect(early).to.have.length(16).and.include.members(['x-auth-uid', 'x-auth-actor', 'x-original-url']);
    const checked = removedOf(files['http-route.yaml']?.[0].spec.rules[0]);
    const open = removedOf(files['open-routes.yaml']?.[0].spec.rules[0]);
    expect(checked).to.deep.equal(['x-org_id', 'x_org-id', 'x_org_id']);
    expect(open).to.include.members(['authorization', 'x-org-id', 'forwarded']);
    expect([...checked, ...open].filter(name => early.includes(name))).to.deep.equal([]);
  });

  it('sets the limits of the options', async () => {
    const options = '--trusted-hops 1 --idle-timeout 60 --upgrade websocket --max-headers-kib 48'.split(' ');
    const files = await filesOf('kgateway', '--config', config(service), ...options);
    expect(files['listener-policy.yaml']?.[0].spec.default.httpSettings).to.deep.include({
      xffNumTrustedHops: 1,
      streamIdleTimeout: '60s',
      upgradeConfig: { enabledUpgrades: ['websocket'] },
      maxRequestHeadersKb: 48,
    });
  });
});
