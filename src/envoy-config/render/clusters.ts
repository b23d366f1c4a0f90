// The clusters: account-authz, and the service behind Envoy.
import { isIP } from 'node:net';
import type { ListenAddress } from '../../text/listen-address.ts';
import { authzCall, authzCluster, seconds } from './authz-call.ts';
import { extension, typed } from './extension.ts';
import { tlsFiles } from './secret-files.ts';
import type { EnvoySettings } from './settings.ts';
import { above, beside, inline, type Members, type Tree } from './tree.ts';

export const protocolOptions = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';

export function addressOf(address: ListenAddress): Members {
  if (address.kind === 'unix') return { pipe: { path: address.path } };
  return { socket_address: { address: address.host, port_value: address.port } };
}

/** A name stands for several hosts, the pods of a headless Service. */
function isName(address: ListenAddress): boolean {
  return address.kind === 'tcp' && isIP(address.host) === 0;
}

export function authzClusterOf(settings: EnvoySettings): Members {
  const { authz, tls } = settings;
  const { keepalive, maxConnections, maxRequests, maxRetries, maxChecksPerConnection } = authzCall;
  const isSeveral = isName(authz);
  return {
    ...host(authzCluster, authz),
    connect_timeout: beside(
      seconds(tls === undefined ? authzCall.connectMs : authzCall.tlsConnectMs),
      `${tls === undefined ? '' : 'with its handshake; '}well below the timeout of a check, so that a dead host leaves time for another`,
    ),
    ...endpoints(authzCluster, authz),
    typed_extension_protocol_options: {
      [protocolOptions]: typed('upstreams.http.v3.HttpProtocolOptions', {
        explicit_http_config: {
          http2_protocol_options: beside(
            {
              connection_keepalive: inline({
                interval: `${keepalive.intervalS}s`,
                timeout: `${keepalive.timeoutS}s`,
                connection_idle_interval: `${keepalive.idleS}s`,
              }),
            },
            'gRPC; without it every check fails',
          ),
        },
        common_http_protocol_options: above(
          'Each client that goes away during its check resets a stream. Node ends a connection after 1,000 resets, with the checks of others on it.',
          inline({ max_requests_per_connection: maxChecksPerConnection }),
        ),
        http_filters: above(
          'account-authz uses none of the headers that this removes, and each costs it memory (docs/dev/performance.md). Envoy itself ends a late check.',
          upstreamFilters(isSeveral),
        ),
      }),
    },
    transport_socket: tls && beside(transportSocket(tls), 'only a server with a certificate for this name is accepted'),
    circuit_breakers: {
      thresholds: above(
        'A check above a limit fails. The default of max_retries is 3, which disables retries under load.',
        [
          inline({
            max_connections: maxConnections,
            max_pending_requests: maxRequests,
            max_requests: maxRequests,
            max_retries: maxRetries,
          }),
        ],
      ),
    },
    ...(isSeveral ? healthOfSeveral : {}),
  };
}

// Not for one host, where these only make an outage longer.
const healthOfSeveral: Members = {
  health_checks: beside(
    [
      {
        timeout: '0.5s',
        interval: '1s',
        no_traffic_interval: '5s',
        unhealthy_threshold: 1,
        healthy_threshold: 1,
        grpc_health_check: inline({ service_name: 'envoy.service.auth.v3.Authorization' }),
      },
    ],
    'a stopping host reports NOT_SERVING, and answers until Envoy no longer asks it',
  ),
  outlier_detection: beside(
    {
      split_external_local_origin_errors: true,
      consecutive_local_origin_failure: 2,
      enforcing_consecutive_local_origin_failure: 100,
      enforcing_consecutive_5xx: 0,
      enforcing_success_rate: 0,
      enforcing_local_origin_success_rate: 0,
      base_ejection_time: '5s',
      max_ejection_percent: 50,
    },
    'ejects a host at once if it cannot be reached, never for its answers',
  ),
};

function upstreamFilters(isSeveral: boolean): readonly Tree[] {
  const unused = ['te', 'grpc-timeout', 'x-envoy-expected-rq-timeout-ms'];
  const wholeAnswers = above(
    'Buffers an answer until it is complete. It comes in two parts, and Envoy cannot retry a check after the first part, if the authorizer dies before the second (docs/restarts.md). Needs 1.38: older releases can crash.',
    extension('envoy.filters.http.lua', 'filters.http.lua.v3.Lua', {
      default_source_code: inline({ inline_string: 'function envoy_on_response(answer) answer:body() end' }),
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

export function upstreamClusters({ upstream, upstreamProtocol }: EnvoySettings): readonly Members[] {
  const http1 = {
    explicit_http_config: inline({ http_protocol_options: {} }),
    common_http_protocol_options: above(
      'Must be shorter than the keep-alive timeout of the service (Node: 5 s): otherwise a request can meet a closing connection (503).',
      inline({ idle_timeout: '4s' }),
    ),
  };
  const http2 = { explicit_http_config: inline({ http2_protocol_options: {} }) };
  const cluster = (name: string, options: Members): Members => ({
    ...host(name, upstream),
    connect_timeout: '1s',
    ...endpoints(name, upstream),
    typed_extension_protocol_options: {
      [protocolOptions]: typed('upstreams.http.v3.HttpProtocolOptions', options),
    },
    circuit_breakers: {
      thresholds: [inline({ max_connections: 1024, max_pending_requests: 1024, max_requests: 4096 })],
    },
  });
  const main = cluster('upstream', upstreamProtocol === 'http2' ? http2 : http1);
  return upstreamProtocol === 'auto' ? [main, cluster('upstream-grpc', http2)] : [main];
}

function host(name: string, address: ListenAddress): Members {
  return {
    name,
    type: isName(address)
      ? beside('STRICT_DNS', 'each address of the name is a host; Envoy resolves the name every five seconds')
      : 'STATIC',
    dns_lookup_family: isName(address) ? 'V4_PREFERRED' : undefined,
    per_connection_buffer_limit_bytes: 32_768,
  };
}

function endpoints(name: string, address: ListenAddress): Members {
  return {
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: [{ endpoint: inline({ address: addressOf(address) }) }] }],
    },
  };
}
