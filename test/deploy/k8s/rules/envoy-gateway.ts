// Envoy Gateway: its proxies call account-authz for the protected path only, with the strictness of envoy.yaml and of our own cluster.
import { isDeepStrictEqual } from 'node:util';
import { at, type Facts, listOf, type Path, problemsOf, type Rules } from '../facts.ts';
import { ofKind, type Reference } from '../manifest.ts';
import { extAuthz, matches, ownedNames, publicManager } from './configuration.ts';
import { bytesOf } from './pods.ts';

export function envoyGatewayProblems(facts: Facts): string[] {
  const isUsed = facts.manifests.some(({ apiVersion }) => apiVersion.startsWith('gateway.'));
  return isUsed ? problemsOf([...targetRules(facts), ...checkRules(facts), ...trafficRules(facts)]) : [];
}

function targetRules({ manifests }: Facts): Rules {
  const [policy] = ofKind(manifests, 'SecurityPolicy');
  const [traffic] = ofKind(manifests, 'ClientTrafficPolicy');
  const [route] = ofKind(manifests, 'HTTPRoute');
  const [gateway] = ofKind(manifests, 'Gateway');
  const [tls] = ofKind(manifests, 'BackendTLSPolicy');
  const [proxy] = ofKind(manifests, 'EnvoyProxy');
  const authz = ofKind(manifests, 'Service').find(({ metadata }) => metadata.name === 'account-authz');
  const written = (references: readonly Reference[] | undefined) =>
    references?.map(({ kind, name }) => `${kind}/${name}`).join();
  const backends = (route?.spec.rules ?? []).map(rule => written(rule.backendRefs));
  const app = ofKind(manifests, 'Deployment').find(
    ({ metadata }) => metadata.labels?.['account-authz/sidecar'] === 'true',
  );
  const [listener, ...more] = listOf(at(gateway?.spec, 'listeners'));
  return [
    [written(policy?.spec.targetRefs) === `HTTPRoute/${route?.metadata.name}`, 'the route is not asked about'],
    [written(traffic?.spec.targetRefs) === `Gateway/${gateway?.metadata.name}`, 'the gateway is not strict'],
    [written(route?.spec.parentRefs) === `Gateway/${gateway?.metadata.name}`, 'the route is at no gateway'],
    [
      written(policy?.spec.extAuth.grpc?.backendRefs) === 'Service/account-authz',
      'Envoy Gateway calls another service',
    ],
    [backends.join() === `Service/${app?.metadata.name}`, 'Envoy Gateway forwards somewhere else'],
    [written([...(tls?.spec.targetRefs ?? [])]) === 'Service/account-authz', 'Envoy Gateway calls without TLS'],
    [gateway?.spec.infrastructure.parametersRef.name === proxy?.metadata.name, 'Envoy Gateway shows no certificate'],
    [proxy?.spec.backendTLS.minVersion === '1.3', 'Envoy Gateway speaks an old TLS'],
    // Otherwise it rejects the policy while no pod is ready, and open connections pass unchecked when it accepts it again.
    [
      proxy?.spec.routingType === 'Service' && authz?.spec.clusterIP !== 'None',
      'Envoy Gateway reaches account-authz by its pods',
    ],
    [
      more.length === 0 &&
        at(listener, 'protocol') === 'HTTP' &&
        at(listener, 'port') === 80 &&
        at(listener, 'allowedRoutes', 'namespaces', 'from') === 'Same',
      'the gateway takes routes of others, or requests elsewhere',
    ],
  ];
}

/** A setting of Envoy Gateway and the matching one of envoy.yaml or of the cluster with mutual TLS. */
type Same = readonly [setting: string, ours: unknown];

function sameRules(spec: unknown, who: string, same: readonly Same[]): Rules {
  return same.map(([setting, ours]) => {
    const value = at(spec, ...setting.split('.'));
    return [
      ours !== undefined && isDeepStrictEqual(plain(value), plain(ours)),
      `${who} has ${setting} other than envoy.yaml`,
    ];
  });
}

/** Durations in milliseconds, sizes in bytes, enum values without their underscores. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'string') return value;
  const [, count, unit] = /^([\d.]+)(ms|s)$/.exec(value) ?? [];
  if (count !== undefined) return Number(count) * (unit === 's' ? 1000 : 1);
  if (/^\d+[KMG]i$/.test(value)) return bytesOf(value);
  return value.toLowerCase().replaceAll('_', '');
}

function checkRules({ manifests, config, envoy, tlsCluster }: Facts): Rules {
  const [policy] = ofKind(manifests, 'SecurityPolicy');
  const filter = (...path: Path): unknown => at(envoy, ...extAuthz, ...path);
  const retry = (...path: Path): unknown => filter('grpc_service', 'retry_policy', ...path);
  const patterns = listOf(filter('allowed_headers', 'patterns')).flatMap(pattern => at(pattern, 'exact') ?? []);
  const [limits] = listOf(at(tlsCluster, 'circuit_breakers', 'thresholds'));
  const keepAlive = at(
    listOf(Object.values(Object(at(tlsCluster, 'typed_extension_protocol_options'))))[0],
    'explicit_http_config',
    'http2_protocol_options',
    'connection_keepalive',
  );
  const outlier = (name: string): unknown => at(tlsCluster, 'outlier_detection', name);
  const settings = 'grpc.backendSettings';
  return [
    ...['authorization', ...config.account.headers].map(
      name =>
        [
          policy?.spec.extAuth.headersToExtAuth?.includes(name) === true,
          `Envoy Gateway does not show account-authz ${name}`,
        ] as const,
    ),
    ...sameRules(policy?.spec.extAuth, 'SecurityPolicy', [
      ['failOpen', filter('failure_mode_allow')],
      ['statusOnError', filter('status_on_error', 'code') === 'ServiceUnavailable' ? 503 : undefined],
      ['timeout', filter('grpc_service', 'timeout')],
      ['recomputeRoute', filter('clear_route_cache')],
      ['headersToExtAuth', patterns],
      [`${settings}.retry.numRetries`, retry('num_retries')],
      [`${settings}.retry.retryOn.triggers`, String(retry('retry_on')).split(',')],
      [`${settings}.retry.perRetry.backOff.baseInterval`, retry('retry_back_off', 'base_interval')],
      [`${settings}.retry.perRetry.backOff.maxInterval`, retry('retry_back_off', 'max_interval')],
      [`${settings}.timeout.tcp.connectTimeout`, at(tlsCluster, 'connect_timeout')],
      [`${settings}.http2.connectionKeepalive.interval`, at(keepAlive, 'interval')],
      [`${settings}.http2.connectionKeepalive.timeout`, at(keepAlive, 'timeout')],
      [`${settings}.http2.connectionKeepalive.idleInterval`, at(keepAlive, 'connection_idle_interval')],
      [`${settings}.circuitBreaker.maxConnections`, at(limits, 'max_connections')],
      [`${settings}.circuitBreaker.maxPendingRequests`, at(limits, 'max_pending_requests')],
      [`${settings}.circuitBreaker.maxParallelRequests`, at(limits, 'max_requests')],
      [`${settings}.circuitBreaker.maxParallelRetries`, at(limits, 'max_retries')],
      [`${settings}.healthCheck.passive.splitExternalLocalOriginErrors`, outlier('split_external_local_origin_errors')],
      [`${settings}.healthCheck.passive.consecutiveLocalOriginFailures`, outlier('consecutive_local_origin_failure')],
      [`${settings}.healthCheck.passive.baseEjectionTime`, outlier('base_ejection_time')],
      [`${settings}.healthCheck.passive.maxEjectionPercent`, outlier('max_ejection_percent')],
    ]),
    // Its health checks send an :authority that Node refuses.
    [
      at(policy?.spec.extAuth, 'grpc', 'backendSettings', 'healthCheck', 'active') === undefined,
      'Envoy Gateway has active health checks',
    ],
  ];
}

function trafficRules({ manifests, config, envoy }: Facts): Rules {
  const [traffic] = ofKind(manifests, 'ClientTrafficPolicy');
  const [route] = ofKind(manifests, 'HTTPRoute');
  const manager = (...path: Path): unknown => at(envoy, ...publicManager, ...path);
  const mutations = listOf(manager('early_header_mutation_extensions', 0, 'typed_config', 'mutations'));
  const patterns = mutations.flatMap(each => at(each, 'remove_on_match', 'key_matcher', 'safe_regex', 'regex') ?? []);
  const removed = traffic?.spec.headers.earlyRequestHeaders.removeOnMatch ?? [];
  const spellings = config.account.headers.flatMap(name => [name, ...lookAlikesOf(name), ...lookAlikesOf(name, ['9'])]);
  const mergesSlashes = manager('merge_slashes') === true;
  const monitors = at(
    envoy,
    'overload_manager',
    'resource_monitors',
    'envoy.resource_monitors.global_downstream_max_connections',
  );
  return [
    ...sameRules(traffic?.spec, 'ClientTrafficPolicy', [
      ['path.escapedSlashesAction', manager('path_with_escaped_slashes_action')],
      ['path.disableMergeSlashes', !mergesSlashes],
      ['headers.withUnderscoresAction', manager('common_http_protocol_options', 'headers_with_underscores_action')],
      ['headers.requestID', manager('preserve_external_request_id') === false ? 'Generate' : undefined],
      ['headers.xForwardedClientCert.mode', manager('forward_client_cert_details')],
      ['headers.earlyRequestHeaders.remove', mutations.flatMap(each => at(each, 'remove') ?? [])],
      [
        'connection.bufferLimit',
        at(envoy, 'static_resources', 'listeners', 'public', 'per_connection_buffer_limit_bytes'),
      ],
      ['connection.connectionLimit.value', at(monitors, 'typed_config', 'max_active_downstream_connections')],
      ['http2.maxConcurrentStreams', manager('http2_protocol_options', 'max_concurrent_streams')],
      ['http2.initialStreamWindowSize', manager('http2_protocol_options', 'initial_stream_window_size')],
      ['http2.initialConnectionWindowSize', manager('http2_protocol_options', 'initial_connection_window_size')],
      ['timeout.http.requestHeadersReceivedTimeout', manager('request_headers_timeout')],
      ['timeout.http.requestReceivedTimeout', manager('request_timeout')],
      ['timeout.http.streamIdleTimeout', manager('stream_idle_timeout')],
      ['timeout.http.idleTimeout', manager('common_http_protocol_options', 'idle_timeout')],
    ]),
    [
      isDeepStrictEqual(
        removed.slice(0, patterns.length),
        patterns.map(value => ({ type: 'RegularExpression', value })),
      ) && ownedNames(config).every(name => removed.some(({ value }) => matches(value, name))),
      'Envoy Gateway lets clients set our headers',
    ],
    // Envoy Gateway shows account-authz exact header names only, so the look-alikes must be removed here.
    [
      isDeepStrictEqual(
        removed
          .slice(patterns.length)
          .map(({ type, value }) => [type, ...spellings.filter(name => matches(value, name))]),
        config.account.headers.map(name => ['RegularExpression', ...lookAlikesOf(name)]),
      ),
      'Envoy Gateway passes look-alikes of an account header, or removes the header itself',
    ],
    ...sameRules(route?.spec.rules[0], 'HTTPRoute', [
      ['timeouts.request', at(listOf(manager('route_config', 'virtual_hosts', 0, 'routes'))[0], 'route', 'timeout')],
    ]),
  ];
}

/** With another character instead of one hyphen, or of all. */
function lookAlikesOf(name: string, signs: readonly string[] = ['.', '_']): string[] {
  const hyphens = Array.from(name.matchAll(/-/g), ({ index }) => index);
  const one = signs.flatMap(sign => hyphens.map(index => `${name.slice(0, index)}${sign}${name.slice(index + 1)}`));
  return [...one, ...signs.map(sign => name.replaceAll('-', sign))];
}
