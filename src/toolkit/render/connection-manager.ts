// The HTTP connection manager of the public listener: how requests are read, routed, checked and logged.
import { upstreamFields } from '../../authz/principal.ts';
import { filterNames } from '../envoy-settings/authz-filter.ts';
import { extension } from '../envoy-settings/extension.ts';
import { managerSettings, shadowManagerSettings } from '../envoy-settings/manager-settings.ts';
import {
  documentBytes,
  domainOf,
  metadataRoute,
  nothingElse,
  overrideRoutes,
  publicMatch,
  routeFilters,
  unchecked,
  uncheckedByExtAuthz,
} from '../envoy-settings/open-routes.ts';
import { toMembers } from '../envoy-settings/setting.ts';
import type { EnvoySettings, PublicRoute } from '../envoy-settings/settings.ts';
import { above, beside, inline, type Members, type Tree } from '../envoy-settings/tree.ts';
import { authzFilters, corsMembers } from './authz-filters.ts';
import { clusterName, servedPaths } from './upstreams.ts';

export const managerType = 'filters.network.http_connection_manager.v3.HttpConnectionManager';

export function connectionManager(settings: EnvoySettings): Members {
  return extension('envoy.filters.network.http_connection_manager', managerType, {
    stat_prefix: 'public',
    codec_type: beside('AUTO', 'HTTP/1.1, and HTTP/2 with prior knowledge'),
    ...managerMembers(settings),
    route_config: {
      name: 'public',
      max_direct_response_body_size_bytes: documentBytes(settings),
      virtual_hosts: virtualHosts(settings),
    },
    http_filters: above('Nothing after ext_authz may change the path, the route or the identity headers.', [
      ...authzFilters(settings),
      extension('envoy.filters.http.router', 'filters.http.router.v3.Router', {
        suppress_envoy_headers: beside(true, 'no x-envoy-* of the router to the service or the client'),
      }),
    ]),
    access_log: [accessLog(settings)],
  });
}

/** What makes a request unambiguous, bounded and free of forged headers before it is checked. */
export function managerMembers(settings: EnvoySettings): Members {
  if (settings.isShadow) return toMembers(shadowManagerSettings(settings));
  return {
    ...toMembers(managerSettings(settings)),
    local_reply_config: settings.upstreamProtocol === 'http1' ? undefined : grpcStatuses,
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
  if (settings.isShadow) return [shadowHost(settings)];
  return settings.hosts === undefined ? [virtualHost(settings)] : [virtualHost(settings), otherHosts];
}

export const otherHosts = above('Every other host. Without it, the guard would answer 403 in place of 404.', {
  name: 'other-hosts',
  domains: inline(['*']),
  routes: [nothingElse],
});

/** Every path of every host goes to the service. What is public is not asked about. */
function shadowHost(settings: EnvoySettings): Members {
  const open = settings.publicRoutes.flatMap(route =>
    publicUpstreamRoutes(route, settings, { typed_per_filter_config: { [filterNames.extAuthz]: uncheckedByExtAuthz } }),
  );
  return { name: 'any', domains: ['*'], routes: [...open, ...checkedRoutes('/', settings, {})] };
}

/** Every route of the configuration and nothing else. */
export function virtualHost(settings: EnvoySettings): Members {
  const { paths, publicRoutes, metadata, hosts } = settings;
  const checked = routeFilters(settings, 'checked', filterNames.trailers);
  const filters = { typed_per_filter_config: checked[filterNames.trailers] && checked };
  return {
    name: hosts === undefined ? 'any' : 'hosts',
    domains: hosts?.map(domainOf) ?? ['*'],
    ...corsMembers(settings, filterNames.cors),
    routes: [
      metadata &&
        above('RFC 9728: by it, clients find the authorization server.', {
          ...metadataRoute(metadata, settings),
          typed_per_filter_config: unchecked(),
        }),
      ...overrideRoutes(settings).map(route =>
        above(
          'A query parameter such as _method, which frameworks take for the method, is not served without a check.',
          route,
        ),
      ),
      ...publicRoutes.flatMap(route => publicRoutesOf(route, settings)),
      ...paths.flatMap(path => checkedRoutes(path, settings, filters)),
      ...(paths.includes('/') ? [] : [nothingElse]),
    ],
  };
}

function checkedRoutes(path: string, settings: EnvoySettings, filters: Members): readonly Tree[] {
  const upgrades = settings.takesWebSockets ? [inline({ upgrade_type: 'websocket', enabled: true })] : undefined;
  return servedPaths(settings, { path, subtree: true }).flatMap(served => {
    const match = served.path === '/' ? { prefix: '/' } : { path_separated_prefix: served.path };
    return upstreamRoutes(served.path, match, served.upstream, settings, { filters, upgrades });
  });
}

function publicRoutesOf(route: PublicRoute, settings: EnvoySettings): readonly Tree[] {
  const filters = {
    typed_per_filter_config: { ...unchecked(), ...routeFilters(settings, 'public', filterNames.trailers) },
  };
  const [first, ...more] = publicUpstreamRoutes(route, settings, filters);
  const served = [
    above(
      'Served without a check. Other methods and spellings of the path go on to the next route that matches.',
      first,
    ),
    ...more,
  ];
  if (settings.corsOrigins.length === 0 || route.methods.includes('OPTIONS')) return served;
  const preflight = { ...route, methods: ['OPTIONS'] };
  const comment = 'Preflight requests, with the check: it refuses what the CORS filter does not answer.';
  const checked = publicUpstreamRoutes(preflight, { ...settings, hosts: undefined }, {}, ' preflight');
  return [...served, ...checked.map(each => above(comment, each))];
}

function publicUpstreamRoutes(
  route: PublicRoute,
  settings: EnvoySettings,
  filters: Members,
  suffix = '',
): readonly Tree[] {
  return servedPaths(settings, route).flatMap(({ path, subtree, upstream }) => {
    const name = `public ${path === route.path ? route.text : `${path}/*`}${suffix}`;
    const match = publicMatch({ ...route, path, subtree }, settings);
    const protocol = route.methods.includes('POST') ? settings.upstreamProtocol : 'http1';
    return upstreamRoutes(name, match, upstream, { ...settings, upstreamProtocol: protocol }, { filters });
  });
}

function upstreamRoutes(
  name: string,
  match: Members,
  upstream: number | undefined,
  settings: Pick<EnvoySettings, 'upstreamProtocol' | 'requestTimeoutSeconds' | 'takesGrpcWeb'>,
  { filters, upgrades }: { readonly filters: Members; readonly upgrades?: readonly Tree[] | undefined },
): readonly Tree[] {
  const { upstreamProtocol, requestTimeoutSeconds, takesGrpcWeb } = settings;
  const cluster = clusterName(upstream);
  const timeout = `${requestTimeoutSeconds}s`;
  const route = {
    name,
    match: inline(match),
    route: inline({ cluster, timeout, upgrade_configs: upgrades }),
    ...filters,
  };
  if (upstreamProtocol === 'http1') return [route];
  const grpcRoute = {
    name: `${name} gRPC`,
    match: inline(takesGrpcWeb ? withHeader(match, grpcType) : { ...match, grpc: {} }),
    route: inline({
      cluster: upstreamProtocol === 'auto' ? `${cluster}-grpc` : cluster,
      timeout,
      // Envoy ignores `timeout` beside it.
      max_stream_duration: {
        max_stream_duration: requestTimeoutSeconds === 0 ? undefined : timeout,
        grpc_timeout_header_max: timeout,
      },
    }),
    ...filters,
  };
  return [above('The deadline of the client holds (grpc-timeout).', grpcRoute), route];
}

// gRPC and gRPC-Web.
const grpcType = inline({ name: 'content-type', string_match: { prefix: 'application/grpc' } });

function withHeader(match: Members, header: Tree): Members {
  const { headers = [] } = match;
  return { ...match, headers: [...(Array.isArray(headers) ? headers : []), header] };
}

const metadata = (field: string): string => `%DYNAMIC_METADATA(${filterNames.extAuthz}:${field})%`;
const decisionFields = ['decision', 'reason', ...upstreamFields];

function accessLog({ isShadow }: EnvoySettings): Tree {
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
        shadow: isShadow ? `%FILTER_STATE(${filterNames.extAuthz}.shadow:PLAIN)%` : undefined,
      },
    },
  });
  return above('One JSON line per request: no token, no query string, and no header but the request id.', stdout);
}
