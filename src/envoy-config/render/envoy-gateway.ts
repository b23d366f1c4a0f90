// What Envoy Gateway needs, so that its proxies ask account-authz, a service of its own with TLS, about one HTTPRoute.
import { authzConnection } from '../authz-cluster.ts';
import { authzCall, authzCluster, extAuthzSettings } from '../authz-filter.ts';
import { spellings } from '../headers.ts';
import { renamed } from '../setting.ts';
import type { RenderSettings } from '../settings.ts';
import { above, beside, inline, type Members, type Tree } from '../tree.ts';
import { corsHeadersOf, credentialsOf } from './authz-filters.ts';
import { otherNamespace, passiveHealthCheck, serviceAddress, serviceReference } from './authz-service.ts';
import { gatewayApi } from './http-routes.ts';

const ms = (time: number): string => `${time}ms`;

function resource(apiVersion: string, kind: string, metadata: Members, spec: Members): Members {
  return { apiVersion, kind, metadata, spec };
}

export const own = (kind: string, spec: Members, place: Members): Members =>
  resource('gateway.envoyproxy.io/v1alpha1', kind, place, spec);
export const standard = (kind: string, spec: Members, place: Members): Members =>
  resource(`${gatewayApi}/v1`, kind, place, spec);

export function gatewayOf({ gateway, name }: RenderSettings): string | undefined {
  return gateway ?? name;
}

/** Of a SecurityPolicy for an HTTPRoute. */
export function policyTarget({ merges }: RenderSettings, route: string | undefined): Members {
  return {
    targetRefs: [inline({ group: gatewayApi, kind: 'HTTPRoute', name: route })],
    mergeType: merges ? 'StrategicMerge' : undefined,
  };
}

export function securityPolicy(settings: RenderSettings): Tree {
  const { name, namespace, shownHeaders } = settings;
  const extAuth = {
    ...renamed(extAuthzSettings(settings), {
      failOpen: 'failure_mode_allow',
      statusOnError: { from: 'status_on_error', value: 503 },
    }),
    timeout: beside(ms(authzCall.timeoutMs), 'for all attempts; the default is ten seconds'),
    ...renamed(extAuthzSettings(settings), {
      recomputeRoute: 'clear_route_cache',
      headersToExtAuth: { from: 'allowed_headers', value: inline(shownHeaders) },
    }),
    grpc: {
      backendRefs: [inline(serviceReference(settings))],
      backendSettings,
    },
  };
  return own(
    'SecurityPolicy',
    {
      ...policyTarget(settings, name),
      cors: corsOf(settings),
      extAuth,
    },
    { name, namespace },
  );
}

const { maxConnections, maxRequests, maxRetries, maxChecksPerConnection } = authzConnection;

const backendSettings: Members = {
  retry: beside(
    {
      numRetries: authzCall.retries,
      retryOn: inline({ triggers: authzCall.retryOn }),
      perRetry: inline({
        backOff: { baseInterval: ms(authzCall.retryBaseMs), maxInterval: ms(authzCall.retryMaxMs) },
      }),
    },
    'a check can be repeated; hides a restart of one of several account-authz',
  ),
  timeout: beside(
    inline({ tcp: { connectTimeout: ms(authzConnection.tlsConnectMs) } }),
    'well below the timeout of a check, so that a dead host leaves time for another',
  ),
  http2: beside(
    inline({ connectionKeepalive: { interval: '5s', timeout: '1s' } }),
    'a pod that hangs is given up after 6 s at most: there is no active check',
  ),
  circuitBreaker: inline({
    maxConnections,
    maxPendingRequests: maxRequests,
    maxParallelRequests: maxRequests,
    maxParallelRetries: maxRetries,
    maxRequestsPerConnection: maxChecksPerConnection,
  }),
  healthCheck: above(
    'No active check: it would carry the name of its cluster, with slashes, as the authority, which the HTTP/2 of Node refuses (RFC 9113 section 8.3.1), so that no pod would ever be healthy. Envoy Gateway learns from Kubernetes which pods are ready.',
    { passive: beside(passiveHealthCheck, 'ejects a pod at once if it cannot be reached') },
  ),
};

export function corsOf(settings: RenderSettings): Members | undefined {
  if (settings.corsOrigins.length === 0) return undefined;
  const { allowHeaders, allowMethods, exposeHeaders } = corsHeadersOf(settings);
  return {
    allowOrigins: settings.corsOrigins,
    allowMethods,
    allowHeaders,
    exposeHeaders,
    maxAge: '10m',
    allowCredentials: credentialsOf(settings),
  };
}

export function clientTrafficPolicy(settings: RenderSettings): Tree {
  const { namespace, headers, trustedHops, underscores, idleTimeoutSeconds } = settings;
  const gateway = gatewayOf(settings);
  return own(
    'ClientTrafficPolicy',
    {
      targetRefs: [inline({ group: gatewayApi, kind: 'Gateway', name: gateway })],
      clientIPDetection: trustedHops === 0 ? undefined : inline({ xForwardedFor: { numTrustedHops: trustedHops } }),
      path: { escapedSlashesAction: 'RejectRequest', disableMergeSlashes: false },
      headers: {
        withUnderscoresAction: underscores === 'drop' ? 'DropHeader' : 'RejectRequest',
        requestID: trustedHops > 0 ? 'PreserveOrGenerate' : 'Generate',
        xForwardedClientCert: inline({ mode: 'Sanitize' }),
        earlyRequestHeaders: beside(
          {
            removeOnMatch: [
              ...headers
                .filter(({ removed }) => removed === 'everywhere')
                .flatMap(({ names }) => names.map(name => toMatch(spellings(name)))),
              // account-authz is shown exact names only. Where a name stays on some routes, its look-alikes do not.
              ...headers
                .filter(({ removed }) => removed === 'checked' || removed === 'public')
                .flatMap(({ names }) =>
                  names.filter(name => name.includes('-')).map(name => toMatch(lookAlikes(name))),
                ),
            ],
          },
          'names that only account-authz may set, names that make an app use another path or method, look-alikes of account headers',
        ),
      },
      connection: { bufferLimit: '32Ki', connectionLimit: inline({ value: 10_000 }) },
      http2: inline({ maxConcurrentStreams: 100, initialStreamWindowSize: '64Ki', initialConnectionWindowSize: '1Mi' }),
      timeout: {
        http: above(
          'requestHeadersReceivedTimeout: 10s # needs 1.9',
          inline({ streamIdleTimeout: `${idleTimeoutSeconds}s`, idleTimeout: '600s' }),
        ),
      },
    },
    { name: gateway, namespace },
  );
}

function toMatch(value: string): Members {
  return { type: 'RegularExpression', value };
}

/** RE2 for the name with another sign in place of at least one hyphen, but not for the name itself. */
function lookAlikes(name: string): string {
  const parts = name.split('-');
  return parts
    .slice(1)
    .map((_, changed) =>
      parts.reduce((start, part, i) => `${start}${i - 1 === changed ? '[^a-z0-9-]' : '[^a-z0-9]'}${part}`),
    )
    .join('|');
}

/**
 * The gateway speaks TLS to account-authz, and only to one whose certificate says so. By its Service, and not by its pods: without a ready pod
 * Envoy Gateway rejects the SecurityPolicy, and once it takes it back, open connections of clients reach the route without the check.
 */
export function backendTls(settings: RenderSettings): readonly Tree[] {
  const { namespace } = settings;
  const { host } = serviceAddress(settings);
  const secret = { group: '', kind: 'Secret', name: `${authzCluster}-client-tls` };
  return [
    standard(
      'BackendTLSPolicy',
      {
        targetRefs: [inline({ group: '', kind: 'Service', name: host, sectionName: 'grpc' })],
        validation: { caCertificateRefs: [inline(secret)], hostname: host },
      },
      { name: authzCluster, namespace: otherNamespace(settings) ?? namespace },
    ),
    own(
      'EnvoyProxy',
      { routingType: 'Service', backendTLS: { clientCertificateRef: inline(secret), minVersion: '1.3' } },
      { name: gatewayOf(settings), namespace },
    ),
  ];
}
