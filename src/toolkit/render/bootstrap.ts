// A whole bootstrap of Envoy in front of one service, with account-authz beside it.
import { addressOf, authzClusterSettings } from '../envoy-settings/authz-cluster.ts';
import { extension } from '../envoy-settings/extension.ts';
import { toMembers } from '../envoy-settings/setting.ts';
import { type EnvoySettings, formatAddress } from '../envoy-settings/settings.ts';
import { above, beside, inline, type Members } from '../envoy-settings/tree.ts';
import { connectionManager, managerType } from './connection-manager.ts';
import { type RenderedFile, renderedFile } from './rendered-files.ts';
import { maxClientConnections, upstreamClusters } from './upstreams.ts';

export function bootstrapFile(settings: EnvoySettings): RenderedFile {
  return renderedFile('envoy.yaml', [bootstrap(settings)], bootstrapIntroduction(settings));
}

/** How to read a trial, and what ends it. */
export const shadowIntroduction = [
  'A trial (--shadow): account-authz is asked about each request that is not public, and whatever it says, the request goes to the service as it was',
  'sent and its answer comes back. No path, host, header, size or time is refused here. Needs Envoy 1.38 or later. Read what would be refused in the log',
  'of account-authz (decision, reason, detail), in its metrics (account_authz_checks_total) and in the access log. To end the trial, render again without',
  '--shadow: what the strict form refuses by itself is in docs/shadow-mode.md.',
];

function bootstrapIntroduction({ listen, upstream, authz, isShadow }: EnvoySettings): readonly string[] {
  if (isShadow) return shadowIntroduction;
  const indent = ' '.repeat(formatAddress(listen).length);
  return [
    'Envoy in front of one service, with account-authz beside it. Runs as it stands on Envoy 1.36.4, 1.38.3, 1.39.3 and 1.40.0, without a warning:',
    '',
    `  client ──► ${formatAddress(listen)} ──► [ remove identity headers ] ──► ext_authz ──► ${formatAddress(upstream)} (the service)`,
    `             ${indent}                                            │ gRPC`,
    `             ${indent}                                            └──► ${formatAddress(authz)} (account-authz)`,
    '',
    'Nothing reaches the service unchecked. Envoy answers 503 if a check fails. The service gets the path and the headers that were',
    'checked. Settings that not all of these versions know are commented out and say which version they need.',
  ];
}

function bootstrap(settings: EnvoySettings): Members {
  return {
    node:
      settings.tls &&
      beside(inline({ id: 'envoy', cluster: 'envoy' }), 'Envoy needs an id and a cluster before it watches files'),
    admin: beside(
      {
        address: inline(addressOf({ kind: 'tcp', host: '127.0.0.1', port: settings.envoyAdminPort })),
        ignore_global_conn_limit: above(
          'allow_paths: [{ prefix: /stats }, { prefix: /healthcheck/ }, { exact: /ready }] # needs 1.37',
          beside(true, 'still answers when the limit of the overload manager is reached'),
        ),
      },
      'loopback only: anybody who reaches it can read and drain everything; `account-authz drain` uses it',
    ),
    static_resources: above('', {
      listeners: [
        {
          name: 'public',
          address: above(
            'Plain HTTP inside a pod: put TLS in front of it, or a transport_socket here, wherever tokens cross a network.',
            inline(listenerAddress(settings.listen)),
          ),
          per_connection_buffer_limit_bytes: beside(
            32_768,
            'memory that one slow reader can hold; the default is 1 MiB',
          ),
          filter_chains: [{ filters: [connectionManager(settings)] }],
        },
        readiness(settings),
      ],
      clusters: above('', [toMembers(authzClusterSettings(settings)), ...upstreamClusters(settings)]),
    }),
    layered_runtime: above('', layeredRuntime(settings)),
    overload_manager: settings.isShadow ? undefined : above('', overloadManager),
  };
}

/** On [::] Envoy takes IPv4 too. */
function listenerAddress({ host, port }: EnvoySettings['listen']): Members {
  return { socket_address: { address: host, port_value: port, ipv4_compat: host === '::' ? true : undefined } };
}

function readiness({ listen, readinessPort }: EnvoySettings): Members {
  return {
    name: 'readiness',
    address: above(
      'For the kubelet: answers GET /ready and nothing else, with 503 once a drain has begun.',
      inline(listenerAddress({ ...listen, port: readinessPort })),
    ),
    per_connection_buffer_limit_bytes: 32_768,
    ignore_global_conn_limit: beside(true, 'probes are answered at the limit and under memory pressure'),
    bypass_overload_manager: true,
    filter_chains: [
      {
        filters: [
          extension('envoy.filters.network.http_connection_manager', managerType, {
            stat_prefix: 'readiness',
            codec_type: 'HTTP1',
            common_http_protocol_options: inline({ max_headers_count: 100, idle_timeout: '30s' }),
            max_request_headers_kb: 8,
            request_headers_timeout: '5s',
            request_timeout: '5s',
            stream_idle_timeout: '5s',
            server_header_transformation: 'PASS_THROUGH',
            route_config: {
              name: 'readiness',
              virtual_hosts: [
                {
                  name: 'any',
                  domains: ['*'],
                  routes: [inline({ match: { prefix: '/' }, direct_response: { status: 404 } })],
                },
              ],
            },
            http_filters: [
              extension('envoy.filters.http.health_check', 'filters.http.health_check.v3.HealthCheck', {
                pass_through_mode: false,
                headers: [
                  inline({ name: ':method', string_match: { exact: 'GET' } }),
                  inline({ name: ':path', string_match: { exact: '/ready' } }),
                ],
              }),
              extension('envoy.filters.http.router', 'filters.http.router.v3.Router'),
            ],
          }),
        ],
      },
    ],
  };
}

/** As Istio sets it. */
export const layeredRuntime = ({ isShadow }: EnvoySettings): Members => ({
  layers: [
    {
      name: 'patterns',
      static_layer: {
        're2.max_program_size.error_level': beside(
          32_768,
          'the default of 100 is too small for public routes, account.hosts, and long names and paths',
        ),
        'envoy.reloadable_features.http_reject_path_with_fragment': isShadow ? false : undefined,
      },
    },
  ],
});

const heap = 'envoy.resource_monitors.fixed_heap';

const overloadManager: Members = {
  refresh_interval: '0.25s',
  resource_monitors: [
    extension(
      'envoy.resource_monitors.global_downstream_max_connections',
      'resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig',
      { max_active_downstream_connections: maxClientConnections },
    ),
    extension(heap, 'resource_monitors.fixed_heap.v3.FixedHeapConfig', {
      max_heap_size_bytes: beside(419_430_400, "400 MiB: 80 % of the container's memory limit"),
    }),
  ],
  actions: [
    { name: 'envoy.overload_actions.shrink_heap', triggers: [inline({ name: heap, threshold: { value: 0.95 } })] },
    {
      name: 'envoy.overload_actions.stop_accepting_requests',
      triggers: [inline({ name: heap, threshold: { value: 0.98 } })],
    },
  ],
};
