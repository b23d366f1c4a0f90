// The HTTP connection manager of the public listener: how requests are read, routed, checked and logged.
import { everyMethod } from '../../authz/permission.ts';
import { upstreamFields } from '../../authz/principal.ts';
import { authzFilters, corsPolicy, earlyMutations, filterNames } from './authz-filters.ts';
import { extension } from './extension.ts';
import {
  domainOf,
  metadataRoute,
  nothingElse,
  openMatch,
  publicFilters,
  publicMatch,
  publicPathPattern,
  unchecked,
} from './open-routes.ts';
import type { EnvoySettings, PublicRoute, UpstreamProtocol } from './settings.ts';
import { above, beside, inline, type Members, type Tree } from './tree.ts';

export const managerType = 'filters.network.http_connection_manager.v3.HttpConnectionManager';

const defaultMaxBodyBytes = 4096;

export function connectionManager(settings: EnvoySettings): Members {
  const metadataBytes = Buffer.byteLength(settings.metadata?.json ?? '');
  return extension('envoy.filters.network.http_connection_manager', managerType, {
    stat_prefix: 'public',
    codec_type: beside('AUTO', 'HTTP/1.1, and HTTP/2 with prior knowledge'),
    ...managerSettings(settings),
    route_config: {
      name: 'public',
      max_direct_response_body_size_bytes: metadataBytes > defaultMaxBodyBytes ? metadataBytes : undefined,
      virtual_hosts: virtualHosts(settings),
    },
    http_filters: above('Nothing after ext_authz may change the path, the route or the identity headers.', [
      ...authzFilters(settings),
      extension('envoy.filters.http.router', 'filters.http.router.v3.Router', {
        suppress_envoy_headers: beside(true, 'no x-envoy-* of the router to the service or the client'),
      }),
    ]),
    access_log: [accessLog()],
  });
}

/** What makes a request unambiguous, bounded and free of forged headers before it is checked. */
export function managerSettings(settings: EnvoySettings): Members {
  return {
    normalize_path: above(
      'One spelling of a path for the check, the route and the service. Case is not folded: another case is 404.',
      beside(true, 'dot segments, and %XX of unreserved characters'),
    ),
    merge_slashes: true,
    path_with_escaped_slashes_action: beside(
      'REJECT_REQUEST',
      '%2F and %5C mean different things to different servers',
    ),
    ...edge(settings),
    early_header_mutation_extensions: above(
      'Before routing, on every route, whatever the check answers. Removes names that only account-authz may set, and names that make an upstream use a path or method other than the checked one. Envoy has lower-cased the names.\n[^a-z0-9]: CGI reads a hyphen and an underscore as one (RFC 3875 section 4.1.18), others a dot and other signs too.',
      [
        extension(
          'envoy.http.early_header_mutation.header_mutation',
          'http.early_header_mutation.header_mutation.v3.HeaderMutation',
          { mutations: earlyMutations(settings) },
        ),
      ],
    ),
    ...limits(settings),
    local_reply_config: settings.upstreamProtocol === 'http1' ? undefined : grpcStatuses,
  };
}

function edge({ trustedHops }: EnvoySettings): Members {
  return {
    use_remote_address: above(
      'At the edge, Envoy does not trust x-forwarded-for, x-envoy-* and x-request-id of a client. Behind other proxies, use --trusted-hops.\ninternal_address_config stays unset, so no client is internal: an empty one would trust loopback and RFC 1918.',
      true,
    ),
    xff_num_trusted_hops: trustedHops === 0 ? undefined : trustedHops,
    forward_client_cert_details: 'SANITIZE',
    strip_any_host_port: true,
    generate_request_id: beside(true, 'a client cannot choose the id that joins the logs'),
    preserve_external_request_id: false,
    always_set_request_id_in_response: true,
    server_header_transformation: beside('PASS_THROUGH', 'no `server: envoy` on a refusal'),
  };
}

const otherHeadersKb = 24;

/** Without it, the HTTP/1.1 codec of Envoy answers 400 to each method that it does not know, such as QUERY. */
export function customMethods({ methods }: EnvoySettings): Members | undefined {
  return methods.every(method => everyMethod.includes(method)) ? undefined : { allow_custom_methods: true };
}

function limits(settings: EnvoySettings): Members {
  const { trustedHops, maxTokenBytes } = settings;
  return {
    common_http_protocol_options: {
      headers_with_underscores_action: beside('REJECT_REQUEST', 'x_auth_uid is x-auth-uid to a CGI-style upstream'),
      max_headers_count: 100,
      idle_timeout: '600s',
    },
    http_protocol_options: beside(
      {
        allow_chunked_length: beside(false, 'Content-Length beside Transfer-Encoding is refused'),
        ...customMethods(settings),
      },
      'HTTP/1.1; 1.0 is refused (426), trailers are dropped',
    ),
    http2_protocol_options: {
      max_concurrent_streams: 100,
      initial_stream_window_size: 65_536,
      initial_connection_window_size: 1_048_576,
      override_stream_error_on_invalid_http_message:
        trustedHops === 0 ? undefined : beside(true, 'a bad request does not end a connection that clients share'),
    },
    max_request_headers_kb: beside(
      otherHeadersKb + Math.ceil(maxTokenBytes / 1024),
      'bounds a token before it costs anything',
    ),
    request_headers_timeout: '10s',
    request_timeout: beside('60s', 'the whole request; for long uploads or client streams, raise this and the next'),
    stream_idle_timeout: '60s',
    drain_timeout: above(
      'Off on purpose. CONNECT: no route accepts it. Upgrades: 403. A local_reply_config that rewrites status or body would hide refusals.\nFor websockets add `upgrade_configs: [{ upgrade_type: websocket }]` without filters: the check runs before the upgrade.',
      '5s',
    ),
  };
}

const grpcStatus = (status: number, code: number): Members => ({
  filter: {
    and_filter: {
      filters: [
        inline({ response_flag_filter: { flags: ['UAEX'] } }),
        inline({ status_code_filter: { comparison: { value: { default_value: status, runtime_key: 'unused' } } } }),
        inline({ header_filter: { header: { name: 'content-type', string_match: { prefix: 'application/grpc' } } } }),
      ],
    },
  },
  headers_to_add: [
    inline({ header: { key: 'grpc-status', value: String(code) }, append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' }),
  ],
});

const grpcStatuses = above(
  'The gRPC status of a refusal: by default, Envoy maps 404 to UNIMPLEMENTED and 400 to INTERNAL.',
  { mappers: [grpcStatus(404, 5), grpcStatus(400, 3)] },
);

function virtualHosts(settings: EnvoySettings): readonly Tree[] {
  return settings.hosts === undefined ? [virtualHost(settings)] : [virtualHost(settings), otherHosts];
}

export const otherHosts = above('Every other host. Without it, the guard would answer 403 in place of 404.', {
  name: 'other-hosts',
  domains: inline(['*']),
  routes: [nothingElse],
});

/** Every route of the configuration and nothing else. */
export function virtualHost(settings: EnvoySettings): Members {
  const { paths, corsOrigins, publicRoutes, metadata, hosts, upstreamProtocol } = settings;
  const hasCors = corsOrigins.length > 0;
  return {
    name: hosts === undefined ? 'any' : 'hosts',
    domains: hosts?.map(domainOf) ?? ['*'],
    typed_per_filter_config: hasCors ? { [filterNames.cors]: corsPolicy(settings) } : undefined,
    response_headers_to_add: hasCors
      ? beside(
          [{ header: inline({ key: 'vary', value: 'origin' }), append_action: 'APPEND_IF_EXISTS_OR_ADD' }],
          'a cache must not answer one origin with the headers for another',
        )
      : undefined,
    routes: [
      metadata &&
        above('RFC 9728: by it, clients find the authorization server.', {
          ...metadataRoute(metadata, settings),
          typed_per_filter_config: unchecked(),
        }),
      ...publicRoutes.flatMap(route => publicRoutesOf(route, settings)),
      ...paths.flatMap(path => upstreamRoutes(path, prefixMatch(path), upstreamProtocol)),
      ...(paths.includes('/') ? [] : [nothingElse]),
    ],
  };
}

function publicRoutesOf(route: PublicRoute, settings: EnvoySettings): readonly Tree[] {
  const name = `public ${route.text}`;
  const protocol = route.methods.includes('POST') ? settings.upstreamProtocol : 'http1';
  const filters = { typed_per_filter_config: { ...unchecked(), ...publicFilters(settings, filterNames.trailers) } };
  const [first, ...more] = upstreamRoutes(name, publicMatch(route, settings), protocol, filters);
  const served = [
    above(
      'Served without a check. Other methods and spellings of the path go on to the next route that matches.',
      first,
    ),
    ...more,
  ];
  if (settings.corsOrigins.length === 0 || route.methods.includes('OPTIONS')) return served;
  const options = openMatch({ safe_regex: inline({ regex: publicPathPattern(route) }) }, ['OPTIONS'], undefined);
  const comment = 'Preflight requests, with the check: it refuses what the CORS filter does not answer.';
  return [...served, ...upstreamRoutes(`${name} preflight`, options, 'http1').map(each => above(comment, each))];
}

function prefixMatch(path: string): Members {
  return path === '/' ? { prefix: '/' } : { path_separated_prefix: path };
}

function upstreamRoutes(
  name: string,
  match: Members,
  upstreamProtocol: UpstreamProtocol,
  filters: Members = {},
): readonly Tree[] {
  const route = { name, match: inline(match), route: inline({ cluster: 'upstream', timeout: '15s' }), ...filters };
  if (upstreamProtocol === 'http1') return [route];
  const times = { timeout: '0s', max_stream_duration: { grpc_timeout_header_max: '0s' } };
  const grpcRoute = {
    name: `${name} gRPC`,
    match: inline({ ...match, grpc: {} }),
    route: inline({ cluster: upstreamProtocol === 'auto' ? 'upstream-grpc' : 'upstream', ...times }),
    ...filters,
  };
  const comment = 'A call may stream: the deadline of the client holds (grpc-timeout), and stream_idle_timeout.';
  return [above(comment, grpcRoute), route];
}

const metadata = (field: string): string => `%DYNAMIC_METADATA(${filterNames.extAuthz}:${field})%`;
const decisionFields = ['decision', 'reason', ...upstreamFields];

function accessLog(): Tree {
  const stdout = extension('envoy.access_loggers.stdout', 'access_loggers.stream.v3.StdoutAccessLog', {
    log_format: {
      json_format: {
        time: '%START_TIME%',
        requestId: '%REQ(X-REQUEST-ID)%',
        method: '%REQ(:METHOD)%',
        path: '%PATH(NQ)%',
        protocol: '%PROTOCOL%',
        route: '%ROUTE_NAME%',
        status: '%RESPONSE_CODE%',
        details: '%RESPONSE_CODE_DETAILS%',
        flags: '%RESPONSE_FLAGS%',
        durationMs: '%DURATION%',
        bytesReceived: '%BYTES_RECEIVED%',
        bytesSent: '%BYTES_SENT%',
        client: '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%',
        upstreamCluster: '%UPSTREAM_CLUSTER%',
        upstreamHost: '%UPSTREAM_HOST%',
        authzMicroseconds: `%FILTER_STATE(${filterNames.extAuthz}:FIELD:latency_us)%`,
        ...Object.fromEntries(decisionFields.map(field => [field, metadata(field)])),
      },
    },
  });
  return above('One JSON line per request: no token, no query string, and no header but the request id.', stdout);
}
