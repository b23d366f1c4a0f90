// Harmless edits: routes, hosts and filters before the check.
import { filter, typed } from '../shipped.ts';
import {
  checkSettings,
  copyOf,
  disabled,
  dropCheck,
  type HarmlessEdits,
  hosts,
  onlyRoutes,
  open,
  publicRoute,
  removal,
  remove,
  secondListener,
  set,
  shardRoute,
  silent,
} from './planting.ts';

export const harmlessRoutes: HarmlessEdits = {
  'the shipped bootstrap unchanged': () => undefined,
  'a public route by its pattern': p => {
    set(p.config, open('/v1/health.z'));
    p.routes.unshift(publicRoute({ safe_regex: { regex: '/v1/health\\.z/?' } }));
  },
  'a public subtree by its pattern': p => {
    set(p.config, open('/assets/*', 'GET'));
    p.routes.unshift(publicRoute({ safe_regex: { regex: '/assets(/[A-Za-z0-9._~:@-]+)*/?' } }, 'GET'));
  },
  'a public subtree by two routes under it': p => {
    set(p.config, open('/assets/*'));
    p.routes.unshift(publicRoute({ prefix: '/assets/' }), publicRoute({ path: '/assets' }));
  },
  'a public path that Envoy answers itself': p => {
    set(p.config, open('/healthz'));
    const { route: _, ...others } = publicRoute({ path: '/healthz' });
    p.routes.unshift({ ...others, direct_response: { status: 200 } });
  },
  'a host with a port, and the hosts of accounts': p => {
    hosts(p, ':account_id.api.example.com', 'api.example.com');
    set(p.host, { domains: ['API.example.com:*', '*.api.example.com'] });
    const regex =
      'forwarded|x[^a-z0-9](forwarded[^a-z0-9](host|server)|host|original[^a-z0-9]host|http[^a-z0-9]host[^a-z0-9]override)';
    for (const list of [p.early, p.trailers])
      list.push({ remove_on_match: { key_matcher: { safe_regex: { regex } } } });
    const rules = p.check.decoder_header_mutation_rules;
    set(rules.allow_expression, { regex: `${rules.allow_expression.regex}|${regex}` });
  },
  'routes by the verified account': p => {
    shardRoute(p);
    shardRoute(p, { name: ':method', string_match: { exact: 'GET' } });
  },
  'headers sent as a map': p => remove(p.check, 'encode_raw_headers'),
  'all headers sent to account-authz': p => remove(p.check, 'allowed_headers'),
  'a missing retry policy': p => remove(p.service, 'retry_policy'),
  'dropped headers with underscores': p =>
    set(p.manager.common_http_protocol_options, { headers_with_underscores_action: 'DROP_HEADER' }),
  'an early mutation by a prefix': p => set(p.early[0].remove_on_match, { key_matcher: { prefix: 'x-auth-' } }),
  'a removal of identity headers in a filter before the check': p => {
    p.early.shift();
    p.filters.unshift(filter('header_mutation.v3.HeaderMutation', removal));
  },
  'an override set early and removed by a filter before the check': p => {
    const append = { header: { key: 'X-Original-URL', value: '/' } };
    p.early.push({ append });
    p.filters.unshift(
      filter('header_mutation.v3.HeaderMutation', { mutations: { request_mutations: [{ remove: 'x-original-url' }] } }),
    );
  },
  'a header that nobody owns, set behind the check': p =>
    p.filters.splice(
      3,
      0,
      filter('header_mutation.v3.HeaderMutation', {
        mutations: { request_mutations: [{ append: { header: { key: 'x-team', value: 'blue' } } }] },
      }),
    ),
  'other spellings of an account header removed instead of sent': p => {
    p.check.allowed_headers.patterns.splice(7, 1);
    p.early.push({
      remove_on_match: {
        key_matcher: { safe_regex: { regex: 'x[^a-z0-9-]account[^a-z0-9]id|x[^a-z0-9]account[^a-z0-9-]id' } },
      },
    });
  },
  'an account header without a hyphen, sent and removed from trailers': p => {
    set(p.config, { account: { headers: ['tenant'], query: [] } });
    p.check.allowed_headers.patterns.push({ exact: 'tenant' });
    p.trailers.push({ remove: 'Tenant' });
  },
  'a removal from trailers after the check': p => p.filters.splice(1, 0, ...p.filters.splice(0, 1)),
  'all trailers removed': p =>
    p.trailers.splice(0, 9, { remove_on_match: { key_matcher: { safe_regex: { regex: '.*' } } } }),
  'the gRPC route enabled': p =>
    p.routes.unshift({
      match: { path_separated_prefix: '/api/subscriptions', grpc: {} },
      route: { cluster: 'upstream-grpc' },
    }),
  'checked sibling paths': p => set(p.routes[0], { match: { prefix: '/api/subscriptions' } }),
  'a case-insensitive checked route': p => set(p.routes[0].match, { case_sensitive: false }),
  'a checked catch-all route': p => {
    p.routes.pop();
    p.routes.push({ match: { prefix: '/' }, route: { cluster: 'upstream' } });
  },
  'an unchecked catch-all route to another service': p => {
    remove(p.routes[1], 'direct_response');
    set(p.routes[1], { route: { cluster: 'website' } });
  },
  'an unchecked redirect': p =>
    p.routes.unshift({ match: { prefix: '/api' }, redirect: { https_redirect: true }, ...disabled }),
  'a filter disabled in its chain and enabled by the route configuration': p => {
    set(p.filters[1], { disabled: true });
    set(p.manager.route_config, checkSettings({ context_extensions: { a: 'b' } }));
  },
  'a disabled virtual host whose routes enable the check': p => {
    set(p.host, disabled);
    for (const route of p.routes) set(route, checkSettings({ context_extensions: { a: 'b' } }));
  },
  'per-route settings for an absent filter': p =>
    set(p.routes[0], {
      typed_per_filter_config: { other: typed('ext_authz.v3.ExtAuthzPerRoute', { disabled: true }) },
    }),
  'a loopback listener that forwards any path to another service': p =>
    secondListener(p, (listener, m) => {
      listener.address.socket_address.address = '127.0.0.1';
      dropCheck(m);
      onlyRoutes(m, [{ match: { prefix: '/' }, route: { cluster: 'partner' } }]);
    }),
  'an outbound listener that forwards any path to another service': p =>
    secondListener(p, (listener, m) => {
      set(listener, { traffic_direction: 'OUTBOUND', bind_to_port: false });
      dropCheck(m);
      onlyRoutes(m, [{ match: { prefix: '/' }, route: { cluster: 'partner' } }]);
    }),
  'disabled upstream filters': p =>
    set(p.filters[3].typed_config, { upstream_http_filters: [{ ...filter('lua.v3.Lua'), disabled: true }] }),
  'another ext_authz filter for a service at the same port of another machine': p => {
    set(p.config, { listen: '0.0.0.0:9191' });
    const other = set(copyOf(p.authz), { name: 'opa' });
    p.root.static_resources.clusters.push(other);
    set(p.authz.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address, {
      address: 'authz.test',
    });
    set(p.authz, { type: 'STRICT_DNS' });
    p.filters.unshift(filter('ext_authz.v3.ExtAuthz', silent('opa')));
  },
  'another ext_authz filter for another service': p => {
    const other = copyOf(p.authz);
    other.name = 'other-authz';
    other.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.port_value = 9999;
    remove(other, 'typed_extension_protocol_options');
    p.root.static_resources.clusters.push(other);
    p.filters.unshift(filter('ext_authz.v3.ExtAuthz', silent('other-authz')));
  },
};
