// Harmless edits: clusters, filters after the check and mutation rules.
import { get, metrics } from '../holes.ts';
import { filter, type Part } from '../shipped.ts';
import {
  type HarmlessEdits,
  notEnforced,
  onlyRoutes,
  remove,
  secondListener,
  set,
  silent,
  tls,
  upstreamTls,
} from './planting.ts';

export const harmlessSettings: HarmlessEdits = {
  'another authorization service on another machine before the check': p => {
    const load_assignment = {
      endpoints: [
        { lb_endpoints: [{ endpoint: { address: { socket_address: { address: 'opa', port_value: 9191 } } } }] },
      ],
    };
    p.root.static_resources.clusters.push({ name: 'opa', type: 'STRICT_DNS', load_assignment });
    p.filters.unshift(filter('ext_authz.v3.ExtAuthz', { ...silent('opa'), failure_mode_allow: true }));
  },
  'another authorization service behind the check': p =>
    p.filters.splice(3, 0, filter('ext_authz.v3.ExtAuthz', { http_service: { server_uri: { cluster: 'x' } } })),
  'metrics on a listener of their own, as Envoy Gateway has one': p =>
    metrics(p, { path: '/stats/prometheus', ...get }, { normalize_path: true }),
  'pages of the admin interface that read, on loopback, as Contour has ten': p => {
    const headers = [{ name: ':method', string_match: { exact: 'GET', ignore_case: true } }];
    for (const path of ['/stats/recentlookups', '/stats/prometheus', '/ready', '/config_dump', '/certs'])
      metrics(p, { path, headers }, {}, '127.0.0.1');
  },
  'a page for refusals with their status': p =>
    set(p.manager, {
      local_reply_config: { body_format: { text_format_source: { inline_string: 'sorry' } }, mappers: [{ body: {} }] },
    }),
  'a rewrite of a path to itself': p => set(p.routes[0].route, { prefix_rewrite: '/api/subscriptions' }),
  'an absent version of the protocol, which is 3': p => remove(p.check, 'transport_api_version'),
  'the version AUTO': p => set(p.check, { transport_api_version: 'AUTO' }),
  "Istio's own statistics behind the check": p =>
    p.filters.splice(2, 0, {
      name: 'istio.stats',
      typed_config: { '@type': 'type.googleapis.com/stats.PluginConfig' },
    }),
  'an ext_authz of somebody else over HTTP before the check': p =>
    p.filters.splice(
      1,
      0,
      filter('ext_authz.v3.ExtAuthz', {
        http_service: { server_uri: { uri: 'http://127.0.0.1:4180', cluster: 'upstream', timeout: '1s' } },
      }),
    ),
  'a websocket upgrade through the main filter chain': p =>
    set(p.manager, { upgrade_configs: [{ upgrade_type: 'websocket' }] }),
  'a disabled CONNECT upgrade': p => set(p.manager, { upgrade_configs: [{ upgrade_type: 'CONNECT', enabled: false }] }),
  'a Unix socket on both sides': p => {
    set(p.config, { listen: 'unix:/run/account-authz/authz.sock' });
    p.authz.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address = {
      pipe: { path: '/run/account-authz/authz.sock' },
    };
  },
  'account-authz on a host name': p => set(p.config, { listen: 'authz.internal:9191' }),
  'account-authz on every address': p => set(p.config, { listen: '0.0.0.0:9191' }),
  'a cluster address that is a host name': p =>
    set(p.authz.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address, {
      address: 'authz.internal',
    }),
  'a log of the requests with a token that does not have the token': p =>
    set(p.manager.access_log[0], {
      filter: { header_filter: { header: { name: 'authorization', present_match: true } } },
    }),
  'a log of a header with a similar name': p =>
    set(p.manager.access_log[0].typed_config.log_format.json_format, { scheme: '%REQ(X-AUTHORIZATION-SCHEME)%' }),
  'an admin interface on a Unix socket': p => set(p.root.admin, { address: { pipe: { path: '/run/admin.sock' } } }),
  'a missing admin interface': p => remove(p.root, 'admin'),
  'a local rate limit that adds another header': p =>
    p.filters.splice(2, 0, filter('local_ratelimit.v3.LocalRateLimit', notEnforced('x-limited'))),
  'a guard of several conditions': p => {
    const [policy] = Object.values<Part>(p.filters[2].typed_config.rules.policies);
    const [isAllowed] = policy.permissions;
    policy.permissions = [{ or_rules: { rules: [isAllowed, { and_rules: { rules: [{ any: true }, isAllowed] } }] } }];
  },
  'a guard among the principals': p => {
    const [policy] = Object.values<Part>(p.filters[2].typed_config.rules.policies);
    policy.principals = { or_ids: { ids: [policy.permissions[0]] } };
    policy.permissions = [{ any: true }];
  },
  'rate limit and fault filters after the check': p =>
    p.filters.splice(2, 0, filter('local_ratelimit.v3.LocalRateLimit'), filter('fault.v3.HTTPFault')),
  'response header mutations after the check': p =>
    p.filters.splice(
      2,
      0,
      filter('header_mutation.v3.HeaderMutation', { mutations: { response_mutations: [{ remove: 'server' }] } }),
    ),
  'a lua filter before the check': p => p.filters.unshift(filter('lua.v3.Lua')),
  'a disabled lua filter after the check': p => p.filters.splice(2, 0, { ...filter('lua.v3.Lua'), disabled: true }),
  'an mcp filter that only reads, with rules by its metadata': p =>
    p.filters.splice(2, 0, filter('mcp.v3.Mcp', { attribute_source: 'VERIFY' }), filter('rbac.v3.RBAC')),
  'a jwt_authn filter that only reads': p =>
    p.filters.splice(2, 0, filter('jwt_authn.v3.JwtAuthentication', { providers: { a: {} } })),
  'other headers added by a route': p =>
    set(p.routes[0], { request_headers_to_add: [{ header: { key: 'x-team', value: 'blue' } }] }),
  'a second removal of the token': p => set(p.routes[0], { request_headers_to_remove: ['authorization'] }),
  'a literal host rewrite': p => set(p.routes[0].route, { host_rewrite_literal: 'service.internal' }),
  'local reply mappers for other flags and for the same status': p =>
    set(p.manager, {
      local_reply_config: {
        mappers: [
          { filter: { response_flag_filter: { flags: ['NR', 'UF'] } }, status_code: 502 },
          // A page for refusals, with their status.
          { filter: { status_code_filter: { comparison: { value: { default_value: 403 } } } }, status_code: 403 },
        ],
      },
    }),
  'a check of all requests without a runtime key': p =>
    set(p.check, { filter_enabled: { default_value: { numerator: 100, denominator: 'HUNDRED' } } }),
  'a removal of request headers by a mirror policy': p =>
    set(p.routes[0].route, {
      request_mirror_policies: [{ cluster: 'copy', request_headers_mutations: [{ remove: 'x-auth-uid' }] }],
    }),
  'ALPN with TLS on both sides': p => {
    set(Object.values<Part>(p.authz.typed_extension_protocol_options)[0], {
      explicit_http_config: null,
      auto_config: {},
    });
    set(p.authz, { transport_socket: upstreamTls({ validation_context: { trusted_ca: {} } }) });
    set(p.config, { tls });
  },
  'a client certificate in a transport socket match, as Envoy Gateway writes it': p => [
    set(p.config, { tls: { ...tls, clientCaFile: '/ca.crt' } }),
    set(p.authz, {
      transport_socket: upstreamTls(),
      transport_socket_matches: [
        { name: 'x', transport_socket: upstreamTls({ tls_certificate_sds_secret_configs: [{ name: 'own' }] }) },
      ],
    }),
  ],
  'TLS on both sides with a client certificate': p => [
    set(p.config, { tls: { ...tls, clientCaFile: '/ca.crt' } }),
    set(p.authz, { transport_socket: upstreamTls({ tls_certificate_sds_secret_configs: [{ name: 'own' }] }) }),
  ],
  'two Envoy routes for one configured route': p => {
    set(p.routes[0], { match: { path: '/api/subscriptions' } });
    p.routes.splice(1, 0, { match: { prefix: '/api/subscriptions/' }, route: { cluster: 'upstream' } });
  },
  'a configured path on another listener': p => {
    set(p.config, { routes: [...p.config.routes, { path: '/v2/billing/*' }] });
    secondListener(p, (_, m) =>
      onlyRoutes(m, [{ match: { path_separated_prefix: '/v2/billing' }, route: { cluster: 'upstream' } }]),
    );
  },
  'narrow mutation rules that cover all identity headers': p =>
    set(p.check.decoder_header_mutation_rules, {
      allow_expression: {
        google_re2: {},
        regex: '(?i)x[_-]AUTH[_-](?:uid|app|acc|role|iss|actor)|\\Qauthorization\\E',
      },
    }),
};
