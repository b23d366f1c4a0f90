// render envoy and envoy-parts: what a bootstrap says for a configuration and for the options.
import { expect } from 'chai';
import { parse } from 'yaml';
import { runCommand } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { version } from '../../src/package.ts';
import type { Part } from '../toolkit/lint/shipped.ts';
import { config, filesOf, managerOf, openSettings, render, rendered, routesOf } from './render-lab.ts';

const checkOf = (bootstrap: Part): Part =>
  managerOf(bootstrap).http_filters.find(({ name }: Part) => name === 'envoy.filters.http.ext_authz').typed_config;

const clusterOf = (bootstrap: Part, name: string): Part =>
  bootstrap.static_resources.clusters.find((each: Part) => each.name === name);

const addressOf = (cluster: Part): Part => cluster.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address;

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

  for (const [paths, prefixes] of [
    ['/api/orders/:account_id/* /v2/billing/*', '/api/orders /v2/billing'],
    ['/api/orders', '/api/orders'],
    ['/a/:account_id/b /a/c/*', '/a'],
    ['/a/b/* /a /ab/*', '/a /ab'],
    ['/v1/orders/* /v2/orders/*', '/v1/orders /v2/orders'],
  ] as const) {
    it(`routes ${prefixes} for ${paths}, and answers 404 elsewhere`, async () => {
      const found = routesOf(await rendered({ routes: paths.split(' ').map(path => ({ path })) }));
      expect(found.map(({ match }) => match)).to.deep.equal([
        ...prefixes.split(' ').map(path => ({ path_separated_prefix: path })),
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

  // Envoy reads YAML 1.1.
  it('quotes names that YAML 1.1 reads as booleans and numbers', async () => {
    const names = ['on', 'y', '0x1f', '1e3', '12'];
    const { stdout } = await render('envoy', '--config', config({ account: { headers: names } }));
    const check = checkOf(parse(stdout, { version: '1.1' }));
    expect(check.allowed_headers.patterns.slice(-names.length)).to.deep.equal(names.map(exact => ({ exact })));
  });

  it('allows the removal of headers that name another host with account.hosts', async () => {
    const { regex } = checkOf(await rendered(openSettings)).decoder_header_mutation_rules.allow_expression;
    for (const name of ['forwarded', 'x-forwarded-host', 'x_forwarded-host', 'x_http_host_override', 'authorization'])
      expect(name).to.match(new RegExp(regex));
    for (const name of ['host', 'x-forwarded-for', 'xx-host']) expect(name).not.to.match(new RegExp(regex));
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

  it('uses the addresses of --listen and --upstream, another machine at the same port too', async () => {
    const bootstrap = await rendered({}, '--listen', '0.0.0.0:9000', '--upstream', 'orders.default.svc:9000');
    const [listener, readiness] = bootstrap.static_resources.listeners;
    expect(listener.address.socket_address).to.deep.equal({ address: '0.0.0.0', port_value: 9000 });
    expect(readiness.address.socket_address).to.deep.equal({ address: '0.0.0.0', port_value: 8081 });
    const upstream = clusterOf(bootstrap, 'upstream');
    expect(upstream.type).to.equal('STRICT_DNS');
    expect(addressOf(upstream).socket_address).to.deep.equal({ address: 'orders.default.svc', port_value: 9000 });
  });

  it('opens as many connections to the service as clients may open', async () => {
    const bootstrap = await rendered({});
    const { max_active_downstream_connections: most } = bootstrap.overload_manager.resource_monitors[0].typed_config;
    const [limits] = clusterOf(bootstrap, 'upstream').circuit_breakers.thresholds;
    expect(limits).to.deep.equal({ max_connections: most, max_pending_requests: most, max_requests: most });
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
    const exposing = ['--cors-expose', 'X-Total-Count', '--cors-expose', 'etag'];
    const more = ['--cors-header', 'Idempotency-Key', '--cors-header', 'if-match', ...exposing];
    const extended = managerOf(await rendered(changes, ...origins, ...more)).route_config.virtual_hosts[0];
    const { allow_headers: allowed, expose_headers: exposed } =
      extended.typed_per_filter_config['envoy.filters.http.cors'];
    expect(allowed).to.equal(`${policy.allow_headers}, idempotency-key`);
    expect(policy.expose_headers).to.match(/, etag, link, location$/);
    expect(exposed).to.equal(`${policy.expose_headers}, x-total-count`);
    const names = manager.http_filters.map(({ name }: Part) => name);
    expect(names.indexOf('envoy.filters.http.cors')).to.be.below(names.indexOf('envoy.filters.http.ext_authz'));
  });

  const cors = ['--cors-origin', 'https://a.example', '--upstream-protocol', 'auto'];
  const agreeing: readonly (readonly [name: string, changes: Part, options: readonly string[]])[] = [
    ['the smallest configuration', {}, []],
    ['a Unix socket', { listen: 'unix:/run/account-authz/authz.sock' }, []],
    ['several routes', { routes: [{ path: '/a/:account_id' }, { path: '/b/*' }] }, []],
    ['a route that protects every path', { routes: [{ path: '/:account_id/*' }] }, []],
    ['other names of headers', { identityHeaders: 'x-me-', account: { headers: ['x-org-id', 'tenant'] } }, []],
    ['a forwarded token', { 'token.forward': true }, []],
    ['proxies, CORS and gRPC', {}, ['--trusted-hops', '1', ...cors]],
    ['HTTP/2 to the upstream', {}, ['--upstream-protocol', 'http2']],
    [
      'streams, sockets and several upstreams',
      { routes: [{ path: '/api/*' }] },
      '--upgrade websocket --grpc-web --upstream-protocol auto --request-timeout 5 --underscores drop --max-headers-kib 100 --listen [::]:8080 --upstream /api/b=10.0.0.1:80'.split(
        ' ',
      ),
    ],
    ['public routes, hosts and the metadata document', openSettings, []],
    ['any character below a public path', { public: [{ path: '/docs/*', characters: 'rfc3986' }] }, []],
    ['the same behind proxies, with CORS and gRPC', openSettings, ['--trusted-hops', '1', ...cors]],
  ];
  for (const [name, changes, options] of agreeing) {
    it(`passes check-config --envoy with ${name}`, async () => {
      const file = config(changes);
      const { stdout } = await render('envoy', '--config', file, ...options);
      const bootstrap = writeFixture('rendered.yaml', stdout);
      const outcome = await runCommand('check-config', ['--config', file, '--envoy', bootstrap]);
      expect(outcome).to.include({ code: 0, stderr: '' });
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

describe('render envoy-parts in another bootstrap', () => {
  const settings = { account: { headers: ['x-org-id'] } };
  const cors = ['--cors-origin', 'https://app.example.com', '--upstream-protocol', 'auto'];
  for (const [name, changes, options] of [
    ['without options', settings, []],
    [`with ${cors.join(' ')}`, settings, cors],
    ['with public routes and hosts', openSettings, cors],
    ['with a service of its own for a path', settings, [...cors, '--upstream', '/api/subscriptions/a=10.0.0.9:80']],
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
      const bootstrap = writeFixture('mine.yaml', {
        static_resources: { listeners, clusters: [parts.cluster, ...(parts.upstream_clusters ?? [])] },
      });
      const clusters = parts.routes.flatMap(({ route }: Part) => route?.cluster.match(/upstream-[0-9].*/) ?? []);
      expect(parts.upstream_clusters?.map((each: Part) => each.name) ?? []).to.have.members([...new Set(clusters)]);
      const outcome = await runCommand('check-config', ['--config', file, '--envoy', bootstrap]);
      expect(outcome).to.include({ code: 0, stderr: '' });
    });
  }
});
