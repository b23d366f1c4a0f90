// The cluster of account-authz: every setting with its reason, for render and lint.
import { isIP } from 'node:net';
import type { ListenAddress } from '../../text/listen-address.ts';
import { authzCluster, seconds } from './authz-filter.ts';
import { extension, typed } from './extension.ts';
import { type Setting, toMembers } from './setting.ts';
import type { EnvoySettings } from './settings.ts';
import { above, inline, type Members, type Tree } from './tree.ts';

export const protocolOptions = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';

/** Limits of the connection to account-authz, which each target of `render` writes in its own notation. */
export const authzConnection = {
  /** Well under the timeout of a check. With a handshake of TLS it takes longer. */
  connectMs: 100,
  tlsConnectMs: 200,
  keepalive: { intervalS: 30, timeoutS: 5, idleS: 10 },
  /** An overflow is a failed check. */
  maxConnections: 1024,
  maxRequests: 4096,
  maxRetries: 1024,
  /**
   * A client that goes away during its check resets a stream. nghttp2 ends a connection after 1,000 resets and then 33 a second, with the
   * checks of others on it; a connection with fewer checks never has so many.
   */
  maxChecksPerConnection: 900,
  /** Calls in flight on a connection, as account-authz bounds them. Envoy learns it too late for the first calls of a connection. */
  maxStreams: 128,
} as const;

const {
  connectMs,
  tlsConnectMs,
  keepalive,
  maxConnections,
  maxRequests,
  maxRetries,
  maxChecksPerConnection,
  maxStreams,
} = authzConnection;

/** envoy.config.cluster.v3.Cluster. */
export function authzClusterSettings({ authz, tls }: EnvoySettings): readonly Setting[] {
  const isSeveral = isName(authz);
  return [
    ...hostSettings(authzCluster, authz),
    {
      field: 'connect_timeout',
      value: seconds(tls === undefined ? connectMs : tlsConnectMs),
      why: `${tls === undefined ? '' : 'with its handshake; '}well below the timeout of a check, so that a dead host leaves time for another`,
      accepts: { least: 0.05, most: 0.4 },
    },
    ...endpointSettings(authzCluster, authz),
    {
      field: 'typed_extension_protocol_options',
      value: {
        [protocolOptions]: typed('upstreams.http.v3.HttpProtocolOptions', toMembers(authzProtocolSettings(isSeveral))),
      },
    },
    {
      field: 'transport_socket',
      value: tls && transportSocket(tls),
      why: 'only a server with a certificate for this name is accepted',
    },
    {
      field: 'circuit_breakers',
      fields: [
        {
          field: 'thresholds',
          value: [
            inline({
              max_connections: maxConnections,
              max_pending_requests: maxRequests,
              max_requests: maxRequests,
              max_retries: maxRetries,
            }),
          ],
          why: 'A check above a limit fails. The default of max_retries is 3, which disables retries under load.',
        },
      ],
    },
    ...healthSettings(isSeveral),
  ];
}

/** envoy.extensions.upstreams.http.v3.HttpProtocolOptions. */
export function authzProtocolSettings(isSeveral: boolean): readonly Setting[] {
  return [
    {
      field: 'explicit_http_config',
      fields: [
        {
          field: 'http2_protocol_options',
          fields: [
            {
              field: 'max_concurrent_streams',
              value: maxStreams,
              why: 'as many as account-authz takes on a connection, so that Envoy opens another before it is refused',
              accepts: 'anything',
            },
            {
              field: 'connection_keepalive',
              value: inline({
                interval: `${keepalive.intervalS}s`,
                timeout: `${keepalive.timeoutS}s`,
                connection_idle_interval: `${keepalive.idleS}s`,
              }),
              accepts: 'anything',
            },
          ],
          why: 'gRPC; without it every check fails',
        },
      ],
    },
    {
      field: 'common_http_protocol_options',
      value: inline({ max_requests_per_connection: maxChecksPerConnection }),
      why: 'Each client that goes away during its check resets a stream. Node ends a connection after 1,000 resets, with the checks of others on it.',
      accepts: 'anything',
    },
    {
      field: 'http_filters',
      value: upstreamFilters(isSeveral),
      why: 'Removes headers that account-authz does not use: each costs it memory (docs/dev/performance.md). Envoy itself ends a late check.',
      accepts: { absent: true },
    },
  ];
}

// Not for one host, where these only make an outage longer.
function healthSettings(isSeveral: boolean): readonly Setting[] {
  return [
    {
      field: 'health_checks',
      value: isSeveral
        ? [
            {
              timeout: '0.5s',
              interval: '1s',
              no_traffic_interval: '5s',
              unhealthy_threshold: 1,
              healthy_threshold: 1,
              grpc_health_check: inline({ service_name: 'envoy.service.auth.v3.Authorization' }),
            },
          ]
        : undefined,
      why: 'a stopping host reports NOT_SERVING, and answers until Envoy no longer asks it',
      accepts: 'anything',
    },
    {
      field: 'outlier_detection',
      value: isSeveral
        ? {
            split_external_local_origin_errors: true,
            consecutive_local_origin_failure: 2,
            enforcing_consecutive_local_origin_failure: 100,
            enforcing_consecutive_5xx: 0,
            enforcing_success_rate: 0,
            enforcing_local_origin_success_rate: 0,
            base_ejection_time: '5s',
            max_ejection_percent: 50,
          }
        : undefined,
      why: 'ejects a host at once if it cannot be reached, never for its answers',
      accepts: 'anything',
    },
  ];
}

export const wholeAnswersScript = 'function envoy_on_response(answer) answer:body() end';

function upstreamFilters(isSeveral: boolean): readonly Tree[] {
  const unused = ['te', 'grpc-timeout', 'x-envoy-expected-rq-timeout-ms'];
  const wholeAnswers = above(
    'Buffers an answer until it is complete. It comes in two parts, and Envoy cannot retry a check after the first part, if the authorizer dies before the second (docs/restarts.md). Needs 1.38: older releases can crash.',
    extension('envoy.filters.http.lua', 'filters.http.lua.v3.Lua', {
      default_source_code: inline({ inline_string: wholeAnswersScript }),
    }),
  );
  return [
    extension('envoy.filters.http.header_mutation', 'filters.http.header_mutation.v3.HeaderMutation', {
      mutations: { request_mutations: unused.map(name => inline({ remove: name })) },
    }),
    ...(isSeveral ? [wholeAnswers] : []),
    extension('envoy.filters.http.upstream_codec', 'filters.http.upstream_codec.v3.UpstreamCodec'),
  ];
}

function transportSocket({ serverName, showsCertificate }: NonNullable<EnvoySettings['tls']>): Members {
  const { clientCertificate, serverAuthority } = tlsFiles;
  // RFC 6066 section 3 forbids an IP address as the server name.
  const isAddress = isIP(serverName) !== 0;
  const fromFile = ({ name, path }: { name: string; path: string }): Members => ({
    name,
    sds_config: inline({ path_config_source: { path }, resource_api_version: 'V3' }),
  });
  return extension('envoy.transport_sockets.tls', 'transport_sockets.tls.v3.UpstreamTlsContext', {
    sni: isAddress ? undefined : serverName,
    common_tls_context: {
      tls_params: above(
        'By default, Envoy as a client uses TLS 1.2 at most.',
        inline({ tls_minimum_protocol_version: 'TLSv1_3', tls_maximum_protocol_version: 'TLSv1_3' }),
      ),
      tls_certificate_sds_secret_configs: showsCertificate ? [fromFile(clientCertificate)] : undefined,
      combined_validation_context: {
        default_validation_context: {
          match_typed_subject_alt_names: [
            inline({ san_type: isAddress ? 'IP_ADDRESS' : 'DNS', matcher: { exact: serverName } }),
          ],
        },
        validation_context_sds_secret_config: fromFile(serverAuthority),
      },
    },
  });
}

/** A name stands for several hosts, the pods of a headless Service. */
function isName(address: ListenAddress): boolean {
  return address.kind === 'tcp' && isIP(address.host) === 0;
}

export function hostSettings(name: string, address: ListenAddress): readonly Setting[] {
  const byName = {
    field: 'type',
    value: 'STRICT_DNS',
    why: 'each address of the name is a host; Envoy resolves the name every five seconds',
  };
  return [
    { field: 'name', value: name },
    ...(isName(address)
      ? [byName, { field: 'dns_lookup_family', value: 'V4_PREFERRED' }]
      : [{ field: 'type', value: 'STATIC' }]),
    { field: 'per_connection_buffer_limit_bytes', value: 32_768, accepts: 'anything' },
  ];
}

export function endpointSettings(name: string, address: ListenAddress): readonly Setting[] {
  const endpoints = [{ lb_endpoints: [{ endpoint: inline({ address: addressOf(address) }) }] }];
  return [{ field: 'load_assignment', value: { cluster_name: name, endpoints } }];
}

/** SDS from files, which Envoy reads again whenever they change. */
export const tlsFiles = {
  clientCertificate: { name: 'client-certificate', path: '/etc/envoy/client-certificate.yaml' },
  serverAuthority: { name: 'server-authority', path: '/etc/envoy/server-authority.yaml' },
} as const;

export function addressOf(address: ListenAddress): Members {
  if (address.kind === 'unix') return { pipe: { path: address.path } };
  return { socket_address: { address: address.host, port_value: address.port } };
}
