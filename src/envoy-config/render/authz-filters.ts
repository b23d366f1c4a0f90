// The HTTP filters around the check: what is removed from trailers, CORS, ext_authz and the guard behind it.
import { authzCall, authzCluster, seconds } from './authz-call.ts';
import { extension, typed } from './extension.ts';
import { anySpelling, mutablePattern, overridePatterns, ownedPattern, setByExtAuthz } from './header-patterns.ts';
import type { EnvoySettings } from './settings.ts';
import { above, beside, inline, type Members, type Tree } from './tree.ts';

export const filterNames = {
  trailers: 'envoy.filters.http.header_mutation',
  cors: 'envoy.filters.http.cors',
  extAuthz: 'envoy.filters.http.ext_authz',
  guard: 'envoy.filters.http.rbac',
} as const;

/** In their order. Nothing after ext_authz may change the path, the route or the identity headers. */
export function authzFilters(settings: EnvoySettings): readonly Tree[] {
  return [trailersFilter(settings), ...corsFilter(settings), extAuthzFilter(settings), guardFilter(filterNames.guard)];
}

/** The names that no client may send. */
export function earlyMutations(settings: EnvoySettings): readonly Tree[] {
  return [
    removeOnMatch(ownedPattern(settings.identityPrefix)),
    ...setByExtAuthz.map(name => ({ remove: beside(name, 'ext_authz sets it') })),
    ...overridePatterns(settings).map(removeOnMatch),
  ];
}

export function trailersFilter(settings: EnvoySettings): Members {
  const { identityPrefix, accountHeaders } = settings;
  return extension(filterNames.trailers, 'filters.http.header_mutation.v3.HeaderMutation', {
    mutations: {
      request_trailers_mutations: above(
        'Removes the same names, the account headers and the token from trailers: no check sees trailers, and a service over HTTP/2 gets them.',
        [
          ...[ownedPattern(identityPrefix), ...overridePatterns(settings), ...accountHeaders.map(anySpelling)].map(
            removeOnMatch,
          ),
          { remove: 'authorization' },
        ],
      ),
    },
  });
}

function removeOnMatch(pattern: string): Members {
  return { remove_on_match: inline({ key_matcher: { safe_regex: { regex: pattern } } }) };
}

function corsFilter({ corsOrigins }: EnvoySettings): readonly Tree[] {
  if (corsOrigins.length === 0) return [];
  return [
    above(
      'Answers preflight requests before the check, which would refuse them: a browser sends them without a token.',
      extension(filterNames.cors, 'filters.http.cors.v3.Cors'),
    ),
  ];
}

/** What a page may send and read. */
export function corsHeadersOf({ methods, accountHeaders, corsHeaders }: EnvoySettings) {
  const headers = ['authorization', 'content-type', 'if-match', 'if-none-match', 'traceparent', 'tracestate'];
  return {
    allowMethods: methods,
    allowHeaders: [...new Set([...headers, ...accountHeaders, ...corsHeaders])],
    exposeHeaders: ['x-request-id', 'www-authenticate', 'retry-after'],
  };
}

/** For the virtual host. Refusals carry the headers too, so that a page can read them; the filter leaves Envoy's own 404 alone. */
export function corsPolicy(settings: EnvoySettings): Members {
  const { allowMethods, allowHeaders, exposeHeaders } = corsHeadersOf(settings);
  return typed('filters.http.cors.v3.CorsPolicy', {
    allow_origin_string_match: settings.corsOrigins.map(origin => inline({ exact: origin })),
    allow_methods: allowMethods.join(', '),
    allow_headers: allowHeaders.join(', '),
    expose_headers: exposeHeaders.join(', '),
    max_age: '600',
    allow_credentials: beside(false, 'no cookies: the token is in a header'),
  });
}

function extAuthzFilter(settings: EnvoySettings): Members {
  return extension(filterNames.extAuthz, 'filters.http.ext_authz.v3.ExtAuthz', {
    transport_api_version: 'V3',
    stat_prefix: 'account',
    failure_mode_allow: beside(false, 'never true: Envoy would forward requests that it could not check'),
    status_on_error: beside(
      inline({ code: 'ServiceUnavailable' }),
      'no answer from account-authz is an outage, not a 403',
    ),
    clear_route_cache: beside(false, 'true could move a request to a route other than the checked one'),
    include_peer_certificate: false,
    ...checkSettings(settings, 'shadow_mode: true # needs 1.38; a trial run beside live traffic (docs/shadow-mode.md)'),
    max_denied_response_body_bytes: authzCall.maxBodyBytes,
    grpc_service: { ...grpcService(), retry_policy: retryPolicy() },
  });
}

/** What Istio has no field for. */
export function checkSettings(settings: EnvoySettings, note?: string): Members {
  const { shownHeaders, accountHeaders } = settings;
  const spellings = accountHeaders.filter(name => name.includes('-')).map(anySpelling);
  const rawHeaders = beside(true, 'each header line by itself, with its bytes unchanged');
  return {
    encode_raw_headers: note === undefined ? rawHeaders : above(note, rawHeaders),
    allowed_headers: above(
      'The headers that account-authz gets. It checks the account only in headers of `account.headers` that are listed here, and refuses their look-alikes (x.account.id).',
      {
        patterns: [
          ...shownHeaders.map(name => ({ exact: name })),
          ...spellings.map(pattern => ({ safe_regex: inline({ regex: pattern }) })),
        ],
      },
    ),
    validate_mutations: above(
      'The headers of a request that account-authz may set or remove: its own, their look-alikes, the token, and with account.hosts those that name another host.\nEnvoy answers 500 to any other change.',
      true,
    ),
    decoder_header_mutation_rules: {
      disallow_all: true,
      disallow_system: true,
      disallow_is_error: true,
      allow_expression: inline({ regex: mutablePattern(settings) }),
    },
    charge_cluster_response_stats: beside(false, 'refusals are not responses of the service'),
    emit_filter_state_stats: beside(true, 'latency_us for the access log'),
    enable_dynamic_metadata_ingestion: beside(true, 'decision and reason for the access log'),
  };
}

function grpcService(): Members {
  return {
    timeout: beside(
      seconds(authzCall.timeoutMs),
      'for all attempts; the default of 0.2 s is too short for a new connection on a busy machine',
    ),
    envoy_grpc: { cluster_name: authzCluster, authority: authzCluster, ...grpcLimits() },
  };
}

export function grpcLimits(): Members {
  return { max_receive_message_length: authzCall.maxAnswerBytes, skip_envoy_headers: true };
}

function retryPolicy(): Members {
  return {
    ...retries(),
    retry_host_predicate: beside(
      [extension('envoy.retry_host_predicates.previous_hosts', 'retry.host.previous_hosts.v3.PreviousHostsPredicate')],
      'does not retry at the same dead host',
    ),
    host_selection_retry_max_attempts: 5,
  };
}

/** A check can be repeated. */
export function retries(): Members {
  const { retryOn, retries: num_retries, retryBaseMs, retryMaxMs } = authzCall;
  return {
    retry_on: beside(retryOn.join(','), 'hides a restart of one of several account-authz'),
    num_retries,
    retry_back_off: above(
      'Without these the first retry waits up to 1 s, longer than the timeout. max_interval also limits each attempt.',
      inline({ base_interval: seconds(retryBaseMs), max_interval: seconds(retryMaxMs) }),
    ),
  };
}

/** The wire's default is an allow. */
export function guardFilter(name: string): Tree {
  const isAllowed = {
    metadata_source: 'DYNAMIC',
    metadata_matcher: {
      filter: filterNames.extAuthz,
      path: [inline({ key: 'decision' })],
      value: inline({ string_match: { exact: 'allow' } }),
    },
  };
  return above(
    'An empty answer means allow in this protocol, and a wrong server may give one. This filter refuses (403) an allow without the metadata of account-authz.',
    extension(name, 'filters.http.rbac.v3.RBAC', {
      rules_stat_prefix: 'only_allowed',
      rules: {
        action: 'ALLOW',
        policies: {
          'allowed-by-account-authz': {
            principals: [inline({ any: true })],
            permissions: [{ sourced_metadata: isAllowed }],
          },
        },
      },
    }),
  );
}
