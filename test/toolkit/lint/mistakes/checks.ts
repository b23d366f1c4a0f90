// Planted mistakes: the check and what it is shown.
import { checkSettings, copyOf, type Mistakes, remove, removePattern, set, shardRoute, silent } from './planting.ts';

export const checks: Mistakes = {
  'failure-mode-allow': {
    "fail-open spelled as Envoy's YAML allows": p => set(p.check, { failure_mode_allow: 'yes' }),
  },
  'failure-mode-allow-header-add': {
    'a fail-open marker header': p => set(p.check, { failure_mode_allow_header_add: true }),
  },
  'status-on-error': {
    'a missing status_on_error': p => remove(p.check, 'status_on_error'),
    'status_on_error 403': p => set(p.check, { status_on_error: { code: 'Forbidden' } }),
  },
  timeout: {
    'a missing timeout': p => remove(p.service, 'timeout'),
    'a timeout of zero': p => set(p.service, { timeout: '0s' }),
    'a timeout of ten seconds': p => set(p.service, { timeout: '10s' }),
  },
  'conditional-check': {
    'a metadata condition on the check': p => set(p.check, { filter_enabled_metadata: {} }),
    'a metadata condition on what another filter writes': p =>
      set(p.check.filter_enabled_metadata, { filter: 'envoy.filters.http.jwt_authn' }),
  },
  'clear-route-cache': {
    'a route for requests without the token, which an allow removes': p =>
      shardRoute(p, { name: 'authorization', present_match: false }),
    'a route for every account but one': p =>
      shardRoute(p, { name: 'x-auth-acc', string_match: { exact: 'acme' }, invert_match: true }),
    'a route by a look-alike': p => shardRoute(p, { name: 'x-auth_acc', string_match: { exact: 'acme' } }),
    'a route by the metadata of the check': p => {
      shardRoute(p);
      set(p.routes[0].match, {
        dynamic_metadata: [{ filter: 'envoy.filters.http.ext_authz', path: [{ key: 'acc' }] }],
      });
    },
  },
  'unchecked-listener': {
    'the check of an HTTP service alone': p => [
      remove(p.check, 'grpc_service'),
      set(p.check, { http_service: { server_uri: {} } }),
    ],
  },
  'google-grpc': {
    google_grpc: p => [remove(p.service, 'envoy_grpc'), set(p.service, { google_grpc: { target_uri: 'x' } })],
  },
  'with-request-body': {
    'the body in the check': p => set(p.check, { with_request_body: { max_request_bytes: 1024 } }),
  },
  'check-service-override': {
    'the body in the check of a route': p => set(p.routes[0], checkSettings({ with_request_body: {} })),
    'another check service for a route': p => set(p.routes[0], checkSettings({ grpc_service: {} })),
  },
  'enable-dynamic-metadata-ingestion': {
    'discarded dynamic metadata': p => set(p.check, { enable_dynamic_metadata_ingestion: false }),
  },
  'validate-mutations': { 'mutations without validation': p => remove(p.check, 'validate_mutations') },
  'header-hidden': {
    // The headers that account-authz receives and may change.
    'a hidden account header': p => p.check.allowed_headers.patterns.splice(5, 3, { exact: 'content-type' }),
    'an account header allowed only in upper case': p =>
      p.check.allowed_headers.patterns.splice(5, 3, { exact: 'content-type' }, { exact: 'X-Account-Id' }),
    'O-028 hidden spellings of an account header': p => p.check.allowed_headers.patterns.splice(7, 1),
    'an account header allowed only with hyphens and underscores': p =>
      set(p.check.allowed_headers.patterns[7].safe_regex, { regex: 'x[-_]account[-_]id' }),
    'an account header whose spelling with one other separator is hidden': p =>
      set(p.check.allowed_headers.patterns[7].safe_regex, { regex: 'x[^a-z0-9~]account[^a-z0-9]id' }),
    'an account header spelling in disallowed_headers': p =>
      set(p.check, { disallowed_headers: { patterns: [{ exact: 'x.account.id' }] } }),
    'a connection header in disallowed_headers': p =>
      set(p.check, { disallowed_headers: { patterns: [{ exact: 'connection' }] } }),
    'an account header under a prefix in disallowed_headers': p =>
      set(p.check, { disallowed_headers: { patterns: [{ prefix: 'X-ACC', ignore_case: true }] } }),
    'a hidden connection header': p => removePattern(p, 'connection'),
    'a hidden content-type, where a query parameter names the account': p => removePattern(p, 'content-type'),
    'H-033 a hidden authorization header': p => p.check.allowed_headers.patterns.shift(),
    'a hidden x-request-id header': p => p.check.allowed_headers.patterns.splice(1, 1),
  },
  'header-hidden + trailers-kept': {
    'a hidden second account header': p =>
      set(p.config, { account: { headers: ['x-account-id', 'x-tenant'], query: [] } }),
  },
  'foreign-check-same-name': {
    'another ext_authz of the same name, as Istio makes of two CUSTOM providers': p =>
      p.filters.unshift({ ...copyOf(p.filters[1]), typed_config: { ...p.check, ...silent('opa') } }),
  },
  'mutation-rules-missing': { 'missing mutation rules': p => remove(p.check, 'decoder_header_mutation_rules') },
  'mutation-rules-wrong': {
    'mutation rules without the look-alikes': p =>
      set(p.check.decoder_header_mutation_rules, { allow_expression: { regex: '^(x-auth-.*|authorization)$' } }),
    'mutation rules without authorization': p =>
      set(p.check.decoder_header_mutation_rules, {
        allow_expression: { regex: 'x[-_]auth[-_](uid|app|acc|role|iss|actor)' },
      }),
    'mutation rules that allow every header': p =>
      set(p.check.decoder_header_mutation_rules, { allow_expression: { regex: '.*' } }),
    'mutation rules that disallow nothing': p => remove(p.check.decoder_header_mutation_rules, 'disallow_all'),
    'mutation rules that do not turn a violation into an error': p =>
      remove(p.check.decoder_header_mutation_rules, 'disallow_is_error'),
  },
};
