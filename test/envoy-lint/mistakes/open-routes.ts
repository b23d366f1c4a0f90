// Planted mistakes: public routes, hosts, and settings that are not in the file.
import { typed } from '../shipped.ts';
import { dropCheck, hosts, type Mistake, onlyRoutes, open, pathsTo, publicRoute, remove, set } from './planting.ts';

export const openRoutes: readonly Mistake[] = [
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
    ['mutation-rules-too-narrow', 'other-host', 'override-headers-kept', 'trailers-kept'],
    p => hosts(p, ':account_id.api.example.com'),
  ],
  [
    'another host than that of the configuration',
    ['host-missing', 'mutation-rules-too-narrow', 'other-host', 'override-headers-kept', 'trailers-kept'],
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
];
