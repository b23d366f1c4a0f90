// Bootstraps that Envoy accepts, each bent so that it opens a hole: what the lint says of each, a rule or `not judged`.
import { testCertificate } from '../../../lab/test-certificate.ts';
import { methodOverridePattern } from '../../../src/toolkit/envoy-settings/method-override.ts';
import { open, perRoute, publicRoute, set } from './mistakes/planting.ts';
import { filter, type Part, type Shipped, shipped, typed } from './shipped.ts';

type Hole = readonly [says: string, bend: (parts: Shipped) => unknown];

const ext = (type: string, fields: Part = {}): Part => ({ name: type, typed_config: typed(`envoy.${type}`, fields) });
const tcp = (address: string, port: number): Part => ({ socket_address: { address, port_value: port } });
const hosts = (...addresses: Part[]): Part => [{ lb_endpoints: addresses.map(address => ({ endpoint: { address } })) }];
const clusterTo = (name: string, address: Part, fields: Part = {}): Part => ({
  name,
  type: 'STATIC',
  connect_timeout: '1s',
  load_assignment: { cluster_name: name, endpoints: hosts(address) },
  ...fields,
});
const api = tcp('127.0.0.1', 8000);
const adminAddress = tcp('127.0.0.1', 9901);
const unchecked = perRoute({ disabled: true });
const connect = { match: { connect_matcher: {} } };
const tunnel = (p: Shipped, fields: Part = unchecked): void => {
  set(p.manager, { upgrade_configs: [{ upgrade_type: 'CONNECT' }] });
  const route = { cluster: 'upstream', upgrade_configs: [{ upgrade_type: 'CONNECT', connect_config: {} }] };
  p.routes.unshift({ ...connect, route, ...fields });
};
const add = (key: string, value: string, append_action = 'OVERWRITE_IF_EXISTS_OR_ADD'): Part => ({
  header: { key, value },
  append_action,
});
const rewrite = { pattern: { regex: '^/static/' }, substitution: '/api/subscriptions/' };

const subtree = { safe_regex: { regex: '/static(/[A-Za-z0-9._~:@-]+)*/?' } };
const overrides = { name: ':path', string_match: { safe_regex: { regex: methodOverridePattern } } };
/** A public subtree, as `render` writes it but for these fields. */
const publicly = (p: Shipped, fields: Part, route: Part = {}): void => {
  set(p.config, open('/static/*', 'GET'));
  const plain = publicRoute(subtree, 'GET');
  const refused = { match: { ...subtree, headers: [overrides] }, direct_response: { status: 404 }, ...unchecked };
  p.routes.unshift(refused, { ...plain, ...fields, route: { ...plain.route, ...route } });
};
/** An unchecked route to another cluster. */
const other = (p: Shipped, cluster: Part, route: Part = {}): void => {
  p.root.static_resources.clusters.push(cluster);
  p.routes.unshift({ match: { prefix: '/other' }, route: { cluster: cluster.name, ...route }, ...unchecked });
};
/** An unchecked route to the API at an address that the file does not call so. */
const replica = (p: Shipped, match: Part): void => {
  other(p, clusterTo('replica', tcp('10.0.0.9', 8000)));
  set(p.routes[0], { match });
};
const originalDst = (config?: Part): Part => ({
  name: 'x',
  type: 'ORIGINAL_DST',
  lb_policy: 'CLUSTER_PROVIDED',
  connect_timeout: '1s',
  original_dst_lb_config: config,
});
const before = (p: Shipped, type: string, fields: Part = {}): unknown => p.filters.unshift(filter(type, fields));
const after = (p: Shipped, type: string, fields: Part = {}): unknown => p.filters.splice(3, 0, filter(type, fields));
const overHttp = (fields: Part): Part => ({
  http_service: { server_uri: { uri: 'http://x', cluster: 'upstream', timeout: '1s' }, ...fields },
});
const overGrpc = { grpc_service: { envoy_grpc: { cluster_name: 'upstream' } } };
const early = (p: Shipped, append: Part): unknown => p.early.push({ append });
const listener = (p: Shipped, ...filters: Part[]): unknown =>
  p.root.static_resources.listeners.push({
    name: 'second',
    address: tcp('0.0.0.0', 8090),
    filter_chains: [{ filters }],
  });
const proxy = (fields: Part): Part =>
  ext('extensions.filters.network.tcp_proxy.v3.TcpProxy', { stat_prefix: 's', ...fields });
export const get = { headers: [{ name: ':method', string_match: { exact: 'GET' } }] };
/** A listener of its own, as control planes have one. */
export const metrics = (p: Shipped, match: Part, manager: Part, address = '0.0.0.0'): void => {
  const routes = [{ match, route: { cluster: 'admin' } }];
  p.root.static_resources.clusters.push(clusterTo('admin', adminAddress));
  listener(
    p,
    ext('extensions.filters.network.http_connection_manager.v3.HttpConnectionManager', {
      stat_prefix: 'm',
      route_config: { virtual_hosts: [{ name: 'm', domains: ['*'], routes }] },
      http_filters: [p.filters.at(-1)],
      ...manager,
    }),
  );
  set(p.root.static_resources.listeners.at(-1), { address: tcp(address, 19001) });
};
const log = (p: Shipped, format: Part): unknown =>
  p.manager.access_log.push(ext('extensions.access_loggers.stream.v3.StderrAccessLog', { log_format: format }));
const layer = (p: Shipped, fields: Part): unknown => p.root.layered_runtime.layers.push({ name: 'more', ...fields });
const metadata = { metadata_namespace: 'envoy.filters.http.ext_authz', key: 'decision' };
const xds = {
  resource_api_version: 'V3',
  api_config_source: {
    api_type: 'DELTA_GRPC',
    transport_api_version: 'V3',
    grpc_services: [{ envoy_grpc: { cluster_name: 'upstream' } }],
  },
};
const protocolOptions = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
const healthCheck = (http_health_check: Part): Part => ({
  health_checks: [{ timeout: '1s', interval: '5s', unhealthy_threshold: 2, healthy_threshold: 2, http_health_check }],
});
const upstreamTls = (fields: Part): Part =>
  ext('extensions.transport_sockets.tls.v3.UpstreamTlsContext', { common_tls_context: fields });
const { cert: authority } = testCertificate({ isAuthority: true });
const named = (regex: string): Part => ({
  trusted_ca: { inline_string: authority },
  match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { safe_regex: { regex } } }],
});
const aggregate = (...clusters: string[]): Part => ({
  name: 'all',
  connect_timeout: '1s',
  lb_policy: 'CLUSTER_PROVIDED',
  cluster_type: {
    name: 'envoy.clusters.aggregate',
    typed_config: typed('envoy.extensions.clusters.aggregate.v3.ClusterConfig', { clusters }),
  },
});

export const holes: Readonly<Record<string, Readonly<Record<string, Hole>>>> = {
  'a public route that serves something else': {
    'rewrites its path by expression': ['path-rewrite', p => publicly(p, {}, { regex_rewrite: rewrite })],
    'rewrites its prefix': ['path-rewrite', p => publicly(p, {}, { prefix_rewrite: '/api/subscriptions' })],
    'takes the host from a header': ['host-rewrite', p => publicly(p, {}, { host_rewrite_header: 'x-to' })],
    'follows redirects of the service': ['internal-redirect', p => publicly(p, {}, { internal_redirect_policy: {} })],
    'sets an identity header': [
      'owned-header-set',
      p => publicly(p, { request_headers_to_add: [add('x-auth-uid', 'root')] }),
    ],
    'sets an account header': [
      'owned-header-set',
      p => publicly(p, { request_headers_to_add: [add('x_account_id', 'acme')] }),
    ],
    'sets an override': [
      'owned-header-set',
      p => publicly(p, { request_headers_to_add: [add('x-original-url', '/api')] }),
    ],
    'keeps the token': ['owned-headers-kept', p => publicly(p, unchecked)],
    'covers more than `public`': ['open-route', p => publicly(p, { match: { prefix: '/stat' } })],
    'takes more methods': ['open-route', p => publicly(p, { match: { path_separated_prefix: '/static' } })],
    'chooses its cluster by header': [
      'open-route',
      p => other(p, clusterTo('x', tcp('10.0.0.9', 80)), { cluster: undefined, cluster_header: 'x-to' }),
    ],
  },
  'headers before the check': {
    'an override appended after its removal': [
      'owned-header-set',
      p => early(p, add('x-original-url', '/', 'APPEND_IF_EXISTS_OR_ADD')),
    ],
    'a token for who has none': ['owned-header-set', p => early(p, add('authorization', 'Bearer x', 'ADD_IF_ABSENT'))],
    'an account from another header': ['owned-header-set', p => early(p, add('x-account-id', '%REQ(x-tenant)%'))],
    'an identity header by a filter': [
      'owned-header-set',
      p =>
        before(p, 'header_mutation.v3.HeaderMutation', {
          mutations: { request_mutations: [{ append: add('x-auth-role', 'admin') }] },
        }),
    ],
    'the decision from a header': [
      'owned-metadata-set',
      p =>
        before(p, 'header_to_metadata.v3.Config', {
          request_rules: [{ header: 'x-d', on_header_present: metadata, remove: false }],
        }),
    ],
    'the decision from the body': [
      'owned-metadata-set',
      p =>
        before(p, 'json_to_metadata.v3.JsonToMetadata', {
          request_rules: { rules: [{ selectors: [{ key: 'd' }], on_present: metadata }] },
        }),
    ],
    'the decision as a constant': [
      'owned-metadata-set',
      p =>
        before(p, 'set_metadata.v3.Config', {
          metadata: [{ metadata_namespace: 'envoy.filters.http.ext_authz', value: { decision: 'allow' } }],
        }),
    ],
    'a query parameter': [
      'not judged',
      p =>
        before(p, 'header_mutation.v3.HeaderMutation', {
          mutations: { query_parameter_mutations: [{ append: { record: { key: 'account_id', value: 'acme' } } }] },
        }),
    ],
    'a script': [
      'not judged',
      p => before(p, 'lua.v3.Lua', { default_source_code: { inline_string: 'function envoy_on_request(h) end' } }),
    ],
    'an external processor': [
      'not judged',
      p => before(p, 'ext_proc.v3.ExternalProcessor', { grpc_service: { envoy_grpc: { cluster_name: 'upstream' } } }),
    ],
    'a transcoder that changes the path': ['not judged', p => before(p, 'grpc_http1_bridge.v3.Config')],
    'a filter state': [
      'not judged',
      p =>
        before(p, 'set_filter_state.v3.Config', {
          on_request_headers: [
            {
              object_key: 'envoy.tcp_proxy.cluster',
              format_string: { text_format_source: { inline_string: 'upstream' } },
            },
          ],
        }),
    ],
    'another authorization service': ['not judged', p => before(p, 'ext_authz.v3.ExtAuthz', overHttp({}))],
    'another one that writes metadata': ['owned-metadata-set', p => before(p, 'ext_authz.v3.ExtAuthz', overGrpc)],
    'another one that may not': [
      'not judged',
      p => before(p, 'ext_authz.v3.ExtAuthz', { ...overGrpc, enable_dynamic_metadata_ingestion: false }),
    ],
    'another one that writes headers of its answers into metadata': [
      'owned-metadata-set',
      p =>
        before(
          p,
          'ext_authz.v3.ExtAuthz',
          overHttp({ authorization_response: { dynamic_metadata_from_headers: { patterns: [{ exact: 'x' }] } } }),
        ),
    ],
    'another one that a route turns on': [
      'owned-metadata-set',
      p => {
        p.filters.unshift({ ...filter('ext_authz.v3.ExtAuthz', overGrpc), disabled: true });
        p.routes[0].typed_per_filter_config = {
          ...p.routes[0].typed_per_filter_config,
          [p.filters[0].name]: typed('envoy.config.route.v3.FilterConfig', { config: {} }),
        };
      },
    ],
    'another one that no route turns on': [
      'not judged',
      p => p.filters.unshift({ ...filter('ext_authz.v3.ExtAuthz', overGrpc), disabled: true }),
    ],
    'another one that a route asks over gRPC': [
      'owned-metadata-set',
      p => {
        before(p, 'ext_authz.v3.ExtAuthz', overHttp({}));
        const own = typed('ext_authz.v3.ExtAuthzPerRoute', { check_settings: overGrpc });
        set(p.routes[0], { typed_per_filter_config: { [p.filters[0].name]: own } });
      },
    ],
  },
  'after the check': {
    'a script': [
      'filter-after-check',
      p => after(p, 'lua.v3.Lua', { default_source_code: { inline_string: 'function envoy_on_request(h) end' } }),
    ],
    'an identity header by a filter': [
      'owned-header-set',
      p =>
        after(p, 'header_mutation.v3.HeaderMutation', {
          mutations: { request_mutations: [{ append: add('x-auth-uid', 'root') }] },
        }),
    ],
    'a header of the route configuration': [
      'owned-header-set',
      p => set(p.manager.route_config, { request_headers_to_add: [add('x-auth-acc', '%REQ(x-account-id)%')] }),
    ],
    'a removal on the virtual host': [
      'owned-header-removed',
      p => set(p.host, { request_headers_to_remove: ['x-auth-acc'] }),
    ],
    'a rewritten path': ['path-rewrite', p => set(p.routes[0].route, { regex_rewrite: rewrite })],
    'internal redirects': ['internal-redirect', p => set(p.routes[0].route, { internal_redirect_policy: {} })],
    'a host from the request': ['host-rewrite', p => set(p.routes[0].route, { host_rewrite_header: 'x-to' })],
    'a cluster from the request': [
      'upstream-by-request',
      p => set(p.routes[0].route, { cluster: undefined, cluster_header: 'x-to' }),
    ],
    'a mirror elsewhere': [
      'not judged',
      p => {
        p.root.static_resources.clusters.push(clusterTo('copy', tcp('10.0.0.9', 80)));
        set(p.routes[0].route, { request_mirror_policies: [{ cluster: 'copy' }] });
      },
    ],
    'a cleared route cache': ['clear-route-cache', p => set(p.check, { clear_route_cache: true })],
  },
  'the check': {
    'fails open': ['failure-mode-allow', p => set(p.check, { failure_mode_allow: true })],
    'is a trial': ['shadow-mode', p => set(p.check, { shadow_mode: true })],
    'is off for a route': ['unchecked-route', p => set(p.routes[0], unchecked)],
    'is off for a virtual host': ['unchecked-route', p => set(p.host, unchecked)],
    'is asked for a share': [
      'conditional-check',
      p => set(p.check, { filter_enabled: { default_value: { numerator: 50 } } }),
    ],
    'sees no account header': [
      'header-hidden',
      p => set(p.check, { allowed_headers: { patterns: [{ exact: 'authorization' }] } }),
    ],
    'asks another address': [
      'authz-address',
      p => set(p.authz.load_assignment, { endpoints: hosts(tcp('127.0.0.1', 9192)) }),
    ],
    'asks another address too': [
      'not judged',
      p => set(p.authz.load_assignment, { endpoints: hosts(tcp('127.0.0.1', 9191), tcp('127.0.0.1', 9192)) }),
    ],
    'has no guard': ['guard-missing', p => p.filters.splice(2, 1)],
    'has a guard in the shadow': [
      'guard-missing',
      p => set(p.filters[2].typed_config, { shadow_rules: p.filters[2].typed_config.rules, rules: undefined }),
    ],
    'has a guard that is off for a route': [
      'guard-missing',
      p => set(p.routes[0], { typed_per_filter_config: { [p.filters[2].name]: typed('rbac.v3.RBACPerRoute') } }),
    ],
    'is left out of an upgrade': [
      'unchecked-listener',
      p => set(p.manager, { upgrade_configs: [{ upgrade_type: 'websocket', filters: [p.filters.at(-1)] }] }),
    ],
    'does not see CONNECT': ['not judged', p => set(p.manager, { upgrade_configs: [{ upgrade_type: 'CONNECT' }] })],
  },
  'another way to the API': {
    'an aggregate cluster': ['open-route', p => other(p, aggregate('upstream'))],
    'its address by another name': [
      'open-route',
      p => other(p, clusterTo('x', tcp('localhost', 8000), { type: 'STRICT_DNS' })),
    ],
    'its address on another loopback': ['open-route', p => other(p, clusterTo('x', tcp('127.0.0.2', 8000)))],
    'its address as IPv6': ['open-route', p => other(p, clusterTo('x', tcp('::ffff:127.0.0.1', 8000)))],
    'the unspecified address': ['open-route', p => other(p, clusterTo('x', tcp('0.0.0.0', 8000)))],
    'a second address of an endpoint': [
      'open-route',
      p =>
        other(
          p,
          clusterTo('x', tcp('10.0.0.9', 80), {
            load_assignment: {
              cluster_name: 'x',
              endpoints: [
                {
                  lb_endpoints: [
                    {
                      endpoint: {
                        address: tcp('10.0.0.9', 80),
                        additional_addresses: [{ address: tcp('127.0.0.1', 8000) }],
                      },
                    },
                  ],
                },
              ],
            },
          }),
        ),
    ],
    'one of several weights': [
      'open-route',
      p =>
        other(p, clusterTo('x', tcp('10.0.0.9', 80)), {
          cluster: undefined,
          weighted_clusters: {
            clusters: [
              { name: 'x', weight: 9 },
              { name: 'upstream', weight: 1 },
            ],
          },
        }),
    ],
    'a mirror': [
      'open-route',
      p => other(p, clusterTo('x', tcp('10.0.0.9', 80)), { request_mirror_policies: [{ cluster: 'upstream' }] }),
    ],
    'one account among alternatives, at another address': [
      'unchecked-route',
      p => replica(p, { safe_regex: { regex: '/ping|/api/subscriptions/accounts/acme' } }),
    ],
    'a query, at another address': [
      'unchecked-route',
      p => replica(p, { prefix: '/api', headers: [{ name: ':path', string_match: { suffix: '?debug=1' } }] }),
    ],
    'its service by a longer name': [
      'open-route',
      p => {
        set(p.upstream, { type: 'STRICT_DNS', load_assignment: clusterTo('x', tcp('api', 8000)).load_assignment });
        other(p, clusterTo('x', tcp('api.shop.svc', 8000), { type: 'STRICT_DNS' }));
      },
    ],
    'a TCP proxy': ['unchecked-listener', p => listener(p, proxy({ cluster: 'upstream' }))],
    'a TCP proxy with weights': [
      'unchecked-listener',
      p => listener(p, proxy({ weighted_clusters: { clusters: [{ name: 'upstream', weight: 1 }] } })),
    ],
    'a second listener': [
      'unchecked-listener',
      p =>
        listener(
          p,
          ext('extensions.filters.network.http_connection_manager.v3.HttpConnectionManager', {
            ...p.manager,
            http_filters: [p.filters.at(-1)],
          }),
        ),
    ],
    'a filter chain': [
      'unchecked-listener',
      p =>
        p.listener.filter_chains.push({
          filter_chain_match: { server_names: ['x'] },
          filters: [
            ext('extensions.filters.network.http_connection_manager.v3.HttpConnectionManager', {
              ...p.manager,
              http_filters: [p.filters.at(-1)],
            }),
          ],
        }),
    ],
    'a Redis proxy': [
      'not judged',
      p =>
        listener(
          p,
          ext('extensions.filters.network.redis_proxy.v3.RedisProxy', {
            stat_prefix: 'r',
            settings: { op_timeout: '1s' },
            prefix_routes: { catch_all_route: { cluster: 'upstream' } },
          }),
        ),
    ],
    'a TCP proxy back to the listener': [
      'way-inside',
      p => {
        p.root.static_resources.clusters.push(clusterTo('self', tcp('127.0.0.1', 8080)));
        listener(p, proxy({ cluster: 'self' }));
      },
    ],
    'a tunnel without a check': ['tunnel', p => tunnel(p)],
    'a tunnel with it': ['tunnel', p => tunnel(p, { typed_per_filter_config: {} })],
    'a tunnel for datagrams over HTTP/2': [
      'tunnel',
      p => {
        set(p.manager, {
          http2_protocol_options: { allow_connect: true },
          upgrade_configs: [{ upgrade_type: 'CONNECT-UDP' }],
        });
        set(p.routes[0].route, { upgrade_configs: [{ upgrade_type: 'CONNECT-UDP', connect_config: {} }] });
      },
    ],
    'a tunnel of a second listener': [
      'tunnel',
      p => {
        const { manager, routes } = shipped();
        listener(
          p,
          ext('extensions.filters.network.http_connection_manager.v3.HttpConnectionManager', {
            ...manager,
            http_filters: [p.filters.at(-1)],
            upgrade_configs: [{ upgrade_type: 'CONNECT' }],
            route_config: { virtual_hosts: [{ name: 'a', domains: ['*'], routes: [{ ...routes[0], ...connect }] }] },
          }),
        );
      },
    ],
    'a service of a control plane': [
      'not judged',
      p => other(p, { name: 'x', type: 'EDS', connect_timeout: '1s', eds_cluster_config: { eds_config: xds } }),
    ],
    'the original destination': ['not judged', p => other(p, originalDst())],
    'a destination by header': ['open-route', p => other(p, originalDst({ use_http_header: true }))],
  },
  'a way to the admin interface or to account-authz': {
    'a route': ['way-inside', p => other(p, clusterTo('x', adminAddress))],
    'a route that looks like metrics': [
      'way-inside',
      p => {
        other(p, clusterTo('x', adminAddress));
        set(p.routes[0], { match: { prefix: '/stats/prometheus' }, route: { cluster: 'x', prefix_rewrite: '/' } });
      },
    ],
    'longer paths that begin like metrics': [
      'way-inside',
      p => metrics(p, { prefix: '/stats/prometheus', ...get }, {}),
    ],
    'whole segments under metrics': [
      'way-inside',
      p => metrics(p, { path_separated_prefix: '/stats/prometheus', ...get }, { normalize_path: true }),
    ],
    'metrics by any method': ['way-inside', p => metrics(p, { path: '/stats/prometheus' }, { normalize_path: true })],
    'metrics as they came': ['way-inside', p => metrics(p, { path: '/stats/prometheus', ...get }, {})],
    'the configuration, for other machines': [
      'way-inside',
      p => metrics(p, { path: '/config_dump', ...get }, { normalize_path: true }),
    ],
    'what stops Envoy': ['way-inside', p => metrics(p, { path: '/quitquitquit', ...get }, {}, '127.0.0.1')],
    'an aggregate cluster': [
      'way-inside',
      p => {
        p.root.static_resources.clusters.push(clusterTo('x', adminAddress));
        other(p, aggregate('x'));
      },
    ],
    'a mirror': [
      'way-inside',
      p => {
        p.root.static_resources.clusters.push(clusterTo('x', adminAddress));
        set(p.routes[0].route, { request_mirror_policies: [{ cluster: 'x' }] });
      },
    ],
    'another host of the API': [
      'way-inside',
      p => set(p.upstream.load_assignment, { endpoints: hosts(api, adminAddress) }),
    ],
    'a route to account-authz on another machine': [
      'way-inside',
      p => {
        set(p.config, { listen: '0.0.0.0:9191' });
        set(p.authz, { type: 'STRICT_DNS', load_assignment: clusterTo('x', tcp('authz.test', 9191)).load_assignment });
        other(p, clusterTo('x', tcp('authz.test', 9192), { type: 'STRICT_DNS' }));
      },
    ],
    'a TCP proxy to account-authz': ['way-inside', p => listener(p, proxy({ cluster: 'account-authz' }))],
    'its port open to everybody': ['admin-exposed', p => set(p.root.admin, { address: tcp('0.0.0.0', 9901) })],
  },
  'the token in a log, a trace or an answer': {
    'a text log': ['shown-token', p => log(p, { text_format_source: { inline_string: '%REQ(x?Authorization):9%' } })],
    'a formatter': [
      'shown-token',
      p =>
        log(p, {
          text_format_source: { inline_string: "%CEL(request.headers['authorization'])%" },
          formatters: [ext('extensions.formatter.cel.v3.Cel')],
        }),
    ],
    'a log of the listener': [
      'shown-token',
      p =>
        set(p.listener, {
          access_log: [
            ext('extensions.access_loggers.stream.v3.StderrAccessLog', {
              log_format: { json_format: { t: '%REQ(authorization)%' } },
            }),
          ],
        }),
    ],
    'a log over gRPC': [
      'shown-token',
      p =>
        p.manager.access_log.push(
          ext('extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig', {
            common_config: {
              log_name: 'l',
              transport_api_version: 'V3',
              grpc_service: { envoy_grpc: { cluster_name: 'upstream' } },
            },
            additional_request_headers_to_log: ['authorization'],
          }),
        ),
    ],
    'an echo': ['shown-token', p => set(p.host, { response_headers_to_add: [add('x-echo', '%REQ(authorization)%')] })],
    'a copy for the service': [
      'shown-token',
      p => set(p.host, { request_headers_to_add: [add('x-copy', '%REQ(authorization)%')] }),
    ],
    'a tag of a trace': [
      'shown-token',
      p => set(p.manager, { tracing: { custom_tags: [{ tag: 't', request_header: { name: 'authorization' } }] } }),
    ],
    'a tag of a route': [
      'shown-token',
      p => set(p.routes[0], { tracing: { custom_tags: [{ tag: 't', request_header: { name: 'Authorization' } }] } }),
    ],
    'the body of a local reply': [
      'shown-token',
      p =>
        set(p.manager, {
          local_reply_config: { body_format: { text_format_source: { inline_string: '%REQ(authorization)%' } } },
        }),
    ],
    'a tap': ['shown-token', p => before(p, 'tap.v3.Tap', { common_config: { admin_config: { config_id: 'x' } } })],
  },
  'what Envoy takes from elsewhere or while it runs': {
    'a runtime from disk': ['not judged', p => layer(p, { disk_layer: { symlink_root: '/srv', subdirectory: 'x' } })],
    'a guard of the paths turned off': [
      'not judged',
      p => layer(p, { static_layer: { 'envoy.reloadable_features.reject_path_with_fragment': false } }),
    ],
    'routes of a control plane': [
      'dynamic-settings',
      p => set(p.manager, { route_config: undefined, rds: { route_config_name: 'r', config_source: xds } }),
    ],
    'virtual hosts of a control plane': [
      'dynamic-settings',
      p => set(p.manager.route_config, { vhds: { config_source: xds } }),
    ],
    'a filter of a control plane': [
      'dynamic-settings',
      p =>
        p.filters.unshift({
          name: 'x',
          config_discovery: {
            config_source: xds,
            type_urls: ['type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer'],
          },
        }),
    ],
    'another prefix of its own headers': ['not judged', p => set(p.root, { header_prefix: 'x-own' })],
    'paths as they came': ['normalize-path', p => set(p.manager, { normalize_path: false })],
    'slashes as they came': ['merge-slashes', p => set(p.manager, { merge_slashes: false })],
    'everybody as internal': [
      'not judged',
      p => set(p.manager, { internal_address_config: { cidr_ranges: [{ address_prefix: '0.0.0.0', prefix_len: 0 }] } }),
    ],
    'the certificate header of a client': [
      'not judged',
      p => set(p.manager, { forward_client_cert_details: 'ALWAYS_FORWARD_ONLY' }),
    ],
    'chunks beside a length': [
      'allow-chunked-length',
      p => set(p.manager.http_protocol_options, { allow_chunked_length: true }),
    ],
  },
  'fields that hold more than the lint used to look at': {
    'a health check of the admin interface': [
      'not judged',
      p => {
        const [{ lb_endpoints }] = p.upstream.load_assignment.endpoints;
        set(lb_endpoints[0].endpoint, { health_check_config: { port_value: 9901 } });
        set(p.upstream, healthCheck({ path: '/ready' }));
      },
    ],
    'a health check that changes something': [
      'not judged',
      p => set(p.upstream, healthCheck({ path: '/reset', method: 'POST' })),
    ],
    'a health check with a token': [
      'not judged',
      p => set(p.upstream, healthCheck({ path: '/', request_headers_to_add: [add('authorization', 'Bearer x')] })),
    ],
    'an SNI from a header': [
      'not judged',
      p =>
        set(p.upstream.typed_extension_protocol_options[protocolOptions], {
          upstream_http_protocol_options: {
            auto_sni: true,
            auto_san_validation: true,
            override_auto_sni_header: 'x-to',
          },
        }),
    ],
    'other resolvers': [
      'not judged',
      p => set(p.upstream, { type: 'STRICT_DNS', dns_resolvers: [tcp('192.0.2.1', 53)] }),
    ],
    'the original destination at a fixed port': [
      'not judged',
      p => other(p, originalDst({ upstream_port_override: 8000 })),
    ],
    'TLS to the service with any certificate': [
      'not judged',
      p =>
        set(p.upstream, {
          transport_socket: upstreamTls({ validation_context: { trust_chain_verification: 'ACCEPT_UNTRUSTED' } }),
        }),
    ],
    'TLS of version 1.0': [
      'not judged',
      p =>
        set(p.upstream, { transport_socket: upstreamTls({ tls_params: { tls_minimum_protocol_version: 'TLSv1_0' } }) }),
    ],
    'an upgrade to another protocol': [
      'not judged',
      p => set(p.manager, { upgrade_configs: [{ upgrade_type: 'spdy/3.1' }] }),
    ],
    'a guard that may be missing': ['not judged', p => set(p.filters[2], { is_optional: true })],
    'a client that chooses to be refused': [
      'not judged',
      p => before(p, 'fault.v3.HTTPFault', { abort: { header_abort: {}, percentage: { numerator: 100 } } }),
    ],
    'an action of the watchdog': [
      'not judged',
      p =>
        set(p.root, {
          watchdogs: {
            main_thread_watchdog: {
              actions: [
                {
                  event: 'MISS',
                  config: ext('extensions.watchdog.profile_action.v3.ProfileActionConfig', { profile_path: '/tmp/x' }),
                },
              ],
            },
          },
        }),
    ],
    'a listener filter of a control plane': [
      'not judged',
      p =>
        set(p.listener, {
          listener_filters: [
            {
              name: 'x',
              config_discovery: {
                config_source: xds,
                type_urls: ['type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector'],
              },
            },
          ],
        }),
    ],
    'a listener that calls itself outbound': [
      'way-inside',
      p => {
        p.root.static_resources.clusters.push(clusterTo('x', adminAddress));
        listener(p, proxy({ cluster: 'x' }));
        set(p.root.static_resources.listeners.at(-1), { traffic_direction: 'OUTBOUND' });
      },
    ],
    'listeners of a control plane by name': [
      'dynamic-settings',
      p =>
        set(p.root, { dynamic_resources: { lds_resources_locator: 'xdstp:///envoy.config.listener.v3.Listener/x' } }),
    ],
    'the original destination of any connection': [
      'not judged',
      p => {
        p.root.static_resources.clusters.push(originalDst());
        listener(p, proxy({ cluster: 'x' }));
        set(p.root.static_resources.listeners.at(-1), { use_original_dst: true });
      },
    ],
    'this machine by a name of /etc/hosts': [
      'open-route',
      p => other(p, clusterTo('x', tcp('ip6-localhost', 8000), { type: 'STRICT_DNS' })),
    ],
    'clients of a private network as internal': ['not judged', p => set(p.manager, { internal_address_config: {} })],
    'account-authz at a name': [
      'not judged',
      p =>
        set(p.authz, { type: 'STRICT_DNS', load_assignment: clusterTo('x', tcp('authz.test', 9191)).load_assignment }),
    ],
    'TLS to a service with any name': [
      'not judged',
      p => set(p.upstream, { transport_socket: upstreamTls({ validation_context: { system_root_certs: {} } }) }),
    ],
    'the original destination in lower case': [
      'not judged',
      p => other(p, { name: 'x', type: 'original_dst', lb_policy: 'CLUSTER_PROVIDED', connect_timeout: '1s' }),
    ],
    'account-authz elsewhere without TLS': [
      'authz-address',
      p =>
        set(p.authz, {
          load_assignment: clusterTo('x', tcp('10.0.0.9', 9191)).load_assignment,
          transport_socket: ext('extensions.transport_sockets.raw_buffer.v3.RawBuffer'),
        }),
    ],
    'TLS for some hosts that verifies more than that for the others': [
      'not judged',
      p =>
        set(p.upstream, {
          transport_socket_matches: [
            { name: 'x', match: { a: 'b' }, transport_socket: upstreamTls({ validation_context: named('api') }) },
          ],
          transport_socket: upstreamTls({}),
        }),
    ],
    'a secret of the file that verifies nothing': [
      'not judged',
      p => {
        set(p.root.static_resources, { secrets: [{ name: 'v', validation_context: {} }] });
        set(p.upstream, { transport_socket: upstreamTls({ validation_context_sds_secret_config: { name: 'v' } }) });
      },
    ],
    'names of a server that are all names': [
      'not judged',
      p => set(p.upstream, { transport_socket: upstreamTls({ validation_context: named('.*') }) }),
    ],
    'a redirect to plain HTTP': [
      'not judged',
      p => p.routes.unshift({ match: { prefix: '/' }, redirect: { scheme_redirect: 'http' } }),
    ],
    'a redirect to another port': [
      'not judged',
      p => p.routes.unshift({ match: { prefix: '/' }, redirect: { port_redirect: 9000 } }),
    ],
    'an admin socket for everybody': [
      'not judged',
      p => set(p.root.admin, { address: { pipe: { path: '/run/admin.sock', mode: 511 } } }),
    ],
    'route headers changed by an MCP filter': ['not judged', p => before(p, 'mcp.v3.Mcp', { clear_route_cache: true })],
  },
  'a public route, a header or a format in another shape': {
    'a method of its own': ['open-route', p => publicly(p, publicRoute(subtree, 'GET|PROPFIND'))],
    'paths outside the grammar': [
      'not judged',
      p => publicly(p, publicRoute({ path_separated_prefix: '/static' }, 'GET')),
    ],
    'a query that overrides the method': ['not judged', p => [publicly(p, {}), p.routes.shift()]],
    'such a query of who asks for it': [
      'not judged',
      p => [publicly(p, {}), p.routes[0].match.headers.push({ name: 'x', present_match: true })],
    ],
    'an upgrade': ['not judged', p => publicly(p, {}, { upgrade_configs: [{ upgrade_type: 'websocket' }] })],
    'the token, for another service': [
      'owned-headers-kept',
      p => {
        p.root.static_resources.clusters.push(clusterTo('files', tcp('10.0.0.9', 80)));
        publicly(p, unchecked, { cluster: 'files' });
      },
    ],
    trailers: [
      'trailers-kept',
      p => {
        p.filters.unshift({
          ...filter('header_mutation.v3.HeaderMutation', p.filters[0].typed_config),
          name: 'trailers',
        });
        set(p.filters[1], { typed_config: typed('header_mutation.v3.HeaderMutation') });
        publicly(p, {});
        p.routes[1].typed_per_filter_config.trailers = typed('envoy.config.route.v3.FilterConfig', { disabled: true });
      },
    ],
    'an account header of the virtual host, removed before that': [
      'owned-header-set',
      p => {
        set(p.host, { request_headers_to_add: [add('x-account-id', 'acme')] });
        publicly(p, { request_headers_to_remove: ['x-account-id'] });
      },
    ],
    'another metadata document': [
      'public-route-missing',
      p => {
        set(p.config, { protectedResource: { resource: 'https://api.example.com/subscriptions' } });
        const path = '/.well-known/oauth-protected-resource/subscriptions';
        const { route: _, ...own } = publicRoute({ path });
        p.routes.unshift({ ...own, direct_response: { status: 200, body: { inline_string: '{}' } } });
      },
    ],
    'an account header removed early': ['owned-header-removed', p => p.early.push({ remove: 'X-Account-Id' })],
    'a body that ends elsewhere': ['owned-header-set', p => early(p, add('Transfer-Encoding', 'chunked'))],
    'headers that the next hop removes': [
      'owned-header-set',
      p => set(p.routes[0], { request_headers_to_add: [add('connection', 'x-auth-acc')] }),
    ],
    'another type of a checked body': [
      'owned-header-set',
      p => set(p.routes[0], { request_headers_to_add: [add('content-type', 'application/x-www-form-urlencoded')] }),
    ],
    'an identity header set in the old way': [
      'owned-header-set',
      p => set(p.routes[0], { request_headers_to_add: [{ header: { key: 'x-auth-acc', value: 'x' }, append: false }] }),
    ],
    'an identity header removed by a route in a filter of the cluster': [
      'owned-header-removed',
      p => {
        const [options] = Object.values<Part>(p.upstream.typed_extension_protocol_options);
        options.http_filters = [filter('header_mutation.v3.HeaderMutation'), filter('upstream_codec.v3.UpstreamCodec')];
        const mutations = { request_mutations: [{ remove: 'x-auth-acc' }] };
        const own = typed('header_mutation.v3.HeaderMutationPerRoute', { mutations });
        set(p.routes[0], { typed_per_filter_config: { [options.http_filters[0].name]: own } });
      },
    ],
    'a header in base64': [
      'not judged',
      p =>
        set(p.host, { response_headers_to_add: [{ header: { key: 'a', raw_value: 'JVJFUShhdXRob3JpemF0aW9uKSU=' } }] }),
    ],
    'a format in base64': [
      'not judged',
      p => log(p, { text_format_source: { inline_bytes: 'JVJFUShhdXRob3JpemF0aW9uKSU=' } }),
    ],
    'all headers by an expression': [
      'not judged',
      p => log(p, { text_format_source: { inline_string: '%CEL(request.headers)%' } }),
    ],
    'an answer for every cache': [
      'not judged',
      p => set(p.host, { response_headers_to_add: [add('Cache-Control', 'public, max-age=600')] }),
    ],
    'an answer that is private but for a part': [
      'not judged',
      p => set(p.host, { response_headers_to_add: [add('cache-control', 'private="x", public')] }),
    ],
    'an answer without its end': ['not judged', p => set(p.host, { response_headers_to_remove: ['Expires'] })],
    'a file of a server in front': [
      'not judged',
      p => set(p.host, { response_headers_to_add: [add('x-accel-redirect', '%REQ(x-to)%')] }),
    ],
    'one answer for all pages': ['not judged', p => set(p.host, { response_headers_to_remove: ['vary'] })],
    'answers for every page': [
      'not judged',
      p =>
        before(p, 'header_mutation.v3.HeaderMutation', {
          mutations: { response_mutations: [{ append: add('access-control-allow-origin', '%REQ(origin)%') }] },
        }),
    ],
    'a redirect by a header': [
      'not judged',
      p => set(p.routes.at(-1), { response_headers_to_add: [add('location', 'https://other.example/%REQ(:path)%')] }),
    ],
  },
};
