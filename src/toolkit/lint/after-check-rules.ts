// Rules for what comes after the check: nothing may change the checked request or its identity headers.
import { readProtocolOptions } from './cluster.ts';
import { isGuarded } from './guard.ts';
import { filterTypes, readFilterChain } from './http-filter.ts';
import type { GuardedManager } from './lint-model.ts';
import type { RouteTarget } from './listener.ts';
import { isKnown, withoutConfig } from './not-judged.ts';
import type { ProtoValue } from './proto-value.ts';
import { rewritesToItself } from './route-match.ts';
import { quoted, type Rules, when } from './rule.ts';

// Beside those of known-messages.ts: they refuse, delay, count or forward. Any other may change the path, the route, the headers or the
// metadata of the decision: ratelimit.v3.RateLimit too, by the `request_headers_to_add` of its service, which no setting restricts.
const harmless =
  /^envoy\.extensions\.filters\.http\.(?:file_system_buffer|jwt_authn|kill_request|rate_limit_quota|stateful_session|tap)\.v3\.\w+$/;

export const laterRules = {
  'filter-after-check': {
    what: 'A filter after ext_authz can change the path, the route, the headers or the metadata of the request: one that exists for it, or a rate limit service; the same in `upstream_http_filters` of the router and in `http_filters` of the cluster',
    why: 'the service can get a request other than the checked one',
    fix: 'move it before ext_authz; after ext_authz, keep only filters that refuse, limit or count, such as rbac and local_ratelimit',
    find: ({ manager, checks }) => {
      const later = [...new Set(checks.flatMap(check => check.later))];
      const lists = [
        ...later
          .filter(({ type }) => type === filterTypes.router)
          .map(({ config }) => config.field('upstream_http_filters')),
        ...[...new Set(manager.protectedTargets.map(({ upstream }) => upstream))]
          .flatMap(readProtocolOptions)
          .map(options => options.field('http_filters')),
      ];
      return [...later, ...lists.flatMap(list => readFilterChain(list).filters.filter(({ isOff }) => !isOff))]
        .filter(({ type }) => type !== filterTypes.extAuthz && type !== filterTypes.router)
        .filter(({ type, config }) => !(isKnown(type) || harmless.test(type)) || isTold(config))
        .map(({ value: at, type, discovery }) => ({ at, says: lateDanger(type, discovery !== undefined) }));
    },
  },
  'guard-missing': {
    what: 'No rbac filter after ext_authz refuses every request of a protected route without the metadata `decision: allow` of account-authz, or a route turns it off',
    why: 'an empty answer means allow in this protocol, so a wrong server at the address of the check allows every request',
    fix: 'add the rbac filter that `render` writes after ext_authz, and leave it on for every protected route',
    find: ({ checks }) =>
      checks.flatMap(check => when(!isGuarded(check), check.chain.value, 'have no guard after ext_authz')),
  },
  'local-reply': {
    what: '`local_reply_config` rewrites the status of refusals',
    why: 'clients and caches no longer see that a request was refused; a refusal can even look like a success',
    fix: 'remove it, or limit its mappers to response flags other than UAEX',
    find: ({ manager }) =>
      manager.value
        .items('local_reply_config', 'mappers')
        .filter(each => each.field('status_code').isPresent && changesRefusal(each))
        .map(at => ({ at, says: 'rewrites the status of refusals' })),
  },
} as const satisfies Rules<GuardedManager>;

const refusalStatuses = [400, 401, 403, 404, 503] as const;

/** Whether a ResponseMapper gives a refusal by account-authz another status; its filter is an envoy.config.accesslog.v3.AccessLogFilter. */
function changesRefusal(mapper: ProtoValue): boolean {
  const [filter, now] = [mapper.field('filter'), mapper.field('status_code').number()];
  const flags = filter.items('response_flag_filter', 'flags');
  if (flags.length > 0) return flags.some(flag => flag.text() === 'UAEX');
  const comparison = filter.field('status_code_filter', 'comparison');
  return !comparison.isPresent || refusalStatuses.some(status => status !== now && isComparedTrue(comparison, status));
}

function isComparedTrue(comparison: ProtoValue, status: number): boolean {
  const value = comparison.field('value', 'default_value').number() ?? 0;
  const op = comparison.field('op').choice({ EQ: 0, GE: 1, LE: 2 }) ?? 0;
  // Another operator may be true.
  return [status === value, status >= value, status <= value][op] ?? true;
}

/** Whether a filter that only reads is told to copy what it reads into headers, or to choose the route again. */
function isTold(config: ProtoValue): boolean {
  const told =
    /^(?:claim_to_headers|forward_payload_header|propagate_trace_context|propagate_baggage|clear_route_cache)$/;
  return config.inner(name => told.test(name)).some(each => each.scalarText() !== 'false');
}

/** For every route to the protected service, public ones too. */
export const routeRules = {
  'path-rewrite': {
    what: 'A protected or public route rewrites the path (`prefix_rewrite`, `regex_rewrite`, `path_rewrite`, `path_rewrite_policy`)',
    why: 'the service gets a path other than the checked one, in which another segment may be the account',
    fix: 'serve the path unchanged, or rewrite it before the check, in an Envoy in front',
    find: ({ action }) =>
      action
        .present('prefix_rewrite', 'regex_rewrite', 'path_rewrite', 'path_rewrite_policy')
        .filter(each => !rewritesToItself(each))
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
} as const satisfies Rules<RouteTarget>;

function lateDanger(type: string, isDiscovered: boolean): string {
  if (isDiscovered) return 'comes from a control plane (`config_discovery`) and can change the request after the check';
  if (type === '') return withoutConfig;
  // The last words of the type: `lua.v3.Lua`.
  return `(${quoted(type.split('.').slice(-3).join('.'))}) can change the request after the check`;
}
