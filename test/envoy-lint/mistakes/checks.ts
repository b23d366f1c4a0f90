import { checkSettings, type Mistake, remove, removePattern, set } from './planting.ts';

export const checks: readonly Mistake[] = [
  // The check.
  ['fail-open', 'failure-mode-allow', p => set(p.check, { failure_mode_allow: true })],
  ["fail-open spelled as Envoy's YAML allows", 'failure-mode-allow', p => set(p.check, { failure_mode_allow: 'yes' })],
  ['a fail-open marker header', 'failure-mode-header', p => set(p.check, { failure_mode_allow_header_add: true })],
  ['a missing status_on_error', 'status-on-error', p => remove(p.check, 'status_on_error')],
  ['status_on_error 403', 'status-on-error', p => set(p.check, { status_on_error: { code: 'Forbidden' } })],
  ['status_on_error 200 by number', 'status-on-error', p => set(p.check, { status_on_error: { code: 200 } })],
  ['a missing timeout', 'check-timeout', p => remove(p.service, 'timeout')],
  ['a timeout of zero', 'check-timeout', p => set(p.service, { timeout: '0s' })],
  ['a timeout of ten seconds', 'check-timeout', p => set(p.service, { timeout: '10s' })],
  ['a timeout of ten seconds as a message', 'check-timeout', p => set(p.service, { timeout: { seconds: 10 } })],
  [
    'a check of half of the requests',
    ['deny-at-disable', 'filter-enabled'],
    p => set(p.check, { filter_enabled: { default_value: { numerator: 50, denominator: 'HUNDRED' } } }),
  ],
  [
    'a check of 100 in a million requests, with the others refused',
    'filter-enabled',
    p =>
      set(p.check, {
        filter_enabled: { default_value: { numerator: 100, denominator: 2 } },
        deny_at_disable: { default_value: true, runtime_key: 'x' },
      }),
  ],
  [
    'a check of all requests that a runtime key can change',
    ['deny-at-disable', 'filter-enabled'],
    p => set(p.check, { filter_enabled: { default_value: { numerator: 100 }, runtime_key: 'authz.enabled' } }),
  ],
  [
    'a metadata condition on the check',
    ['deny-at-disable', 'filter-enabled-metadata'],
    p => set(p.check, { filter_enabled_metadata: {} }),
  ],
  ['shadow mode', 'shadow-mode', p => set(p.check, { shadow_mode: true })],
  ['a cleared route cache', 'clear-route-cache', p => set(p.check, { clear_route_cache: true })],
  ['a missing protocol version', 'transport-api-version', p => remove(p.check, 'transport_api_version')],
  ['protocol version 2', 'transport-api-version', p => set(p.check, { transport_api_version: 'V2' })],
  [
    'HTTP instead of gRPC',
    'grpc-service',
    p => [remove(p.check, 'grpc_service'), set(p.check, { http_service: { server_uri: {} } })],
  ],
  [
    'google_grpc',
    'google-grpc',
    p => [remove(p.service, 'envoy_grpc'), set(p.service, { google_grpc: { target_uri: 'x' } })],
  ],
  ['the body in the check', 'request-body', p => set(p.check, { with_request_body: { max_request_bytes: 1024 } })],
  ['the body in the check of a route', 'request-body', p => set(p.routes[0], checkSettings({ with_request_body: {} }))],
  [
    'another check service for a route',
    'check-service-override',
    p => set(p.routes[0], checkSettings({ grpc_service: {} })),
  ],
  ['discarded dynamic metadata', 'metadata-ingestion', p => set(p.check, { enable_dynamic_metadata_ingestion: false })],
  ['mutations without validation', 'validate-mutations', p => remove(p.check, 'validate_mutations')],

  // The headers that account-authz receives and may change.
  ['a hidden account header', 'account-header-hidden', p => p.check.allowed_headers.patterns.splice(6, 2)],
  [
    'a hidden second account header',
    ['account-header-hidden', 'trailers-kept'],
    p => set(p.config, { account: { headers: ['x-account-id', 'x-tenant'], query: [] } }),
  ],
  [
    'an account header allowed only in upper case',
    'account-header-hidden',
    p => p.check.allowed_headers.patterns.splice(6, 2, { exact: 'X-Account-Id' }),
  ],
  [
    'O-028 hidden spellings of an account header',
    'account-header-hidden',
    p => p.check.allowed_headers.patterns.splice(7, 1),
  ],
  [
    'an account header allowed only with hyphens and underscores',
    'account-header-hidden',
    p => set(p.check.allowed_headers.patterns[7].safe_regex, { regex: 'x[-_]account[-_]id' }),
  ],
  [
    'an account header whose spelling with one other separator is hidden',
    'account-header-hidden',
    p => set(p.check.allowed_headers.patterns[7].safe_regex, { regex: 'x[^a-z0-9~]account[^a-z0-9]id' }),
  ],
  [
    'an account header spelling in disallowed_headers',
    'disallowed-headers',
    p => set(p.check, { disallowed_headers: { patterns: [{ exact: 'x.account.id' }] } }),
  ],
  ['a hidden connection header', 'ambiguity-hidden', p => removePattern(p, 'connection')],
  [
    'a hidden content-type, where a query parameter names the account',
    'ambiguity-hidden',
    p => removePattern(p, 'content-type'),
  ],
  [
    'a connection header in disallowed_headers',
    'disallowed-headers',
    p => set(p.check, { disallowed_headers: { patterns: [{ exact: 'connection' }] } }),
  ],
  ['H-033 a hidden authorization header', 'authorization-hidden', p => p.check.allowed_headers.patterns.shift()],
  ['a hidden x-request-id header', 'request-id-hidden', p => p.check.allowed_headers.patterns.splice(1, 1)],
  [
    'an account header under a prefix in disallowed_headers',
    'disallowed-headers',
    p => set(p.check, { disallowed_headers: { patterns: [{ prefix: 'X-ACC', ignore_case: true }] } }),
  ],
  ['missing mutation rules', 'mutation-rules-missing', p => remove(p.check, 'decoder_header_mutation_rules')],
  [
    'mutation rules without the look-alikes',
    'mutation-rules-too-narrow',
    p => set(p.check.decoder_header_mutation_rules, { allow_expression: { regex: '^(x-auth-.*|authorization)$' } }),
  ],
  [
    'mutation rules without authorization',
    'mutation-rules-too-narrow',
    p =>
      set(p.check.decoder_header_mutation_rules, {
        allow_expression: { regex: 'x[-_]auth[-_](uid|app|acc|role|iss|actor)' },
      }),
  ],
  [
    'mutation rules that match only a part of the name',
    'mutation-rules-too-narrow',
    p => set(p.check.decoder_header_mutation_rules, { allow_expression: { regex: '^x[-_]auth[-_]|^authorization' } }),
  ],
  [
    'mutation rules that disallow an identity header',
    'mutation-rules-too-narrow',
    p => set(p.check.decoder_header_mutation_rules, { disallow_expression: { regex: '.*-role' } }),
  ],
  [
    'mutation rules that allow every header',
    'mutation-rules-too-wide',
    p => set(p.check.decoder_header_mutation_rules, { allow_expression: { regex: '.*' } }),
  ],
  [
    'mutation rules that disallow nothing',
    'mutation-rules-too-wide',
    p => remove(p.check.decoder_header_mutation_rules, 'disallow_all'),
  ],
  [
    'mutation rules that do not turn a violation into an error',
    'mutation-not-error',
    p => remove(p.check.decoder_header_mutation_rules, 'disallow_is_error'),
  ],
];
