// The connection manager before the check: every setting that makes a request unambiguous, bounded and free of forged headers.
import { everyMethod } from '../authz/permission.ts';
import { earlyMutations } from './authz-filter.ts';
import { extension } from './extension.ts';
import type { Setting } from './setting.ts';
import type { EnvoyPolicy, EnvoySettings } from './settings.ts';

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
    },
    { field: 'xff_num_trusted_hops', value: trustedHops === 0 ? undefined : trustedHops, accepts: 'anything' },
    { field: 'forward_client_cert_details', value: 'SANITIZE', accepts: { absent: true, values: ['SANITIZE_SET'] } },
    { field: 'strip_any_host_port', value: true, accepts: 'anything' },
    {
      field: 'generate_request_id',
      value: true,
      why: 'a client cannot choose the id that joins the logs',
      accepts: 'anything',
    },
    { field: 'preserve_external_request_id', value: false, accepts: 'anything' },
    { field: 'always_set_request_id_in_response', value: true, accepts: 'anything' },
    {
      field: 'server_header_transformation',
      value: 'PASS_THROUGH',
      why: 'no `server: envoy` on a refusal',
      accepts: 'anything',
    },
  ];
}

/** Without it, the HTTP/1.1 codec of Envoy answers 400 to each method that it does not know, such as QUERY. */
export function customMethodSetting({ methods }: EnvoyPolicy): Setting {
  const isNeeded = methods.some(method => !everyMethod.includes(method));
  return { field: 'allow_custom_methods', value: isNeeded ? true : undefined, accepts: 'anything' };
}

const otherHeadersKb = 24;

function limitSettings(settings: EnvoySettings): readonly Setting[] {
  const { trustedHops, maxTokenBytes } = settings;
  return [
    {
      field: 'common_http_protocol_options',
      fields: [
        {
          field: 'headers_with_underscores_action',
          value: 'REJECT_REQUEST',
          why: 'x_auth_uid is x-auth-uid to a CGI-style upstream',
          accepts: { values: ['DROP_HEADER'] },
        },
        { field: 'max_headers_count', value: 100, accepts: 'anything' },
        { field: 'idle_timeout', value: '600s', accepts: 'anything' },
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
        customMethodSetting(settings),
      ],
      why: 'HTTP/1.1; 1.0 is refused (426), trailers are dropped',
    },
    {
      field: 'http2_protocol_options',
      fields: [
        { field: 'max_concurrent_streams', value: 100, accepts: 'anything' },
        { field: 'initial_stream_window_size', value: 65_536, accepts: 'anything' },
        { field: 'initial_connection_window_size', value: 1_048_576, accepts: 'anything' },
        {
          field: 'override_stream_error_on_invalid_http_message',
          value: trustedHops === 0 ? undefined : true,
          why: 'a bad request does not end a connection that clients share',
          accepts: 'anything',
        },
      ],
    },
    {
      field: 'max_request_headers_kb',
      value: otherHeadersKb + Math.ceil(maxTokenBytes / 1024),
      why: 'bounds a token before it costs anything',
      accepts: 'anything',
    },
    { field: 'request_headers_timeout', value: '10s', accepts: 'anything' },
    {
      field: 'request_timeout',
      value: '60s',
      why: 'the whole request; for long uploads or client streams, raise this and the next',
      accepts: 'anything',
    },
    { field: 'stream_idle_timeout', value: '60s', accepts: 'anything' },
    {
      field: 'drain_timeout',
      value: '5s',
      why: 'Off on purpose. CONNECT: no route accepts it. Upgrades: 403. A local_reply_config that rewrites status or body would hide refusals.\nFor websockets add `upgrade_configs: [{ upgrade_type: websocket }]` without filters: the check runs before the upgrade.',
      accepts: 'anything',
    },
  ];
}
