// Planted mistakes: ways that lead where no client may go, headers that only the check may set, and texts that show the token.
import { filter, type Part, typed } from '../shipped.ts';
import { copyOf, type Mistakes, set } from './planting.ts';

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
  },
  'owned-header-set': {
    'a filter before the check that sets an account header': p =>
      p.filters.unshift(
        filter('header_mutation.v3.HeaderMutation', { mutations: { request_mutations: [append('X-Account-Id')] } }),
      ),
  },
  'shown-token': {
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
