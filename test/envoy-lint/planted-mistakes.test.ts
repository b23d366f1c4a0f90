// The lint reports each planted mistake under exactly its rules, and accepts each harmless change.
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
const notEnforced = (key: string) => ({
  request_headers_to_add_when_not_enforced: [{ header: { key, value: 'globex' } }],
});
const guardMatcher = (p: Shipped) =>
  p.filters[2].typed_config.rules.policies['allowed-by-account-authz'].permissions[0].sourced_metadata.metadata_matcher;
const removePattern = (p: Shipped, name: string) => {
  p.check.allowed_headers.patterns = p.check.allowed_headers.patterns.filter((each: Part) => each.exact !== name);
};
const open = (path: string, ...methods: string[]) => ({
  public: [{ path, methods: methods.length === 0 ? ['GET', 'HEAD'] : methods }],
});
const hosts = (p: Shipped, ...entries: string[]) => set(p.config, { account: { ...p.config.account, hosts: entries } });
/** As `render` writes it. */
const publicRoute = (path: Part, methods = 'GET|HEAD'): Part => ({
  match: { ...path, headers: [{ name: ':method', string_match: { safe_regex: { regex: methods } } }] },
  route: { cluster: 'upstream' },
  typed_per_filter_config: {
    ...disabled.typed_per_filter_config,
    'envoy.filters.http.rbac': typed('rbac.v3.RBACPerRoute'),
    'envoy.filters.http.header_mutation': typed('header_mutation.v3.HeaderMutationPerRoute', {
      mutations: {
        request_mutations: [
          { remove_on_match: { key_matcher: { safe_regex: { regex: 'x[^a-z0-9]account[^a-z0-9]id' } } } },
          { remove: 'authorization' },
        ],
      },
    }),
  },
});
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
  // Configured paths that Envoy does not route.
  [
    'a route that is only in the configuration',
    'unreachable-route',
    p => set(p.config, { routes: [...p.config.routes, { path: '/v2/billing/:account_id/*' }] }),
  ],
  [
    'a route that starts with a parameter, when Envoy routes only some paths',
    'unreachable-route',
    p => set(p.config, { routes: [...p.config.routes, { path: '/:account_id' }] }),
  ],
  [
    'a path that differs in Envoy',
    'unreachable-route',
    p => set(p.routes[0], { match: { path_separated_prefix: '/api/subscription' } }),
  ],
  [
    'an exact path for a configured subtree',
    'unreachable-route',
    p => set(p.routes[0], { match: { path: '/api/subscriptions' } }),
  ],
  ['a protected route after the route that refuses everything', 'unreachable-route', p => p.routes.reverse()],
  [
    'a path that only a control plane can route, without a second finding',
    'dynamic-settings',
    p => {
      set(p.root, { dynamic_resources: { lds_config: { ads: {} } } });
      set(p.config, { routes: [...p.config.routes, { path: '/v2/billing/*' }] });
    },
  ],
  // Bypasses of the check.
  ['a second listener without ext_authz', 'unchecked-listener', p => secondListener(p, (_, m) => dropCheck(m))],
  [
    'a second listener without ext_authz that forwards any path to the upstream',
    'unchecked-listener',
    p =>
      secondListener(p, (_, m) => [
        dropCheck(m),
        onlyRoutes(m, [{ match: { prefix: '/' }, route: { cluster: 'upstream' } }]),
      ]),
  ],
  [
    'a loopback listener that forwards any path to the upstream hosts under another cluster name',
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
    'a listener with tcp_proxy to the upstream',
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
    'an upgrade whose filter chain lacks ext_authz',
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
    'a route that disables the filter by FilterConfig',
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
  ['a filter that is disabled in its chain', 'unchecked-route', p => set(p.filters[1], { disabled: true })],
  [
    'a disabled route for one protected path',
    'unchecked-route',
    p =>
      p.routes.unshift({ match: { path: '/api/subscriptions/health' }, route: { cluster: 'upstream' }, ...disabled }),
  ],
  [
    'a disabled route whose regex matches a protected path',
    ['unchecked-route', 'unjudged-route'],
    p =>
      p.routes.unshift({
        match: { safe_regex: { regex: '/api/[a-z]+/[0-9]{4}/status' } },
        route: { cluster: 'upstream' },
        ...disabled,
      }),
  ],
  [
    'a disabled route whose template matches a protected path',
    'unchecked-route',
    p => p.routes.unshift({ match: byTemplate('/api/*/{id}/status'), route: { cluster: 'upstream' }, ...disabled }),
  ],
  [
    'a disabled route whose template ends in ** above a protected path',
    'unchecked-route',
    p => p.routes.unshift({ match: byTemplate('/api/{rest=**}'), route: { cluster: 'upstream' }, ...disabled }),
  ],
  [
    'a regex route for the protected paths',
    'unjudged-route',
    p => set(p.routes[0], { match: { safe_regex: { regex: '/api/subscriptions(/.*)?' } } }),
  ],
  [
    'a route template with a partial segment',
    'unjudged-route',
    p => p.routes.unshift({ match: byTemplate('/healthz-{id}'), route: { cluster: 'upstream' } }),
  ],
  [
    'a disabled case-insensitive route that also matches a protected path',
    'unchecked-route',
    p =>
      p.routes.unshift({
        match: { prefix: '/API/Subscriptions', case_sensitive: false },
        route: { cluster: 'upstream' },
        ...disabled,
      }),
  ],
  [
    'a disabled route with a condition that the client can meet',
    'unchecked-route',
    p =>
      p.routes.unshift({
        match: { prefix: '/', headers: [{ name: 'x-debug', present_match: true }] },
        route: { cluster: 'upstream' },
        ...disabled,
      }),
  ],
  [
    'a checked prefix whose bare path falls to a disabled route',
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
    'an unchecked catch-all route to the same upstream',
    'unchecked-look-alike',
    p => {
      remove(p.routes[1], 'direct_response');
      set(p.routes[1], { route: { cluster: 'upstream' } });
    },
  ],
  [
    'an unchecked catch-all route to the upstream beside a case-insensitive checked route',
    'open-route',
    p => {
      remove(p.routes[1], 'direct_response');
      set(p.routes[1], { route: { cluster: 'upstream' } });
      set(p.routes[0].match, { case_sensitive: false });
    },
  ],
  [
    'unchecked routes for unprotected paths of the upstream',
    'open-route',
    p =>
      p.routes.unshift(
        ...pathsTo('upstream', '/healthz', '/api/subscriptionsX').map(route => ({ ...route, ...disabled })),
      ),
  ],
  [
    'unchecked template routes for unprotected paths',
    'open-route',
    p => {
      for (const template of ['/healthz/*', '/api/other/**', '/public/{file=**}'])
        p.routes.unshift({ match: byTemplate(template), route: { cluster: 'upstream' }, ...disabled });
    },
  ],
  [
    'an unchecked listener for one unprotected path of the upstream',
    'open-route',
    p => secondListener(p, (_, m) => [dropCheck(m), onlyRoutes(m, pathsTo('upstream', '/metrics'))]),
  ],
  [
    'an unchecked catch-all route to a forward proxy',
    ['open-route'],
    p => {
      remove(p.routes[1], 'direct_response');
      set(p.routes[1], { route: { cluster: 'proxy' } });
      set(p.routes[0].match, { case_sensitive: false });
      const type = 'envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig';
      p.root.static_resources.clusters.push({ name: 'proxy', cluster_type: { name: 'x', typed_config: typed(type) } });
    },
  ],
  [
    'an unchecked catch-all route to the host that a header names',
    ['open-route'],
    p => {
      remove(p.routes[1], 'direct_response');
      set(p.routes[1], { route: { cluster: 'any' } });
      set(p.routes[0].match, { case_sensitive: false });
      const original = { type: 'ORIGINAL_DST', original_dst_lb_config: { use_http_header: true } };
      p.root.static_resources.clusters.push({ name: 'any', ...original });
    },
  ],

  // Public routes and the metadata document.
  ['a public route that is only in the configuration', 'public-route-missing', p => set(p.config, open('/healthz'))],
  [
    'a public route that Envoy checks',
    'public-route-missing',
    p => {
      set(p.config, open('/healthz'));
      p.routes.unshift({ match: { path: '/healthz' }, route: { cluster: 'upstream' } });
    },
  ],
  [
    'a public route that the guard refuses',
    'public-route-missing',
    p => {
      set(p.config, open('/healthz'));
      p.routes.unshift(publicRoute({ path: '/healthz' }));
      remove(p.routes[0].typed_per_filter_config, 'envoy.filters.http.rbac');
    },
  ],
  [
    'a public subtree of which Envoy serves the path alone',
    'public-route-missing',
    p => {
      set(p.config, open('/assets/*'));
      p.routes.unshift(publicRoute({ path: '/assets' }));
    },
  ],
  [
    'a public route for one of its methods',
    'public-route-missing',
    p => {
      set(p.config, open('/healthz', 'GET', 'POST'));
      p.routes.unshift(publicRoute({ path: '/healthz' }, 'GET'));
    },
  ],
  [
    'a missing metadata document',
    'public-route-missing',
    p => set(p.config, { protectedResource: { resource: 'https://api.example.com/subscriptions' } }),
  ],
  [
    'a public route for every method',
    'open-route',
    p => {
      set(p.config, open('/healthz'));
      p.routes.unshift(publicRoute({ path: '/healthz' }));
      remove(p.routes[0].match, 'headers');
    },
  ],
  [
    'a public route for more methods',
    'open-route',
    p => {
      set(p.config, open('/healthz', 'GET'));
      p.routes.unshift(publicRoute({ path: '/healthz' }, 'GET|DELETE'));
    },
  ],
  [
    'a public path as a prefix of text',
    'open-route',
    p => {
      set(p.config, open('/healthz'));
      p.routes.unshift(publicRoute({ prefix: '/healthz' }));
    },
  ],
  [
    'a public path in any case',
    'open-route',
    p => {
      set(p.config, open('/healthz'));
      p.routes.unshift(publicRoute({ path: '/healthz', case_sensitive: false }));
    },
  ],
  [
    'account headers and the token kept on a public route',
    'public-headers-kept',
    p => {
      set(p.config, open('/healthz'));
      p.routes.unshift(publicRoute({ path: '/healthz' }));
      remove(p.routes[0].typed_per_filter_config, 'envoy.filters.http.header_mutation');
    },
  ],
  [
    'spellings of an account header kept on a public route',
    'public-headers-kept',
    p => {
      set(p.config, open('/healthz'));
      p.routes.unshift({
        ...publicRoute({ path: '/healthz' }),
        request_headers_to_remove: ['x-account-id', 'Authorization'],
      });
      remove(p.routes[0].typed_per_filter_config, 'envoy.filters.http.header_mutation');
    },
  ],

  // Hosts.
  [
    'any host, where the configuration names hosts',
    ['other-host', 'override-headers-kept', 'trailers-kept'],
    p => hosts(p, ':account_id.api.example.com'),
  ],
  [
    'another host than that of the configuration',
    ['host-missing', 'other-host', 'override-headers-kept', 'trailers-kept'],
    p => {
      hosts(p, ':account_id.api.example.com', 'api.example.com');
      set(p.host, { domains: ['api.example.com', '*.example.org'] });
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
  ['a CONNECT upgrade', 'connect-upgrade', p => set(p.manager, { upgrade_configs: [{ upgrade_type: 'CONNECT' }] })],
  [
    'a CONNECT upgrade on a route',
    'connect-upgrade',
    p =>
      p.routes.unshift({
        match: { connect_matcher: {} },
        route: { cluster: 'upstream', upgrade_configs: [{ upgrade_type: 'connect', connect_config: {} }] },
      }),
  ],
  [
    'the admin interface on 0.0.0.0',
    'admin-exposed',
    p => set(p.root.admin.address.socket_address, { address: '0.0.0.0' }),
  ],
  ['the admin interface on ::', 'admin-exposed', p => set(p.root.admin.address.socket_address, { address: '::' })],
  [
    'a bootstrap unrelated to the service',
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
  ['a missing normalize_path', 'normalize-path', p => remove(p.manager, 'normalize_path')],
  ['normalize_path: false', 'normalize-path', p => set(p.manager, { normalize_path: false })],
  ['a missing merge_slashes', 'merge-slashes', p => remove(p.manager, 'merge_slashes')],
  [
    'a missing action for escaped slashes',
    'escaped-slashes',
    p => remove(p.manager, 'path_with_escaped_slashes_action'),
  ],
  [
    'unescaping of escaped slashes',
    'escaped-slashes',
    p => set(p.manager, { path_with_escaped_slashes_action: 'UNESCAPE_AND_FORWARD' }),
  ],
  [
    'escaped slashes kept by an enum number',
    'escaped-slashes',
    p => set(p.manager, { path_with_escaped_slashes_action: 1 }),
  ],
  [
    'allowed underscores in header names',
    'header-underscores',
    p => set(p.manager.common_http_protocol_options, { headers_with_underscores_action: 'ALLOW' }),
  ],
  ['missing protocol options', 'header-underscores', p => remove(p.manager, 'common_http_protocol_options')],
  [
    'route matching that ignores path parameters',
    'path-parameters',
    p => set(p.manager.route_config, { ignore_path_parameters_in_path_matching: true }),
  ],
  [
    'a missing early header mutation',
    ['override-headers-kept', 'owned-headers-kept'],
    p => remove(p.manager, 'early_header_mutation_extensions'),
  ],
  [
    'an early mutation of one header only',
    'owned-headers-kept',
    p => set(p.early[0], { remove_on_match: null, remove: 'x-auth-uid' }),
  ],
  [
    'an early mutation by a regex that misses one header',
    'owned-headers-kept',
    p => set(p.early[0].remove_on_match.key_matcher.safe_regex, { regex: 'x-auth-(uid|app|acc|iss)' }),
  ],
  [
    'an early mutation by an upper-case prefix',
    'owned-headers-kept',
    p => set(p.early[0].remove_on_match, { key_matcher: { prefix: 'X-Auth-' } }),
  ],
  [
    'an early mutation by a prefix while underscores are allowed',
    ['header-underscores', 'owned-headers-kept'],
    p => {
      set(p.early[0].remove_on_match, { key_matcher: { prefix: 'x-auth-' } });
      remove(p.manager.common_http_protocol_options, 'headers_with_underscores_action');
    },
  ],
  [
    'an identity prefix that differs from the bootstrap',
    ['mutation-rules-too-narrow', 'owned-headers-kept', 'trailers-kept'],
    p => set(p.config, { identityHeaders: 'x-acme-' }),
  ],
  ['a kept method override header', 'override-headers-kept', p => p.early.pop()],
  [
    'O-015 kept spellings of a method override header',
    'override-headers-kept',
    p => p.early.splice(-1, 1, ...['x-http-method-override', 'x-http-method', 'x-method-override'].map(toRemoval)),
  ],
  [
    'a kept spelling of a path override header with another separator',
    'override-headers-kept',
    p => set(p.early.at(-2).remove_on_match.key_matcher.safe_regex, { regex: 'x[-.](original|rewrite)[-.]url' }),
  ],
  ['O-027 a missing removal from trailers', 'trailers-kept', p => p.filters.shift()],
  ['a disabled removal from trailers', 'trailers-kept', p => set(p.filters[0], { disabled: true })],
  ['kept identity headers in trailers', 'trailers-kept', p => p.trailers.shift()],
  ['O-015 kept path overrides in trailers', 'trailers-kept', p => p.trailers.splice(1, 1)],
  ['O-015 kept method overrides in trailers', 'trailers-kept', p => p.trailers.splice(2, 1)],
  ['O-028 kept account headers in trailers', 'trailers-kept', p => p.trailers.splice(3, 1)],
  [
    'O-028 kept spellings of an account header in trailers',
    'trailers-kept',
    p => p.trailers.splice(3, 1, toRemoval('x-account-id')),
  ],
  [
    'a removal only from response trailers',
    'trailers-kept',
    p =>
      set(p.filters[0].typed_config, {
        mutations: { response_trailers_mutations: p.trailers, request_mutations: p.trailers },
      }),
  ],
  [
    'a local reply mapper for UAEX',
    'local-reply',
    p =>
      set(p.manager, {
        local_reply_config: {
          mappers: [{ filter: { response_flag_filter: { flags: ['NR', 'UAEX'] } }, status_code: 200 }],
        },
      }),
  ],
  [
    'a local reply mapper for every status from 400',
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
  [
    'a local reply body for every refusal',
    'local-reply',
    p => set(p.manager, { local_reply_config: { body_format: {} } }),
  ],

  // The check.
  ['fail-open', 'failure-mode-allow', p => set(p.check, { failure_mode_allow: true })],
  ["fail-open spelled as Envoy's YAML allows", 'failure-mode-allow', p => set(p.check, { failure_mode_allow: 'yes' })],
  ['a fail-open marker header', 'failure-mode-header', p => set(p.check, { failure_mode_allow_header_add: true })],
  ['a missing status_on_error', 'status-on-error', p => remove(p.check, 'status_on_error')],
  ['status_on_error 403', 'status-on-error', p => set(p.check, { status_on_error: { code: 'Forbidden' } })],
  ['status_on_error 200 by number', 'status-on-error', p => set(p.check, { status_on_error: { code: 200 } })],
  ['a missing timeout', 'check-timeout', p => remove(p.service, 'timeout')],
  ['a timeout of zero', 'check-timeout', p => set(p.service, { timeout: '0s' })],
  ['a timeout of ten seconds', 'check-timeout', p => set(p.service, { timeout: '10s' })],
  ['a timeout of ten seconds as a message', 'check-timeout', p => set(p.service, { timeout: { seconds: 10 } })],
  [
    'a check of half of the requests',
    ['deny-at-disable', 'filter-enabled'],
    p => set(p.check, { filter_enabled: { default_value: { numerator: 50, denominator: 'HUNDRED' } } }),
  ],
  [
    'a check of 100 in a million requests, with the others refused',
    'filter-enabled',
    p =>
      set(p.check, {
        filter_enabled: { default_value: { numerator: 100, denominator: 2 } },
        deny_at_disable: { default_value: true, runtime_key: 'x' },
      }),
  ],
  [
    'a check of all requests that a runtime key can change',
    ['deny-at-disable', 'filter-enabled'],
    p => set(p.check, { filter_enabled: { default_value: { numerator: 100 }, runtime_key: 'authz.enabled' } }),
  ],
  [
    'a metadata condition on the check',
    ['deny-at-disable', 'filter-enabled-metadata'],
    p => set(p.check, { filter_enabled_metadata: {} }),
  ],
  ['shadow mode', 'shadow-mode', p => set(p.check, { shadow_mode: true })],
  ['a cleared route cache', 'clear-route-cache', p => set(p.check, { clear_route_cache: true })],
  ['a missing protocol version', 'transport-api-version', p => remove(p.check, 'transport_api_version')],
  ['protocol version 2', 'transport-api-version', p => set(p.check, { transport_api_version: 'V2' })],
  [
    'HTTP instead of gRPC',
    'grpc-service',
    p => [remove(p.check, 'grpc_service'), set(p.check, { http_service: { server_uri: {} } })],
  ],
  [
    'google_grpc',
    'google-grpc',
    p => [remove(p.service, 'envoy_grpc'), set(p.service, { google_grpc: { target_uri: 'x' } })],
  ],
  ['the body in the check', 'request-body', p => set(p.check, { with_request_body: { max_request_bytes: 1024 } })],
  ['the body in the check of a route', 'request-body', p => set(p.routes[0], checkSettings({ with_request_body: {} }))],
  [
    'another check service for a route',
    'check-service-override',
    p => set(p.routes[0], checkSettings({ grpc_service: {} })),
  ],
  ['discarded dynamic metadata', 'metadata-ingestion', p => set(p.check, { enable_dynamic_metadata_ingestion: false })],
  ['mutations without validation', 'validate-mutations', p => remove(p.check, 'validate_mutations')],

  // The headers that account-authz receives and may change.
  ['a hidden account header', 'account-header-hidden', p => p.check.allowed_headers.patterns.splice(6, 2)],
  [
    'a hidden second account header',
    ['account-header-hidden', 'trailers-kept'],
    p => set(p.config, { account: { headers: ['x-account-id', 'x-tenant'], query: [] } }),
  ],
  [
    'an account header allowed only in upper case',
    'account-header-hidden',
    p => p.check.allowed_headers.patterns.splice(6, 2, { exact: 'X-Account-Id' }),
  ],
  [
    'O-028 hidden spellings of an account header',
    'account-header-hidden',
    p => p.check.allowed_headers.patterns.splice(7, 1),
  ],
  [
    'an account header allowed only with hyphens and underscores',
    'account-header-hidden',
    p => set(p.check.allowed_headers.patterns[7].safe_regex, { regex: 'x[-_]account[-_]id' }),
  ],
  [
    'an account header whose spelling with one other separator is hidden',
    'account-header-hidden',
    p => set(p.check.allowed_headers.patterns[7].safe_regex, { regex: 'x[^a-z0-9~]account[^a-z0-9]id' }),
  ],
  [
    'an account header spelling in disallowed_headers',
    'disallowed-headers',
    p => set(p.check, { disallowed_headers: { patterns: [{ exact: 'x.account.id' }] } }),
  ],
  ['a hidden connection header', 'ambiguity-hidden', p => removePattern(p, 'connection')],
  [
    'a hidden content-type, where a query parameter names the account',
    'ambiguity-hidden',
    p => removePattern(p, 'content-type'),
  ],
  [
    'a connection header in disallowed_headers',
    'disallowed-headers',
    p => set(p.check, { disallowed_headers: { patterns: [{ exact: 'connection' }] } }),
  ],
  ['H-033 a hidden authorization header', 'authorization-hidden', p => p.check.allowed_headers.patterns.shift()],
  ['a hidden x-request-id header', 'request-id-hidden', p => p.check.allowed_headers.patterns.splice(1, 1)],
  [
    'an account header under a prefix in disallowed_headers',
    'disallowed-headers',
    p => set(p.check, { disallowed_headers: { patterns: [{ prefix: 'X-ACC', ignore_case: true }] } }),
  ],
  ['missing mutation rules', 'mutation-rules-missing', p => remove(p.check, 'decoder_header_mutation_rules')],
  [
    'mutation rules without the look-alikes',
    'mutation-rules-too-narrow',
    p => set(p.check.decoder_header_mutation_rules, { allow_expression: { regex: '^(x-auth-.*|authorization)$' } }),
  ],
  [
    'mutation rules without authorization',
    'mutation-rules-too-narrow',
    p =>
      set(p.check.decoder_header_mutation_rules, {
        allow_expression: { regex: 'x[-_]auth[-_](uid|app|acc|role|iss)' },
      }),
  ],
  [
    'mutation rules that match only a part of the name',
    'mutation-rules-too-narrow',
    p => set(p.check.decoder_header_mutation_rules, { allow_expression: { regex: '^x[-_]auth[-_]|^authorization' } }),
  ],
  [
    'mutation rules that disallow an identity header',
    'mutation-rules-too-narrow',
    p => set(p.check.decoder_header_mutation_rules, { disallow_expression: { regex: '.*-role' } }),
  ],
  [
    'mutation rules that allow every header',
    'mutation-rules-too-wide',
    p => set(p.check.decoder_header_mutation_rules, { allow_expression: { regex: '.*' } }),
  ],
  [
    'mutation rules that disallow nothing',
    'mutation-rules-too-wide',
    p => remove(p.check.decoder_header_mutation_rules, 'disallow_all'),
  ],
  [
    'mutation rules that do not turn a violation into an error',
    'mutation-not-error',
    p => remove(p.check.decoder_header_mutation_rules, 'disallow_is_error'),
  ],

  // The connection to account-authz.
  ['a missing cluster', 'authz-cluster-unknown', p => set(p.service.envoy_grpc, { cluster_name: 'elsewhere' })],
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
    'a cluster with ALPN but without TLS',
    'authz-cluster-http2',
    p =>
      set(Object.values<Part>(p.authz.typed_extension_protocol_options)[0], {
        explicit_http_config: null,
        auto_config: {},
      }),
  ],
  ['a long connect timeout', 'connect-timeout', p => set(p.authz, { connect_timeout: '0.5s' })],
  ['a missing connect timeout', 'connect-timeout', p => remove(p.authz, 'connect_timeout')],
  [
    'a port that differs from the configuration',
    'authz-address',
    p =>
      set(p.authz.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address, { port_value: 9193 }),
  ],
  [
    'a port where the configuration has a Unix socket',
    'authz-address',
    p => set(p.config, { listen: 'unix:/run/authz.sock' }),
  ],
  ['zero retries', 'retry-nothing', p => set(p.retry, { num_retries: 0 })],
  ['a missing retry_on', 'retry-nothing', p => remove(p.retry, 'retry_on')],
  ['a missing back-off', 'retry-back-off', p => remove(p.retry, 'retry_back_off')],
  ['a back-off without max_interval', 'retry-back-off', p => remove(p.retry.retry_back_off, 'max_interval')],
  [
    'a back-off as long as the check timeout',
    'retry-interval',
    p => set(p.retry.retry_back_off, { max_interval: '0.5s' }),
  ],
  ['a back-off of at most 10 ms', 'retry-interval', p => set(p.retry.retry_back_off, { max_interval: '0.010s' })],
  ['a missing retry budget', 'retry-budget', p => remove(p.authz.circuit_breakers.thresholds[0], 'max_retries')],
  ['missing circuit breakers', 'retry-budget', p => remove(p.authz, 'circuit_breakers')],
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
    'a loopback cluster for an account-authz on another machine',
    'authz-address',
    p => set(p.config, { listen: '192.0.2.7:9191' }),
  ],
  ['TLS only in account-authz', 'authz-tls', p => set(p.config, { tls })],
  ['TLS only in Envoy', 'authz-tls', p => set(p.authz, { transport_socket: upstreamTls() })],
  [
    'a missing client certificate that account-authz requires',
    'authz-client-certificate',
    p => [
      set(p.config, { tls: { ...tls, clientCaFile: '/ca.crt' } }),
      set(p.authz, { transport_socket: upstreamTls({ validation_context: {} }) }),
    ],
  ],

  [
    'a transport socket match without the client certificate that account-authz requires',
    'authz-client-certificate',
    p => [
      set(p.config, { tls: { ...tls, clientCaFile: '/ca.crt' } }),
      set(p.authz, {
        transport_socket_matches: [{ name: 'x', transport_socket: upstreamTls() }],
        transport_socket: upstreamTls(),
      }),
    ],
  ],

  // After the check.
  ['a lua filter after the check', 'filter-after-check', p => p.filters.splice(2, 0, filter('lua.v3.Lua'))],
  [
    'a disabled lua filter after the check that a protected route enables',
    'filter-after-check',
    p => {
      p.filters.splice(2, 0, { ...filter('lua.v3.Lua'), disabled: true });
      set(p.routes[0], { typed_per_filter_config: { 'my.lua.v3.Lua': typed('lua.v3.LuaPerRoute') } });
    },
  ],
  ['a wasm filter after the check', 'filter-after-check', p => p.filters.splice(3, 0, filter('wasm.v3.Wasm'))],
  [
    'an ext_proc filter after the check',
    'filter-after-check',
    p => p.filters.splice(2, 0, filter('ext_proc.v3.ExternalProcessor')),
  ],
  ['an unknown filter after the check', 'filter-after-check', p => p.filters.splice(2, 0, { name: 'x' })],
  [
    'a set_metadata filter after the check',
    'filter-after-check',
    p => p.filters.splice(2, 0, filter('set_metadata.v3.Config')),
  ],
  [
    'a header mutation after the check',
    'filter-after-check',
    p =>
      p.filters.splice(
        2,
        0,
        filter('header_mutation.v3.HeaderMutation', { mutations: { request_mutations: [{ remove: 'x-auth-acc' }] } }),
      ),
  ],
  [
    'a per-route header mutation after the check',
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
    'a jwt_authn filter after the check that clears the route cache',
    'filter-after-check',
    p =>
      p.filters.splice(
        2,
        0,
        filter('jwt_authn.v3.JwtAuthentication', { providers: { a: { clear_route_cache: true } } }),
      ),
  ],
  [
    'a removal of identity headers after the check',
    ['filter-after-check', 'owned-headers-kept'],
    p => {
      p.early.shift();
      p.filters.splice(2, 0, filter('header_mutation.v3.HeaderMutation', removal));
    },
  ],
  [
    'a local rate limit after the check that adds an identity header',
    'filter-after-check',
    p => p.filters.splice(2, 0, filter('local_ratelimit.v3.LocalRateLimit', notEnforced('x-auth-acc'))),
  ],
  [
    'a local rate limit after the check that adds a look-alike by the settings of a virtual host',
    'filter-after-check',
    p => {
      p.filters.splice(2, 0, filter('local_ratelimit.v3.LocalRateLimit'));
      set(p.host, {
        typed_per_filter_config: {
          'my.local_ratelimit.v3.LocalRateLimit': typed('local_ratelimit.v3.LocalRateLimit', notEnforced('X_Auth.Acc')),
        },
      });
    },
  ],
  [
    'a rate limit quota after the check that adds an account header in a bucket',
    'filter-after-check',
    p =>
      p.filters.splice(
        2,
        0,
        filter('rate_limit_quota.v3.RateLimitQuotaFilterConfig', {
          bucket_matchers: { on_no_match: { action: { typed_config: notEnforced('x-account-id') } } },
        }),
      ),
  ],
  [
    'a rate limit service after the check, whose answer may add headers',
    'filter-after-check',
    p => p.filters.splice(2, 0, filter('ratelimit.v3.RateLimit')),
  ],
  [
    'a local rate limit among the upstream filters that adds an identity header',
    'upstream-filter',
    p =>
      set(p.filters[3].typed_config, {
        upstream_http_filters: [filter('local_ratelimit.v3.LocalRateLimit', notEnforced('x-auth-role'))],
      }),
  ],
  [
    'a header mutation after the check that adds an identity header to the trailers',
    'filter-after-check',
    p =>
      p.filters.splice(
        2,
        0,
        filter('header_mutation.v3.HeaderMutation', {
          mutations: { request_trailers_mutations: [{ append: { header: { key: 'x-auth-uid', value: 'x' } } }] },
        }),
      ),
  ],
  ['a removed guard', 'guard-missing', p => p.filters.splice(2, 1)],
  ['a guard that is disabled in its chain', 'guard-missing', p => set(p.filters[2], { disabled: true })],
  ['a guard before the check', 'guard-missing', p => p.filters.splice(1, 0, ...p.filters.splice(2, 1))],
  [
    'a guard that only reports',
    'guard-missing',
    p => set(p.filters[2].typed_config, { rules: null, shadow_rules: p.filters[2].typed_config.rules }),
  ],
  [
    'a guard that a protected route turns off',
    'guard-missing',
    p => set(p.routes[0], { typed_per_filter_config: { 'envoy.filters.http.rbac': typed('rbac.v3.RBACPerRoute') } }),
  ],
  [
    'a guard that a virtual host replaces',
    'guard-missing',
    p =>
      set(p.host, {
        typed_per_filter_config: {
          'envoy.filters.http.rbac': typed('rbac.v3.RBACPerRoute', {
            rbac: { rules: { policies: { all: { principals: [{ any: true }], permissions: [{ any: true }] } } } },
          }),
        },
      }),
  ],
  [
    'a guard with a second policy that any request meets',
    'guard-missing',
    p =>
      set(p.filters[2].typed_config.rules.policies, {
        other: { principals: [{ any: true }], permissions: [{ header: { name: 'x', present_match: true } }] },
      }),
  ],
  [
    'a guard that accepts more than allow',
    'guard-missing',
    p => set(guardMatcher(p), { value: { string_match: { prefix: '' } } }),
  ],
  ['a guard that inverts its condition', 'guard-missing', p => set(guardMatcher(p), { invert: true })],
  [
    'a guard that reads other metadata',
    'guard-missing',
    p => set(guardMatcher(p), { filter: 'envoy.filters.http.jwt_authn' }),
  ],
  [
    'a removal from trailers that a protected route turns off',
    'trailers-kept',
    p =>
      set(p.routes[0], {
        typed_per_filter_config: {
          'envoy.filters.http.header_mutation': typed('envoy.config.route.v3.FilterConfig', { disabled: true }),
        },
      }),
  ],
  [
    'an upstream HTTP filter of the router',
    'upstream-filter',
    p =>
      set(p.filters[3].typed_config, {
        upstream_http_filters: [filter('lua.v3.Lua'), filter('upstream_codec.v3.UpstreamCodec')],
      }),
  ],
  [
    'an HTTP filter of the upstream cluster',
    'cluster-filter',
    p =>
      set(p.upstream, {
        typed_extension_protocol_options: {
          x: typed('envoy.extensions.upstreams.http.v3.HttpProtocolOptions', { http_filters: [filter('lua.v3.Lua')] }),
        },
      }),
  ],
  [
    'a connection pool of its own kind',
    'cluster-filter',
    p => set(p.upstream, { upstream_config: { name: 'x', typed_config: typed('envoy.extensions.upstreams.http.x') } }),
  ],
  [
    'an identity header added to mirrored requests',
    'headers-after-check',
    p =>
      set(p.routes[0].route, {
        request_mirror_policies: [
          {
            cluster: 'upstream',
            request_headers_mutations: [{ append: { header: { key: 'x-auth-acc', value: 'globex' } } }],
          },
        ],
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
    'a path override header added by a route',
    'headers-after-check',
    p => set(p.routes[0], { request_headers_to_add: [{ header: { key: 'x-rewrite-url', value: '/admin' } }] }),
  ],
  ['a prefix rewrite', 'path-rewrite', p => set(p.routes[0].route, { prefix_rewrite: '/' })],
  [
    'a regex rewrite of the path',
    'path-rewrite',
    p => set(p.routes[0].route, { regex_rewrite: { substitution: '/x' } }),
  ],
  ['a policy rewrite of the path', 'path-rewrite', p => set(p.routes[0].route, { path_rewrite_policy: { name: 'x' } })],
  ['a host rewrite from a header', 'host-rewrite', p => set(p.routes[0].route, { host_rewrite_header: 'x-host' })],
  ['L-025 internal redirects', 'internal-redirect', p => set(p.routes[0].route, { internal_redirect_policy: {} })],

  // Unreadable values.
  ['a number for a boolean', 'unreadable-value', p => set(p.check, { failure_mode_allow: 2 })],
  ['a duration without its unit', 'unreadable-value', p => set(p.service, { timeout: 0.5 })],
  ['one field in two spellings', 'unreadable-value', p => set(p.check, { failureModeAllow: true })],
  [
    'a regex that RE2 does not support',
    'unreadable-value',
    p => set(p.check.decoder_header_mutation_rules, { allow_expression: { regex: '(?!:path).*' } }),
  ],
  [
    'a string for a list of filters',
    ['unchecked-listener', 'unreadable-value'],
    p => set(p.manager, { http_filters: 'none' }),
  ],
];

const harmless: readonly (readonly [name: string, edit: (parts: Shipped) => unknown])[] = [
  ['the shipped bootstrap unchanged', () => undefined],
  [
    'a public route by its pattern',
    p => {
      set(p.config, open('/v1/health.z'));
      p.routes.unshift(publicRoute({ safe_regex: { regex: '/v1/health\\.z/?' } }));
    },
  ],
  [
    'a public subtree by its pattern',
    p => {
      set(p.config, open('/assets/*', 'GET'));
      p.routes.unshift(publicRoute({ safe_regex: { regex: '/assets(/[A-Za-z0-9._~:@-]+)*/?' } }, 'GET'));
    },
  ],
  [
    'a public subtree by two routes under it',
    p => {
      set(p.config, open('/assets/*'));
      p.routes.unshift(publicRoute({ prefix: '/assets/' }), publicRoute({ path: '/assets' }));
    },
  ],
  [
    'a public path that Envoy answers itself',
    p => {
      set(p.config, open('/healthz'));
      const { route: _, ...others } = publicRoute({ path: '/healthz' });
      p.routes.unshift({ ...others, direct_response: { status: 200 } });
    },
  ],
  [
    'a host with a port, and the hosts of accounts',
    p => {
      hosts(p, ':account_id.api.example.com', 'api.example.com');
      set(p.host, { domains: ['API.example.com:*', '*.api.example.com'] });
      const regex =
        'forwarded|x[^a-z0-9](forwarded[^a-z0-9](host|server)|host|original[^a-z0-9]host|http[^a-z0-9]host[^a-z0-9]override)';
      for (const list of [p.early, p.trailers])
        list.push({ remove_on_match: { key_matcher: { safe_regex: { regex } } } });
    },
  ],
  ['headers sent as a map', p => remove(p.check, 'encode_raw_headers')],
  ['all headers sent to account-authz', p => remove(p.check, 'allowed_headers')],
  ['a missing retry policy', p => remove(p.service, 'retry_policy')],
  [
    'dropped headers with underscores',
    p => set(p.manager.common_http_protocol_options, { headers_with_underscores_action: 'DROP_HEADER' }),
  ],
  ['an early mutation by a prefix', p => set(p.early[0].remove_on_match, { key_matcher: { prefix: 'x-auth-' } })],
  [
    'a removal of identity headers in a filter before the check',
    p => {
      p.early.shift();
      p.filters.unshift(filter('header_mutation.v3.HeaderMutation', removal));
    },
  ],
  [
    'other spellings of an account header removed instead of sent',
    p => {
      p.check.allowed_headers.patterns.splice(7, 1);
      p.early.push({
        remove_on_match: {
          key_matcher: { safe_regex: { regex: 'x[^a-z0-9-]account[^a-z0-9]id|x[^a-z0-9]account[^a-z0-9-]id' } },
        },
      });
    },
  ],
  [
    'an account header without a hyphen, sent and removed from trailers',
    p => {
      set(p.config, { account: { headers: ['tenant'], query: [] } });
      p.check.allowed_headers.patterns.push({ exact: 'tenant' });
      p.trailers.push({ remove: 'Tenant' });
    },
  ],
  ['a removal from trailers after the check', p => p.filters.splice(1, 0, ...p.filters.splice(0, 1))],
  [
    'all trailers removed',
    p => p.trailers.splice(0, 9, { remove_on_match: { key_matcher: { safe_regex: { regex: '.*' } } } }),
  ],
  [
    'the gRPC route enabled',
    p =>
      p.routes.unshift({
        match: { path_separated_prefix: '/api/subscriptions', grpc: {} },
        route: { cluster: 'upstream-grpc' },
      }),
  ],
  ['checked sibling paths', p => set(p.routes[0], { match: { prefix: '/api/subscriptions' } })],
  ['a case-insensitive checked route', p => set(p.routes[0].match, { case_sensitive: false })],
  [
    'a checked catch-all route',
    p => {
      p.routes.pop();
      p.routes.push({ match: { prefix: '/' }, route: { cluster: 'upstream' } });
    },
  ],
  [
    'an unchecked catch-all route to another service',
    p => {
      remove(p.routes[1], 'direct_response');
      set(p.routes[1], { route: { cluster: 'website' } });
    },
  ],
  [
    'an unchecked redirect',
    p => p.routes.unshift({ match: { prefix: '/api' }, redirect: { https_redirect: true }, ...disabled }),
  ],
  [
    'a filter disabled in its chain and enabled by the route configuration',
    p => {
      set(p.filters[1], { disabled: true });
      set(p.manager.route_config, checkSettings({ context_extensions: { a: 'b' } }));
    },
  ],
  [
    'a disabled virtual host whose routes enable the check',
    p => {
      set(p.host, disabled);
      for (const route of p.routes) set(route, checkSettings({ context_extensions: { a: 'b' } }));
    },
  ],
  [
    'per-route settings for an absent filter',
    p =>
      set(p.routes[0], {
        typed_per_filter_config: { other: typed('ext_authz.v3.ExtAuthzPerRoute', { disabled: true }) },
      }),
  ],
  [
    'a loopback listener that forwards any path to another service',
    p =>
      secondListener(p, (listener, m) => {
        listener.address.socket_address.address = '127.0.0.1';
        dropCheck(m);
        onlyRoutes(m, [{ match: { prefix: '/' }, route: { cluster: 'partner' } }]);
      }),
  ],
  [
    'an outbound listener that forwards any path to another service',
    p =>
      secondListener(p, (listener, m) => {
        listener.traffic_direction = 'OUTBOUND';
        dropCheck(m);
        onlyRoutes(m, [{ match: { prefix: '/' }, route: { cluster: 'partner' } }]);
      }),
  ],
  [
    'disabled upstream filters',
    p => set(p.filters[3].typed_config, { upstream_http_filters: [{ ...filter('lua.v3.Lua'), disabled: true }] }),
  ],
  [
    'another ext_authz filter for another service',
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
  [
    'a websocket upgrade through the main filter chain',
    p => set(p.manager, { upgrade_configs: [{ upgrade_type: 'websocket' }] }),
  ],
  [
    'a disabled CONNECT upgrade',
    p => set(p.manager, { upgrade_configs: [{ upgrade_type: 'CONNECT', enabled: false }] }),
  ],
  [
    'a Unix socket on both sides',
    p => {
      set(p.config, { listen: 'unix:/run/account-authz/authz.sock' });
      p.authz.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address = {
        pipe: { path: '/run/account-authz/authz.sock' },
      };
    },
  ],
  ['account-authz on a host name', p => set(p.config, { listen: 'authz.internal:9191' })],
  ['account-authz on every address', p => set(p.config, { listen: '0.0.0.0:9191' })],
  [
    'a cluster address that is a host name',
    p =>
      set(p.authz.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address, {
        address: 'authz.internal',
      }),
  ],
  ['an admin interface on a Unix socket', p => set(p.root.admin, { address: { pipe: { path: '/run/admin.sock' } } })],
  ['a missing admin interface', p => remove(p.root, 'admin')],
  [
    'a local rate limit that adds another header',
    p => p.filters.splice(2, 0, filter('local_ratelimit.v3.LocalRateLimit', notEnforced('x-limited'))),
  ],
  [
    'a guard of several conditions',
    p => {
      const [policy] = Object.values<Part>(p.filters[2].typed_config.rules.policies);
      const [isAllowed] = policy.permissions;
      policy.permissions = [{ or_rules: { rules: [isAllowed, { and_rules: { rules: [{ any: true }, isAllowed] } }] } }];
    },
  ],
  [
    'a guard among the principals',
    p => {
      const [policy] = Object.values<Part>(p.filters[2].typed_config.rules.policies);
      policy.principals = { or_ids: { ids: [policy.permissions[0]] } };
      policy.permissions = [{ any: true }];
    },
  ],
  [
    'rate limit and fault filters after the check',
    p => p.filters.splice(2, 0, filter('local_ratelimit.v3.LocalRateLimit'), filter('fault.v3.HTTPFault')),
  ],
  [
    'response header mutations after the check',
    p =>
      p.filters.splice(
        2,
        0,
        filter('header_mutation.v3.HeaderMutation', { mutations: { response_mutations: [{ remove: 'server' }] } }),
      ),
  ],
  ['a lua filter before the check', p => p.filters.unshift(filter('lua.v3.Lua'))],
  ['a disabled lua filter after the check', p => p.filters.splice(2, 0, { ...filter('lua.v3.Lua'), disabled: true })],
  [
    'a jwt_authn filter that only reads',
    p => p.filters.splice(2, 0, filter('jwt_authn.v3.JwtAuthentication', { providers: { a: {} } })),
  ],
  [
    'other headers added by a route',
    p => set(p.routes[0], { request_headers_to_add: [{ header: { key: 'x-team', value: 'blue' } }] }),
  ],
  ['a second removal of the token', p => set(p.routes[0], { request_headers_to_remove: ['authorization'] })],
  ['a literal host rewrite', p => set(p.routes[0].route, { host_rewrite_literal: 'service.internal' })],
  [
    'a local reply mapper for other flags',
    p =>
      set(p.manager, {
        local_reply_config: {
          mappers: [{ filter: { response_flag_filter: { flags: ['NR', 'UF'] } }, status_code: 502 }],
        },
      }),
  ],
  [
    'a check of all requests without a runtime key',
    p => set(p.check, { filter_enabled: { default_value: { numerator: 100, denominator: 'HUNDRED' } } }),
  ],
  [
    'a removal of request headers by a mirror policy',
    p =>
      set(p.routes[0].route, {
        request_mirror_policies: [{ cluster: 'copy', request_headers_mutations: [{ remove: 'x-auth-uid' }] }],
      }),
  ],
  [
    'ALPN with TLS on both sides',
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
    'a client certificate in a transport socket match, as Envoy Gateway writes it',
    p => [
      set(p.config, { tls: { ...tls, clientCaFile: '/ca.crt' } }),
      set(p.authz, {
        transport_socket: upstreamTls(),
        transport_socket_matches: [
          { name: 'x', transport_socket: upstreamTls({ tls_certificate_sds_secret_configs: [{ name: 'own' }] }) },
        ],
      }),
    ],
  ],
  [
    'TLS on both sides with a client certificate',
    p => [
      set(p.config, { tls: { ...tls, clientCaFile: '/ca.crt' } }),
      set(p.authz, { transport_socket: upstreamTls({ tls_certificate_sds_secret_configs: [{ name: 'own' }] }) }),
    ],
  ],
  [
    'two Envoy routes for one configured route',
    p => {
      set(p.routes[0], { match: { path: '/api/subscriptions' } });
      p.routes.splice(1, 0, { match: { prefix: '/api/subscriptions/' }, route: { cluster: 'upstream' } });
    },
  ],
  [
    'a configured path on another listener',
    p => {
      set(p.config, { routes: [...p.config.routes, { path: '/v2/billing/*' }] });
      secondListener(p, (_, m) =>
        onlyRoutes(m, [{ match: { path_separated_prefix: '/v2/billing' }, route: { cluster: 'upstream' } }]),
      );
    },
  ],
  [
    'narrow mutation rules that cover all identity headers',
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

describe('lintBootstrap', () => {
  for (const [name, rule, edit] of mistakes) {
    it(`reports ${name} [${rule}]`, () => {
      expect(rulesAfter(edit)).to.deep.equal([rule].flat());
    });
  }

  for (const [name, edit] of harmless) {
    it(`accepts ${name}`, () => {
      expect(rulesAfter(edit)).to.deep.equal([]);
    });
  }

  it('has a planted mistake for every rule', () => {
    const planted = new Set(mistakes.flatMap(([, rule]) => rule));
    // Tested in test/config/commands.test.ts, since lintBootstrap takes parsed values.
    const ofFiles = ['unreadable-file'];
    expect([...planted, ...ofFiles].sort()).to.deep.equal(Object.keys(lintRules).sort());
  });
});
