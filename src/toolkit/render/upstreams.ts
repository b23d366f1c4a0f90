// The service behind Envoy: its clusters, and which of them serves a path.
import { endpointSettings, hostSettings, protocolOptions } from '../envoy-settings/authz-cluster.ts';
import { typed } from '../envoy-settings/extension.ts';
import { preserveCase } from '../envoy-settings/manager-settings.ts';
import { toMembers } from '../envoy-settings/setting.ts';
import type { EnvoySettings } from '../envoy-settings/settings.ts';
import { above, inline, type Members } from '../envoy-settings/tree.ts';

/** And so the most to the service. */
export const maxClientConnections = 10_000;

export interface ServedPath {
  readonly path: string;
  /** Whether everything under the path is served too. */
  readonly subtree: boolean;
  /** Index into `upstreams`; undefined: `upstream`. */
  readonly upstream: number | undefined;
}

/** A path and, before it, each path under it that another upstream serves: the most specific upstream wins. */
export function servedPaths(
  { upstreams }: Pick<EnvoySettings, 'upstreams'>,
  { path, subtree }: Pick<ServedPath, 'path' | 'subtree'>,
): readonly ServedPath[] {
  const byLength = [...upstreams.keys()].sort((one, other) => length(other) - length(one));
  const under = byLength.filter(i => subtree && isUnder(upstreams[i]?.path ?? '', path));
  const covering = byLength.find(i => isCovered(path, upstreams[i]?.path ?? ''));
  return [
    ...under.map(upstream => ({ path: upstreams[upstream]?.path ?? '', subtree: true, upstream })),
    { path, subtree, upstream: covering },
  ];

  function length(i: number): number {
    return upstreams[i]?.path.length ?? 0;
  }
}

/** An upstream that no route leads to. */
export function unusedUpstream({ upstreams, paths, publicRoutes, isShadow }: EnvoySettings): string | undefined {
  const served = [...paths.map(path => ({ path, subtree: true })), ...publicRoutes].flatMap(each =>
    servedPaths({ upstreams }, each),
  );
  const found = upstreams.find((_, i) => !isShadow && !served.some(({ upstream }) => upstream === i));
  return found && `--upstream ${found.path} must be under a route of the configuration, or have one under it`;
}

function isCovered(path: string, by: string): boolean {
  return path === by || isUnder(path, by);
}

function isUnder(path: string, parent: string): boolean {
  return path.startsWith(parent === '/' ? '/' : `${parent}/`) && path !== parent;
}

export function clusterName(upstream: number | undefined): string {
  return upstream === undefined ? 'upstream' : `upstream-${upstream + 2}`;
}

export function upstreamClusters(settings: EnvoySettings): readonly Members[] {
  return [...clustersOf(settings, clusterName(undefined), settings.upstream), ...pathClusters(settings)];
}

/** Of the upstreams with a path. */
export function pathClusters(settings: EnvoySettings): readonly Members[] {
  return settings.upstreams.flatMap(({ address }, i) => clustersOf(settings, clusterName(i), address));
}

/** With the protocol `auto`, one for each protocol. */
function clustersOf(
  { upstreamProtocol, isShadow }: EnvoySettings,
  name: string,
  address: EnvoySettings['upstream'],
): readonly Members[] {
  const largeAnswers = isShadow ? { max_headers_count: 10_000, max_response_headers_kb: 8192 } : undefined;
  const http1 = {
    explicit_http_config: inline({
      http_protocol_options: isShadow ? { enable_trailers: true, header_key_format: preserveCase } : {},
    }),
    common_http_protocol_options: above(
      'Must be shorter than the keep-alive timeout of the service (Node: 5 s): otherwise a request can meet a closing connection (503).',
      inline({ idle_timeout: '4s', ...largeAnswers }),
    ),
  };
  const http2 = {
    explicit_http_config: inline({ http2_protocol_options: {} }),
    common_http_protocol_options: largeAnswers && inline(largeAnswers),
  };
  const most = isShadow ? 100_000 : maxClientConnections;
  const cluster = (fullName: string, options: Members): Members => ({
    ...toMembers(hostSettings(fullName, address)),
    connect_timeout: isShadow ? '10s' : '1s',
    ...toMembers(endpointSettings(fullName, address)),
    typed_extension_protocol_options: { [protocolOptions]: typed('upstreams.http.v3.HttpProtocolOptions', options) },
    circuit_breakers: above(
      'As many as clients may open: behind 1,024 event streams (the default) each further request would wait without an answer.',
      { thresholds: [inline({ max_connections: most, max_pending_requests: most, max_requests: most })] },
    ),
  });
  const main = cluster(name, upstreamProtocol === 'http2' ? http2 : http1);
  return upstreamProtocol === 'auto' ? [main, cluster(`${name}-grpc`, http2)] : [main];
}
