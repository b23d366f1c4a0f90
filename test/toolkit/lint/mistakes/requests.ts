// Planted mistakes: what a client may send past the removals.
import { filter } from '../shipped.ts';
import { type Mistakes, remove, set, toRemoval } from './planting.ts';

export const requests: Mistakes = {
  'normalize-path': {
    // The connection manager.
    'a missing normalize_path': p => remove(p.manager, 'normalize_path'),
  },
  'merge-slashes': { 'a missing merge_slashes': p => remove(p.manager, 'merge_slashes') },
  'path-with-escaped-slashes-action': {
    'a missing action for escaped slashes': p => remove(p.manager, 'path_with_escaped_slashes_action'),
    'unescaping of escaped slashes': p => set(p.manager, { path_with_escaped_slashes_action: 'UNESCAPE_AND_FORWARD' }),
  },
  'headers-with-underscores-action': {
    'allowed underscores in header names': p =>
      set(p.manager.common_http_protocol_options, { headers_with_underscores_action: 'ALLOW' }),
    'missing protocol options': p => remove(p.manager, 'common_http_protocol_options'),
  },
  'owned-headers-kept': {
    'a missing early header mutation': p => remove(p.manager, 'early_header_mutation_extensions'),
    'an early mutation by a regex that misses one header': p =>
      set(p.early[0].remove_on_match.key_matcher.safe_regex, { regex: 'x-auth-(uid|app|acc|iss)' }),
    'an early mutation by an upper-case prefix': p =>
      set(p.early[0].remove_on_match, { key_matcher: { prefix: 'X-Auth-' } }),
    'a kept method override header': p => p.early.pop(),
    'O-015 kept spellings of a method override header': p =>
      p.early.splice(-1, 1, ...['x-http-method-override', 'x-http-method', 'x-method-override'].map(toRemoval)),
  },
  'headers-with-underscores-action + owned-headers-kept': {
    'an early mutation by a prefix while underscores are allowed': p => {
      set(p.early[0].remove_on_match, { key_matcher: { prefix: 'x-auth-' } });
      remove(p.manager.common_http_protocol_options, 'headers_with_underscores_action');
    },
  },
  'mutation-rules-wrong + owned-headers-kept + trailers-kept': {
    'an identity prefix that differs from the bootstrap': p => set(p.config, { identityHeaders: 'x-acme-' }),
  },
  'trailers-kept': {
    'O-027 a missing removal from trailers': p => p.filters.shift(),
    'a disabled removal from trailers': p => set(p.filters[0], { disabled: true }),
    'kept identity headers in trailers': p => p.trailers.shift(),
    'O-015 kept path overrides in trailers': p => p.trailers.splice(1, 1),
    'O-015 kept method overrides in trailers': p => p.trailers.splice(2, 1),
    'O-028 kept spellings of an account header in trailers': p => p.trailers.splice(4, 1, toRemoval('x-account-id')),
    'a removal only from response trailers': p =>
      set(p.filters[0].typed_config, { mutations: { response_trailers_mutations: p.trailers } }),
  },
  'owned-header-removed': {
    'the token removed by a filter before the check': p =>
      p.filters.unshift(
        filter('header_mutation.v3.HeaderMutation', { mutations: { request_mutations: [toRemoval('authorization')] } }),
      ),
  },
  'local-reply': {
    'a local reply mapper for UAEX': p =>
      set(p.manager, {
        local_reply_config: {
          mappers: [{ filter: { response_flag_filter: { flags: ['NR', 'UAEX'] } }, status_code: 200 }],
        },
      }),
    'a local reply mapper for every status from 400': p =>
      set(p.manager, {
        local_reply_config: {
          mappers: [
            {
              filter: {
                status_code_filter: { comparison: { op: 'GE', value: { default_value: 400, runtime_key: 'x' } } },
              },
              status_code: 200,
            },
          ],
        },
      }),
  },
  'shown-token': {
    'a token in a text log, as the second choice': p =>
      set(p.manager.access_log[0].typed_config, {
        log_format: { text_format_source: { inline_string: '%START_TIME% %REQ(X-TOKEN?AUTHORIZATION):20%\n' } },
      }),
    'a token in a log over gRPC': p =>
      set(p.manager.access_log[0].typed_config, { additional_request_headers_to_log: ['Authorization'] }),
    'a token in traces': p =>
      set(p.manager, { tracing: { custom_tags: [{ tag: 'token', request_header: { name: 'authorization' } }] } }),
  },
};
