// Planted mistakes: public routes, hosts, and settings that are not in the file.
import { typed } from '../shipped.ts';
import { dropCheck, hosts, type Mistakes, onlyRoutes, open, pathsTo, publicRoute, remove, set } from './planting.ts';

export const openRoutes: Mistakes = {
  'public-route-missing': {
    // Public routes and the metadata document.
    'a public route that is only in the configuration': p => set(p.config, open('/healthz')),
    'a public route that Envoy checks': p => {
      set(p.config, open('/healthz'));
      p.routes.unshift({ match: { path: '/healthz' }, route: { cluster: 'upstream' } });
    },
    'a public route that the guard refuses': p => {
      set(p.config, open('/healthz'));
      p.routes.unshift(publicRoute({ path: '/healthz' }));
      remove(p.routes[0].typed_per_filter_config, 'envoy.filters.http.rbac');
    },
    'a public route for one of its methods': p => {
      set(p.config, open('/healthz', 'GET', 'POST'));
      p.routes.unshift(publicRoute({ path: '/healthz' }, 'GET'));
    },
    'a missing metadata document': p =>
      set(p.config, { protectedResource: { resource: 'https://api.example.com/subscriptions' } }),
  },
  'open-route': {
    'a public route for every method': p => {
      set(p.config, open('/healthz'));
      p.routes.unshift(publicRoute({ path: '/healthz' }));
      remove(p.routes[0].match, 'headers');
    },
    'a public route for more methods': p => {
      set(p.config, open('/healthz', 'GET'));
      p.routes.unshift(publicRoute({ path: '/healthz' }, 'GET|DELETE'));
    },
    'a public path as a prefix of text': p => {
      set(p.config, open('/healthz'));
      p.routes.unshift(publicRoute({ prefix: '/healthz' }));
    },
  },
  'owned-headers-kept': {
    'account headers and the token kept on a public route': p => {
      set(p.config, open('/healthz'));
      p.routes.unshift(publicRoute({ path: '/healthz' }));
      remove(p.routes[0].typed_per_filter_config, 'envoy.filters.http.header_mutation');
    },
    'spellings of an account header kept on a public route': p => {
      set(p.config, open('/healthz'));
      p.routes.unshift({
        ...publicRoute({ path: '/healthz' }),
        request_headers_to_remove: ['x-account-id', 'Authorization'],
      });
      remove(p.routes[0].typed_per_filter_config, 'envoy.filters.http.header_mutation');
    },
  },
  'mutation-rules-wrong + other-host + owned-headers-kept + trailers-kept': {
    // Hosts.
    'any host, where the configuration names hosts': p => hosts(p, ':account_id.api.example.com'),
    'another host than that of the configuration': p => {
      hosts(p, ':account_id.api.example.com', 'api.example.com');
      set(p.host, { domains: ['api.example.com', '*.example.org'] });
    },
  },
  'conditional-check': {
    'a matcher around ext_authz': p =>
      set(p.filters[1], {
        typed_config: typed('envoy.extensions.common.matching.v3.ExtensionWithMatcher', {
          extension_config: { name: 'x', typed_config: p.check },
          xds_matcher: {},
        }),
      }),
  },
  'admin-exposed': { 'the admin interface on ::': p => set(p.root.admin.address.socket_address, { address: '::' }) },
  'nothing-checked': {
    'a bootstrap unrelated to the service': p => [
      dropCheck(p.manager),
      onlyRoutes(p.manager, pathsTo('website', '/index.html')),
    ],
    'a bootstrap without listeners': p => set(p.root.static_resources, { listeners: [] }),
  },
};
