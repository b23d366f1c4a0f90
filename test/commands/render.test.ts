// The render command: its output for each target, usage errors, and which files --out replaces.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse, parseAllDocuments } from 'yaml';
import { version } from '../../src/version.ts';
import type { Part } from '../envoy-lint/shipped.ts';
import { type Outcome, runCommand } from '../support/command.ts';
import { changed, configOf, smallestConfig, writeFixture } from '../support/config-file.ts';

const config = (changes: Readonly<Record<string, unknown>> = {}): string =>
  writeFixture('render.yaml', changed(changes));
const render = (...args: readonly string[]): Promise<Outcome> => runCommand('render', args);

async function rendered(changes: Readonly<Record<string, unknown>>, ...options: readonly string[]): Promise<Part> {
  const { code, stdout, stderr } = await render('envoy', '--config', config(changes), ...options);
  expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
  return parse(stdout);
}

const managerOf = (bootstrap: Part): Part =>
  bootstrap.static_resources.listeners[0].filter_chains[0].filters[0].typed_config;
const routesOf = (bootstrap: Part): Part[] => managerOf(bootstrap).route_config.virtual_hosts[0].routes;
const checkOf = (bootstrap: Part): Part =>
  managerOf(bootstrap).http_filters.find(({ name }: Part) => name === 'envoy.filters.http.ext_authz').typed_config;
const clusterOf = (bootstrap: Part, name: string): Part =>
  bootstrap.static_resources.clusters.find((each: Part) => each.name === name);
const addressOf = (cluster: Part): Part => cluster.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address;

const openSettings = {
  'issuers.0.audiences': ['https://api.example.com/orders'],
  routes: [{ path: '/api/orders/:account_id/*' }],
  public: [{ path: '/healthz' }, { path: '/docs/v1.2/*', methods: ['GET', 'POST'] }],
  account: { headers: ['x-org-id'], hosts: [':account_id.api.example.com', 'api.example.com'] },
  scopes: { billing: ['*'] },
  protectedResource: { resource: 'https://api.example.com/orders' },
};

describe('render envoy', () => {
  it('starts with its version, its command line and a warning not to edit it', async () => {
    const file = config();
    const { stdout } = await render('envoy', '--config', file, '--trusted-hops=1');
    const [first, second] = stdout.split('\n');
    expect(first).to.equal(
      `# Made by account-authz ${version}: account-authz render envoy --config ${file} --trusted-hops=1`,
    );
    expect(second).to.match(/^# Do not edit it: .* \(checksum [0-9a-f]{12}\)\.$/);
  });

  it('leaves 24 KiB for the headers beside the longest token', async () => {
    for (const [maxBytes, kilobytes] of [
      [8192, 32],
      [65_536, 88],
    ]) {
      const { max_request_headers_kb } = managerOf(await rendered({ token: { maxBytes } }));
      expect(max_request_headers_kb).to.equal(kilobytes);
    }
  });

  const methodRows = [
    ['a role', { roles: { owner: ['*', 'QUERY'] } }, true],
    ['a public route', { public: [{ path: '/cached', methods: ['GET', 'PURGE'] }] }, true],
    ['nothing', { roles: { owner: ['*'], reader: ['GET', 'OPTIONS'] } }, undefined],
  ] as const;
  for (const [where, settings, expected] of methodRows) {
    it(`accepts custom methods over HTTP/1.1 where ${where} names one`, async () => {
      const { http_protocol_options } = managerOf(await rendered(settings));
      expect(http_protocol_options.allow_custom_methods).to.equal(expected);
      const [filter] = (await filesOf('istio', '--config', config(settings)))['envoy-filter.yaml'] ?? [];
      expect(JSON.stringify(filter).includes('allow_custom_methods')).to.equal(expected === true);
    });
  }

  it('is deterministic', async () => {
    const args = ['envoy', '--config', config(), '--cors-origin', 'https://app.example.com'];
    expect(await render(...args)).to.deep.equal(await render(...args));
  });

  const routes: readonly (readonly [paths: readonly string[], prefixes: readonly string[]])[] = [
    [
      ['/api/orders/:account_id/*', '/v2/billing/*'],
      ['/api/orders', '/v2/billing'],
    ],
    [['/api/orders'], ['/api/orders']],
    [['/a/:account_id/b', '/a/c/*'], ['/a']],
    [
      ['/a/b/*', '/a', '/ab/*'],
      ['/a', '/ab'],
    ],
    [
      ['/v1/orders/*', '/v2/orders/*'],
      ['/v1/orders', '/v2/orders'],
    ],
  ];
  for (const [paths, prefixes] of routes) {
    it(`routes ${prefixes.join(' and ')} for ${paths.join(', ')}, and answers 404 elsewhere`, async () => {
      const found = routesOf(await rendered({ routes: paths.map(path => ({ path })) }));
      expect(found.map(({ match }) => match)).to.deep.equal([
        ...prefixes.map(path => ({ path_separated_prefix: path })),
        { prefix: '/' },
      ]);
      expect(found.at(-1).direct_response).to.deep.equal({ status: 404 });
      expect(new Set(found.map(({ name }) => name))).to.have.property('size', found.length);
    });
  }

  it('routes and checks every path for a route that starts with a parameter', async () => {
    const found = routesOf(await rendered({ routes: [{ path: '/:account_id/*' }, { path: '/health' }] }));
    expect(found.map(({ match, route }) => [match, route.cluster])).to.deep.equal([[{ prefix: '/' }, 'upstream']]);
  });

  it('sends every account header and its look-alikes, and removes them from trailers', async () => {
    const bootstrap = await rendered({ account: { headers: ['X-Org-Id', 'tenant'] } });
    const patterns = checkOf(bootstrap).allowed_headers.patterns;
    expect(patterns.slice(-3)).to.deep.equal([
      { exact: 'x-org-id' },
      { exact: 'tenant' },
      { safe_regex: { regex: 'x[^a-z0-9]org[^a-z0-9]id' } },
    ]);
    const trailers = managerOf(bootstrap).http_filters[0].typed_config.mutations.request_trailers_mutations;
    const removed = trailers.map((each: Part) => each.remove ?? each.remove_on_match.key_matcher.safe_regex.regex);
    expect(removed).to.include.members(['x[^a-z0-9]org[^a-z0-9]id', 'tenant', 'authorization']);
  });

  // Envoy reads YAML 1.1.
  it('quotes names that YAML 1.1 reads as booleans and numbers', async () => {
    const names = ['on', 'y', '0x1f', '1e3', '12'];
    const { stdout } = await render('envoy', '--config', config({ account: { headers: names } }));
    const check = checkOf(parse(stdout, { version: '1.1' }));
    expect(check.allowed_headers.patterns.slice(-names.length)).to.deep.equal(names.map(exact => ({ exact })));
  });

  it('uses the identity prefix of the configuration in removals and mutation rules', async () => {
    const bootstrap = await rendered({ identityHeaders: 'x-acme-id-' });
    const [first] = managerOf(bootstrap).early_header_mutation_extensions[0].typed_config.mutations;
    expect(first.remove_on_match.key_matcher.safe_regex.regex).to.equal('x[^a-z0-9]acme[^a-z0-9]id[^a-z0-9].*');
    const { regex } = checkOf(bootstrap).decoder_header_mutation_rules.allow_expression;
    expect(regex).to.equal('^(x[-_]acme[-_]id[-_].*|authorization)$');
  });

  it('allows the removal of headers that name another host with account.hosts', async () => {
    const { regex } = checkOf(await rendered(openSettings)).decoder_header_mutation_rules.allow_expression;
    for (const name of ['forwarded', 'x-forwarded-host', 'x_forwarded-host', 'x_http_host_override', 'authorization'])
      expect(name).to.match(new RegExp(regex));
    for (const name of ['host', 'x-forwarded-for', 'xx-host']) expect(name).not.to.match(new RegExp(regex));
  });

  it('allows the removal of authorization only when the token is not forwarded', async () => {
    const bootstrap = await rendered({ 'token.forward': true });
    expect(checkOf(bootstrap).decoder_header_mutation_rules.allow_expression.regex).to.equal('^x[-_]auth[-_].*$');
  });

  const addresses: readonly (readonly [listen: string, type: string, address: unknown])[] = [
    ['127.0.0.1:9500', 'STATIC', { socket_address: { address: '127.0.0.1', port_value: 9500 } }],
    ['[::1]:9500', 'STATIC', { socket_address: { address: '::1', port_value: 9500 } }],
    ['localhost:9500', 'STATIC', { socket_address: { address: '127.0.0.1', port_value: 9500 } }],
    ['unix:/run/a/authz.sock', 'STATIC', { pipe: { path: '/run/a/authz.sock' } }],
    ['0.0.0.0:9500', 'STRICT_DNS', { socket_address: { address: 'account-authz', port_value: 9500 } }],
    ['[::]:9500', 'STRICT_DNS', { socket_address: { address: 'account-authz', port_value: 9500 } }],
  ];
  for (const [listen, type, address] of addresses) {
    it(`connects to account-authz at listen ${listen}`, async () => {
      const cluster = clusterOf(await rendered({ listen, listenInsecure: true }), 'account-authz');
      expect([cluster.type, addressOf(cluster)]).to.deep.equal([type, address]);
    });
  }

  it('uses TLS when listen does, with a client certificate when listen has a client CA', async () => {
    const tls = { certFile: '/nowhere/tls.crt', keyFile: '/nowhere/tls.key' };
    for (const [settings, certificates] of [
      [tls, undefined],
      [{ ...tls, clientCaFile: '/nowhere/ca.crt' }, ['client-certificate']],
    ] as const) {
      const file = config({ listen: '0.0.0.0:9191', tls: settings });
      const { code, stdout, stderr } = await render('envoy', '--config', file, '--authz-host', 'authz.example.com');
      expect(code).to.equal(0);
      expect(stderr).to.match(
        /^account-authz render: Envoy also reads .*server-authority\.yaml: use --out DIR to write all files\n$/,
      );
      const { sni, common_tls_context: context } = clusterOf(parse(stdout), 'account-authz').transport_socket
        .typed_config;
      expect(sni).to.equal('authz.example.com');
      const names = context.tls_certificate_sds_secret_configs?.map(({ name }: Part) => name);
      expect(names).to.deep.equal(certificates);
    }
  });

  it('requires the IP address in the certificate when --authz-host is an IP address', async () => {
    const tls = { certFile: '/nowhere/tls.crt', keyFile: '/nowhere/tls.key' };
    const file = config({ listen: '0.0.0.0:9191', tls });
    const { stdout } = await render('envoy', '--config', file, '--authz-host', '192.0.2.7');
    const { sni, common_tls_context: context } = clusterOf(parse(stdout), 'account-authz').transport_socket
      .typed_config;
    expect(sni).to.equal(undefined);
    expect(context.combined_validation_context.default_validation_context).to.deep.equal({
      match_typed_subject_alt_names: [{ san_type: 'IP_ADDRESS', matcher: { exact: '192.0.2.7' } }],
    });
  });

  it('shows account-authz the connection header, and content-type when the account may be in the query', async () => {
    const shown = async (account: Part): Promise<string[]> =>
      checkOf(await rendered({ account })).allowed_headers.patterns.flatMap(({ exact }: Part) => exact ?? []);
    const always = ['authorization', 'x-request-id', 'traceparent', 'tracestate', 'connection'];
    expect(await shown({})).to.deep.equal(always);
    expect(await shown({ query: ['account_id'] })).to.deep.equal([...always, 'content-type']);
  });

  it('uses the ports of --readiness-port and --envoy-admin-port', async () => {
    const bootstrap = await rendered({}, '--readiness-port', '8181', '--envoy-admin-port', '9001');
    expect(bootstrap.static_resources.listeners[1].address.socket_address.port_value).to.equal(8181);
    expect(bootstrap.admin.address.socket_address).to.deep.equal({ address: '127.0.0.1', port_value: 9001 });
  });

  it('uses the addresses of --listen and --upstream', async () => {
    const bootstrap = await rendered({}, '--listen', '127.0.0.1:8443', '--upstream', 'orders.default.svc:9000');
    const [listener, readiness] = bootstrap.static_resources.listeners;
    expect(listener.address.socket_address).to.deep.equal({ address: '127.0.0.1', port_value: 8443 });
    expect(readiness.address.socket_address).to.deep.equal({ address: '127.0.0.1', port_value: 8081 });
    const upstream = clusterOf(bootstrap, 'upstream');
    expect(upstream.type).to.equal('STRICT_DNS');
    expect(addressOf(upstream).socket_address).to.deep.equal({ address: 'orders.default.svc', port_value: 9000 });
  });

  // Behind a proxy, several clients share a connection.
  it('sets --trusted-hops, and resets only the stream of an invalid request', async () => {
    const manager = managerOf(await rendered({}, '--trusted-hops', '2'));
    expect(manager).to.include({ use_remote_address: true, xff_num_trusted_hops: 2 });
    expect(manager.http2_protocol_options.override_stream_error_on_invalid_http_message).to.equal(true);
  });

  it('allows the methods of the roles and the account headers for --cors-origin', async () => {
    const changes = { roles: { owner: ['GET', 'PURGE'], member: ['GET'] }, account: { headers: ['x-org-id'] } };
    const origins = ['--cors-origin', 'https://app.example.com', '--cors-origin', 'http://localhost:3000'];
    const manager = managerOf(await rendered(changes, ...origins));
    const [host] = manager.route_config.virtual_hosts;
    const policy = host.typed_per_filter_config['envoy.filters.http.cors'];
    expect(policy.allow_origin_string_match).to.deep.equal([{ exact: origins[1] }, { exact: origins[3] }]);
    expect(policy.allow_methods).to.equal('GET, PURGE');
    expect(policy.allow_headers.split(', ')).to.include.members(['authorization', 'content-type', 'x-org-id']);
    const more = ['--cors-header', 'Idempotency-Key', '--cors-header', 'if-match'];
    const extended = managerOf(await rendered(changes, ...origins, ...more)).route_config.virtual_hosts[0];
    const { allow_headers: allowed } = extended.typed_per_filter_config['envoy.filters.http.cors'];
    expect(allowed).to.equal(`${policy.allow_headers}, idempotency-key`);
    const names = manager.http_filters.map(({ name }: Part) => name);
    expect(names.indexOf('envoy.filters.http.cors')).to.be.below(names.indexOf('envoy.filters.http.ext_authz'));
  });

  const agreeing: readonly (readonly [
    name: string,
    changes: Readonly<Record<string, unknown>>,
    options: readonly string[],
  ])[] = [
    ['the smallest configuration', {}, []],
    ['a Unix socket', { listen: 'unix:/run/account-authz/authz.sock' }, []],
    ['several routes', { routes: [{ path: '/a/:account_id' }, { path: '/b/*' }] }, []],
    ['a route that protects every path', { routes: [{ path: '/:account_id/*' }] }, []],
    [
      'other identity and account headers',
      { identityHeaders: 'x-me-', account: { headers: ['x-org-id', 'tenant'] } },
      [],
    ],
    ['a forwarded token', { 'token.forward': true }, []],
    [
      'proxies, CORS and gRPC',
      {},
      ['--trusted-hops', '1', '--cors-origin', 'https://a.example', '--upstream-protocol', 'auto'],
    ],
    ['HTTP/2 to the upstream', {}, ['--upstream-protocol', 'http2']],
    ['public routes, hosts and the metadata document', openSettings, []],
    [
      'the same, with CORS and gRPC',
      openSettings,
      ['--cors-origin', 'https://a.example', '--upstream-protocol', 'auto'],
    ],
  ];
  for (const [name, changes, options] of agreeing) {
    it(`passes check-config --envoy with ${name}`, async () => {
      const file = config(changes);
      const { stdout } = await render('envoy', '--config', file, ...options);
      const bootstrap = writeFixture('rendered.yaml', stdout);
      expect(await runCommand('check-config', ['--config', file, '--envoy', bootstrap])).to.include({
        code: 0,
        stderr: '',
      });
    });
  }
});

describe('render envoy-parts', () => {
  it('prints the parts of the bootstrap, each under a comment that names its place', async () => {
    const file = config();
    const { stdout } = await render('envoy-parts', '--config', file);
    const whole = parse((await render('envoy', '--config', file)).stdout);
    const parts: Part = parse(stdout);
    const keys = ['layered_runtime', 'cluster', 'connection_manager', 'http_filters', 'routes'];
    expect(Object.keys(parts)).to.deep.equal(keys);
    expect(whole.layered_runtime).to.deep.equal(parts.layered_runtime);
    expect(parts.cluster).to.deep.equal(clusterOf(whole, 'account-authz'));
    expect(managerOf(whole)).to.deep.include(parts.connection_manager);
    expect(managerOf(whole).http_filters.slice(0, -1)).to.deep.equal(parts.http_filters);
    expect(routesOf(whole)).to.deep.equal(parts.routes);
    for (const name of Object.keys(parts))
      expect(stdout).to.match(new RegExp(`^# (?:Add|Put|The routes) .*\n(?:# .*\n)*${name}:`, 'm'));
  });
});

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
      ['public /healthz', 'upstream'],
      ['public /docs/v1.2/*', 'upstream'],
      ['nothing-else', undefined],
      ['nothing-else', undefined],
    ]);
    const { mutations } = filterOf(open[1], 'header_mutation');
    expect(mutations.request_mutations).to.deep.equal([
      { remove_on_match: { key_matcher: { safe_regex: { regex: 'x[^a-z0-9]org[^a-z0-9]id' } } } },
      { remove: 'authorization' },
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

  it('envoy: allows a document above the default of Envoy for direct responses', async () => {
    const issuers = Array.from({ length: 80 }, (_, i) => ({
      issuer: `https://auth${i}.example.com/${'x'.repeat(40)}`,
      audiences: ['a'],
      jwksUrl: 'https://auth.example.com/jwks',
    }));
    const { route_config: routes } = managerOf(await rendered({ ...openSettings, issuers }));
    const [metadata] = routes.virtual_hosts[0].routes;
    const { length } = metadata.direct_response.body.inline_string;
    expect(routes.max_direct_response_body_size_bytes).to.equal(length).and.to.be.above(4096);
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
        const patterns = list.flatMap((each: Part) => each.remove_on_match?.key_matcher.safe_regex.regex ?? []);
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
    expect(routes.map(({ match }: Part) => match.routeConfiguration.portNumber)).to.deep.equal([9000, 9000, 9000]);
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
    expect(main.spec.rules[0].matches.map(({ method }: Part) => method)).to.deep.equal([
      undefined,
      'OPTIONS',
      'OPTIONS',
    ]);
    const [open, cors, metadata, filter] = files['open-routes.yaml'] ?? [];
    expect(open.spec.hostnames).to.deep.equal(hostnames);
    expect(open.spec.rules[0].matches.map(({ path, method }: Part) => `${method} ${path.value}`)).to.deep.equal([
      ...['GET', 'HEAD'].map(method => `${method} /healthz/?`),
      ...['GET', 'POST'].map(method => `${method} /docs/v1\\.2(/[A-Za-z0-9._~:@-]+)*/?`),
    ]);
    expect(open.spec.rules[0].filters[0].requestHeaderModifier.remove).to.deep.equal(['x-org-id', 'authorization']);
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
      [
        { public: Array.from({ length: 33 }, (_, i) => ({ path: `/p${i}` })) },
        /methods of public of the configuration/,
      ],
    ] as const) {
      const { code, stderr } = await render('envoy-gateway', '--config', config({ ...service, ...changes }));
      expect(code).to.equal(1);
      expect(stderr).to.match(problem);
    }
  });
});

describe('render envoy-parts in another bootstrap', () => {
  const settings = { account: { headers: ['x-org-id'] } };
  const cors = ['--cors-origin', 'https://app.example.com', '--upstream-protocol', 'auto'];
  for (const [name, changes, options] of [
    ['without options', settings, []],
    [`with ${cors.join(' ')}`, settings, cors],
    ['with public routes and hosts', openSettings, cors],
  ] as const) {
    it(`passes check-config --envoy ${name}`, async () => {
      const file = config(changes);
      const parts: Part = parse((await render('envoy-parts', '--config', file, ...options)).stdout);
      const typed = (type: string, fields: Part) => ({
        typed_config: { '@type': `type.googleapis.com/envoy.extensions.filters.${type}`, ...fields },
      });
      const router = { name: 'router', ...typed('http.router.v3.Router', {}) };
      const manager = typed('network.http_connection_manager.v3.HttpConnectionManager', {
        stat_prefix: 'mine',
        ...parts.connection_manager,
        route_config: {
          virtual_hosts: [
            { name: 'mine', domains: ['*'], ...parts.virtual_host, routes: parts.routes },
            ...(parts.other_hosts === undefined ? [] : [parts.other_hosts]),
          ],
        },
        http_filters: [...parts.http_filters, router],
      });
      const address = { socket_address: { address: '0.0.0.0', port_value: 80 } };
      const listeners = [{ name: 'mine', address, filter_chains: [{ filters: [{ name: 'manager', ...manager }] }] }];
      const bootstrap = writeFixture('mine.yaml', { static_resources: { listeners, clusters: [parts.cluster] } });
      const outcome = await runCommand('check-config', ['--config', file, '--envoy', bootstrap]);
      expect(outcome).to.include({ code: 0, stderr: '' });
    });
  }
});

/** The files that render writes for a target, by name. */
async function filesOf(target: string, ...args: readonly string[]): Promise<Readonly<Record<string, Part[]>>> {
  const folder = mkdtempSync(join(tmpdir(), 'account-authz-target-'));
  try {
    const { code, stderr } = await render(target, ...args, '--out', folder);
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
    const read = (name: string) => parseAllDocuments(readFileSync(join(folder, name), 'utf8')).map(each => each.toJS());
    return Object.fromEntries(readdirSync(folder).map(name => [name, read(name)]));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const twoPaths = { routes: [{ path: '/api/orders/:account_id/*' }, { path: '/v2/billing/*' }] };

describe('render kubernetes', () => {
  it('writes a component with configuration, bootstrap, both sidecars and their shared socket', async () => {
    const settings = { ...twoPaths, listen: 'unix:/run/authz/authz.sock', admin: '0.0.0.0:9292' };
    const file = config(settings);
    const files = await filesOf(
      'kubernetes',
      '--config',
      file,
      '--selector',
      'team=blue,authz=on',
      '--namespace',
      'shop',
    );
    const [component] = files['kustomization.yaml'] ?? [];
    expect(component).to.include({ kind: 'Component', namespace: 'shop' });
    const generated = component.configMapGenerator.flatMap((each: Part) => each.files);
    const patches = component.patches.flatMap(({ path }: Part) => path ?? []);
    expect([...generated, ...patches, 'kustomization.yaml'].sort()).to.deep.equal(Object.keys(files));
    for (const { target } of component.patches) expect(target.labelSelector).to.equal('team=blue,authz=on');
    expect(await configOf(files['config.yaml']?.[0])).to.deep.equal(await configOf(changed(settings)));
    expect(files['envoy.yaml']).to.deep.equal([parse((await render('envoy', '--config', file)).stdout)]);
    const containers = patches.flatMap((name: string) => files[name]?.[0].spec.template.spec.initContainers);
    const mounted = containers.flatMap((each: Part) => each.volumeMounts.map(({ mountPath }: Part) => mountPath));
    expect(mounted.filter((path: string) => path === '/run/authz')).to.have.length(2);
    const admin = containers.find(({ name }: Part) => name === 'account-authz').ports[0].containerPort;
    expect(admin).to.equal(9292);
  });

  it('uses the images and the ports of the options', async () => {
    const options = ['--image', 'r.example/authz:1', '--envoy-image', 'r.example/envoy@sha256:0a'];
    const ports = ['--readiness-port', '8181', '--envoy-admin-port', '9001'];
    const files = await filesOf('kubernetes', '--config', config(twoPaths), ...options, ...ports);
    const [authz] = files['account-authz.yaml']?.[0].spec.template.spec.initContainers ?? [];
    const [envoy] = files['envoy-container.yaml']?.[0].spec.template.spec.initContainers ?? [];
    expect([authz.image, envoy.image]).to.deep.equal([options[1], options[3]]);
    const admin = ['--envoy-admin', 'http://127.0.0.1:9001'];
    expect(authz.args.slice(-2)).to.deep.equal(admin);
    expect(authz.lifecycle.preStop.exec.command.slice(3, 5)).to.deep.equal(admin);
    expect(envoy.ports.at(-1)).to.deep.equal({ name: 'envoy-ready', containerPort: 8181 });
  });

  it('refuses an admin on loopback, where no probe reaches it', async () => {
    const { code, stderr } = await render('kubernetes', '--config', config({ admin: '127.0.0.1:9300' }));
    expect({ code, stderr }).to.deep.equal({
      code: 1,
      stderr:
        'account-authz render: admin of the configuration must not be loopback, where the probes of the kubelet cannot reach it: write 0.0.0.0:9300, for kubernetes\n',
    });
  });

  it('gives the pod time for the drain, the stops of the app and of Envoy, and graceSeconds', async () => {
    for (const [graceSeconds, seconds] of [
      [0, 35],
      [300, 335],
    ]) {
      const files = await filesOf('kubernetes', '--config', config({ shutdown: { graceSeconds } }));
      expect(files['account-authz.yaml']?.[0].spec.template.spec.terminationGracePeriodSeconds).to.equal(seconds);
    }
  });

  for (const folder of ['', '/etc', '/etc/account-authz', '/etc/account-authz/run', '/etc/envoy', '/app']) {
    it(`refuses a socket in ${folder}/, where an emptyDir for it does not fit`, async () => {
      const listen = `unix:${folder}/authz.sock`;
      const { code, stderr } = await render('kubernetes', '--config', config({ listen }));
      expect({ code, stderr }).to.deep.equal({
        code: 1,
        stderr:
          'account-authz render: listen of the configuration must be a socket in a folder of its own, such as unix:/run/account-authz/authz.sock, for kubernetes\n',
      });
    });
  }

  it('prints the files as YAML documents, each with its name', async () => {
    const { stdout } = await render('kubernetes', '--config', config());
    const names = Array.from(stdout.matchAll(/^# Made by .*\n# File: (.*)$/gm), ([, name]) => name);
    expect(names).to.deep.equal([
      ...['kustomization.yaml', 'envoy-container.yaml', 'account-authz.yaml', 'envoy.yaml', 'config.yaml'],
    ]);
    expect(parseAllDocuments(stdout)).to.have.length(names.length);
  });
});

describe('render istio', () => {
  it('checks every configured path, refuses others, and connects to account-authz in the pod', async () => {
    const args = ['--config', config({ ...twoPaths, listen: '127.0.0.1:9500' }), '--upstream', '127.0.0.1:9000'];
    const files = await filesOf('istio', ...args, '--selector', 'app=orders', '--namespace', 'shop');
    const paths = ['/api/orders', '/api/orders/*', '/v2/billing', '/v2/billing/*'];
    const [custom, allow] = files['authorization-policy.yaml'] ?? [];
    expect(custom.spec.rules).to.deep.equal([{ to: [{ operation: { paths } }] }]);
    expect(allow.spec.rules[0].to).to.deep.equal([{ operation: { ports: ['9000'], paths } }]);
    for (const { metadata, spec } of [custom, allow]) {
      expect([metadata.namespace, spec.selector.matchLabels]).to.deep.equal(['shop', { app: 'orders' }]);
    }
    expect(files['service-entry.yaml']?.[0].spec.ports[0].number).to.equal(9500);
    expect(files['mesh-config.yaml']?.[0].extensionProviders[0].envoyExtAuthzGrpc.port).to.equal(9500);
    expect(files['envoy-filter.yaml']?.[0].spec.workloadSelector.labels).to.deep.equal({ app: 'orders' });
  });
});

describe('render --name', () => {
  it('limits the kubernetes patches to this Deployment', async () => {
    const files = await filesOf('kubernetes', '--config', config(twoPaths), '--name', 'orders');
    const targets = files['kustomization.yaml']?.[0].patches.map(({ target }: Part) => target);
    const deployments = targets.filter(({ kind }: Part) => kind === 'Deployment');
    expect(deployments.map(({ name }: Part) => name)).to.deep.equal(deployments.map(() => 'orders'));
  });

  it('prefixes the names of the istio objects', async () => {
    const files = await filesOf('istio', '--config', config(twoPaths), '--name', 'orders');
    const names = files['authorization-policy.yaml']?.map(({ metadata }: Part) => metadata.name);
    expect(names).to.deep.equal(['orders-account-authz', 'orders-nothing-else']);
  });
});

describe('render envoy-gateway', () => {
  const service = { ...twoPaths, listen: '0.0.0.0:9500', listenInsecure: true };

  it('routes every configured path to the Service, and checks it with account-authz', async () => {
    const args = ['--config', config(service), '--upstream', 'orders:9000', '--name', 'shop', '--authz-host', 'authz'];
    const files = await filesOf(
      'envoy-gateway',
      ...args,
      '--cors-origin',
      'https://app.example.com',
      '--trusted-hops',
      '1',
    );
    const [route] = files['http-route.yaml'] ?? [];
    expect(route.spec.rules[0].matches.map(({ path }: Part) => path.value)).to.deep.equal([
      '/api/orders',
      '/v2/billing',
    ]);
    expect(route.spec.rules[0].backendRefs[0]).to.include({ name: 'orders', port: 9000 });
    const [policy] = files['security-policy.yaml'] ?? [];
    expect(policy.spec.targetRefs[0].name).to.equal(route.metadata.name);
    expect(policy.spec.extAuth.grpc.backendRefs[0]).to.include({ name: 'authz', port: 9500 });
    expect(policy.spec.cors).to.deep.include({ allowOrigins: ['https://app.example.com'], allowCredentials: false });
    expect(files['client-traffic-policy.yaml']?.[0].spec.clientIPDetection.xForwardedFor.numTrustedHops).to.equal(1);
    expect(Object.keys(files)).to.not.include('backend-tls.yaml');
  });

  it('names the Gateway with --gateway, and the route and its policy with --name', async () => {
    const tls = { certFile: '/tls.crt', keyFile: '/tls.key' };
    const options = ['--config', config({ ...service, tls }), '--name', 'orders', '--gateway', 'public'];
    const files = await filesOf('envoy-gateway', ...options);
    const [route] = files['http-route.yaml'] ?? [];
    const [policy] = files['security-policy.yaml'] ?? [];
    const [traffic] = files['client-traffic-policy.yaml'] ?? [];
    expect([route, policy].map(({ metadata }) => metadata.name)).to.deep.equal(['orders', 'orders']);
    expect(policy.spec.targetRefs[0].name).to.equal('orders');
    expect([route.spec.parentRefs[0].name, traffic.spec.targetRefs[0].name]).to.deep.equal(['public', 'public']);
  });

  it('allows the headers of --cors-header', async () => {
    const options = ['--cors-origin', 'https://app.example.com', '--cors-header', 'idempotency-key'];
    const files = await filesOf('envoy-gateway', '--config', config(service), ...options);
    expect(files['security-policy.yaml']?.[0].spec.cors.allowHeaders).to.include.members([
      'authorization',
      'idempotency-key',
    ]);
  });

  it('uses the Service of account-authz and warns when listen is loopback or a socket', async () => {
    for (const listen of ['127.0.0.1:9191', 'unix:/run/authz.sock']) {
      const { code, stdout, stderr } = await render('envoy-gateway', '--config', config({ ...twoPaths, listen }));
      expect(stderr).to.match(/^account-authz render: listen of the configuration is loopback or a socket: .*\n$/);
      expect(code).to.equal(0);
      expect(stdout).to.contain('name: account-authz, port: 9191');
    }
  });

  // A policy without a target would leave the route unprotected.
  it('sets the labels of --selector on the route, which the policy targets by name', async () => {
    const files = await filesOf('envoy-gateway', '--config', config(service), '--selector', 'app=orders');
    expect(files['http-route.yaml']?.[0].metadata.labels).to.deep.equal({ app: 'orders' });
    expect(files['security-policy.yaml']?.[0].spec.targetRefs).to.deep.equal([
      { group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'subscriptions' },
    ]);
  });

  it('refuses routes with more paths than one rule may have', async () => {
    const routes = Array.from({ length: 65 }, (_, i) => ({ path: `/api/v${i}/*` }));
    expect(await render('envoy-gateway', '--config', config({ ...service, routes: routes.slice(1) }))).to.include({
      code: 0,
    });
    const { code, stderr } = await render('envoy-gateway', '--config', config({ ...service, routes }));
    expect(code).to.equal(1);
    expect(stderr).to.match(/^account-authz render: routes of the configuration must lead to at most 64 paths, .*\n$/);
  });

  it('removes look-alikes of account headers, and keeps the headers themselves', async () => {
    const files = await filesOf(
      'envoy-gateway',
      '--config',
      config({ ...service, account: { headers: ['x-my-org-id', 'tenant'] } }),
    );
    const removed = files['client-traffic-policy.yaml']?.[0].spec.headers.earlyRequestHeaders.removeOnMatch;
    const pattern = new RegExp(`^(?:${removed.at(-1).value})$`);
    for (const name of ['x.my-org-id', 'x-my.org-id', 'x-my-org.id', 'x.my.org.id']) expect(name).to.match(pattern);
    for (const name of ['x-my-org-id', 'xamy-org-id', 'tenant']) expect(name).not.to.match(pattern);
  });
});

describe('render with invalid input', () => {
  const problems: readonly (readonly [args: readonly string[], problem: RegExp])[] = [
    [[], /the first argument must be a target: envoy, envoy-parts/],
    [['nginx'], /the first argument must be a target/],
    [['--config', 'x'], /the first argument must be a target/],
    [['envoy', '--lsten', 'x'], /unknown option --lsten/],
    [['envoy', 'x'], /unexpected argument/],
    [['envoy', '--listen'], /--listen must have a value: /],
    [['envoy', '--listen', '--upstream', 'a:1'], /--listen must have a value: /],
    [['envoy', '--listen', '8080'], /--listen must be host:port/],
    [['envoy', '--listen', 'unix:/a/b'], /--listen must be HOST:PORT/],
    [['envoy', '--listen', 'example.com:80'], /--listen must have an IP address/],
    [['envoy', '--listen', '0.0.0.0:0'], /--listen must have a port from 1 to 65535/],
    [['envoy', '--listen', '0.0.0.0:9901'], /--listen must differ from --envoy-admin-port/],
    [['envoy', '--listen', '0.0.0.0:8081'], /--listen must differ from --readiness-port/],
    [['envoy', '--readiness-port', '9901'], /--readiness-port must differ from --envoy-admin-port/],
    [['envoy', '--readiness-port', '9192'], /--readiness-port must differ from admin of the configuration/],
    [['envoy', '--envoy-admin-port', '9191'], /--envoy-admin-port must differ from listen of the configuration/],
    [['envoy', '--envoy-admin-port', '0'], /--envoy-admin-port must be a port from 1 to 65535/],
    [['envoy', '--readiness-port', '70000'], /--readiness-port must be a port from 1 to 65535/],
    [['envoy-parts', '--readiness-port', '81'], /--readiness-port does not apply to envoy-parts: leave it out$/m],
    [['envoy', '--cors-header', 'idempotency-key'], /--cors-header needs --cors-origin/],
    [
      ['envoy', '--cors-origin', 'https://a.example', '--cors-header', 'a b'],
      /--cors-header must be the name of a request header/,
    ],
    [['kubernetes', '--image', 'a b'], /--image must be the reference of an image/],
    [['kubernetes', '--envoy-image', ''], /--envoy-image must be the reference of an image/],
    [['envoy', '--force'], /--force needs --out/],
    [['envoy-gateway', '--gateway', 'A'], /--gateway must be a Kubernetes name/],
    [['envoy', '--listen', '0.0.0.0:9191'], /--listen must differ from listen of the configuration/],
    [['envoy', '--upstream', 'a b:1'], /--upstream must have an IPv4 address/],
    [['envoy', '--upstream', '127.0.0.1:8080'], /--upstream must differ from --listen/],
    [['envoy', '--upstream', '127.0.0.1:9191'], /--upstream must differ from listen of the configuration/],
    [['envoy', '--upstream-protocol', 'h2c'], /--upstream-protocol must be one of http1, http2, auto/],
    [['envoy', '--authz-host', 'a/b'], /--authz-host must be an IP address or a host name/],
    [['envoy', '--cors-origin', '*'], /--cors-origin must be an origin/],
    [['envoy', '--cors-origin', 'https://app.example.com/'], /--cors-origin must be an origin/],
    [['envoy', '--cors-origin', 'https://App.example.com'], /--cors-origin must be an origin/],
    [['envoy', '--trusted-hops', '-1'], /--trusted-hops must have a value: /],
    [['envoy', '--trusted-hops=-1'], /--trusted-hops must be a number/],
    [['envoy', '--trusted-hops', 'one'], /--trusted-hops must be a number/],
    [['envoy', '--selector', 'a=b'], /--selector does not apply to envoy: leave it out$/m],
    [['istio', '--cors-origin', 'https://app.example.com'], /--cors-origin does not apply to istio: leave it out$/m],
    [['kubernetes', '--selector', 'a'], /--selector must be KEY=VALUE/],
    [['kubernetes', '--namespace', 'My_Space'], /--namespace must be a Kubernetes name/],
    [['envoy-gateway', '--name', '-'], /--name must be a Kubernetes name/],
  ];
  for (const [args, problem] of problems) {
    it(`exits 1 with one line for: render ${args.join(' ')}`, async () => {
      const withConfig = args.includes('--config') ? args : [...args, '--config', config()];
      const { code, stdout, stderr } = await render(...withConfig);
      expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
      expect(stderr).to.match(/^account-authz render: .*\n$/);
      expect(stderr).to.match(problem);
    });
  }

  it('locates a problem of the configuration', async () => {
    const file = writeFixture('bad.yaml', { ...smallestConfig(), routes: [{ path: 'api' }] });
    const { code, stdout, stderr } = await render('envoy', '--config', file);
    expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
    expect(stderr).to.match(/bad\.yaml:1:\d+: routes\[0\]\.path: must start with "\/"\n$/);
  });

  it('refuses a listen with port 0, which Envoy cannot reach', async () => {
    const { code, stderr } = await render('envoy', '--config', config({ listen: '127.0.0.1:0' }));
    expect({ code, stderr }).to.deep.equal({
      code: 1,
      stderr: 'account-authz render: listen of the configuration must have a port other than 0 (any free port)\n',
    });
  });

  it('refuses a listen that does not suit the target', async () => {
    const remote = config({ listen: '0.0.0.0:9191', listenInsecure: true });
    for (const target of ['kubernetes', 'istio']) {
      const { code, stderr } = await render(target, '--config', remote);
      expect(code).to.equal(1);
      expect(stderr).to.match(
        new RegExp(`^account-authz render: listen of the configuration must be .*, for ${target}\\n$`),
      );
    }
  });

  // render may run on another machine.
  it('does not read the files that the configuration names', async () => {
    const file = config({ 'issuers.0.caFile': '/nowhere/ca.pem' });
    expect(await render('envoy', '--config', file)).to.include({ code: 0 });
  });
});

describe('render --out', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'account-authz-out-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const into = (out: string, ...options: readonly string[]) =>
    render('envoy', '--config', config(), '--out', out, ...options);

  it('writes the printed text into a folder that it creates', async () => {
    const out = join(folder, 'a', 'b');
    expect(await into(out)).to.deep.equal({ code: 0, stdout: 'envoy.yaml\n', stderr: '' });
    const { stdout } = await render('envoy', '--config', config());
    expect(readFileSync(join(out, 'envoy.yaml'), 'utf8')).to.equal(stdout);
    expect(readdirSync(out)).to.deep.equal(['envoy.yaml']);
  });

  it('writes the files that the bootstrap refers to', async () => {
    const tls = { certFile: '/tls.crt', keyFile: '/tls.key', clientCaFile: '/ca.crt' };
    const file = config({ listen: '0.0.0.0:9191', tls });
    expect(await render('envoy', '--config', file, `--out=${folder}`)).to.include({ code: 0, stderr: '' });
    expect(readdirSync(folder)).to.deep.equal(['client-certificate.yaml', 'envoy.yaml', 'server-authority.yaml']);
  });

  it('replaces a file that render wrote', async () => {
    await into(folder);
    expect(await into(folder, '--trusted-hops', '3')).to.include({ code: 0 });
    expect(readFileSync(join(folder, 'envoy.yaml'), 'utf8')).to.include('xff_num_trusted_hops: 3');
  });

  const kept: readonly (readonly [name: string, toKeep: (made: string) => string, problem: RegExp])[] = [
    ['a file that render did not write', () => 'admin: {}\n', /was not made by render/],
    ['an empty file', () => '', /was not made by render/],
    ['a file that was edited', made => made.replace('15s', '30s'), /was edited after render made it/],
    ['a file that was truncated', made => made.slice(0, 500), /was edited after render made it/],
  ];
  for (const [name, toKeep, problem] of kept) {
    it(`exits 1 and keeps ${name}`, async () => {
      await into(folder);
      const file = join(folder, 'envoy.yaml');
      const text = toKeep(readFileSync(file, 'utf8'));
      writeFileSync(file, text);
      const { code, stdout, stderr } = await into(folder);
      expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
      expect(stderr).to.match(problem);
      expect(stderr).to.match(/^account-authz render: --out: .*envoy\.yaml .*\n$/);
      expect(readFileSync(file, 'utf8')).to.equal(text);
      expect(readdirSync(folder)).to.deep.equal(['envoy.yaml']);
    });
  }

  it('replaces an edited file with --force, and never one that render did not make', async () => {
    await into(folder);
    const file = join(folder, 'envoy.yaml');
    const made = readFileSync(file, 'utf8');
    writeFileSync(file, made.replace('15s', '30s'));
    expect(await into(folder, '--force')).to.include({ code: 0, stderr: '' });
    expect(readFileSync(file, 'utf8')).to.equal(made);
    writeFileSync(file, 'admin: {}\n');
    expect(await into(folder, '--force')).to.include({ code: 1 });
    expect(readFileSync(file, 'utf8')).to.equal('admin: {}\n');
  });

  it('writes no file when one of them must be kept', async () => {
    const tls = { certFile: '/tls.crt', keyFile: '/tls.key' };
    writeFileSync(join(folder, 'server-authority.yaml'), 'mine');
    const { code } = await render('envoy', '--config', config({ listen: '0.0.0.0:9191', tls }), '--out', folder);
    expect(code).to.equal(1);
    expect(existsSync(join(folder, 'envoy.yaml'))).to.equal(false);
  });

  it('exits 1 with one line for an unusable folder', async () => {
    writeFileSync(join(folder, 'file'), '');
    mkdirSync(join(folder, 'envoy.yaml'));
    for (const out of [join(folder, 'file'), folder]) {
      const { code, stderr } = await into(out);
      expect(code).to.equal(1);
      expect(stderr).to.match(/^account-authz render: --out: .*\n$/);
    }
  });
});
