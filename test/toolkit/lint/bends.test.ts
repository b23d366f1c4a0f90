// Bootstraps bent so that each could open a hole: the lint names every one, as a finding or as not judged.
import { expect } from 'chai';
import { holes } from './holes.ts';
import { perRoute, set } from './mistakes/planting.ts';
import { filter, lintAfter, type Part, type Shipped, typed } from './shipped.ts';

type Bend = (parts: Shipped) => unknown;

const open = (p: Shipped, path: string, route: Part): void => {
  set(p.config, { public: [...(p.config.public ?? []), { path, methods: ['GET'] }] });
  p.routes.unshift({
    match: { prefix: path.replace('/*', '') },
    route: { cluster: 'upstream', ...route },
    ...perRoute({ disabled: true }),
  });
};
const cluster = (p: Shipped, fields: Part): void => {
  p.root.static_resources.clusters.push({ name: 'other', connect_timeout: '1s', ...fields });
  p.routes.unshift({ match: { prefix: '/other' }, route: { cluster: 'other' }, ...perRoute({ disabled: true }) });
};
const before = (p: Shipped, type: string, fields: Part = {}): void => {
  p.filters.unshift(filter(type, fields));
};
const network = (p: Shipped, type: string, fields: Part = {}): void => {
  p.listener.filter_chains[0].filters.unshift({
    name: 'x',
    typed_config: typed(`envoy.extensions.filters.network.${type}`, fields),
  });
};
const runtime = (p: Shipped, layer: Part): void => {
  p.root.layered_runtime.layers.push({ name: 'other', ...layer });
};
const log = (p: Shipped, type: string, fields: Part): void => {
  p.manager.access_log = [{ name: 'log', typed_config: typed(`envoy.extensions.access_loggers.${type}`, fields) }];
};

const bends: Readonly<Record<string, Readonly<Record<string, Bend>>>> = {
  'what a public route serves': {
    regex_rewrite: p =>
      open(p, '/static/*', { regex_rewrite: { pattern: { regex: '.*' }, substitution: '/api/subscriptions' } }),
    prefix_rewrite: p => open(p, '/static/*', { prefix_rewrite: '/api/subscriptions' }),
    path_rewrite_policy: p => open(p, '/static/*', { path_rewrite_policy: { name: 'x' } }),
    host_rewrite_header: p => open(p, '/static/*', { host_rewrite_header: 'x-host' }),
    host_rewrite_path_regex: p => open(p, '/static/*', { host_rewrite_path_regex: {} }),
    'a mirror': p => open(p, '/static/*', { request_mirror_policies: [{ cluster: 'upstream' }] }),
    'internal redirects': p => open(p, '/static/*', { internal_redirect_policy: {} }),
    'a cluster by header': p => open(p, '/static/*', { cluster: undefined, cluster_header: 'x-to' }),
    'an inline specifier': p => open(p, '/static/*', { cluster: undefined, inline_cluster_specifier_plugin: {} }),
    'a redirect to another path': p =>
      p.routes.unshift({ match: { prefix: '/a' }, redirect: { path_redirect: '/api/subscriptions' } }),
    'a redirect by expression': p => p.routes.unshift({ match: { prefix: '/a' }, redirect: { regex_rewrite: {} } }),
    'a body from a file': p =>
      p.routes.unshift({
        match: { prefix: '/a' },
        direct_response: { status: 200, body: { filename: '/etc/passwd' } },
      }),
    'a formatted body': p =>
      p.routes.unshift({ match: { prefix: '/a' }, direct_response: { status: 200, body_format: {} } }),
  },
  'headers and metadata before the check': {
    'an early mutation that appends an override': p =>
      p.early.push({ append: { header: { key: 'x-original-url', value: '/' } } }),
    'ADD_IF_ABSENT authorization': p =>
      p.early.push({ append: { header: { key: 'authorization', value: 'x' }, append_action: 'ADD_IF_ABSENT' } }),
    'an unknown early mutation': p =>
      p.manager.early_header_mutation_extensions.push({
        name: 'x',
        typed_config: typed('envoy.extensions.http.early_header_mutation.other.v3.Other'),
      }),
    header_to_metadata: p => before(p, 'header_to_metadata.v3.Config', { request_rules: [] }),
    json_to_metadata: p => before(p, 'json_to_metadata.v3.JsonToMetadata'),
    set_metadata: p => before(p, 'set_metadata.v3.Config'),
    set_filter_state: p => before(p, 'set_filter_state.v3.Config'),
    lua: p => before(p, 'lua.v3.Lua', { default_source_code: { inline_string: 'x' } }),
    wasm: p => before(p, 'wasm.v3.Wasm'),
    ext_proc: p => before(p, 'ext_proc.v3.ExternalProcessor'),
    golang: p => before(p, 'golang.v3alpha.Config'),
    composite: p => before(p, 'composite.v3.Composite'),
    credential_injector: p => before(p, 'credential_injector.v3.CredentialInjector'),
    jwt_authn: p => before(p, 'jwt_authn.v3.JwtAuthentication'),
    oauth2: p => before(p, 'oauth2.v3.OAuth2'),
    tap: p => before(p, 'tap.v3.Tap'),
    cache: p => before(p, 'cache.v3.CacheConfig'),
    'dynamic forward proxy': p => before(p, 'dynamic_forward_proxy.v3.FilterConfig'),
    'a filter of an upgrade': p =>
      set(p.manager, { upgrade_configs: [{ upgrade_type: 'websocket', filters: [filter('lua.v3.Lua')] }] }),
    'a sanitizer of header names': p => set(p.manager, { typed_header_validation_config: { name: 'x' } }),
    'a matcher around a filter': p =>
      p.filters.unshift({ name: 'x', typed_config: typed('envoy.extensions.common.matching.v3.ExtensionWithMatcher') }),
  },
  'the check itself': {
    'version 2 of the protocol': p => set(p.check, { transport_api_version: 'V2' }),
    'a way to add error bodies': p => set(p.check, { error_response_settings: {} }),
    'context extensions per route of another service': p =>
      set(p.routes[0], perRoute({ check_settings: { http_service: {} } })),
    'mutation rules that disallow an identity header': p =>
      set(p.check.decoder_header_mutation_rules, { disallow_expression: { regex: '.*-role' } }),
    'the guard only in the shadow': p => set(p.filters[2].typed_config, { rules: undefined, shadow_rules: {} }),
    'a matcher in the guard': p => set(p.filters[2].typed_config, { rules: undefined, matcher: {} }),
  },
  'other names of an address': {
    aggregate: p =>
      cluster(p, {
        cluster_type: {
          name: 'envoy.clusters.aggregate',
          typed_config: typed('envoy.extensions.clusters.aggregate.v3.ClusterConfig', { clusters: ['upstream'] }),
        },
      }),
    subsets: p => cluster(p, { type: 'STATIC', lb_subset_config: {} }),
    'a custom cluster': p => cluster(p, { cluster_type: { name: 'envoy.clusters.dynamic_forward_proxy' } }),
    'endpoints of the API, unchecked': p => {
      cluster(p, { type: 'STATIC', load_assignment: p.upstream.load_assignment });
      set(p.routes[0], perRoute({ disabled: true }));
    },
    'a named resolver': p =>
      cluster(p, {
        type: 'STATIC',
        load_assignment: {
          endpoints: [
            {
              lb_endpoints: [
                { endpoint: { address: { socket_address: { address: 'x', resolver_name: 'y', port_value: 1 } } } },
              ],
            },
          ],
        },
      }),
    'an internal listener': p =>
      cluster(p, {
        type: 'STATIC',
        load_assignment: {
          endpoints: [
            { lb_endpoints: [{ endpoint: { address: { envoy_internal_address: { server_listener_name: 'x' } } } }] },
          ],
        },
      }),
    'a proxy protocol upstream': p =>
      cluster(p, {
        type: 'STATIC',
        transport_socket: {
          name: 'x',
          typed_config: typed('envoy.extensions.transport_sockets.http_11_proxy.v3.Http11ProxyUpstreamTransport'),
        },
      }),
    'a policy that takes the host from a header': p =>
      set(p.upstream, {
        load_balancing_policy: {
          policies: [
            {
              typed_extension_config: {
                name: 'x',
                typed_config: typed('envoy.extensions.load_balancing_policies.override_host.v3.OverrideHost'),
              },
            },
          ],
        },
      }),
    'the admin listener of account-authz': p =>
      cluster(p, {
        type: 'STATIC',
        load_assignment: {
          endpoints: [
            {
              lb_endpoints: [{ endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: 9192 } } } }],
            },
          ],
        },
      }),
    'a second authorizer on another machine': p =>
      p.authz.load_assignment.endpoints[0].lb_endpoints.push({
        endpoint: { address: { socket_address: { address: '10.9.9.9', port_value: 9191 } } },
      }),
    'the admin interface': p =>
      cluster(p, {
        type: 'STATIC',
        load_assignment: { endpoints: [{ lb_endpoints: [{ endpoint: { address: p.root.admin.address } }] }] },
      }),
    'a connection pool of its own kind': p =>
      set(p.upstream, { upstream_config: { name: 'x', typed_config: typed('envoy.extensions.upstreams.http.x') } }),
    'filters in the cluster': p =>
      set(p.upstream, {
        filters: [{ name: 'x', typed_config: typed('envoy.extensions.filters.network.wasm.v3.Wasm') }],
      }),
  },
  'other ways in': {
    'an internal listener': p => p.root.static_resources.listeners.push({ name: 'in', internal_listener: {} }),
    'an API listener': p => p.root.static_resources.listeners.push({ name: 'api', api_listener: {} }),
    'a UDP listener': p => set(p.listener, { udp_listener_config: {} }),
    'a generic proxy': p => network(p, 'generic_proxy.v3.GenericProxy'),
    'a Redis proxy': p => network(p, 'redis_proxy.v3.RedisProxy'),
    'a TCP proxy that tunnels': p => network(p, 'tcp_proxy.v3.TcpProxy', { cluster: 'upstream', tunneling_config: {} }),
    'a proxy protocol in front': p =>
      set(p.listener, {
        listener_filters: [
          { name: 'x', typed_config: typed('envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol') },
        ],
      }),
    'a matcher of filter chains': p => set(p.listener, { filter_chain_matcher: {} }),
    'route matching that ignores path parameters': p =>
      set(p.manager.route_config, { ignore_path_parameters_in_path_matching: true }),
    'HTTP/3': p => set(p.manager, { codec_type: 'HTTP3' }),
    'a matcher tree of routes': p => set(p.host, { matcher: {} }),
    'scoped routes': p => set(p.manager, { route_config: undefined, scoped_routes: {} }),
    'virtual hosts on demand': p => set(p.manager.route_config, { vhds: {} }),
    'an IP by a header': p =>
      set(p.manager, {
        original_ip_detection_extensions: [
          {
            name: 'x',
            typed_config: typed('envoy.extensions.http.original_ip_detection.custom_header.v3.CustomHeaderConfig'),
          },
        ],
      }),
    'a prefix of its own in the place of x-envoy': p => set(p.root, { header_prefix: 'x-auth' }),
    'HTTP/1.0 without a host': p =>
      set(p.manager, { http_protocol_options: { accept_http_10: true, default_host_for_http_10: 'x' } }),
    'chunked bodies beside a length': p => set(p.manager, { http_protocol_options: { allow_chunked_length: true } }),
  },
  'what reads the token': {
    'a log of it': p =>
      log(p, 'file.v3.FileAccessLog', {
        path: '/dev/stdout',
        log_format: { text_format_source: { inline_string: '%REQ(AUTHORIZATION)%' } },
      }),
    'a command that is not known': p =>
      log(p, 'file.v3.FileAccessLog', {
        path: '/dev/stdout',
        log_format: { text_format_source: { inline_string: '%COALESCE({"operators": ["authorization"]})%' } },
      }),
    'a log with a format from a file': p =>
      log(p, 'file.v3.FileAccessLog', {
        path: '/dev/stdout',
        log_format: { text_format_source: { filename: '/etc/format' } },
      }),
    'a log over gRPC': p =>
      log(p, 'grpc.v3.HttpGrpcAccessLogConfig', { additional_request_headers_to_log: ['authorization'] }),
    'a log to OpenTelemetry': p => log(p, 'open_telemetry.v3.OpenTelemetryAccessLogConfig', {}),
    'a formatter of its own': p =>
      log(p, 'stream.v3.StdoutAccessLog', {
        log_format: { text_format_source: { inline_string: "%CEL(request.headers['authorization'])%" } },
      }),
    'an echo in the answer': p =>
      set(p.host, { response_headers_to_add: [{ header: { key: 'a', value: '%REQ(authorization)%' } }] }),
    'a tag of a trace': p =>
      set(p.manager, { tracing: { custom_tags: [{ tag: 'a', request_header: { name: 'authorization' } }] } }),
    'an unknown tracer': p =>
      set(p.manager, {
        tracing: { provider: { name: 'x', typed_config: typed('envoy.config.trace.v3.DynamicOtConfig') } },
      }),
  },
  'the running Envoy': {
    'a runtime from disk': p => runtime(p, { disk_layer: { symlink_root: '/srv' } }),
    'a runtime from a control plane': p => runtime(p, { rtds_layer: {} }),
    'a feature turned off': p =>
      runtime(p, { static_layer: { 'envoy.reloadable_features.uhv_allow_malformed_url_encoding': true } }),
    'a bootstrap extension': p => set(p.root, { bootstrap_extensions: [{ name: 'envoy.wasm' }] }),
    'an unknown stats sink': p =>
      set(p.root, { stats_sinks: [{ name: 'x', typed_config: typed('envoy.extensions.stat_sinks.wasm.v3.Wasm') }] }),
    'an unknown field': p => set(p.manager, { a_field_of_a_later_envoy: true }),
  },
};

describe('bootstraps with a hole', () => {
  for (const [kind, all] of Object.entries(holes)) {
    for (const [name, [says, bend]] of Object.entries(all)) {
      it(`get ${says}: ${kind}, ${name}`, () => {
        const { problems, notJudged } = lintAfter(bend);
        const rules = problems.map(({ rule }) => rule);
        if (says !== 'not judged') expect(rules).to.include(says);
        else expect([rules, notJudged.length > 0]).to.deep.equal([[], true]);
      });
    }
  }
});

describe('bent bootstraps', () => {
  for (const [kind, all] of Object.entries(bends)) {
    it(`are named, each: ${kind}`, () => {
      const silent = Object.entries(all).filter(([, bend]) => {
        const { problems, notJudged } = lintAfter(bend);
        return problems.length + notJudged.length === 0;
      });
      expect(silent.map(([name]) => name)).to.deep.equal([]);
    });
  }

  it('finds nothing in the shipped one, and judges all of it', () => {
    expect(lintAfter(() => undefined)).to.deep.equal({ problems: [], notJudged: [] });
    const lowerCase = { type: 'static', lb_policy: 'round_robin' };
    expect(lintAfter(p => set(p.upstream, lowerCase))).to.deep.equal({ problems: [], notJudged: [] });
  });
});
