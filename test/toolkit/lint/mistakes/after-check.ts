// Planted mistakes: what comes after the check.
import { filter, typed } from '../shipped.ts';
import { guardMatcher, type Mistakes, notEnforced, removal, remove, set } from './planting.ts';

export const afterCheck: Mistakes = {
  'owned-header-set': {
    'a local rate limit after the check that adds an identity header': p =>
      p.filters.splice(2, 0, filter('local_ratelimit.v3.LocalRateLimit', notEnforced('x-auth-acc'))),
    'a local rate limit after the check that adds a look-alike by the settings of a virtual host': p => {
      p.filters.splice(2, 0, filter('local_ratelimit.v3.LocalRateLimit'));
      set(p.host, {
        typed_per_filter_config: {
          'my.local_ratelimit.v3.LocalRateLimit': typed('local_ratelimit.v3.LocalRateLimit', notEnforced('X_Auth.Acc')),
        },
      });
    },
    'a rate limit quota after the check that adds an account header in a bucket': p =>
      p.filters.splice(
        2,
        0,
        filter('rate_limit_quota.v3.RateLimitQuotaFilterConfig', {
          bucket_matchers: { on_no_match: { action: { typed_config: notEnforced('x-account-id') } } },
        }),
      ),
    'a header mutation after the check that adds an identity header to the trailers': p =>
      p.filters.splice(
        2,
        0,
        filter('header_mutation.v3.HeaderMutation', {
          mutations: { request_trailers_mutations: [{ append: { header: { key: 'x-auth-uid', value: 'x' } } }] },
        }),
      ),
    'a local rate limit among the upstream filters that adds an identity header': p =>
      set(p.filters[3].typed_config, {
        upstream_http_filters: [filter('local_ratelimit.v3.LocalRateLimit', notEnforced('x-auth-role'))],
      }),
    'an identity header added to mirrored requests': p =>
      set(p.routes[0].route, {
        request_mirror_policies: [
          {
            cluster: 'upstream',
            request_headers_mutations: [{ append: { header: { key: 'x-auth-acc', value: 'globex' } } }],
          },
        ],
      }),
    'an identity header added by a route': p =>
      set(p.routes[0], { request_headers_to_add: [{ header: { key: 'X-Auth-Role', value: 'owner' } }] }),
    'an account header added by a route': p =>
      set(p.routes[0], { request_headers_to_add: { header: { key: 'x-account-id', value: '%REQ(x-foo)%' } } }),
    'a path override header added by a route': p =>
      set(p.routes[0], { request_headers_to_add: [{ header: { key: 'x-rewrite-url', value: '/admin' } }] }),
  },
  'filter-after-check': {
    'an upstream HTTP filter of the router': p =>
      set(p.filters[3].typed_config, {
        upstream_http_filters: [filter('lua.v3.Lua'), filter('upstream_codec.v3.UpstreamCodec')],
      }),
    'an HTTP filter of the upstream cluster': p =>
      set(p.upstream, {
        typed_extension_protocol_options: {
          x: typed('envoy.extensions.upstreams.http.v3.HttpProtocolOptions', { http_filters: [filter('lua.v3.Lua')] }),
        },
      }),
    'a disabled lua filter after the check that a protected route enables': p => {
      p.filters.splice(2, 0, { ...filter('lua.v3.Lua'), disabled: true });
      set(p.routes[0], { typed_per_filter_config: { 'my.lua.v3.Lua': typed('lua.v3.LuaPerRoute') } });
    },
    'an ext_proc filter after the check': p => p.filters.splice(2, 0, filter('ext_proc.v3.ExternalProcessor')),
    'an unknown filter after the check': p => p.filters.splice(2, 0, { name: 'x' }),
    'a jwt_authn filter after the check that clears the route cache': p =>
      p.filters.splice(
        2,
        0,
        filter('jwt_authn.v3.JwtAuthentication', { providers: { a: { clear_route_cache: true } } }),
      ),
    'an mcp filter after the check that clears the route cache': p =>
      p.filters.splice(2, 0, filter('mcp.v3.Mcp', { clear_route_cache: true })),
    'an mcp filter after the check that copies baggage of the body': p =>
      p.filters.splice(2, 0, filter('mcp.v3.Mcp', { propagate_baggage: {} })),
    'a rate limit service after the check, whose answer may add headers': p =>
      p.filters.splice(2, 0, filter('ratelimit.v3.RateLimit')),
  },
  'owned-header-removed + owned-headers-kept': {
    'a removal of identity headers after the check': p => {
      p.early.shift();
      p.filters.splice(2, 0, filter('header_mutation.v3.HeaderMutation', removal));
    },
  },
  'guard-missing': {
    'a guard that is disabled in its chain': p => set(p.filters[2], { disabled: true }),
    'a guard before the check': p => p.filters.splice(1, 0, ...p.filters.splice(2, 1)),
    'a guard that a virtual host replaces': p =>
      set(p.host, {
        typed_per_filter_config: {
          'envoy.filters.http.rbac': typed('rbac.v3.RBACPerRoute', {
            rbac: { rules: { policies: { all: { principals: [{ any: true }], permissions: [{ any: true }] } } } },
          }),
        },
      }),
    'a guard with a second policy that any request meets': p =>
      set(p.filters[2].typed_config.rules.policies, {
        other: { principals: [{ any: true }], permissions: [{ header: { name: 'x', present_match: true } }] },
      }),
    'a guard that accepts more than allow': p => set(guardMatcher(p), { value: { string_match: { prefix: '' } } }),
    'a guard that reads other metadata': p => set(guardMatcher(p), { filter: 'envoy.filters.http.jwt_authn' }),
  },
  'trailers-kept': {
    'a removal from trailers that a protected route turns off': p =>
      set(p.routes[0], {
        typed_per_filter_config: {
          'envoy.filters.http.header_mutation': typed('envoy.config.route.v3.FilterConfig', { disabled: true }),
        },
      }),
  },
  'owned-header-removed': {
    'a header mutation after the check': p =>
      p.filters.splice(
        2,
        0,
        filter('header_mutation.v3.HeaderMutation', { mutations: { request_mutations: [{ remove: 'x-auth-acc' }] } }),
      ),
  },
  'path-rewrite': { 'a prefix rewrite': p => set(p.routes[0].route, { prefix_rewrite: '/' }) },
  'upstream-by-request': {
    'a protected route with a weighted cluster that a header names': p => {
      remove(p.routes[0].route, 'cluster');
      set(p.routes[0].route, { weighted_clusters: { clusters: [{ cluster_header: 'x-cell', weight: 1 }] } });
    },
    'an upstream at the address that a header names': p =>
      set(p.upstream, { type: 'ORIGINAL_DST', original_dst_lb_config: { use_http_header: true } }),
    'a protected route to a forward proxy': p =>
      set(p.upstream, {
        cluster_type: {
          name: 'x',
          typed_config: typed('envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig'),
        },
      }),
  },
  'internal-redirect': { 'L-025 internal redirects': p => set(p.routes[0].route, { internal_redirect_policy: {} }) },
};
