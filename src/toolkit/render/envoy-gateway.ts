// What Envoy Gateway needs, so that its proxies ask account-authz, a service of its own with TLS, about one HTTPRoute.

import { spellings } from '../../headers/headers.ts';
import { authzConnection } from '../envoy-settings/authz-cluster.ts';
import { authzCall, authzCluster, extAuthzSettings } from '../envoy-settings/authz-filter.ts';
import { clientIdleSetting, ignoredUpgradeSetting } from '../envoy-settings/manager-settings.ts';
import { documentProblem } from '../envoy-settings/open-routes.ts';
import { renamed } from '../envoy-settings/setting.ts';
import type { RenderSettings } from '../envoy-settings/settings.ts';
import { above, beside, inline, type Members, type Tree } from '../envoy-settings/tree.ts';
import { corsPolicy } from './authz-filters.ts';
import { backendTlsPolicy, gatewayApi, passiveHealthCheck, referenceGrant, serviceReference } from './authz-service.ts';
import {
  checkedRoute,
  documentNameOf,
  documentRoute,
  gatewayOf,
  hostCondition,
  httpRouteProblem,
  maxRemoved,
  publicNameOf,
  publicRoute,
  removing,
  toDuration,
  tooMany,
} from './http-routes.ts';
import { manifest, type RenderedFile, type RenderedFiles, renderedFile } from './rendered-files.ts';
import { maxClientConnections } from './upstreams.ts';

const group = 'gateway.envoyproxy.io';
const corsTime = '10m';

const ms = (time: number): string => `${time}ms`;

/** What of the configuration does not fit into an HTTPRoute. */
export function envoyGatewayProblem(settings: RenderSettings): string | undefined {
  const isFull = settings.publicRoutes.length > 0 && removedOn(settings, 'public').length > maxRemoved;
  return (
    documentProblem(settings) ??
    httpRouteProblem(settings) ??
    (isFull ? tooMany('account.headers', maxRemoved - 1) : undefined)
  );
}

export function envoyGatewayFiles(settings: RenderSettings): RenderedFiles {
  const replaced =
    'It replaces a SecurityPolicy of the Gateway for this route, with its allow lists, without a word: if there is one, render with --merge.';
  return [
    renderedFile('security-policy.yaml', [securityPolicy(settings)], settings.merges ? [] : [replaced]),
    renderedFile(
      'client-traffic-policy.yaml',
      [clientTrafficPolicy(settings)],
      ['As strict as a bootstrap of `render envoy`, which has the reasons.'],
    ),
    renderedFile('http-route.yaml', [checkedRoute(settings, removing(removedOn(settings, 'checked')))]),
    referenceGrant(settings, { group, kind: 'SecurityPolicy' }),
    renderedFile(
      'open-routes.yaml',
      [...publicTrees(settings), ...metadataTrees(settings)],
      [
        'What the gateway serves without a check: no SecurityPolicy with extAuth names these routes. It cannot refuse a query parameter by',
        'which a framework takes another method (_method): turn that off in the service.',
      ],
    ),
    tlsFile(settings),
  ];
}

function own(kind: string, { namespace }: RenderSettings, name: string | undefined, spec: Members): Members {
  return manifest(`${group}/v1alpha1`, kind, { name, namespace }, spec);
}

/** For an HTTPRoute. */
function policy(settings: RenderSettings, route: string | undefined, spec: Members): Members {
  return own('SecurityPolicy', settings, route, {
    targetRefs: [inline({ group: gatewayApi, kind: 'HTTPRoute', name: route })],
    mergeType: settings.merges ? 'StrategicMerge' : undefined,
    cors: corsPolicy(settings, corsTime),
    ...spec,
  });
}

function publicTrees(settings: RenderSettings): readonly Tree[] {
  if (settings.publicRoutes.length === 0) return [];
  const parts = removing(removedOn(settings, 'public'));
  return [
    publicRoute(settings, parts, { headers: hostCondition(settings) }),
    ...(settings.corsOrigins.length === 0 ? [] : [policy(settings, publicNameOf(settings), {})]),
  ];
}

function metadataTrees(settings: RenderSettings): readonly Tree[] {
  if (settings.metadata === undefined) return [];
  const body = { type: 'Inline', inline: settings.metadata.json };
  const filter = own('HTTPRouteFilter', settings, documentNameOf(settings), {
    directResponse: { statusCode: 200, contentType: 'application/json', body },
  });
  return [
    documentRoute(settings, { 'access-control-allow-origin': '*' }, { group, kind: 'HTTPRouteFilter' }),
    above('RFC 9728: by it, clients find the authorization server. Pages of every origin may read it.', filter),
  ];
}

function removedOn({ headers }: RenderSettings, kind: 'checked' | 'public'): readonly string[] {
  return headers.filter(({ removed }) => removed === kind).flatMap(({ names }) => names);
}

function securityPolicy(settings: RenderSettings): Members {
  const { name, shownHeaders } = settings;
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
    grpc: { backendRefs: [inline(serviceReference(settings))], backendSettings },
  };
  return policy(settings, name, { extAuth });
}

const { maxConnections, maxRequests, maxRetries, maxChecksPerConnection, maxStreams } = authzConnection;

const backendSettings: Members = {
  retry: beside(
    {
      numRetries: authzCall.retries,
      retryOn: inline({ triggers: authzCall.retryOn }),
      perRetry: inline({ backOff: { baseInterval: ms(authzCall.retryBaseMs), maxInterval: ms(authzCall.retryMaxMs) } }),
    },
    'a check can be repeated; hides a restart of one of several account-authz',
  ),
  timeout: beside(
    inline({ tcp: { connectTimeout: ms(authzConnection.tlsConnectMs) } }),
    'well below the timeout of a check, so that a dead host leaves time for another',
  ),
  http2: beside(
    inline({ maxConcurrentStreams: maxStreams, connectionKeepalive: { interval: '5s', timeout: '1s' } }),
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

function clientTrafficPolicy(settings: RenderSettings): Members {
  const { headers, trustedHops, underscores, idleTimeoutSeconds } = settings;
  const gateway = gatewayOf(settings);
  return own('ClientTrafficPolicy', settings, gateway, {
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
              .flatMap(({ names }) => names.filter(name => name.includes('-')).map(name => toMatch(lookAlikes(name)))),
          ],
        },
        'names that only account-authz may set, names that make an app use another path or method, look-alikes of account headers',
      ),
    },
    connection: { bufferLimit: '32Ki', connectionLimit: inline({ value: maxClientConnections }) },
    http1: beside({ ignoredUpgradeTypes: [inline({ type: 'Prefix', value: 'TLS/' })] }, ignoredUpgradeSetting.why),
    http2: inline({ maxConcurrentStreams: 100, initialStreamWindowSize: '64Ki', initialConnectionWindowSize: '1Mi' }),
    timeout: {
      http: above(
        'requestHeadersReceivedTimeout: 10s # needs 1.9',
        inline({ streamIdleTimeout: toDuration(idleTimeoutSeconds), idleTimeout: clientIdleSetting.value }),
      ),
    },
  });
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
 * By the Service of account-authz, and not by its pods: without a ready pod Envoy Gateway rejects the SecurityPolicy, and once it takes it back,
 * open connections of clients reach the route without the check.
 */
function tlsFile(settings: RenderSettings): RenderedFile {
  const secret = { kind: 'Secret', name: `${authzCluster}-client-tls` };
  const proxy = own('EnvoyProxy', settings, gatewayOf(settings), {
    routingType: 'Service',
    backendTLS: { clientCertificateRef: inline({ group: '', ...secret }), minVersion: '1.3' },
  });
  return renderedFile(
    'backend-tls.yaml',
    settings.tls === undefined ? [] : [backendTlsPolicy(settings, secret), proxy],
    [
      'The gateway speaks TLS to account-authz, and only to a server whose certificate has its name. The EnvoyProxy belongs to your Gateway',
      'or GatewayClass: `parametersRef`.',
      'routingType: without a ready pod, Envoy Gateway rejects a SecurityPolicy whose service it reaches by its pods. When one is ready again,',
      'connections that clients have kept open reach the route without the check. Never leave it out; the Service needs a ClusterIP.',
    ],
  );
}
