// Each planted mistake is named by its rule and by no other; each harmless change by none.
import { expect } from 'chai';
import { lintRules } from '../../src/envoy-lint/lint.ts';
import { filter, type Part, rulesAfter, type Shipped, typed } from './shipped.ts';

type Mistake = readonly [name: string, rule: string | readonly string[], edit: (parts: Shipped) => unknown];

const perRoute = (fields: Part) => ({
  typed_per_filter_config: { 'envoy.filters.http.ext_authz': typed('ext_authz.v3.ExtAuthzPerRoute', fields) },
});
const disabled = perRoute({ disabled: true });
const checkSettings = (settings: Part) => perRoute({ check_settings: settings });
const removal = {
  mutations: {
    request_mutations: [{ remove_on_match: { key_matcher: { prefix: 'X-AUTH-', ignore_case: true } } }],
  },
};
const toRemoval = (name: string) => ({ remove: name });
const set = (part: Part, fields: Part) => Object.assign(part, fields);
const remove = (part: Part, name: string) => delete part[name];
const copyOf = <T>(value: T): T => structuredClone(value);
const pathsTo = (cluster: string, ...paths: string[]) => paths.map(path => ({ match: { path }, route: { cluster } }));

/** A second listener like the first one, on another port. */
const secondListener = (parts: Shipped, edit: (listener: Part, manager: Part) => unknown) => {
  const listener = copyOf(parts.listener);
  listener.name = 'second';
  listener.address.socket_address.port_value = 8082;
  edit(listener, listener.filter_chains[0].filters[0].typed_config);
  parts.root.static_resources.listeners.push(listener);
};
const dropCheck = (manager: Part) => {
  manager.http_filters = manager.http_filters.filter((each: Part) => each.name.endsWith('router'));
};
const onlyRoutes = (manager: Part, routes: Part[]) => {
  manager.route_config.virtual_hosts[0].routes = routes;
};

const tls = { certFile: '/tls.crt', keyFile: '/tls.key' };
const upstreamTls = (fields: Part = {}) => ({
  name: 'tls',
  typed_config: typed('envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext', { common_tls_context: fields }),
});

const mistakes: readonly Mistake[] = [
  // Paths of the configuration that Envoy has not.
  [
    'a route that is only in the configuration',
    'unreachable-route',
    p => set(p.config, { routes: [...p.config.routes, { path: '/v2/billing/:account_id/*' }] }),
  ],
  [
    'a route that starts with a parameter, where Envoy knows some paths only',
    'unreachable-route',
    p => set(p.config, { routes: [...p.config.routes, { path: '/:account_id' }] }),
  ],
  [
    'a path that is spelt in another way in Envoy',
    'unreachable-route',
    p => set(p.routes[0], { match: { path_separated_prefix: '/api/subscription' } }),
  ],
  [
    'an exact path where the configuration has everything under it',
    'unreachable-route',
    p => set(p.routes[0], { match: { path: '/api/subscriptions' } }),
  ],
  ['a protected route behind the refusal of everything', 'unreachable-route', p => p.routes.reverse()],
  [
    'nothing but the control plane, for a path that only it may lead',
    'dynamic-settings',
    p => {
      set(p.root, { dynamic_resources: { lds_config: { ads: {} } } });
      set(p.config, { routes: [...p.config.routes, { path: '/v2/billing/*' }] });
    },
  ],
  // Ways around the check.
  ['a second listener without ext_authz', 'unchecked-listener', p => secondListener(p, (_, m) => dropCheck(m))],
  [
    'a second listener without ext_authz that takes any path to the service',
    'unchecked-listener',
    p =>
      secondListener(p, (_, m) => [
        dropCheck(m),
        onlyRoutes(m, [{ match: { prefix: '/' }, route: { cluster: 'upstream' } }]),
      ]),
  ],
  [
    'a listener on loopback that takes any path to the hosts of the service under another name',
    'unchecked-listener',
    p => {
      p.root.static_resources.clusters.push({ ...copyOf(p.upstream), name: 'alias' });
      secondListener(p, (listener, m) => {
        listener.address.socket_address.address = '127.0.0.1';
        dropCheck(m);
        onlyRoutes(m, [{ match: { prefix: '/' }, route: { cluster: 'alias' } }]);
      });
    },
  ],
  [
    'a default filter chain without ext_authz',
    'unchecked-listener',
    p => {
      p.listener.default_filter_chain = copyOf(p.listener.filter_chains[0]);
      dropCheck(p.listener.default_filter_chain.filters[0].typed_config);
    },
  ],
  [
    'a second filter chain without ext_authz',
    'unchecked-listener',
    p => {
      p.listener.filter_chains.push(copyOf(p.listener.filter_chains[0]));
      dropCheck(p.listener.filter_chains[1].filters[0].typed_config);
    },
  ],
  ['the only listener without ext_authz', 'unchecked-listener', p => dropCheck(p.manager)],
  [
    'a listener that forwards bytes to the service',
    'unchecked-listener',
    p =>
      secondListener(p, listener => {
        listener.filter_chains[0].filters = [
          {
            name: 'tcp',
            typed_config: typed('envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy', { cluster: 'upstream' }),
          },
        ];
      }),
  ],
  [
    'an upgrade with a chain without ext_authz',
    'unchecked-upgrade',
    p => set(p.manager, { upgrade_configs: [{ upgrade_type: 'websocket', filters: [p.filters.at(-1)] }] }),
  ],
  ['a disabled protected route', 'unchecked-route', p => set(p.routes[0], disabled)],
  ['a disabled virtual host', 'unchecked-route', p => set(p.host, disabled)],
  ['a disabled route configuration', 'unchecked-route', p => set(p.manager.route_config, disabled)],
  [
    'a disabled weighted cluster',
    'unchecked-route',
    p =>
      set(p.routes[0], {
        route: {
          weighted_clusters: {
            clusters: [
              { name: 'upstream', weight: 90 },
              { name: 'upstream', weight: 10, ...disabled },
            ],
          },
        },
      }),
  ],
  [
    'a route on which the filter is turned off by FilterConfig',
    'unchecked-route',
    p =>
      set(p.routes[0], {
        typed_per_filter_config: {
          'envoy.filters.http.ext_authz': typed('envoy.config.route.v3.FilterConfig', { disabled: true }),
        },
      }),
  ],
  [
    'a route with a disabled ExtAuthzPerRoute inside a FilterConfig',
    'unchecked-route',
    p =>
      set(p.routes[0], {
        typed_per_filter_config: {
          'envoy.filters.http.ext_authz': typed('envoy.config.route.v3.FilterConfig', {
            config: typed('ext_authz.v3.ExtAuthzPerRoute', { disabled: true }),
          }),
        },
      }),
  ],
  ['a filter that is off in its chain', 'unchecked-route', p => set(p.filters[1], { disabled: true })],
  [
    'a disabled route for one path under the protected ones',
    'unchecked-route',
    p =>
      p.routes.unshift({ match: { path: '/api/subscriptions/health' }, route: { cluster: 'upstream' }, ...disabled }),
  ],
  [
    'a disabled route whose regex reaches a protected path',
    ['unchecked-route', 'unjudged-route'],
    p =>
      p.routes.unshift({
        match: { safe_regex: { regex: '/api/[a-z]+/[0-9]{4}/status' } },
        route: { cluster: 'upstream' },
        ...disabled,
      }),
  ],
  [
    'a disabled route whose template reaches a protected path',
    'unchecked-route',
    p => p.routes.unshift({ match: byTemplate('/api/*/{id}/status'), route: { cluster: 'upstream' }, ...disabled }),
  ],
  [
    'a disabled route whose template ends in ** above a protected path',
    'unchecked-route',
    p => p.routes.unshift({ match: byTemplate('/api/{rest=**}'), route: { cluster: 'upstream' }, ...disabled }),
  ],
  [
    'the protected paths by a regex',
    'unjudged-route',
    p => set(p.routes[0], { match: { safe_regex: { regex: '/api/subscriptions(/.*)?' } } }),
  ],
  [
    'a route by a template that is more than whole segments',
    'unjudged-route',
    p => p.routes.unshift({ match: byTemplate('/healthz-{id}'), route: { cluster: 'upstream' } }),
  ],
  [
    'a disabled route of another case that takes the protected path too',
    'unchecked-route',
    p =>
      p.routes.unshift({
        match: { prefix: '/API/Subscriptions', case_sensitive: false },
        route: { cluster: 'upstream' },
        ...disabled,
      }),
  ],
  [
    'a disabled route under a condition that the client fulfils',
    'unchecked-route',
    p =>
      p.routes.unshift({
        match: { prefix: '/', headers: [{ name: 'x-debug', present_match: true }] },
        route: { cluster: 'upstream' },
        ...disabled,
      }),
  ],
  [
    'a checked route that leaves the protected path itself to a disabled one',
    'unchecked-route',
    p => {
      p.routes.splice(0, 2, { match: { prefix: '/api/subscriptions/' }, route: { cluster: 'upstream' } });
      p.routes.push({ match: { prefix: '/' }, route: { cluster: 'website' }, ...disabled });
    },
  ],
  [
    'a disabled route in a second virtual host',
    'unchecked-route',
    p =>
      p.manager.route_config.virtual_hosts.push({
        name: 'internal',
        domains: ['internal.example.com'],
        routes: [{ match: { prefix: '/' }, route: { cluster: 'upstream' }, ...disabled }],
      }),
  ],
  [
    'everything else unchecked to the same service',
    'unchecked-look-alike',
    p => {
      remove(p.routes[1], 'direct_response');
      set(p.routes[1], { route: { cluster: 'upstream' } });
    },
  ],
  [
    'a matcher around ext_authz',
    'conditional-check',
    p =>
      set(p.filters[1], {
        typed_config: typed('envoy.extensions.common.matching.v3.ExtensionWithMatcher', {
          extension_config: { name: 'x', typed_config: p.check },
          xds_matcher: {},
        }),
      }),
  ],
  ['CONNECT', 'connect-upgrade', p => set(p.manager, { upgrade_configs: [{ upgrade_type: 'CONNECT' }] })],
  [
    'CONNECT on a route',
    'connect-upgrade',
    p =>
      p.routes.unshift({
        match: { connect_matcher: {} },
        route: { cluster: 'upstream', upgrade_configs: [{ upgrade_type: 'connect', connect_config: {} }] },
      }),
  ],
  [
    'the admin interface for everybody',
    'admin-exposed',
    p => set(p.root.admin.address.socket_address, { address: '0.0.0.0' }),
  ],
  ['the admin interface on ::', 'admin-exposed', p => set(p.root.admin.address.socket_address, { address: '::' })],
  [
    'a bootstrap that has nothing to do with the service',
    'nothing-checked',
    p => [dropCheck(p.manager), onlyRoutes(p.manager, pathsTo('website', '/index.html'))],
  ],
  ['a bootstrap without listeners', 'nothing-checked', p => set(p.root.static_resources, { listeners: [] })],
  [
    'routes from a control plane',
    'dynamic-settings',
    p => [remove(p.manager, 'route_config'), set(p.manager, { rds: {} })],
  ],
  [
    'listeners from a control plane',
    'dynamic-settings',
    p => set(p.root, { dynamic_resources: { lds_config: { ads: {} } } }),
  ],
  ['a filter from a control plane', 'dynamic-settings', p => p.filters.unshift({ name: 'x', config_discovery: {} })],

  // The connection manager.
  ['no normalize_path', 'normalize-path', p => remove(p.manager, 'normalize_path')],
  ['normalize_path: false', 'normalize-path', p => set(p.manager, { normalize_path: false })],
  ['no merge_slashes', 'merge-slashes', p => remove(p.manager, 'merge_slashes')],
  ['no action for escaped slashes', 'escaped-slashes', p => remove(p.manager, 'path_with_escaped_slashes_action')],
  [
    'escaped slashes forwarded',
    'escaped-slashes',
    p => set(p.manager, { path_with_escaped_slashes_action: 'UNESCAPE_AND_FORWARD' }),
  ],
  ['escaped slashes kept, by number', 'escaped-slashes', p => set(p.manager, { path_with_escaped_slashes_action: 1 })],
  [
    'underscores let in',
    'header-underscores',
    p => set(p.manager.common_http_protocol_options, { headers_with_underscores_action: 'ALLOW' }),
  ],
  ['no protocol options', 'header-underscores', p => remove(p.manager, 'common_http_protocol_options')],
  [
    'path parameters ignored in matching',
    'path-parameters',
    p => set(p.manager.route_config, { ignore_path_parameters_in_path_matching: true }),
  ],
  [
    'no early header mutation',
    ['override-headers-kept', 'owned-headers-kept'],
    p => remove(p.manager, 'early_header_mutation_extensions'),
  ],
  [
    'an early mutation of one header only',
    'owned-headers-kept',
    p => set(p.early[0], { remove_on_match: null, remove: 'x-auth-uid' }),
  ],
  [
    'an early mutation by a regex that leaves one header',
    'owned-headers-kept',
    p => set(p.early[0].remove_on_match.key_matcher.safe_regex, { regex: 'x-auth-(uid|app|acc|iss)' }),
  ],
  [
    'an early mutation by a prefix in capital letters',
    'owned-headers-kept',
    p => set(p.early[0].remove_on_match, { key_matcher: { prefix: 'X-Auth-' } }),
  ],
  [
    'an early mutation by a prefix where underscores are let in',
    ['header-underscores', 'owned-headers-kept'],
    p => {
      set(p.early[0].remove_on_match, { key_matcher: { prefix: 'x-auth-' } });
      remove(p.manager.common_http_protocol_options, 'headers_with_underscores_action');
    },
  ],
  [
    'another prefix in the configuration',
    ['mutation-rules-too-narrow', 'owned-headers-kept', 'trailers-kept'],
    p => set(p.config, { identityHeaders: 'x-acme-' }),
  ],
  ['an override of the method kept', 'override-headers-kept', p => p.early.pop()],
  [
    'O-015 other spellings of an override kept',
    'override-headers-kept',
    p => p.early.splice(-1, 1, ...['x-http-method-override', 'x-http-method', 'x-method-override'].map(toRemoval)),
  ],
  [
    'a spelling of an override with one other sign kept',
    'override-headers-kept',
    p => set(p.early.at(-2).remove_on_match.key_matcher.safe_regex, { regex: 'x[-.](original|rewrite)[-.]url' }),
  ],
  ['O-027 no removal from trailers', 'trailers-kept', p => p.filters.shift()],
  ['a removal from trailers that is off', 'trailers-kept', p => set(p.filters[0], { disabled: true })],
  ['identity headers in trailers', 'trailers-kept', p => p.trailers.shift()],
  ['O-015 overrides of the path in trailers', 'trailers-kept', p => p.trailers.splice(1, 1)],
  ['O-015 overrides of the method in trailers', 'trailers-kept', p => p.trailers.splice(2, 1)],
  ['O-028 account headers in trailers', 'trailers-kept', p => p.trailers.splice(3, 1)],
  [
    'O-028 other spellings of an account header in trailers',
    'trailers-kept',
    p => p.trailers.splice(3, 1, toRemoval('x-account-id')),
  ],
  [
    'a removal from the trailers of the response only',
    'trailers-kept',
    p =>
      set(p.filters[0].typed_config, {
        mutations: { response_trailers_mutations: p.trailers, request_mutations: p.trailers },
      }),
  ],
  [
    'a mapper for UAEX',
    'local-reply',
    p =>
      set(p.manager, {
        local_reply_config: {
          mappers: [{ filter: { response_flag_filter: { flags: ['NR', 'UAEX'] } }, status_code: 200 }],
        },
      }),
  ],
  [
    'a mapper for every answer from 400 on',
    'local-reply',
    p =>
      set(p.manager, {
        local_reply_config: {
          mappers: [
            {
              filter: {
                status_code_filter: { comparison: { op: 'GE', value: { default_value: 400, runtime_key: 'x' } } },
              },
              body: { inline_string: 'sorry' },
            },
          ],
        },
      }),
  ],
  ['a body for every refusal', 'local-reply', p => set(p.manager, { local_reply_config: { body_format: {} } })],

  // The check.
  ['fail-open', 'failure-mode-allow', p => set(p.check, { failure_mode_allow: true })],
  ['fail-open in the YAML of Envoy', 'failure-mode-allow', p => set(p.check, { failure_mode_allow: 'yes' })],
  ['a mark of fail-open', 'failure-mode-header', p => set(p.check, { failure_mode_allow_header_add: true })],
  ['no status_on_error', 'status-on-error', p => remove(p.check, 'status_on_error')],
  ['status_on_error 403', 'status-on-error', p => set(p.check, { status_on_error: { code: 'Forbidden' } })],
  ['status_on_error 200 by number', 'status-on-error', p => set(p.check, { status_on_error: { code: 200 } })],
  ['no timeout', 'check-timeout', p => remove(p.service, 'timeout')],
  ['a timeout of zero', 'check-timeout', p => set(p.service, { timeout: '0s' })],
  ['a timeout of ten seconds', 'check-timeout', p => set(p.service, { timeout: '10s' })],
  ['a timeout of ten seconds as a message', 'check-timeout', p => set(p.service, { timeout: { seconds: 10 } })],
  [
    'half of the requests',
    ['deny-at-disable', 'filter-enabled'],
    p => set(p.check, { filter_enabled: { default_value: { numerator: 50, denominator: 'HUNDRED' } } }),
  ],
  [
    'a hundred of a million requests, the others refused',
    'filter-enabled',
    p =>
      set(p.check, {
        filter_enabled: { default_value: { numerator: 100, denominator: 2 } },
        deny_at_disable: { default_value: true, runtime_key: 'x' },
      }),
  ],
  [
    'all requests as long as nobody changes it at run time',
    ['deny-at-disable', 'filter-enabled'],
    p => set(p.check, { filter_enabled: { default_value: { numerator: 100 }, runtime_key: 'authz.enabled' } }),
  ],
  [
    'a condition on metadata',
    ['deny-at-disable', 'filter-enabled-metadata'],
    p => set(p.check, { filter_enabled_metadata: {} }),
  ],
  ['shadow mode', 'shadow-mode', p => set(p.check, { shadow_mode: true })],
  ['a cleared route cache', 'clear-route-cache', p => set(p.check, { clear_route_cache: true })],
  ['no version of the protocol', 'transport-api-version', p => remove(p.check, 'transport_api_version')],
  ['version 2 of the protocol', 'transport-api-version', p => set(p.check, { transport_api_version: 'V2' })],
  [
    'HTTP instead of gRPC',
    'grpc-service',
    p => [remove(p.check, 'grpc_service'), set(p.check, { http_service: { server_uri: {} } })],
  ],
  [
    'the library of Google',
    'google-grpc',
    p => [remove(p.service, 'envoy_grpc'), set(p.service, { google_grpc: { target_uri: 'x' } })],
  ],
  ['the body in the check', 'request-body', p => set(p.check, { with_request_body: { max_request_bytes: 1024 } })],
  ['the body in the check of a route', 'request-body', p => set(p.routes[0], checkSettings({ with_request_body: {} }))],
  ['another service for a route', 'check-service-override', p => set(p.routes[0], checkSettings({ grpc_service: {} }))],
  ['metadata thrown away', 'metadata-ingestion', p => set(p.check, { enable_dynamic_metadata_ingestion: false })],
  ['mutations not validated', 'validate-mutations', p => remove(p.check, 'validate_mutations')],

  // What account-authz is shown and may change.
  ['an account header not shown', 'account-header-hidden', p => p.check.allowed_headers.patterns.splice(4, 2)],
  [
    'a second account header not shown',
    ['account-header-hidden', 'trailers-kept'],
    p => set(p.config, { account: { headers: ['x-account-id', 'x-tenant'], query: [] } }),
  ],
  [
    'an account header shown in capital letters',
    'account-header-hidden',
    p => p.check.allowed_headers.patterns.splice(4, 2, { exact: 'X-Account-Id' }),
  ],
  [
    'O-028 other spellings of an account header not shown',
    'account-header-hidden',
    p => p.check.allowed_headers.patterns.splice(5, 1),
  ],
  [
    'other spellings of an account header with underscores only shown',
    'account-header-hidden',
    p => set(p.check.allowed_headers.patterns[5].safe_regex, { regex: 'x[-_]account[-_]id' }),
  ],
  [
    'a spelling of an account header with one other sign hidden',
    'account-header-hidden',
    p => set(p.check.allowed_headers.patterns[5].safe_regex, { regex: 'x[^a-z0-9~]account[^a-z0-9]id' }),
  ],
  [
    'a spelling of an account header hidden by name',
    'disallowed-headers',
    p => set(p.check, { disallowed_headers: { patterns: [{ exact: 'x.account.id' }] } }),
  ],
  ['H-033 authorization not shown', 'authorization-hidden', p => p.check.allowed_headers.patterns.shift()],
  ['x-request-id not shown', 'request-id-hidden', p => p.check.allowed_headers.patterns.splice(1, 1)],
  [
    'an account header hidden by a prefix',
    'disallowed-headers',
    p => set(p.check, { disallowed_headers: { patterns: [{ prefix: 'X-ACC', ignore_case: true }] } }),
  ],
  ['no mutation rules', 'mutation-rules-missing', p => remove(p.check, 'decoder_header_mutation_rules')],
  [
    'mutation rules without the look-alikes',
    'mutation-rules-too-narrow',
    p => set(p.check.decoder_header_mutation_rules, { allow_expression: { regex: '^(x-auth-.*|authorization)$' } }),
  ],
  [
    'mutation rules without the token',
    'mutation-rules-too-narrow',
    p =>
      set(p.check.decoder_header_mutation_rules, {
        allow_expression: { regex: 'x[-_]auth[-_](uid|app|acc|role|iss)' },
      }),
  ],
  [
    'mutation rules that match a part of the name',
    'mutation-rules-too-narrow',
    p => set(p.check.decoder_header_mutation_rules, { allow_expression: { regex: '^x[-_]auth[-_]|^authorization' } }),
  ],
  [
    'mutation rules that disallow one',
    'mutation-rules-too-narrow',
    p => set(p.check.decoder_header_mutation_rules, { disallow_expression: { regex: '.*-role' } }),
  ],
  [
    'mutation rules for everything',
    'mutation-rules-too-wide',
    p => set(p.check.decoder_header_mutation_rules, { allow_expression: { regex: '.*' } }),
  ],
  [
    'mutation rules that disallow nothing',
    'mutation-rules-too-wide',
    p => remove(p.check.decoder_header_mutation_rules, 'disallow_all'),
  ],
  [
    'mutation rules without an error',
    'mutation-not-error',
    p => remove(p.check.decoder_header_mutation_rules, 'disallow_is_error'),
  ],

  // The way to account-authz.
  [
    'a cluster that is not there',
    'authz-cluster-unknown',
    p => set(p.service.envoy_grpc, { cluster_name: 'elsewhere' }),
  ],
  ['a cluster without HTTP/2', 'authz-cluster-http2', p => remove(p.authz, 'typed_extension_protocol_options')],
  [
    'a cluster with HTTP/1.1',
    'authz-cluster-http2',
    p =>
      set(Object.values<Part>(p.authz.typed_extension_protocol_options)[0], {
        explicit_http_config: { http_protocol_options: {} },
      }),
  ],
  [
    'a cluster that asks for the protocol without TLS',
    'authz-cluster-http2',
    p =>
      set(Object.values<Part>(p.authz.typed_extension_protocol_options)[0], {
        explicit_http_config: null,
        auto_config: {},
      }),
  ],
  ['a slow connect timeout', 'connect-timeout', p => set(p.authz, { connect_timeout: '0.5s' })],
  ['no connect timeout', 'connect-timeout', p => remove(p.authz, 'connect_timeout')],
  [
    'another port than the configuration',
    'authz-address',
    p =>
      set(p.authz.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address, { port_value: 9193 }),
  ],
  [
    'a socket where the configuration has a port',
    'authz-address',
    p => set(p.config, { listen: 'unix:/run/authz.sock' }),
  ],
  ['no retries', 'retry-nothing', p => set(p.retry, { num_retries: 0 })],
  ['retries of nothing', 'retry-nothing', p => remove(p.retry, 'retry_on')],
  ['no back-off', 'retry-back-off', p => remove(p.retry, 'retry_back_off')],
  ['half a back-off', 'retry-back-off', p => remove(p.retry.retry_back_off, 'max_interval')],
  ['an attempt as long as the check', 'retry-interval', p => set(p.retry.retry_back_off, { max_interval: '0.5s' })],
  ['an attempt of 10 ms', 'retry-interval', p => set(p.retry.retry_back_off, { max_interval: '0.010s' })],
  ['no budget for retries', 'retry-budget', p => remove(p.authz.circuit_breakers.thresholds[0], 'max_retries')],
  ['no circuit breakers', 'retry-budget', p => remove(p.authz, 'circuit_breakers')],
  [
    'two hosts without previous_hosts',
    'retry-same-host',
    p => {
      const [locality] = p.authz.load_assignment.endpoints;
      const second = copyOf(locality.lb_endpoints[0]);
      second.endpoint.address.socket_address.port_value = 9193;
      locality.lb_endpoints.push(second);
      remove(p.retry, 'retry_host_predicate');
    },
  ],

  [
    'an account-authz on another machine, asked on this one',
    'authz-address',
    p => set(p.config, { listen: '192.0.2.7:9191' }),
  ],
  ['TLS that only account-authz speaks', 'authz-tls', p => set(p.config, { tls })],
  ['TLS that only Envoy speaks', 'authz-tls', p => set(p.authz, { transport_socket: upstreamTls() })],
  [
    'no certificate for an account-authz that asks for one',
    'authz-client-certificate',
    p => [
      set(p.config, { tls: { ...tls, clientCaFile: '/ca.crt' } }),
      set(p.authz, { transport_socket: upstreamTls({ validation_context: {} }) }),
    ],
  ],

  // Behind the check.
  ['lua behind it', 'filter-after-check', p => p.filters.splice(2, 0, filter('lua.v3.Lua'))],
  [
    'lua behind it that a protected route turns on',
    'filter-after-check',
    p => {
      p.filters.splice(2, 0, { ...filter('lua.v3.Lua'), disabled: true });
      set(p.routes[0], { typed_per_filter_config: { 'my.lua.v3.Lua': typed('lua.v3.LuaPerRoute') } });
    },
  ],
  ['wasm behind it', 'filter-after-check', p => p.filters.splice(3, 0, filter('wasm.v3.Wasm'))],
  ['ext_proc behind it', 'filter-after-check', p => p.filters.splice(2, 0, filter('ext_proc.v3.ExternalProcessor'))],
  ['a filter nobody knows behind it', 'filter-after-check', p => p.filters.splice(2, 0, { name: 'x' })],
  ['metadata set behind it', 'filter-after-check', p => p.filters.splice(2, 0, filter('set_metadata.v3.Config'))],
  [
    'a header mutation behind it',
    'filter-after-check',
    p =>
      p.filters.splice(
        2,
        0,
        filter('header_mutation.v3.HeaderMutation', { mutations: { request_mutations: [{ remove: 'x-auth-acc' }] } }),
      ),
  ],
  [
    'a header mutation of a route behind it',
    'filter-after-check',
    p => {
      p.filters.splice(2, 0, filter('header_mutation.v3.HeaderMutation'));
      set(p.routes[0], {
        typed_per_filter_config: {
          'my.header_mutation.v3.HeaderMutation': typed('header_mutation.v3.HeaderMutationPerRoute', {
            mutations: { request_mutations: { remove: 'x-auth-acc' } },
          }),
        },
      });
    },
  ],
  [
    'jwt_authn that chooses another route behind it',
    'filter-after-check',
    p =>
      p.filters.splice(
        2,
        0,
        filter('jwt_authn.v3.JwtAuthentication', { providers: { a: { clear_route_cache: true } } }),
      ),
  ],
  [
    'a removal of owned headers behind the check',
    ['filter-after-check', 'owned-headers-kept'],
    p => {
      p.early.shift();
      p.filters.splice(2, 0, filter('header_mutation.v3.HeaderMutation', removal));
    },
  ],
  [
    'a filter of the router towards the service',
    'upstream-filter',
    p =>
      set(p.filters[3].typed_config, {
        upstream_http_filters: [filter('lua.v3.Lua'), filter('upstream_codec.v3.UpstreamCodec')],
      }),
  ],
  [
    'a filter of the cluster of the service',
    'cluster-filter',
    p =>
      set(p.upstream, {
        typed_extension_protocol_options: {
          x: typed('envoy.extensions.upstreams.http.v3.HttpProtocolOptions', { http_filters: [filter('lua.v3.Lua')] }),
        },
      }),
  ],
  [
    'an identity header added by a route',
    'headers-after-check',
    p => set(p.routes[0], { request_headers_to_add: [{ header: { key: 'X-Auth-Role', value: 'owner' } }] }),
  ],
  [
    'an identity header removed by a virtual host',
    'headers-after-check',
    p => set(p.host, { request_headers_to_remove: ['x-auth-uid'] }),
  ],
  [
    'a look-alike added by the route configuration',
    'headers-after-check',
    p => set(p.manager.route_config, { request_headers_to_add: [{ header: { key: 'x_auth_acc', value: '1' } }] }),
  ],
  [
    'an account header added by a route',
    'headers-after-check',
    p => set(p.routes[0], { request_headers_to_add: { header: { key: 'x-account-id', value: '%REQ(x-foo)%' } } }),
  ],
  [
    'a token added by a route',
    'headers-after-check',
    p => set(p.routes[0], { request_headers_to_add: [{ header: { key: 'authorization', value: 'Bearer x' } }] }),
  ],
  [
    'the forwarded token removed by a route',
    ['headers-after-check'],
    p => [
      set(p.config, { token: { ...p.config.token, forward: true } }),
      set(p.routes[0], { request_headers_to_remove: ['Authorization'] }),
    ],
  ],
  [
    'another path in a header',
    'headers-after-check',
    p => set(p.routes[0], { request_headers_to_add: [{ header: { key: 'x-rewrite-url', value: '/admin' } }] }),
  ],
  ['a prefix rewritten', 'path-rewrite', p => set(p.routes[0].route, { prefix_rewrite: '/' })],
  [
    'a path rewritten by a regex',
    'path-rewrite',
    p => set(p.routes[0].route, { regex_rewrite: { substitution: '/x' } }),
  ],
  ['a path rewritten by a policy', 'path-rewrite', p => set(p.routes[0].route, { path_rewrite_policy: { name: 'x' } })],
  ['a host from a header', 'host-rewrite', p => set(p.routes[0].route, { host_rewrite_header: 'x-host' })],
  ['L-025 internal redirects', 'internal-redirect', p => set(p.routes[0].route, { internal_redirect_policy: {} })],

  // What cannot be read.
  ['a number for a boolean', 'unreadable-value', p => set(p.check, { failure_mode_allow: 2 })],
  ['a duration without its unit', 'unreadable-value', p => set(p.service, { timeout: 0.5 })],
  ['two spellings of a field', 'unreadable-value', p => set(p.check, { failureModeAllow: true })],
  [
    'a regex beyond RE2',
    'unreadable-value',
    p => set(p.check.decoder_header_mutation_rules, { allow_expression: { regex: '(?!:path).*' } }),
  ],
  [
    'a text for a list of filters',
    ['unchecked-listener', 'unreadable-value'],
    p => set(p.manager, { http_filters: 'none' }),
  ],
];

const harmless: readonly (readonly [name: string, edit: (parts: Shipped) => unknown])[] = [
  ['nothing changed', () => undefined],
  ['headers shown as a map', p => remove(p.check, 'encode_raw_headers')],
  ['all headers shown', p => remove(p.check, 'allowed_headers')],
  ['no retry policy', p => remove(p.service, 'retry_policy')],
  [
    'underscores dropped',
    p => set(p.manager.common_http_protocol_options, { headers_with_underscores_action: 'DROP_HEADER' }),
  ],
  ['the early mutation by a prefix', p => set(p.early[0].remove_on_match, { key_matcher: { prefix: 'x-auth-' } })],
  [
    'the removal of owned headers in a filter before the check',
    p => {
      p.early.shift();
      p.filters.unshift(filter('header_mutation.v3.HeaderMutation', removal));
    },
  ],
  [
    'other spellings of an account header removed instead of shown',
    p => {
      p.check.allowed_headers.patterns.splice(5, 1);
      p.early.push({
        remove_on_match: {
          key_matcher: { safe_regex: { regex: 'x[^a-z0-9-]account[^a-z0-9]id|x[^a-z0-9]account[^a-z0-9-]id' } },
        },
      });
    },
  ],
  [
    'an account header without a hyphen, shown and removed from trailers',
    p => {
      set(p.config, { account: { headers: ['tenant'], query: [] } });
      p.check.allowed_headers.patterns.push({ exact: 'tenant' });
      p.trailers.push({ remove: 'Tenant' });
    },
  ],
  ['the removal from trailers behind the check', p => p.filters.splice(1, 0, ...p.filters.splice(0, 1))],
  [
    'all trailers removed',
    p => p.trailers.splice(0, 9, { remove_on_match: { key_matcher: { safe_regex: { regex: '.*' } } } }),
  ],
  [
    'the route for gRPC switched on',
    p =>
      p.routes.unshift({
        match: { path_separated_prefix: '/api/subscriptions', grpc: {} },
        route: { cluster: 'upstream-grpc' },
      }),
  ],
  ['the sibling paths checked too', p => set(p.routes[0], { match: { prefix: '/api/subscriptions' } })],
  ['another case checked too', p => set(p.routes[0].match, { case_sensitive: false })],
  [
    'everything else checked too',
    p => {
      p.routes.pop();
      p.routes.push({ match: { prefix: '/' }, route: { cluster: 'upstream' } });
    },
  ],
  [
    'everything else unchecked to another service',
    p => {
      remove(p.routes[1], 'direct_response');
      set(p.routes[1], { route: { cluster: 'website' } });
    },
  ],
  [
    'everything else unchecked to the same service, other cases checked',
    p => {
      remove(p.routes[1], 'direct_response');
      set(p.routes[1], { route: { cluster: 'upstream' } });
      set(p.routes[0].match, { case_sensitive: false });
    },
  ],
  [
    'unchecked routes for named paths of the same service',
    p =>
      p.routes.unshift(
        ...pathsTo('upstream', '/healthz', '/api/subscriptionsX').map(route => ({ ...route, ...disabled })),
      ),
  ],
  [
    'unchecked routes by templates of other paths',
    p => {
      for (const template of ['/healthz/*', '/api/other/**', '/public/{file=**}'])
        p.routes.unshift({ match: byTemplate(template), route: { cluster: 'upstream' }, ...disabled });
    },
  ],
  [
    'an unchecked redirect',
    p => p.routes.unshift({ match: { prefix: '/api' }, redirect: { https_redirect: true }, ...disabled }),
  ],
  [
    'a filter that is off in its chain and turned on by the route configuration',
    p => {
      set(p.filters[1], { disabled: true });
      set(p.manager.route_config, checkSettings({ context_extensions: { a: 'b' } }));
    },
  ],
  [
    'a disabled virtual host whose routes ask again',
    p => {
      set(p.host, disabled);
      for (const route of p.routes) set(route, checkSettings({ context_extensions: { a: 'b' } }));
    },
  ],
  [
    'settings for a filter that is not there',
    p =>
      set(p.routes[0], {
        typed_per_filter_config: { other: typed('ext_authz.v3.ExtAuthzPerRoute', { disabled: true }) },
      }),
  ],
  [
    'a way out of the pod that takes any path to others',
    p =>
      secondListener(p, (listener, m) => {
        listener.address.socket_address.address = '127.0.0.1';
        dropCheck(m);
        onlyRoutes(m, [{ match: { prefix: '/' }, route: { cluster: 'partner' } }]);
      }),
  ],
  [
    'a listener for outbound traffic that takes any path to others',
    p =>
      secondListener(p, (listener, m) => {
        listener.traffic_direction = 'OUTBOUND';
        dropCheck(m);
        onlyRoutes(m, [{ match: { prefix: '/' }, route: { cluster: 'partner' } }]);
      }),
  ],
  [
    'filters towards the service that are off',
    p => set(p.filters[3].typed_config, { upstream_http_filters: [{ ...filter('lua.v3.Lua'), disabled: true }] }),
  ],
  [
    'a listener for a named path of the service',
    p => secondListener(p, (_, m) => [dropCheck(m), onlyRoutes(m, pathsTo('upstream', '/metrics'))]),
  ],
  [
    'another service that another ext_authz asks',
    p => {
      const other = copyOf(p.authz);
      other.name = 'other-authz';
      other.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.port_value = 9999;
      remove(other, 'typed_extension_protocol_options');
      p.root.static_resources.clusters.push(other);
      p.filters.unshift(
        filter('ext_authz.v3.ExtAuthz', { grpc_service: { envoy_grpc: { cluster_name: 'other-authz' } } }),
      );
    },
  ],
  ['a websocket through the main chain', p => set(p.manager, { upgrade_configs: [{ upgrade_type: 'websocket' }] })],
  ['CONNECT turned off', p => set(p.manager, { upgrade_configs: [{ upgrade_type: 'CONNECT', enabled: false }] })],
  [
    'a socket on both sides',
    p => {
      set(p.config, { listen: 'unix:/run/account-authz/authz.sock' });
      p.authz.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address = {
        pipe: { path: '/run/account-authz/authz.sock' },
      };
    },
  ],
  ['account-authz on a name that may be of this machine', p => set(p.config, { listen: 'authz.internal:9191' })],
  ['account-authz on every address', p => set(p.config, { listen: '0.0.0.0:9191' })],
  [
    'account-authz elsewhere',
    p =>
      set(p.authz.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address, {
        address: 'authz.internal',
      }),
  ],
  ['an admin interface on a socket', p => set(p.root.admin, { address: { pipe: { path: '/run/admin.sock' } } })],
  ['no admin interface', p => remove(p.root, 'admin')],
  [
    'limits behind the check',
    p => p.filters.splice(2, 0, filter('local_ratelimit.v3.LocalRateLimit'), filter('fault.v3.HTTPFault')),
  ],
  [
    'response headers changed behind the check',
    p =>
      p.filters.splice(
        2,
        0,
        filter('header_mutation.v3.HeaderMutation', { mutations: { response_mutations: [{ remove: 'server' }] } }),
      ),
  ],
  ['lua before the check', p => p.filters.unshift(filter('lua.v3.Lua'))],
  ['lua behind the check, off', p => p.filters.splice(2, 0, { ...filter('lua.v3.Lua'), disabled: true })],
  [
    'jwt_authn that only reads',
    p => p.filters.splice(2, 0, filter('jwt_authn.v3.JwtAuthentication', { providers: { a: {} } })),
  ],
  [
    'other headers added by a route',
    p => set(p.routes[0], { request_headers_to_add: [{ header: { key: 'x-team', value: 'blue' } }] }),
  ],
  ['the token removed once more', p => set(p.routes[0], { request_headers_to_remove: ['authorization'] })],
  ['a literal host', p => set(p.routes[0].route, { host_rewrite_literal: 'service.internal' })],
  [
    'a mapper for other flags',
    p =>
      set(p.manager, {
        local_reply_config: {
          mappers: [{ filter: { response_flag_filter: { flags: ['NR', 'UF'] } }, status_code: 502 }],
        },
      }),
  ],
  [
    'all requests, for good',
    p => set(p.check, { filter_enabled: { default_value: { numerator: 100, denominator: 'HUNDRED' } } }),
  ],
  [
    'metadata that nobody reads thrown away',
    p => [set(p.check, { enable_dynamic_metadata_ingestion: false }), p.filters.splice(2, 1)],
  ],
  [
    'the protocol by ALPN',
    p => {
      set(Object.values<Part>(p.authz.typed_extension_protocol_options)[0], {
        explicit_http_config: null,
        auto_config: {},
      });
      set(p.authz, { transport_socket: { name: 'tls' } });
      set(p.config, { tls });
    },
  ],
  [
    'TLS on both sides, with a certificate of the client',
    p => [
      set(p.config, { tls: { ...tls, clientCaFile: '/ca.crt' } }),
      set(p.authz, { transport_socket: upstreamTls({ tls_certificate_sds_secret_configs: [{ name: 'own' }] }) }),
    ],
  ],
  [
    'two Envoy routes for the paths of one route',
    p => {
      set(p.routes[0], { match: { path: '/api/subscriptions' } });
      p.routes.splice(1, 0, { match: { prefix: '/api/subscriptions/' }, route: { cluster: 'upstream' } });
    },
  ],
  [
    'a path of the configuration that another listener has',
    p => {
      set(p.config, { routes: [...p.config.routes, { path: '/v2/billing/*' }] });
      secondListener(p, (_, m) =>
        onlyRoutes(m, [{ match: { path_separated_prefix: '/v2/billing' }, route: { cluster: 'upstream' } }]),
      );
    },
  ],
  [
    'narrow mutation rules that cover all',
    p =>
      set(p.check.decoder_header_mutation_rules, {
        allow_expression: { google_re2: {}, regex: '(?i)x[_-]AUTH[_-](?:uid|app|acc|role|iss)|\\Qauthorization\\E' },
      }),
  ],
];

function byTemplate(path_template: string): object {
  const type = 'type.googleapis.com/envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig';
  return { path_match_policy: { name: 'template', typed_config: { '@type': type, path_template } } };
}

describe('lint of a bootstrap', () => {
  for (const [name, rule, edit] of mistakes) {
    it(`names ${name} [${rule}]`, () => {
      expect(rulesAfter(edit)).to.deep.equal([rule].flat());
    });
  }

  for (const [name, edit] of harmless) {
    it(`has nothing against: ${name}`, () => {
      expect(rulesAfter(edit)).to.deep.equal([]);
    });
  }

  it('is shown to find what each of its rules is about', () => {
    const planted = new Set(mistakes.flatMap(([, rule]) => rule));
    const ofFiles = ['unreadable-file'];
    expect([...planted, ...ofFiles].sort()).to.deep.equal(Object.keys(lintRules).sort());
  });
});
