// Planted mistakes: the connection to account-authz, and values that cannot be read.
import type { Part } from '../shipped.ts';
import { copyOf, type Mistakes, remove, set, tls, upstreamTls } from './planting.ts';

export const transport: Mistakes = {
  'authz-protocol': {
    // The connection to account-authz.
    'a missing cluster': p => set(p.service.envoy_grpc, { cluster_name: 'elsewhere' }),
    'a cluster without HTTP/2': p => remove(p.authz, 'typed_extension_protocol_options'),
    'a cluster with ALPN but without TLS': p =>
      set(Object.values<Part>(p.authz.typed_extension_protocol_options)[0], {
        explicit_http_config: null,
        auto_config: {},
      }),
    'TLS only in account-authz': p => set(p.config, { tls }),
    'TLS only in Envoy': p => set(p.authz, { transport_socket: upstreamTls() }),
    'a missing client certificate that account-authz requires': p => [
      set(p.config, { tls: { ...tls, clientCaFile: '/ca.crt' } }),
      set(p.authz, { transport_socket: upstreamTls() }),
    ],
    'a transport socket match without the client certificate that account-authz requires': p => [
      set(p.config, { tls: { ...tls, clientCaFile: '/ca.crt' } }),
      set(p.authz, {
        transport_socket_matches: [{ name: 'x', transport_socket: upstreamTls() }],
        transport_socket: upstreamTls(),
      }),
    ],
  },
  'connect-timeout': { 'a long connect timeout': p => set(p.authz, { connect_timeout: '0.5s' }) },
  'authz-address': {
    'a port that differs from the configuration': p =>
      set(p.authz.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address, { port_value: 9193 }),
    'a port where the configuration has a Unix socket': p => set(p.config, { listen: 'unix:/run/authz.sock' }),
    'a cluster on another machine for an account-authz on loopback': p =>
      set(p.authz.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address, {
        address: '192.0.2.7',
      }),
    'a loopback cluster for an account-authz on another machine': p => set(p.config, { listen: '192.0.2.7:9191' }),
  },
  'retry-policy': {
    'zero retries': p => set(p.retry, { num_retries: 0 }),
    'a missing back-off': p => remove(p.retry, 'retry_back_off'),
    'a back-off without max_interval': p => remove(p.retry.retry_back_off, 'max_interval'),
    'a back-off as long as the check timeout': p => set(p.retry.retry_back_off, { max_interval: '0.5s' }),
    'a missing retry budget': p => remove(p.authz.circuit_breakers.thresholds[0], 'max_retries'),
    'missing circuit breakers': p => remove(p.authz, 'circuit_breakers'),
    'two hosts without previous_hosts': p => {
      const [locality] = p.authz.load_assignment.endpoints;
      const second = copyOf(locality.lb_endpoints[0]);
      second.endpoint.address.socket_address.port_value = 9193;
      locality.lb_endpoints.push(second);
      remove(p.retry, 'retry_host_predicate');
    },
  },
  'authz-unverified': {
    'TLS without an authority': p => {
      set(p.config, { tls });
      set(p.authz, { transport_socket: upstreamTls({ validation_context: {} }) });
    },
    'an untrusted certificate that is accepted': p => {
      set(p.config, { tls });
      const trusted_ca = { filename: '/ca.crt' };
      set(p.authz, {
        transport_socket: upstreamTls({
          validation_context: { trusted_ca, trust_chain_verification: 'ACCEPT_UNTRUSTED' },
        }),
      });
    },
  },
  'unreadable-value': {
    // Unreadable values.
    'a number for a boolean': p => set(p.check, { failure_mode_allow: 2 }),
    'a duration without its unit': p => set(p.service, { timeout: 0.5 }),
    'one field in two spellings': p => set(p.check, { failureModeAllow: true }),
    'a regex that RE2 does not support': p =>
      set(p.check.decoder_header_mutation_rules, { allow_expression: { regex: '(?!:path).*' } }),
  },
  'unchecked-listener + unreadable-value': {
    'a string for a list of filters': p => set(p.manager, { http_filters: 'none' }),
  },
};
