// Rules for what comes after the check: nothing may change the checked request or its identity headers.
import { readProtocolOptions } from './cluster.ts';
import { isGuarded } from './guard.ts';
import { filterTypes, type HttpFilter, readFilterChain, routeSettingsOf } from './http-filter.ts';
import type { AuthzFilter, ProtectedTarget } from './lint-model.ts';
import type { OwnedNames } from './owned-names.ts';
import type { ProtoValue } from './proto-value.ts';
import { type Finding, quoted, type Rules, when } from './rule.ts';

// Filters that refuse, delay, count or forward, or change only the body or the response, besides the headers that they are told to add.
// Any other may change the path, the route, the headers or the metadata of the decision: ratelimit.v3.RateLimit too, by the
// `request_headers_to_add` of its service (envoy/service/ratelimit/v3/rls.proto), which no setting restricts.
const harmless = new Set(
  `adaptive_concurrency.v3.AdaptiveConcurrency admission_control.v3.AdmissionControl bandwidth_limit.v3.BandwidthLimit
  buffer.v3.Buffer compressor.v3.Compressor cors.v3.Cors csrf.v3.CsrfPolicy decompressor.v3.Decompressor fault.v3.HTTPFault
  file_system_buffer.v3.FileSystemBufferFilterConfig grpc_stats.v3.FilterConfig grpc_web.v3.GrpcWeb
  health_check.v3.HealthCheck kill_request.v3.KillRequest local_ratelimit.v3.LocalRateLimit
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
// The lists of routes and of rate limits (`request_headers_to_add_when_not_enforced`), and lists of mutations.
const listName = /^request_(?:headers_to_(?:add|remove)\w*|(?:headers_|trailers_)?mutations)$/;

export const laterFilterRules = {
  'filter-after-check': {
    what: 'A filter after ext_authz can change the path, the route, the headers or the metadata of the request: one that exists for it, a rate limit service, or a list such as `request_headers_to_add_when_not_enforced` that names an owned header, also in the settings of a route',
    why: 'the service can get a request other than the checked one',
    fix: 'move it before ext_authz, or remove the header from the list; after ext_authz, keep only filters that refuse, limit or count, such as rbac and local_ratelimit',
    find: ({ later, manager, names }) =>
      later.flatMap(filter => [...harmful(filter, names), ...routeChanges(filter, manager.protectedScopes, names)]),
  },
  'guard-missing': {
    what: 'No rbac filter after ext_authz refuses every request of a protected route without the metadata `decision: allow` of account-authz, or a route turns it off',
    why: 'an empty answer means allow in this protocol, so a wrong server at the address of the check allows every request',
    fix: 'add the rbac filter that `render` writes after ext_authz, and leave it on for every protected route',
    find: check => when(!isGuarded(check), check.chain.value, 'have no guard after ext_authz'),
  },
  'upstream-filter': {
    what: 'A filter in `upstream_http_filters` of the router can change the request',
    why: 'it runs after the check, so the service can get a request other than the checked one',
    fix: 'remove it, or do the same in a filter before ext_authz',
    find: ({ later, names }) =>
      later
        .filter(({ type }) => type === filterTypes.router)
        .flatMap(({ config }) => harmfulUpstream(config.field('upstream_http_filters'), names)),
  },
} as const satisfies Rules<AuthzFilter>;

/** For every route to the protected service, public ones too. */
export const everyRouteRules = {
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
  'cluster-filter': {
    what: 'The cluster behind a protected route has `http_filters` that can change the request, or sends it in a way of its own (`upstream_config`)',
    why: 'they run after the check, so the service can get a request other than the checked one',
    fix: 'remove them, or do the same in a filter before ext_authz',
    find: ({ upstream, names }) => {
      const pool = upstream?.value.field('upstream_config');
      const isPlain = pool?.field('typed_config').any().type === plainPool;
      return [
        ...readProtocolOptions(upstream).flatMap(options => harmfulUpstream(options.field('http_filters'), names)),
        ...when(pool?.isPresent === true && !isPlain, pool, 'can change the request after the check'),
      ];
    },
  },
} as const satisfies Rules<ProtectedTarget>;

export const routeRules = {
  'headers-after-check': {
    what: '`request_headers_to_add` or `request_headers_to_remove` of a route, its virtual host, its cluster weight or the route configuration, or `request_headers_mutations` of a mirror policy, changes an identity header, an account header, the token, or a header that overrides path, method or host',
    why: 'Envoy applies it after the check: the service would trust a value that nobody verified, or not learn who calls',
    fix: 'remove the header from the list',
    find: ({ scopes, action, names }) => [
      ...scopes
        .flatMap(scope => scope.present('request_headers_to_add', 'request_headers_to_remove'))
        .flatMap(list => ownedChanges(list, names)),
      ...action.items('request_mirror_policies').flatMap(policy => ownedChangesInside(policy, names)),
    ],
  },
  ...everyRouteRules,
} as const satisfies Rules<ProtectedTarget>;

function harmful(filter: HttpFilter, names: OwnedNames): readonly Finding[] {
  // The filters in a router have rules of their own.
  if (filter.type === filterTypes.router) return [];
  // The service of another ext_authz is not in the file: it is named as not judged.
  if (filter.type === filterTypes.extAuthz) return [];
  if (isHarmless(filter)) return ownedChangesInside(filter.config, names);
  return [{ at: filter.value, says: `(${nameOf(filter.type)}) can change the request after the check` }];
}

function isHarmless({ type, config }: HttpFilter): boolean {
  if (type === filterTypes.headerMutation) return changesOf(config).length === 0;
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

function harmfulUpstream(list: ProtoValue, names: OwnedNames): readonly Finding[] {
  return readFilterChain(list)
    .filters.filter(({ isOff }) => !isOff)
    .flatMap(filter => harmful(filter, names));
}

/** The changes by the settings of routes for a filter. */
function routeChanges(
  filter: HttpFilter,
  scopes: readonly (readonly ProtoValue[])[],
  names: OwnedNames,
): readonly Finding[] {
  const settings = scopes.flatMap(each => routeSettingsOf(filter, each));
  const lists = filter.type === filterTypes.headerMutation ? settings.flatMap(changesOf) : [];
  return [
    ...lists.map(at => ({ at, says: 'changes the request after the check' })),
    ...settings.flatMap(each => ownedChangesInside(each, names)),
  ];
}

/** The lists of a header_mutation, or of its settings for a route, that change the headers or the query of a request. */
function changesOf(config: ProtoValue): readonly ProtoValue[] {
  return ['request_mutations', 'query_parameter_mutations']
    .map(name => config.field('mutations', name))
    .filter(list => list.items().length > 0);
}

// The last words of the type: `lua.v3.Lua`.
function nameOf(type: string): string {
  return type === '' ? 'of unknown type' : quoted(type.split('.').slice(-3).join('.'));
}

/** Additions and removals of owned headers, by the lists at any depth of a filter's settings, or of another message. */
function ownedChangesInside(settings: ProtoValue, names: OwnedNames): readonly Finding[] {
  return settings.inner(name => listName.test(name)).flatMap(list => ownedChanges(list, names));
}

/** By a list of HeaderValueOption, of HeaderMutation or of names to remove. What a HeaderMutation removes is left out. */
function ownedChanges(list: ProtoValue, names: OwnedNames): readonly Finding[] {
  return list.items().flatMap(item => {
    const change = item.names().length === 0 ? 'remove' : 'add';
    const at = change === 'remove' ? item : addedName(item);
    const meaning = names.meaningOf(at.text() ?? '', change);
    return when(meaning !== undefined, at, `${change}s ${meaning}`);
  });
}

function addedName(item: ProtoValue): ProtoValue {
  const appended = item.field('append');
  return (appended.isPresent ? appended : item).field('header', 'key');
}
