// Planted mistakes: ways around the check.
import { typed } from '../shipped.ts';
import {
  byTemplate,
  copyOf,
  disabled,
  dropCheck,
  type Mistakes,
  onlyRoutes,
  pathsTo,
  remove,
  secondListener,
  set,
  shardRoute,
} from './planting.ts';

export const bypasses: Mistakes = {
  'unreachable-route': {
    // Configured paths that Envoy does not route.
    'a route that is only in the configuration': p =>
      set(p.config, { routes: [...p.config.routes, { path: '/v2/billing/:account_id/*' }] }),
    'a route that starts with a parameter, when Envoy routes only some paths': p =>
      set(p.config, { routes: [...p.config.routes, { path: '/:account_id' }] }),
    'a path that differs in Envoy': p => set(p.routes[0], { match: { path_separated_prefix: '/api/subscription' } }),
    'an exact path for a configured subtree': p => set(p.routes[0], { match: { path: '/api/subscriptions' } }),
    'a protected route after the route that refuses everything': p => p.routes.reverse(),
  },
  'dynamic-settings': {
    'a path that only a control plane can route, without a second finding': p => {
      set(p.root, { dynamic_resources: { lds_config: { ads: {} } } });
      set(p.config, { routes: [...p.config.routes, { path: '/v2/billing/*' }] });
    },
  },
  'unchecked-listener': {
    'a loopback listener that forwards any path to the upstream hosts under another cluster name': p => {
      p.root.static_resources.clusters.push({ ...copyOf(p.upstream), name: 'alias' });
      secondListener(p, (listener, m) => {
        listener.address.socket_address.address = '127.0.0.1';
        dropCheck(m);
        onlyRoutes(m, [{ match: { prefix: '/' }, route: { cluster: 'alias' } }]);
      });
    },
    'a default filter chain without ext_authz': p => {
      p.listener.default_filter_chain = copyOf(p.listener.filter_chains[0]);
      dropCheck(p.listener.default_filter_chain.filters[0].typed_config);
    },
    'the only listener without ext_authz': p => dropCheck(p.manager),
  },
  'unchecked-route': {
    'a disabled protected route': p => set(p.routes[0], disabled),
    'a disabled route for one account': p => {
      shardRoute(p);
      set(p.routes[0], disabled);
    },
    'a disabled weighted cluster': p =>
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
    'a route that disables the filter by FilterConfig': p =>
      set(p.routes[0], {
        typed_per_filter_config: {
          'envoy.filters.http.ext_authz': typed('envoy.config.route.v3.FilterConfig', { disabled: true }),
        },
      }),
    'a filter that is disabled in its chain': p => set(p.filters[1], { disabled: true }),
    'a disabled route for one protected path': p =>
      p.routes.unshift({ match: { path: '/api/subscriptions/health' }, route: { cluster: 'upstream' }, ...disabled }),
    'a disabled route whose template matches a protected path': p =>
      p.routes.unshift({ match: byTemplate('/api/*/{id}/status'), route: { cluster: 'upstream' }, ...disabled }),
    'a disabled route whose template ends in ** above a protected path': p =>
      p.routes.unshift({ match: byTemplate('/api/{rest=**}'), route: { cluster: 'upstream' }, ...disabled }),
    'a disabled case-insensitive route that also matches a protected path': p =>
      p.routes.unshift({
        match: { prefix: '/API/Subscriptions', case_sensitive: false },
        route: { cluster: 'upstream' },
        ...disabled,
      }),
    'a disabled route whose regex matches a protected path': p =>
      p.routes.unshift({
        match: { safe_regex: { regex: '/api/[a-z]+/[0-9]{4}/status' } },
        route: { cluster: 'upstream' },
        ...disabled,
      }),
  },
  'unchecked-look-alike': {
    'an unchecked catch-all route to the same upstream': p => {
      remove(p.routes[1], 'direct_response');
      set(p.routes[1], { route: { cluster: 'upstream' } });
    },
  },
  'open-route': {
    'an unchecked catch-all route to the upstream beside a case-insensitive checked route': p => {
      remove(p.routes[1], 'direct_response');
      set(p.routes[1], { route: { cluster: 'upstream' } });
      set(p.routes[0].match, { case_sensitive: false });
    },
    'unchecked routes for unprotected paths of the upstream': p =>
      p.routes.unshift(
        ...pathsTo('upstream', '/healthz', '/api/subscriptionsX').map(route => ({ ...route, ...disabled })),
      ),
    'unchecked template routes for unprotected paths': p => {
      for (const template of ['/healthz/*', '/api/other/**', '/public/{file=**}'])
        p.routes.unshift({ match: byTemplate(template), route: { cluster: 'upstream' }, ...disabled });
    },
    'an unchecked listener for one unprotected path of the upstream': p =>
      secondListener(p, (_, m) => [dropCheck(m), onlyRoutes(m, pathsTo('upstream', '/metrics'))]),
  },
  'open-route + upstream-by-request': {
    'an unchecked catch-all route to a forward proxy': p => {
      remove(p.routes[1], 'direct_response');
      set(p.routes[1], { route: { cluster: 'proxy' } });
      set(p.routes[0].match, { case_sensitive: false });
      const type = 'envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig';
      p.root.static_resources.clusters.push({ name: 'proxy', cluster_type: { name: 'x', typed_config: typed(type) } });
    },
  },
};
