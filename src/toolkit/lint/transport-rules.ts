// Rules for the connection to account-authz: its cluster, and a retry policy that hides a restart from clients.
import { formatAddress } from '../envoy-settings/settings.ts';
import { type Cluster, isAt, leadsElsewhere, readProtocolOptions } from './cluster.ts';
import type { AuthzFilter } from './lint-model.ts';
import { memoized } from './memoized.ts';
import { readStringMatcher } from './name-pattern.ts';
import type { ProtoValue } from './proto-value.ts';
import { type Finding, quoted, type Rules, when } from './rule.ts';

const upstreamTls = 'envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext';
const previousHosts = 'envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate';
const defaultMaxRetries = 3;
// 10 ms was worse than no retry at all: it limits each attempt too.
const minAttemptSeconds = 0.02;

export const transportRules = {
  'authz-protocol': {
    what: 'The cluster of the check is not in the file, or does not speak what `listen` of the configuration speaks: HTTP/2, TLS with `tls`, a certificate with `tls.clientCaFile`',
    why: 'every check fails, and Envoy refuses every request',
    fix: 'write `http2_protocol_options: {}` in its HttpProtocolOptions, and with `tls` alone a `transport_socket` with UpstreamTlsContext, with `tls_certificate_sds_secret_configs` where a certificate is asked for',
    find: ({ service, cluster, config: { listen, tls } }) => {
      const name = service.field('envoy_grpc', 'cluster_name');
      if (cluster === undefined) return when(name.isPresent, name, 'names no static cluster');
      const socket = cluster.value.field('transport_socket');
      const isTls = speaksTls(cluster);
      const contexts = tls?.clientCaFile === undefined ? [] : tlsContextsOf(cluster);
      // On another machine, a proxy may stand before account-authz.
      const isTooMuch = isTls && tls === undefined && isAt(cluster, listen) !== undefined;
      return [
        ...when(!speaksHttp2(cluster), cluster.value, 'does not speak HTTP/2'),
        ...when(tls !== undefined && !isTls, socket, 'is not TLS, and the configuration has `tls`'),
        ...when(isTooMuch, socket, 'is set, and the configuration has no `tls`'),
        ...contexts
          .filter(context => !context.names().some(each => each.startsWith('tls_certificate')))
          .map(at => ({ at, says: 'presents no certificate' })),
      ];
    },
  },
  'authz-address': {
    what: 'The cluster of the check leads to another local address than `listen` of the configuration, or without TLS to another machine while `listen` is a loopback address or a Unix socket',
    why: 'no process answers the check there, or another one does',
    fix: 'give both the same address',
    find: ({ cluster, config: { listen } }) => {
      // With TLS, a proxy on the other machine may stand before account-authz.
      const isFar = cluster !== undefined && !speaksTls(cluster) && leadsElsewhere(cluster, listen);
      const shown = cluster?.endpoints.slice(0, 3).map(each => (each ? formatAddress(each) : '?')) ?? [];
      const says = `leads to ${quoted(shown.join(', '))}, and the configuration listens on ${listen}`;
      return when(isFar || isAt(cluster, listen) === false, cluster?.place, says);
    },
  },
  'authz-unverified': {
    what: 'The cluster of the check speaks TLS and accepts any certificate: no `trusted_ca` or SDS validation, or `ACCEPT_UNTRUSTED`',
    why: 'whoever can answer at that address decides about every request',
    fix: 'name the authority in `validation_context`, and the name of the server in `match_typed_subject_alt_names`',
    find: ({ cluster }) => (cluster === undefined ? [] : unverifiedIn(cluster)),
  },
  'retry-policy': {
    what: `A retry policy that does more harm than good: nothing to retry, no \`retry_back_off\` between 20 ms and the timeout of the check, no \`previous_hosts\` where the cluster has several hosts, or \`max_retries\` of its circuit breaker at most ${defaultMaxRetries}`,
    why: 'each restart of account-authz fails requests: the first retry waits up to 1 s by default, `max_interval` limits each attempt too, and by default 3 retries are in flight at a time',
    fix: 'write it as `render` does, or leave it out: a check that fails is answered 503',
    find: check => {
      const retry = check.service.field('retry_policy');
      return retry.isPresent ? retryFindings(retry, check) : [];
    },
  },
} as const satisfies Rules<AuthzFilter>;

/** The same for each check. */
const unverifiedIn = memoized((cluster: Cluster): readonly Finding[] =>
  tlsContextsOf(cluster)
    .filter(context => !isVerified(cluster, context, authorities))
    .map(at => ({ at, says: 'accepts any certificate' })),
);

const breakerOf = memoized(({ value }: Cluster) =>
  value
    .items('circuit_breakers', 'thresholds')
    .find(each => (each.field('priority').choice({ DEFAULT: 0 }) ?? 0) === 0),
);

function retryFindings(retry: ProtoValue, { cluster, timeoutSeconds = Infinity }: AuthzFilter): readonly Finding[] {
  const [on, predicates] = [retry.field('retry_on'), retry.field('retry_host_predicate')];
  const base = retry.field('retry_back_off', 'base_interval');
  const max = retry.field('retry_back_off', 'max_interval');
  const isInside = (at: ProtoValue) => (at.seconds() ?? Infinity) < timeoutSeconds;
  const types = predicates.items().map(each => each.field('typed_config').any().type);
  const breaker = cluster && breakerOf(cluster);
  const isSeveral = (cluster?.endpoints.length ?? 0) > 1;
  const retries =
    breaker?.field('max_retries').number() ?? (breaker?.field('retry_budget').isPresent ? Infinity : defaultMaxRetries);
  return [
    ...when((on.text() ?? '').trim() === '', on, 'names no condition'),
    ...when(retry.field('num_retries').number() === 0, retry.field('num_retries'), 'is 0'),
    ...when(!isInside(base), base, 'is not shorter than the timeout of the check'),
    ...when(!isInside(max) || (max.seconds() ?? 0) < minAttemptSeconds, max, 'is not between 20 ms and the timeout'),
    ...when(isSeveral && !types.includes(previousHosts), predicates, 'has no previous_hosts'),
    ...when(retries <= defaultMaxRetries, cluster?.value.field('circuit_breakers'), `permits ${retries} retries`),
  ];
}

export function speaksTls(cluster: Cluster): boolean {
  return tlsContextsOf(cluster).length > 0;
}

/** Whether a server with any certificate, or any certificate of an authority, is accepted. */
export function isUnverified(cluster: Cluster): boolean {
  return tlsContextsOf(cluster).some(context => !isVerified(cluster, context, names));
}

/** Envoy takes the socket of the cluster for a host that no match chooses; an empty match chooses every one. */
function tlsContextsOf(cluster: Cluster | undefined): readonly ProtoValue[] {
  return cluster === undefined ? [] : contextsOf(cluster);
}

const contextsOf = memoized((cluster: Cluster): readonly ProtoValue[] => {
  const matches = cluster.value.items('transport_socket_matches');
  const isForAll = matches.some(each => each.field('match').names().length === 0);
  return (isForAll || cluster.choosesSocket ? matches : [...matches, cluster.value])
    .map(each => each.field('transport_socket', 'typed_config').any())
    .flatMap(({ type, message }) => (type === upstreamTls ? message.field('common_tls_context') : []));
});

/** Whether the validation has one of these fields, or comes from SDS. */
function isVerified(cluster: Cluster, context: ProtoValue, by: RegExp): boolean {
  const holders = [context, context.field('combined_validation_context')];
  const fromSds = holders.flatMap(each => each.present('validation_context_sds_secret_config'));
  const secrets = fromSds
    .filter(each => !each.field('sds_config').isPresent)
    .flatMap(each => cluster.secrets.get(each.field('name').text()) ?? []);
  const validations = [...holders, ...secrets].flatMap(validationsIn);
  if (validations.some(each => each.field('trust_chain_verification').choice({ ACCEPT_UNTRUSTED: 1 }) === 1))
    return false;
  return (
    fromSds.length > secrets.length ||
    [...holders, ...secrets].some(narrowedBy(by)) ||
    (by.test('match_') && context.parent.field('auto_sni_san_validation').flag() === true)
  );
}

/** Many clusters have the same secret. */
const narrowedBy = memoized((by: RegExp) =>
  memoized((holder: ProtoValue) =>
    validationsIn(holder).some(each =>
      each.names().some(name => by.test(name) && each.field(name).items().some(isNarrow)),
    ),
  ),
);

function validationsIn(holder: ProtoValue): readonly ProtoValue[] {
  return holder.present('validation_context', 'default_validation_context');
}

/** Whether it accepts not every name. */
function isNarrow(item: ProtoValue): boolean {
  const matcher = item.field('matcher');
  return !matcher.isPresent || readStringMatcher(matcher)('name.invalid') !== true;
}

const names = /^match_|^verify_certificate_/;
const authorities = /^(?:trusted_ca|custom_validator_config|verify_certificate_\w+|system_root_certs)$/;

function speaksHttp2(cluster: Cluster): boolean {
  const options = readProtocolOptions(cluster);
  // auto_config negotiates the protocol in TLS (ALPN); without TLS it means HTTP/1.1.
  const isNegotiated =
    cluster.value.field('transport_socket').isPresent && options.some(each => each.field('auto_config').isPresent);
  const isExplicit = options.some(each => each.field('explicit_http_config', 'http2_protocol_options').isPresent);
  return isExplicit || isNegotiated || cluster.value.field('http2_protocol_options').isPresent;
}
