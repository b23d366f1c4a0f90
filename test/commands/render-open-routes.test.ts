// What render says in every target of public routes, hosts and the metadata document.
import { expect } from 'chai';
import { parse } from 'yaml';
import type { Part } from '../toolkit/lint/shipped.ts';
import { config, filesOf, managerOf, openSettings, render, rendered, routesOf } from './render-lab.ts';

const documentPath = '/.well-known/oauth-protected-resource/orders';

describe('render of public routes, hosts and the metadata document', () => {
  const filterOf = (route: Part, name: string): Part =>
    route.typed_per_filter_config?.[`envoy.filters.http.${name}`] ?? {};

  it('envoy: opens the public paths and the document alone, and answers 404 to every other host', async () => {
    const { virtual_hosts: hosts } = managerOf(await rendered(openSettings)).route_config;
    expect(hosts.map(({ domains }: Part) => domains)).to.deep.equal([['*.api.example.com', 'api.example.com'], ['*']]);
    const open = hosts.flatMap(({ routes }: Part) =>
      routes.filter((each: Part) => filterOf(each, 'ext_authz').disabled),
    );
    expect(open.map(({ name, route }: Part) => [name, route?.cluster])).to.deep.equal([
      ['protected-resource-metadata', undefined],
      ['public method override', undefined],
      ['public /healthz', 'upstream'],
      ['public /docs/v1.2/*', 'upstream'],
      ['nothing-else', undefined],
      ['nothing-else', undefined],
    ]);
    const { mutations } = filterOf(open[2], 'header_mutation');
    expect(mutations.request_mutations).to.deep.equal([
      { remove: 'authorization' },
      { remove_on_match: { key_matcher: { safe_regex: { regex: 'x[^a-z0-9]org[^a-z0-9]id' } } } },
    ]);
  });

  it('envoy: forwards gRPC calls on a public path that allows POST', async () => {
    const routes = routesOf(await rendered(openSettings, '--upstream-protocol', 'auto'));
    const names = routes.filter(({ match }) => match.grpc !== undefined).map(({ name }) => name);
    expect(names).to.deep.equal(['public /docs/v1.2/* gRPC', '/api/orders gRPC']);
  });

  it('envoy: leaves authorization on a public path with token.forward', async () => {
    const [, healthz] = routesOf(await rendered({ ...openSettings, 'token.forward': true, account: {} }));
    expect(filterOf(healthz, 'header_mutation')).to.deep.equal({});
  });

  it('allows a document above the default of Envoy for direct responses, or refuses it where a data plane keeps the default', async () => {
    const issuers = Array.from({ length: 80 }, (_, i) => ({
      issuer: `https://auth${i}.example.com/${'x'.repeat(40)}`,
      audiences: ['a'],
      jwksUrl: 'https://auth.example.com/jwks',
    }));
    const { route_config: routes } = managerOf(await rendered({ ...openSettings, issuers }));
    const [metadata] = routes.virtual_hosts[0].routes;
    const { length } = metadata.direct_response.body.inline_string;
    expect(routes.max_direct_response_body_size_bytes).to.equal(length).and.to.be.above(4096);
    const file = config({ ...openSettings, issuers });
    const parts = await filesOf('envoy-parts', '--config', file);
    expect(parts['envoy-parts.yaml']?.[0].route_config).to.deep.equal({ max_direct_response_body_size_bytes: length });
    for (const target of ['istio', 'envoy-gateway', 'kgateway'])
      expect((await render(target, '--config', file)).stderr).to.match(
        / must have at most 4096 bytes, not \d+: name fewer/,
      );
  });

  it('envoy: removes headers that name another host, from trailers too, only with hosts', async () => {
    for (const [changes, isRemoved] of [
      [openSettings, true],
      [{}, false],
    ] as const) {
      const manager = managerOf(await rendered(changes));
      const early = manager.early_header_mutation_extensions[0].typed_config.mutations;
      const trailers = manager.http_filters[0].typed_config.mutations.request_trailers_mutations;
      for (const list of [early, trailers]) {
        const patterns = list.map((each: Part) => each.remove ?? each.remove_on_match.key_matcher.safe_regex.regex);
        for (const name of ['forwarded', 'x-forwarded-host', 'x.host', 'x_original_host', 'x-http-host-override']) {
          const found = patterns.some((pattern: string) => new RegExp(`^(?:${pattern})$`).test(name));
          expect(found, name).to.equal(isRemoved);
        }
      }
    }
  });

  it('envoy-parts: prints the domains and the host for everything else', async () => {
    const parts: Part = parse((await render('envoy-parts', '--config', config(openSettings))).stdout);
    expect(parts.virtual_host).to.deep.equal({ domains: ['*.api.example.com', 'api.example.com'] });
    expect(parts.other_hosts.domains).to.deep.equal(['*']);
    expect(parts.routes[0].match.path).to.equal(documentPath);
  });

  // The filter of the guard's name holds the policies of Istio.
  it('istio: turns the check off on routes that come first, checks those paths otherwise, and keeps the policies', async () => {
    const files = await filesOf('istio', '--config', config(openSettings), '--upstream', '127.0.0.1:9000');
    const policies = files['authorization-policy.yaml'] ?? [];
    const open = ['/healthz', '/healthz/', '/docs/v1.2', '/docs/v1.2/*', documentPath];
    for (const { spec } of policies) {
      expect(spec.rules[0].to[0].operation.paths).to.deep.equal(['/api/orders', '/api/orders/*', ...open]);
    }
    const patches = files['envoy-filter.yaml']?.[0].spec.configPatches;
    const routes = patches.filter(({ applyTo }: Part) => applyTo === 'HTTP_ROUTE');
    expect(routes.map((each: Part) => each.match.routeConfiguration.portNumber)).to.deep.equal(Array(4).fill(9000));
    for (const { patch } of routes) {
      expect(patch.operation).to.equal('INSERT_FIRST');
      expect(filterOf(patch.value, 'ext_authz').disabled).to.equal(true);
      expect(filterOf(patch.value, 'rbac')).to.deep.equal({});
    }
    const [first] = routes;
    expect(first.patch.value.route.cluster).to.equal('inbound|9000||');
    const removed = first.patch.value.typed_per_filter_config['account-authz.request-trailers'];
    expect(removed.mutations.request_mutations).to.have.length(2);
  });

  it('envoy-gateway: has HTTPRoutes of their own, without extAuth, and the hosts', async () => {
    const service = { ...openSettings, listen: '0.0.0.0:9500', listenInsecure: true };
    const options = ['--config', config(service), '--name', 'orders', '--cors-origin', 'https://app.example.com'];
    const files = await filesOf('envoy-gateway', ...options);
    const hostnames = ['*.api.example.com', 'api.example.com'];
    const [main] = files['http-route.yaml'] ?? [];
    expect(main.spec.hostnames).to.deep.equal(hostnames);
    expect(main.spec.rules[0].matches.map((it: Part) => it.method)).to.deep.equal([undefined, 'OPTIONS', 'OPTIONS']);
    const [open, cors, metadata, filter] = files['open-routes.yaml'] ?? [];
    expect(open.spec.hostnames).to.deep.equal(hostnames);
    expect(open.spec.rules[0].matches.map(({ path, method }: Part) => `${method} ${path.value}`)).to.deep.equal([
      ...['GET', 'HEAD'].map(method => `${method} /healthz/?`),
      ...['GET', 'POST'].map(method => `${method} /docs/v1\\.2(/[A-Za-z0-9._~:@-]+)*/?`),
    ]);
    expect(open.spec.rules[0].filters[0].requestHeaderModifier.remove).to.deep.equal(['authorization', 'x-org-id']);
    expect(cors.spec.targetRefs[0].name).to.equal(open.metadata.name);
    expect(cors.spec).to.have.keys(['targetRefs', 'cors']);
    expect(metadata.spec.rules[0].matches[0].path).to.deep.equal({ type: 'Exact', value: documentPath });
    expect(JSON.parse(filter.spec.directResponse.body.inline).resource).to.equal('https://api.example.com/orders');
    const checked = files['security-policy.yaml']?.[0].spec.targetRefs.map(({ name }: Part) => name);
    expect(checked).to.deep.equal(['orders']);
  });

  it('envoy-gateway: refuses what does not fit into an HTTPRoute', async () => {
    const service = { routes: openSettings.routes, listen: '0.0.0.0:9500', listenInsecure: true };
    const hosts = Array.from({ length: 17 }, (_, i) => `h${i}.example`);
    const headers = Array.from({ length: 16 }, (_, i) => `x-org-${i}`);
    for (const [changes, problem] of [
      [{ account: { hosts } }, /account\.hosts of the configuration/],
      [{ account: { headers }, public: openSettings.public }, /account\.headers of the configuration/],
      [{ public: Array.from({ length: 33 }, (_, i) => ({ path: `/p${i}` })) }, /methods of public of the config/],
      [
        { public: [{ path: `/${'p'.repeat(200)}/*`, characters: 'rfc3986' }] },
        /paths of routes and public of the configuration must be shorter/,
      ],
    ] as const) {
      const { code, stderr } = await render('envoy-gateway', '--config', config({ ...service, ...changes }));
      expect(code).to.equal(1);
      expect(stderr).to.match(problem);
    }
  });
});
