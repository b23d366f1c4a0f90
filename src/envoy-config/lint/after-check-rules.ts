// Rules for what comes after the check: nothing may change the checked request or its identity headers.
import { readProtocolOptions } from './cluster.ts';
import { isGuarded } from './guard.ts';
import { filterTypes, type HttpFilter, readFilterChain, routeSettingsOf } from './http-filter.ts';
import type { AuthzFilter, GuardedManager, ProtectedTarget } from './lint-model.ts';
import type { ProtoValue } from './proto-value.ts';
import { type Finding, ifPresent, quoted, type Rules, when } from './rule.ts';

// Filters that refuse, delay, count or forward, or change only the body or the response, besides the headers that they are told to add.
// Any other may change the path, the route, the headers or the metadata of the decision: ratelimit.v3.RateLimit too, by the
// `request_headers_to_add` of its service (envoy/service/ratelimit/v3/rls.proto), which no setting restricts.
const harmless = new Set(
  `adaptive_concurrency.v3.AdaptiveConcurrency admission_control.v3.AdmissionControl bandwidth_limit.v3.BandwidthLimit
  buffer.v3.Buffer compressor.v3.Compressor cors.v3.Cors csrf.v3.CsrfPolicy decompressor.v3.Decompressor fault.v3.HTTPFault
  file_system_buffer.v3.FileSystemBufferFilterConfig grpc_stats.v3.FilterConfig grpc_web.v3.GrpcWeb
  header_mutation.v3.HeaderMutation health_check.v3.HealthCheck kill_request.v3.KillRequest local_ratelimit.v3.LocalRateLimit
  rate_limit_quota.v3.RateLimitQuotaFilterConfig rbac.v3.RBAC
  stateful_session.v3.StatefulSession tap.v3.Tap upstream_codec.v3.UpstreamCodec`
    .split(/\s+/)
    .map(name => `envoy.extensions.filters.http.${name}`)
    // istiod writes them around the check: they count, and name the peer in the mesh.
    .concat('stats.PluginConfig', 'io.istio.http.peer_metadata.Config', 'istio.http.peer_metadata.Config'),
);
const mcp = 'envoy.extensions.filters.http.mcp.v3.Mcp';
const jwtAuthn = 'envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication';
const plainPool = 'envoy.extensions.upstreams.http.http.v3.HttpConnectionPoolProto';
export const laterFilterRules = {
  'guard-missing': {
    what: 'No rbac filter after ext_authz refuses every request of a protected route without the metadata `decision: allow` of account-authz, or a route turns it off',
    why: 'an empty answer means allow in this protocol, so a wrong server at the address of the check allows every request',
    fix: 'add the rbac filter that `render` writes after ext_authz, and leave it on for every protected route',
    find: check => when(!isGuarded(check), check.chain.value, 'have no guard after ext_authz'),
  },
} as const satisfies Rules<AuthzFilter>;

export const laterRules = {
  'filter-after-check': {
    what: 'A filter after ext_authz can change the path, the route, the headers or the metadata of the request: one that exists for it, a rate limit service, a mutation of the query; the same in `upstream_http_filters` of the router and in `http_filters` of the cluster; or the cluster sends the request in a way of its own (`upstream_config`)',
    why: 'the service can get a request other than the checked one',
    fix: 'move it before ext_authz; after ext_authz, keep only filters that refuse, limit or count, such as rbac and local_ratelimit',
    find: ({ manager, checks, targets }) => {
      const later = checks.flatMap(check => check.later);
      const clusters = [...new Set(targets.map(each => each.upstream))];
      const upstream = later
        .filter(({ type }) => type === filterTypes.router)
        .map(({ config }) => config.field('upstream_http_filters'))
        .concat(clusters.flatMap(readProtocolOptions).map(each => each.field('http_filters')))
        .flatMap(list => readFilterChain(list).filters.filter(({ isOff }) => !isOff));
      const pools = clusters.flatMap(each => each?.value.present('upstream_config') ?? []);
      return [
        ...[...later, ...upstream].flatMap(filter => harmful(filter, manager.protectedScopes)),
        ...pools
          .filter(pool => pool.field('typed_config').any().type !== plainPool)
          .map(at => ({ at, says: 'can change the request after the check' })),
      ];
    },
  },
} as const satisfies Rules<GuardedManager>;

/** For every route to the protected service, public ones too. */
export const routeRules = {
  'path-rewrite': {
    what: 'A protected or public route rewrites the path (`prefix_rewrite`, `regex_rewrite`, `path_rewrite`, `path_rewrite_policy`)',
    why: 'the service gets a path other than the checked one, in which another segment may be the account',
    fix: 'serve the path unchanged, or rewrite it before the check, in an Envoy in front',
    find: ({ action }) =>
      action
        .present('prefix_rewrite', 'regex_rewrite', 'path_rewrite', 'path_rewrite_policy')
        .map(at => ({ at, says: 'rewrites the checked path' })),
  },
  'host-rewrite': {
    what: 'A protected or public route takes the host from the request (`host_rewrite_header`, `host_rewrite_path_regex`, `host_rewrite`), or, with `account.hosts`, changes it in any way',
    why: 'the service sees a host other than the checked one, which may name another account',
    fix: 'remove it; without `account.hosts`, `host_rewrite_literal` and `auto_host_rewrite` are harmless',
    find: ({ action, scopes, names }) => [
      ...action
        .present('host_rewrite_header', 'host_rewrite_path_regex', 'host_rewrite')
        .map(at => ({ at, says: 'takes the host from the request' })),
      ...[action, ...scopes.slice(3)]
        .flatMap(each => each.present('host_rewrite_literal', 'auto_host_rewrite'))
        .flatMap(at => when(names.hasHosts && at.flag() !== false, at, 'changes the checked host')),
    ],
  },
  'upstream-by-request': {
    what: 'A protected or public route takes its cluster from a header (`cluster_header`), or its cluster takes the host from the request (`use_http_header`, a forward proxy)',
    why: 'the client chooses which service gets the request, such as one that holds the data of other accounts',
    fix: 'write `cluster`, and endpoints in the cluster',
    find: ({ action, scopes, upstream }) => [
      // The narrowest scope may be a cluster of `weighted_clusters`.
      ...[action, ...scopes.slice(-1)]
        .flatMap(each => each.present('cluster_header'))
        .map(at => ({ at, says: 'takes the cluster from the request' })),
      ...when(upstream?.isChosenByRequest === true, upstream?.value, 'takes the host from the request'),
    ],
  },
  'internal-redirect': {
    what: 'Envoy itself follows redirects of the service on a protected or public route (`internal_redirect_policy`)',
    why: 'Envoy sends a second request to a path that the client did not request, with the identity headers of the first one, even on an unchecked route',
    fix: 'remove it: the client follows the redirect, and Envoy checks the new request',
    find: ({ action }) =>
      action
        .present('internal_redirect_policy', 'internal_redirect_action')
        .filter(each => each.isMapping || each.choice({ HANDLE_INTERNAL_REDIRECT: 1 }) === 1)
        .map(at => ({ at, says: 'follows redirects' })),
  },
} as const satisfies Rules<ProtectedTarget>;

function harmful(filter: HttpFilter, scopes: readonly (readonly ProtoValue[])[]): readonly Finding[] {
  // The filters in a router are looked at too, and the service of another ext_authz is not in the file: it is named as not judged.
  if (filter.type === filterTypes.router || filter.type === filterTypes.extAuthz) return [];
  const settings = [filter.config, ...scopes.flatMap(each => routeSettingsOf(filter, each))];
  const queries = settings.map(each => each.field('mutations', 'query_parameter_mutations'));
  return [
    ...when(!isHarmless(filter), filter.value, `(${nameOf(filter.type)}) can change the request after the check`),
    ...queries.flatMap(at => ifPresent(at, 'changes the checked query')),
  ];
}

function isHarmless({ type, config }: HttpFilter): boolean {
  // It reads the body, and copies what stands there into headers only if it is told to.
  if (type === mcp)
    return !(
      config.field('clear_route_cache').flag() === true ||
      ['propagate_trace_context', 'propagate_baggage'].some(name => config.field(name).isPresent)
    );
  if (type !== jwtAuthn) return harmless.has(type);
  const providers = config.field('providers').entries();
  return !providers.some(
    each =>
      each.field('clear_route_cache').flag() === true ||
      ['claim_to_headers', 'forward_payload_header'].some(name => each.field(name).isPresent),
  );
}

// The last words of the type: `lua.v3.Lua`.
function nameOf(type: string): string {
  return type === '' ? 'of unknown type' : quoted(type.split('.').slice(-3).join('.'));
}
