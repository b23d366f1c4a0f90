// Planted mistakes: ways that lead where no client may go, headers that only the check may set, and texts that show the token.
import { filter, type Part, typed } from '../shipped.ts';
import { copyOf, type Mistakes, perRoute, secondListener, set } from './planting.ts';

const local = (name: string, port: number, address = '127.0.0.1'): Part => ({
  name,
  type: 'STATIC',
  load_assignment: {
    cluster_name: name,
    endpoints: [{ lb_endpoints: [{ endpoint: { address: { socket_address: { address, port_value: port } } } }] }],
  },
});
const append = (key: string, value = 'x'): Part => ({
  append: { header: { key, value }, append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' },
});

export const ways: Mistakes = {
  'way-inside': {
    'a route to the admin interface': p => {
      p.root.static_resources.clusters.push(local('ops', 9901));
      p.routes.unshift({ match: { prefix: '/ops' }, route: { cluster: 'ops' }, ...perRoute({ disabled: true }) });
    },
    'a mirror to it': p => {
      p.root.static_resources.clusters.push(local('ops', 9901, 'localhost.'));
      p.routes[0].route.request_mirror_policies = [{ cluster: 'ops' }];
    },
    'an aggregate cluster over it': p => {
      const cluster_type = {
        name: 'envoy.clusters.aggregate',
        typed_config: typed('envoy.extensions.clusters.aggregate.v3.ClusterConfig', { clusters: ['ops'] }),
      };
      p.root.static_resources.clusters.push(local('ops', 9901), { name: 'all', connect_timeout: '1s', cluster_type });
      p.routes.unshift({ match: { prefix: '/ops' }, route: { cluster: 'all' } });
    },
    'another spelling of its address': p => {
      p.root.static_resources.clusters.push(local('ops', 9901, '127.0.0.2'));
      set(p.root.admin.address.socket_address, { address: '0.0.0.0' });
      set(p.root.admin.address.socket_address, { address: '127.0.0.2' });
      p.routes.unshift({ match: { prefix: '/ops' }, route: { cluster: 'ops' } });
    },
    'a route to account-authz': p =>
      p.routes.unshift({ match: { prefix: '/check' }, route: { cluster: 'account-authz' } }),
    'a route back to the own listener': p => {
      p.root.static_resources.clusters.push(local('self', 8080));
      p.routes.unshift({ match: { prefix: '/again' }, route: { cluster: 'self' } });
    },
    'a listener with tcp_proxy to the first one': p => {
      p.root.static_resources.clusters.push(local('self', 8080));
      secondListener(p, listener =>
        set(listener.filter_chains[0], {
          filters: [
            filter('x'),
            {
              name: 'tcp',
              typed_config: typed('envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy', {
                cluster: 'self',
                stat_prefix: 'a',
              }),
            },
          ].slice(1),
        }),
      );
    },
  },
  'owned-header-set': {
    'an early mutation that appends an override after the removal': p => p.early.push(append('x-original-url')),
    'an early mutation that sets the token': p => p.early.push(append('authorization', 'Bearer fallback')),
    'a filter before the check that sets an account header': p =>
      p.filters.unshift(
        filter('header_mutation.v3.HeaderMutation', { mutations: { request_mutations: [append('X-Account-Id')] } }),
      ),
    'a route without the check that sets an identity header': p =>
      p.routes.unshift({
        match: { path: '/elsewhere' },
        route: { cluster: 'upstream' },
        request_headers_to_add: [{ header: { key: 'x-auth-uid', value: 'root' } }],
      }),
  },
  'owned-metadata-set': {
    'a filter that writes the decision of the check from a header': p =>
      p.filters.unshift(
        filter('header_to_metadata.v3.Config', {
          request_rules: [
            {
              header: 'x-d',
              on_header_present: { metadata_namespace: 'envoy.filters.http.ext_authz', key: 'decision' },
            },
          ],
        }),
      ),
  },
  'shown-token': {
    'a header of each answer': p =>
      set(p.host, { response_headers_to_add: [{ header: { key: 'x-debug', value: '%REQ(Authorization)%' } }] }),
    'a CEL expression in a header of each answer': p =>
      set(p.host, {
        response_headers_to_add: [{ header: { key: 'x-debug', value: "%CEL(request.headers['authorization'])%" } }],
      }),
    'the log of the router': p =>
      set(copyOf(p.filters), {}) &&
      set(p.filters.at(-1).typed_config, {
        upstream_log: [
          {
            name: 'log',
            typed_config: typed('envoy.extensions.access_loggers.stream.v3.StdoutAccessLog', {
              log_format: { json_format: { who: '%REQ(AUTHORIZATION?X)%' } },
            }),
          },
        ],
      }),
  },
};
