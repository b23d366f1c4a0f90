// Rules for the connection to account-authz: its cluster, and a retry policy that hides a restart from clients.
import { authzConnection } from '../authz-cluster.ts';
import { authzCall, seconds } from '../authz-filter.ts';
import { formatAddress } from '../settings.ts';
import { type Cluster, isAt, leadsElsewhere, readProtocolOptions } from './cluster.ts';
import type { AuthzFilter } from './lint-model.ts';
import type { ProtoValue } from './proto-value.ts';
import { type Finding, ifMissing, quoted, type Rules, unless, when } from './rule.ts';

const upstreamTls = 'envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext';
const previousHosts = 'envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate';
const writeBackOff = `write \`retry_back_off: { base_interval: ${seconds(authzCall.retryBaseMs)}, max_interval: ${seconds(authzCall.retryMaxMs)} }\``;
const defaultMaxRetries = 3;
// 10 ms was worse than no retry at all: it limits each attempt too.
const minAttemptSeconds = 0.02;

export const transportRules = {
  'authz-cluster-unknown': {
    what: 'The cluster of the check is not in the file',
    why: 'the lint cannot check its protocol, address, timeouts and circuit breakers',
    fix: 'name a cluster of static_resources',
    find: ({ service, cluster }) => {
      const grpc = service.field('envoy_grpc');
      return when(grpc.isPresent && cluster === undefined, grpc.field('cluster_name'), 'names no static cluster');
    },
  },
  'authz-cluster-http2': {
    what: 'The cluster of the check does not speak HTTP/2',
    why: 'gRPC needs HTTP/2, so every check would fail',
    fix: 'write `explicit_http_config: { http2_protocol_options: {} }` in its HttpProtocolOptions',
    find: ({ cluster }) =>
      cluster === undefined ? [] : when(!speaksHttp2(cluster), cluster.value, 'does not speak HTTP/2'),
  },
  'authz-address': {
    what: 'The cluster of the check leads to another local address than `listen` of the configuration, or without TLS to another machine while `listen` is a loopback address or a Unix socket',
    why: 'no process answers the check there, or another one does',
    fix: 'give both the same address',
    find: ({ cluster, config: { listen } }) => {
      // With TLS, a proxy on the other machine may stand before account-authz.
      const isOther =
        isAt(cluster, listen) === false ||
        (cluster !== undefined && !speaksTls(cluster) && leadsElsewhere(cluster, listen));
      const found = quoted(
        (cluster?.endpoints ?? [])
          .slice(0, 3)
          .map(each => (each ? formatAddress(each) : '?'))
          .join(', '),
      );
      return when(isOther, cluster?.place, `leads to ${found}, and the configuration listens on ${listen}`);
    },
  },
  'authz-tls': {
    what: 'The cluster of the check speaks TLS and `listen` of the configuration does not, or the reverse',
    why: 'the connection fails, and Envoy refuses every request',
    fix: 'write a `transport_socket` with UpstreamTlsContext on the cluster if the configuration has `tls`, and none otherwise',
    find: ({ cluster, config: { listen, tls } }) => {
      const socket = cluster?.value.field('transport_socket');
      if (socket === undefined || cluster?.value.field('transport_socket_matches').isPresent) return [];
      // On another machine, a proxy may stand before account-authz.
      const isTooMuch = socket.isPresent && tls === undefined && isAt(cluster, listen) !== undefined;
      return [
        ...when(tls !== undefined && !socket.isPresent, socket, 'is missing, and the configuration has `tls`'),
        ...when(isTooMuch, socket, 'is set, and the configuration has no `tls`'),
      ];
    },
  },
  'authz-unverified': {
    what: 'The cluster of the check speaks TLS and accepts any certificate: no `trusted_ca` or SDS validation, or `ACCEPT_UNTRUSTED`',
    why: 'whoever can answer at that address decides about every request',
    fix: 'name the authority in `validation_context`, and the name of the server in `match_typed_subject_alt_names`',
    find: ({ cluster }) =>
      tlsContextsOf(cluster)
        .filter(context => !isVerified(context))
        .map(at => ({ at, says: 'accepts any certificate' })),
  },
  'authz-client-certificate': {
    what: 'The cluster of the check presents no certificate, and `tls.clientCaFile` of the configuration asks for one',
    why: 'account-authz closes the connection, and Envoy refuses every request',
    fix: 'name a certificate in `tls_certificate_sds_secret_configs` of the UpstreamTlsContext',
    find: ({ cluster, config: { tls } }) => {
      if (cluster === undefined || tls?.clientCaFile === undefined) return [];
      return tlsContextsOf(cluster)
        .filter(context => !context.names().some(name => name.startsWith('tls_certificate')))
        .map(at => ({ at, says: 'presents no certificate' }));
    },
  },
  'retry-nothing': {
    what: 'A retry policy that retries nothing: no `retry_on`, or `num_retries: 0`',
    why: 'each restart of account-authz fails the requests in flight',
    fix: `write \`retry_on: ${authzCall.retryOn.join(',')}\` and \`num_retries: ${authzCall.retries}\``,
    find: withRetry(retry => [
      ...when((retry.field('retry_on').text() ?? '').trim() === '', retry.field('retry_on'), 'names no condition'),
      ...when(retry.field('num_retries').number() === 0, retry.field('num_retries'), 'is 0'),
    ]),
  },
  'retry-back-off': {
    what: 'A retry policy without `retry_back_off`, or without its `base_interval` or `max_interval`',
    why: 'by default the first retry waits up to 1 s, longer than the check may take',
    fix: writeBackOff,
    find: withRetry(retry => {
      const backOff = retry.field('retry_back_off');
      if (!backOff.isPresent) return ifMissing(backOff);
      return ['base_interval', 'max_interval'].flatMap(name => ifMissing(backOff.field(name)));
    }),
  },
  'retry-interval': {
    what: '`max_interval` of the retry policy is not below the timeout of the check, or below 20 ms; or `base_interval` is not below the timeout',
    why: 'it is also the time limit of each attempt: if too long, no time remains for a second attempt; if too short, attempts end that would succeed',
    fix: writeBackOff,
    find: withRetry((retry, { timeoutSeconds = Number.POSITIVE_INFINITY }) => {
      const backOff = retry.field('retry_back_off');
      const max = backOff.field('max_interval');
      return [
        ...[max, backOff.field('base_interval')].flatMap(each =>
          when((each.seconds() ?? 0) >= timeoutSeconds, each, 'is not shorter than the timeout of the check'),
        ),
        ...when((max.seconds() ?? minAttemptSeconds) < minAttemptSeconds, max, 'is below 20 ms'),
      ];
    }),
  },
  'retry-budget': {
    what: '`max_retries` of the circuit breaker of the cluster of the check is missing or at most 3',
    why: 'by default only 3 retries are in flight at a time, and under load the other requests fail',
    fix: `write \`circuit_breakers: { thresholds: [{ max_retries: ${authzConnection.maxRetries} }] }\` on the cluster`,
    find: withRetry((_, { cluster }) => (cluster === undefined ? [] : retryBudgetFindings(cluster.value))),
  },
  'retry-same-host': {
    what: 'Several hosts, and a retry policy without `previous_hosts`',
    why: 'Envoy may send the retry to the same dead host',
    fix: 'add envoy.retry_host_predicates.previous_hosts to `retry_host_predicate`, and `host_selection_retry_max_attempts: 5`',
    find: withRetry((retry, { cluster }) => {
      const predicates = retry.field('retry_host_predicate');
      const types = predicates.items().map(each => each.field('typed_config').any().type);
      const isNeeded = (cluster?.endpoints.length ?? 0) > 1;
      return when(isNeeded && !types.includes(previousHosts), predicates, 'has no previous_hosts');
    }),
  },
} as const satisfies Rules<AuthzFilter>;

export function speaksTls(cluster: Cluster): boolean {
  return cluster.value.present('transport_socket', 'transport_socket_matches').length > 0;
}

/** Whether a server with any certificate, or any certificate of an authority, is accepted. */
export function isUnverified(cluster: Cluster): boolean {
  return tlsContextsOf(cluster).some(context => !isVerified(context) || !namesServer(context));
}

/** Envoy takes the socket of the cluster only where none of its matches does. */
function tlsContextsOf(cluster: Cluster | undefined): readonly ProtoValue[] {
  const matches = cluster?.value.items('transport_socket_matches').map(each => each.field('transport_socket')) ?? [];
  const sockets = matches.length > 0 || cluster === undefined ? matches : [cluster.value.field('transport_socket')];
  return sockets
    .map(socket => socket.field('typed_config').any())
    .flatMap(({ type, message }) => (type === upstreamTls ? message.field('common_tls_context') : []));
}

function isVerified(context: ProtoValue): boolean {
  const validations = [
    context.field('validation_context'),
    context.field('combined_validation_context', 'default_validation_context'),
  ];
  const accepts = validations.some(
    each => each.field('trust_chain_verification').choice({ ACCEPT_UNTRUSTED: 1 }) === 1,
  );
  const sds = [context, context.field('combined_validation_context')].some(
    each => each.field('validation_context_sds_secret_config').isPresent,
  );
  const authorities = [
    'trusted_ca',
    'custom_validator_config',
    'verify_certificate_spki',
    'verify_certificate_hash',
    'system_root_certs',
  ];
  return !accepts && (sds || validations.some(each => authorities.some(name => each.field(name).isPresent)));
}

function namesServer(context: ProtoValue): boolean {
  const validations = [context, context.field('combined_validation_context')];
  if (validations.some(each => each.field('validation_context_sds_secret_config').isPresent)) return true;
  if (context.parent.field('auto_sni_san_validation').flag() === true) return true;
  return validations
    .flatMap(each => each.present('validation_context', 'default_validation_context'))
    .some(each => each.names().some(name => /^match_|^verify_certificate_/.test(name)));
}

// No retry policy at all is no mistake: a failed check is answered with 503.
function withRetry(find: (retry: ProtoValue, check: AuthzFilter) => readonly Finding[]) {
  return (check: AuthzFilter): readonly Finding[] => {
    const retry = check.service.field('retry_policy');
    return retry.isPresent ? find(retry, check) : [];
  };
}

function retryBudgetFindings(cluster: ProtoValue): readonly Finding[] {
  const breakers = cluster.field('circuit_breakers');
  const isDefault = (each: ProtoValue): boolean => (each.field('priority').choice({ DEFAULT: 0 }) ?? 0) === 0;
  const threshold = breakers.items('thresholds').find(isDefault);
  if (threshold?.field('retry_budget').isPresent) return [];
  const retries = (threshold ?? breakers).field('max_retries');
  const isEnough = (retries.number() ?? defaultMaxRetries) > defaultMaxRetries;
  return unless(isEnough, retries, `is not above ${defaultMaxRetries}`, `is missing (default ${defaultMaxRetries})`);
}

function speaksHttp2(cluster: Cluster): boolean {
  const options = readProtocolOptions(cluster);
  // auto_config negotiates the protocol in TLS (ALPN); without TLS it means HTTP/1.1.
  const isNegotiated =
    cluster.value.field('transport_socket').isPresent && options.some(each => each.field('auto_config').isPresent);
  const isExplicit = options.some(each => each.field('explicit_http_config', 'http2_protocol_options').isPresent);
  return isExplicit || isNegotiated || cluster.value.field('http2_protocol_options').isPresent;
}
