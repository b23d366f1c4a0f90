// Planted mistakes: the connection to account-authz, and values that cannot be read.
import type { Part } from '../shipped.ts';
import { copyOf, type Mistake, remove, set, tls, upstreamTls } from './planting.ts';

export const transport: readonly Mistake[] = [
  // The connection to account-authz.
  ['a missing cluster', 'authz-cluster-unknown', p => set(p.service.envoy_grpc, { cluster_name: 'elsewhere' })],
  ['a cluster without HTTP/2', 'authz-cluster-http2', p => remove(p.authz, 'typed_extension_protocol_options')],
  [
    'a cluster with HTTP/1.1',
    'authz-cluster-http2',
    p =>
      set(Object.values<Part>(p.authz.typed_extension_protocol_options)[0], {
        explicit_http_config: { http_protocol_options: {} },
      }),
  ],
  [
    'a cluster with ALPN but without TLS',
    'authz-cluster-http2',
    p =>
      set(Object.values<Part>(p.authz.typed_extension_protocol_options)[0], {
        explicit_http_config: null,
        auto_config: {},
      }),
  ],
  ['a long connect timeout', 'connect-timeout', p => set(p.authz, { connect_timeout: '0.5s' })],
  ['a missing connect timeout', 'connect-timeout', p => remove(p.authz, 'connect_timeout')],
  [
    'a port that differs from the configuration',
    'authz-address',
    p =>
      set(p.authz.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address, { port_value: 9193 }),
  ],
  [
    'a port where the configuration has a Unix socket',
    'authz-address',
    p => set(p.config, { listen: 'unix:/run/authz.sock' }),
  ],
  ['zero retries', 'retry-nothing', p => set(p.retry, { num_retries: 0 })],
  ['a missing retry_on', 'retry-nothing', p => remove(p.retry, 'retry_on')],
  ['a missing back-off', 'retry-back-off', p => remove(p.retry, 'retry_back_off')],
  ['a back-off without max_interval', 'retry-back-off', p => remove(p.retry.retry_back_off, 'max_interval')],
  [
    'a back-off as long as the check timeout',
    'retry-interval',
    p => set(p.retry.retry_back_off, { max_interval: '0.5s' }),
  ],
  ['a back-off of at most 10 ms', 'retry-interval', p => set(p.retry.retry_back_off, { max_interval: '0.010s' })],
  ['a missing retry budget', 'retry-budget', p => remove(p.authz.circuit_breakers.thresholds[0], 'max_retries')],
  ['missing circuit breakers', 'retry-budget', p => remove(p.authz, 'circuit_breakers')],
  [
    'two hosts without previous_hosts',
    'retry-same-host',
    p => {
      const [locality] = p.authz.load_assignment.endpoints;
      const second = copyOf(locality.lb_endpoints[0]);
      second.endpoint.address.socket_address.port_value = 9193;
      locality.lb_endpoints.push(second);
      remove(p.retry, 'retry_host_predicate');
    },
  ],

  [
    'a loopback cluster for an account-authz on another machine',
    'authz-address',
    p => set(p.config, { listen: '192.0.2.7:9191' }),
  ],
  ['TLS only in account-authz', 'authz-tls', p => set(p.config, { tls })],
  ['TLS only in Envoy', 'authz-tls', p => set(p.authz, { transport_socket: upstreamTls() })],
  [
    'a missing client certificate that account-authz requires',
    'authz-client-certificate',
    p => [
      set(p.config, { tls: { ...tls, clientCaFile: '/ca.crt' } }),
      set(p.authz, { transport_socket: upstreamTls({ validation_context: {} }) }),
    ],
  ],

  [
    'a transport socket match without the client certificate that account-authz requires',
    'authz-client-certificate',
    p => [
      set(p.config, { tls: { ...tls, clientCaFile: '/ca.crt' } }),
      set(p.authz, {
        transport_socket_matches: [{ name: 'x', transport_socket: upstreamTls() }],
        transport_socket: upstreamTls(),
      }),
    ],
  ],

  // Unreadable values.
  ['a number for a boolean', 'unreadable-value', p => set(p.check, { failure_mode_allow: 2 })],
  ['a duration without its unit', 'unreadable-value', p => set(p.service, { timeout: 0.5 })],
  ['one field in two spellings', 'unreadable-value', p => set(p.check, { failureModeAllow: true })],
  [
    'a regex that RE2 does not support',
    'unreadable-value',
    p => set(p.check.decoder_header_mutation_rules, { allow_expression: { regex: '(?!:path).*' } }),
  ],
  [
    'a string for a list of filters',
    ['unchecked-listener', 'unreadable-value'],
    p => set(p.manager, { http_filters: 'none' }),
  ],
];
