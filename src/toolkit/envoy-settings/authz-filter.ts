// The ext_authz filter, the guard behind it and the removals before it: every setting with its reason, for render and lint.

import { allowKey } from '../../authz/principal.ts';
import type { HeaderRule } from '../../headers/header-rule.ts';
import { mutablePattern, spellings } from '../../headers/headers.ts';
import { extension } from './extension.ts';
import { type Setting, toMembers, toSentence } from './setting.ts';
import type { EnvoyPolicy, EnvoySettings } from './settings.ts';
import { above, inline, type Members, type Tree } from './tree.ts';

export const authzCluster = 'account-authz';

export const filterNames = {
  trailers: 'envoy.filters.http.header_mutation',
  cors: 'envoy.filters.http.cors',
  extAuthz: 'envoy.filters.http.ext_authz',
  guard: 'envoy.filters.http.rbac',
} as const;

/** Times and limits of a check, which each target of `render` writes in its own notation. */
export const authzCall = {
  timeoutMs: 500,
  retries: 2,
  retryOn: ['connect-failure', 'refused-stream', 'reset', 'unavailable'],
  retryBaseMs: 10,
  retryMaxMs: 250,
} as const;

/** A duration in protobuf JSON: `0.5s`. */
export function seconds(ms: number): string {
  return `${ms / 1000}s`;
}

/** envoy.extensions.filters.http.ext_authz.v3.ExtAuthz. */
export function extAuthzSettings(settings: EnvoySettings): readonly Setting[] {
  return [
    { field: 'transport_api_version', value: 'V3', accepts: { absent: true, values: ['AUTO'] } },
    { field: 'stat_prefix', value: 'account', accepts: 'anything' },
    {
      field: 'failure_mode_allow',
      value: false,
      why: 'if true, Envoy forwards requests that it could not check',
      accepts: { absent: true },
    },
    {
      field: 'failure_mode_allow_header_add',
      why: 'it marks requests that Envoy forwards unchecked, and there must be none',
      accepts: { values: [false] },
    },
    {
      field: 'status_on_error',
      value: inline({ code: 'ServiceUnavailable' }),
      why: 'the default is 403, and no answer from account-authz is an outage, not a refusal',
    },
    {
      field: 'clear_route_cache',
      value: false,
      why: 'if true, a request can move to a route other than the checked one',
      accepts: { absent: true },
    },
    {
      field: 'include_peer_certificate',
      value: true,
      why: 'a token may be bound to the certificate of its client (RFC 8705)',
      accepts: 'anything',
    },
    { field: 'filter_enabled', why: 'Envoy does not check the other requests' },
    {
      field: 'filter_enabled_metadata',
      value: settings.isShadow ? undefined : inline({ ...allowMatcher({ present_match: true }), invert: true }),
      why: 'another filter has written what only account-authz writes: the check is off for such a request, and so it is refused (503)',
    },
    {
      field: 'deny_at_disable',
      value: settings.isShadow
        ? undefined
        : inline({ default_value: true, runtime_key: 'account_authz.refuse_forged_metadata' }),
      accepts: 'anything',
    },
    {
      field: 'shadow_mode',
      value: settings.isShadow ? true : undefined,
      why: 'if true, Envoy refuses no request',
      accepts: { absent: true, values: [false] },
    },
    {
      field: 'with_request_body',
      why: 'Envoy buffers the body of each request before the check, and account-authz does not read it',
    },
    {
      field: 'http_service',
      why: 'over HTTP the status alone decides, so any server that answers 200 allows the request',
    },
    {
      field: 'encode_raw_headers',
      value: true,
      why: 'each header line by itself, with its bytes unchanged',
      accepts: 'anything',
    },
    {
      field: 'allowed_headers',
      fields: [
        {
          field: 'patterns',
          value: [
            ...settings.shownHeaders.map(name => ({ exact: name })),
            ...settings.headers
              .flatMap(({ shown, names }) => (shown === 'spellings' ? names : []))
              .filter(name => name.includes('-'))
              .map(name => ({ safe_regex: inline({ regex: spellings(name) }) })),
          ],
        },
      ],
      why: 'The headers that account-authz gets. It checks the account only in headers of `account.headers` that are listed here, and refuses their look-alikes (x.account.id).',
    },
    { field: 'disallowed_headers', why: 'account-authz cannot check a header that it does not get' },
    {
      field: 'validate_mutations',
      value: settings.isShadow ? undefined : true,
      why: 'without it, Envoy passes on a line break in a header of an answer: response splitting',
    },
    {
      field: 'decoder_header_mutation_rules',
      ...(settings.isShadow && { value: inline({ disallow_all: true }) }),
      fields: [
        { field: 'disallow_all', value: true },
        { field: 'disallow_system', value: true, accepts: 'anything' },
        {
          field: 'disallow_is_error',
          value: true,
          why: 'without it, Envoy silently skips a change, and keeps what the client sent',
        },
        { field: 'allow_expression', value: inline({ regex: mutablePattern(settings.headers) }) },
      ],
      why: settings.isShadow
        ? 'an allow changes no header'
        : 'The headers of a request that account-authz may set or remove: its own, their look-alikes, the token, and with account.hosts those that name another host.\nEnvoy answers 500 to any other change.',
    },
    {
      field: 'charge_cluster_response_stats',
      value: false,
      why: 'refusals are not responses of the service',
      accepts: 'anything',
    },
    { field: 'emit_filter_state_stats', value: true, why: 'latency_us for the access log', accepts: 'anything' },
    {
      field: 'enable_dynamic_metadata_ingestion',
      value: true,
      why: 'decision and reason for the guard and the access log',
      accepts: { absent: true },
    },
    { field: 'max_denied_response_body_bytes', value: 4096, accepts: { absent: true, least: 1024 } },
    { field: 'grpc_service', fields: grpcServiceSettings(settings) },
  ];
}

/** envoy.config.core.v3.RetryPolicy. A check can be repeated. */
export const retrySettings: readonly Setting[] = [
  { field: 'retry_on', value: authzCall.retryOn.join(','), why: 'hides a restart of one of several account-authz' },
  { field: 'num_retries', value: authzCall.retries, accepts: { absent: true, least: 1 } },
  {
    field: 'retry_back_off',
    value: inline({ base_interval: seconds(authzCall.retryBaseMs), max_interval: seconds(authzCall.retryMaxMs) }),
    why: 'without these the first retry waits up to 1 s, longer than the timeout; max_interval also limits each attempt',
  },
  {
    field: 'retry_host_predicate',
    value: [
      extension('envoy.retry_host_predicates.previous_hosts', 'retry.host.previous_hosts.v3.PreviousHostsPredicate'),
    ],
    why: 'does not retry at the same dead host',
    accepts: { absent: true },
  },
  { field: 'host_selection_retry_max_attempts', value: 5, accepts: 'anything' },
];

/** envoy.config.core.v3.GrpcService.EnvoyGrpc. */
export const envoyGrpcSettings = ({ rewrittenHeaders, headersKib }: EnvoySettings): readonly Setting[] => [
  { field: 'cluster_name', value: authzCluster, accepts: 'anything' },
  { field: 'authority', value: authzCluster, accepts: 'anything' },
  {
    field: 'max_receive_message_length',
    // An allow has the cookies of the request, or its subprotocols.
    value: 65_536 + (rewrittenHeaders.length > 0 ? headersKib * 1024 : 0),
    accepts: { absent: true, least: 65_536 },
  },
  { field: 'skip_envoy_headers', value: true, accepts: 'anything' },
];

/** envoy.config.core.v3.GrpcService. */
export const grpcServiceSettings = (settings: EnvoySettings): readonly Setting[] => [
  {
    field: 'timeout',
    value: seconds(authzCall.timeoutMs),
    why: 'for all attempts; the default of 0.2 s is too short for a new connection on a busy machine',
    accepts: { least: 0.05, most: 2 },
  },
  {
    field: 'google_grpc',
    why: 'it has no retry policy, circuit breaker or `max_receive_message_length`, so each restart of account-authz fails requests',
  },
  { field: 'envoy_grpc', fields: envoyGrpcSettings(settings) },
  { field: 'retry_policy', fields: retrySettings },
];

/** envoy.type.matcher.v3.MetadataMatcher of what an allow of account-authz writes. */
export function allowMatcher(value: Tree): Members {
  return { filter: filterNames.extAuthz, path: [inline({ key: allowKey })], value };
}

/** envoy.extensions.filters.http.rbac.v3.RBAC. */
export const guardSettings: readonly Setting[] = [
  { field: 'rules_stat_prefix', value: 'only_allowed', accepts: 'anything' },
  {
    field: 'rules',
    value: {
      action: 'ALLOW',
      policies: {
        'allowed-by-account-authz': {
          principals: [inline({ any: true })],
          permissions: [
            {
              sourced_metadata: {
                metadata_source: 'DYNAMIC',
                metadata_matcher: allowMatcher(inline({ string_match: { exact: 'allow' } })),
              },
            },
          ],
        },
      },
    },
  },
];

export const guardReason =
  'An empty answer means allow in this protocol, and a wrong server may give one. This filter refuses (403) an allow without the metadata that only account-authz writes.';

/** envoy.config.common.mutation_rules.v3.HeaderMutation: the names that no client may send. */
export function earlyMutations({ headers }: EnvoyPolicy): readonly Tree[] {
  return removals(headers.filter(({ removed }) => removed === 'everywhere'));
}

/** The same for trailers, with the account headers and the token. */
export function trailerMutations({ headers }: EnvoyPolicy): readonly Tree[] {
  return removals(headers.filter(({ inTrailers }) => inTrailers === 'removed'));
}

/** What Envoy removes on the routes of one kind alone. */
export function routeMutations({ headers }: EnvoyPolicy, kind: 'checked' | 'public'): readonly Tree[] {
  return removals(headers.filter(({ removed }) => removed === kind));
}

function removals(rules: readonly HeaderRule[]): readonly Tree[] {
  return rules.flatMap(({ names, why }) =>
    names.map((name, i) => {
      const regex = spellings(name);
      const mutation =
        regex === name ? { remove: name } : { remove_on_match: inline({ key_matcher: { safe_regex: { regex } } }) };
      return i === 0 ? above(toSentence(why), mutation) : mutation;
    }),
  );
}

/** The wire's default is an allow. */
export function guardFilter(name: string): Members {
  return extension(name, 'filters.http.rbac.v3.RBAC', toMembers(guardSettings));
}
