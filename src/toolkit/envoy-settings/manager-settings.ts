// The connection manager before the check: every setting that makes a request unambiguous, bounded and free of forged headers.
import { allMethods } from '../../authz/permission.ts';
import { hostAndPort } from '../../text/listen-address.ts';
import { earlyMutations } from './authz-filter.ts';
import { extension } from './extension.ts';
import type { Setting } from './setting.ts';
import type { EnvoyPolicy, EnvoySettings } from './settings.ts';
import { inline, type Members } from './tree.ts';

/** envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager. */
export function managerSettings(settings: EnvoySettings): readonly Setting[] {
  return [
    {
      field: 'normalize_path',
      value: true,
      why: 'without it, the service may resolve /../ in a path that the check and the route used as it was',
    },
    {
      field: 'merge_slashes',
      value: true,
      why: 'without it, the service may read // as / and serve another path than the checked one',
    },
    {
      field: 'path_with_escaped_slashes_action',
      value: 'REJECT_REQUEST',
      why: '%2F and %5C mean different things to different servers',
    },
    ...edgeSettings(settings),
    earlyMutationSetting(settings),
    ...limitSettings(settings),
  ];
}

/** Before routing, on every route, whatever the check answers. */
export function earlyMutationSetting(policy: EnvoyPolicy): Setting {
  return {
    field: 'early_header_mutation_extensions',
    value: [
      extension(
        'envoy.http.early_header_mutation.header_mutation',
        'http.early_header_mutation.header_mutation.v3.HeaderMutation',
        { mutations: earlyMutations(policy) },
      ),
    ],
    why: 'Before routing, on every route, whatever the check answers. Removes names that only account-authz may set, and names that make an upstream use a path or method other than the checked one. Envoy has lower-cased the names.\n[^a-z0-9]: CGI reads a hyphen and an underscore as one (RFC 3875 section 4.1.18), others a dot and other signs too.',
  };
}

function edgeSettings({ trustedHops }: EnvoySettings): readonly Setting[] {
  return [
    {
      field: 'use_remote_address',
      value: true,
      why: 'At the edge, Envoy does not trust x-forwarded-for, x-envoy-* and x-request-id of a client. Behind other proxies, use --trusted-hops.\ninternal_address_config stays unset, so no client is internal: an empty one would trust loopback and RFC 1918.',
      accepts: 'anything',
    },
    { field: 'xff_num_trusted_hops', value: trustedHops === 0 ? undefined : trustedHops, accepts: 'anything' },
    { field: 'forward_client_cert_details', value: 'SANITIZE', accepts: { absent: true, values: ['SANITIZE_SET'] } },
    { field: 'strip_any_host_port', value: true, accepts: 'anything' },
    hostDotSetting,
    { field: 'generate_request_id', value: true, accepts: 'anything' },
    {
      field: 'preserve_external_request_id',
      value: trustedHops > 0,
      why:
        trustedHops > 0
          ? 'the id of the trusted proxy joins the logs'
          : 'a client cannot choose the id that joins the logs',
      accepts: 'anything',
    },
    { field: 'always_set_request_id_in_response', value: true, accepts: 'anything' },
    {
      field: 'server_header_transformation',
      value: 'PASS_THROUGH',
      why: 'no `server: envoy` on a refusal',
      accepts: 'anything',
    },
  ];
}

/**
 * Without it, the HTTP/1.1 codec of Envoy answers 400 to each method that it does not know, such as QUERY before 1.40. From 1.40 on Envoy
 * knows it, and answers 400 to one without `content-type` (RFC 10008) before any filter, with or without this.
 */
export function customMethodSetting({ methods }: EnvoyPolicy): Setting {
  const isNeeded = methods.some(method => !allMethods.includes(method));
  return { field: 'allow_custom_methods', value: isNeeded ? true : undefined, accepts: 'anything' };
}

export const clientIdleSetting = {
  field: 'idle_timeout',
  value: '620s',
  why: 'longer than load balancers keep a connection (Google: 600 s), or requests can meet a closing one',
  accepts: 'anything',
} as const satisfies Setting;

/** A server may ignore an upgrade (RFC 9110 section 7.8). This one Apache HttpClient 5.4 and later sends with each request (envoy#36305). */
export const ignoredUpgradeSetting = {
  field: 'ignore_http_11_upgrade',
  value: [inline({ prefix: 'TLS/' })],
  why: 'Java clients offer it with each request; without this Envoy answers 403',
  accepts: 'anything',
} as const satisfies Setting;

function limitSettings(settings: EnvoySettings): readonly Setting[] {
  const { trustedHops, idleTimeoutSeconds, takesWebSockets } = settings;
  return [
    {
      field: 'common_http_protocol_options',
      fields: [
        underscoresSetting(settings),
        { field: 'max_headers_count', value: 256, accepts: 'anything' },
        clientIdleSetting,
      ],
    },
    {
      field: 'http_protocol_options',
      fields: [
        {
          field: 'allow_chunked_length',
          value: false,
          why: 'Content-Length beside Transfer-Encoding is refused',
          accepts: { absent: true },
        },
        ignoredUpgradeSetting,
        customMethodSetting(settings),
      ],
      why: 'HTTP/1.1; 1.0 is refused (426), trailers are dropped',
    },
    {
      field: 'proxy_100_continue',
      value: true,
      why: 'else Envoy tells a client to send a body that the check refuses',
      accepts: 'anything',
    },
    {
      field: 'http2_protocol_options',
      fields: [
        { field: 'max_concurrent_streams', value: 100, accepts: 'anything' },
        { field: 'initial_stream_window_size', value: 65_536, accepts: 'anything' },
        { field: 'initial_connection_window_size', value: 1_048_576, accepts: 'anything' },
        {
          field: 'allow_connect',
          value: takesWebSockets ? true : undefined,
          why: 'WebSocket over HTTP/2 (RFC 8441), which Envoy reads as the same upgrade; no route takes another CONNECT',
          accepts: 'anything',
        },
        {
          field: 'override_stream_error_on_invalid_http_message',
          value: trustedHops === 0 ? undefined : true,
          why: 'a bad request does not end a connection that clients share',
          accepts: 'anything',
        },
      ],
    },
    maxHeadersSetting(settings),
    { field: 'request_headers_timeout', value: '10s', accepts: 'anything' },
    {
      field: 'stream_idle_timeout',
      value: `${idleTimeoutSeconds}s`,
      why: 'without a byte either way; nothing limits what makes progress (--request-timeout)',
      accepts: 'anything',
    },
    {
      field: 'upgrade_configs',
      value: takesWebSockets ? [inline({ upgrade_type: 'websocket', enabled: false })] : undefined,
      why: 'checked routes turn it on; the check is at the handshake',
      accepts: 'anything',
    },
    {
      field: 'drain_timeout',
      value: '5s',
      why: 'Off on purpose. CONNECT: no route accepts it. Other upgrades but TLS: 403. A local_reply_config that rewrites status or body would hide refusals.',
      accepts: 'anything',
    },
  ];
}

export const hostDotSetting: Setting = {
  field: 'strip_trailing_host_dot',
  value: true,
  why: 'api.example.com. is the same host',
  accepts: 'anything',
};

export function underscoresSetting({ underscores }: EnvoySettings): Setting {
  return {
    field: 'headers_with_underscores_action',
    value: underscores === 'drop' ? 'DROP_HEADER' : 'REJECT_REQUEST',
    why: 'x_auth_uid is x-auth-uid to a CGI-style upstream',
    accepts: { values: ['REJECT_REQUEST', 'DROP_HEADER'] },
  };
}

export function maxHeadersSetting({ headersKib }: EnvoySettings): Setting {
  return {
    field: 'max_request_headers_kb',
    value: headersKib,
    why: 'bounds a token before it costs anything',
    accepts: 'anything',
  };
}

/** Upper and lower case of header names as they were sent. */
export const preserveCase: Members = {
  stateful_formatter: extension('preserve_case', 'http.header_formatters.preserve_case.v3.PreserveCaseFormatterConfig'),
};

/** For a trial: reads requests as leniently as Envoy can, and changes none. */
export const shadowManagerSettings = ({ upstream }: EnvoySettings): readonly Setting[] => [
  { field: 'generate_request_id', value: false },
  { field: 'preserve_external_request_id', value: true },
  { field: 'use_remote_address', value: false },
  { field: 'skip_xff_append', value: true },
  { field: 'server_header_transformation', value: 'PASS_THROUGH' },
  {
    field: 'common_http_protocol_options',
    fields: [
      { field: 'headers_with_underscores_action', value: 'ALLOW' },
      { field: 'max_headers_count', value: 10_000 },
    ],
  },
  {
    field: 'http_protocol_options',
    value: {
      accept_http_10: true,
      ignore_http_11_upgrade: [inline({ safe_regex: { regex: '[^wWsS].*' } })],
      default_host_for_http_10: hostAndPort(upstream.host, upstream.port),
      allow_chunked_length: true,
      allow_custom_methods: true,
      enable_trailers: true,
      header_key_format: preserveCase,
    },
  },
  {
    field: 'http2_protocol_options',
    value: inline({ allow_connect: true, override_stream_error_on_invalid_http_message: true }),
  },
  { field: 'proxy_100_continue', value: true },
  { field: 'max_request_headers_kb', value: 8192 },
  { field: 'stream_idle_timeout', value: '0s' },
  { field: 'upgrade_configs', value: ['websocket', 'spdy/3.1'].map(type => inline({ upgrade_type: type })) },
];
