// What kgateway needs, so that its proxies ask account-authz, a Service, about one HTTPRoute.
import { authzCall, extAuthzSettings } from '../envoy-settings/authz-filter.ts';
import { documentProblem, dotlessPathPattern } from '../envoy-settings/open-routes.ts';
import { renamed } from '../envoy-settings/setting.ts';
import type { RenderSettings } from '../envoy-settings/settings.ts';
import { beside, inline, type Members, type Tree } from '../envoy-settings/tree.ts';
import { corsPolicy } from './authz-filters.ts';
import { gatewayApi, referenceGrant, serviceAddress, serviceReference } from './authz-service.ts';
import { openFile, tlsFile } from './gateway-api.ts';
import {
  checkedRoute,
  documentNameOf,
  documentRoute,
  exactNames,
  gatewayOf,
  hostCondition,
  httpRouteProblem,
  maxRemoved,
  publicNameOf,
  publicRoute,
  removalProblem,
  removedNames,
  removing,
  routeMethods,
  toDuration,
} from './http-routes.ts';
import { manifest, type RenderedFiles, renderedFile } from './rendered-files.ts';

const group = 'gateway.kgateway.dev';
const corsSeconds = 600;

export function kgatewayFiles(settings: RenderSettings): RenderedFiles {
  const { name } = settings;
  return [
    renderedFile('traffic-policy.yaml', [
      gatewayExtension(settings),
      policy('TrafficPolicy', settings, name, 'HTTPRoute', {
        extAuth: { extensionRef: inline({ name }) },
        cors: corsPolicy(settings, corsSeconds),
      }),
    ]),
    renderedFile(
      'listener-policy.yaml',
      [listenerPolicy(settings)],
      ['For every listener of the Gateway, and every route of it.'],
    ),
    renderedFile('http-route.yaml', [checkedRoute(settings, removing(removedBehind(settings, 'checked')))]),
    referenceGrant(settings, { group, kind: 'GatewayExtension' }),
    openFile([...publicTrees(settings), ...metadataTrees(settings)]),
    tlsFile(settings),
  ];
}

export function kgatewayProblem(settings: RenderSettings): string | undefined {
  const method = settings.methods.find(each => !routeMethods.includes(each));
  if (settings.corsOrigins.length > 0 && method !== undefined)
    return `methods of roles must be among ${routeMethods.join(', ')} with --cors-origin: a TrafficPolicy allows pages no ${method}`;
  return documentProblem(settings) ?? httpRouteProblem(settings) ?? removalProblem(settings, removedBehind, 1);
}

function own(kind: string, { namespace }: RenderSettings, name: string | undefined, spec: Members): Members {
  return manifest(`${group}/v1alpha1`, kind, { name, namespace }, spec);
}

function policy(kind: string, settings: RenderSettings, name: string | undefined, target: string, spec: Members): Tree {
  return own(kind, settings, name, { targetRefs: [inline({ group: gatewayApi, kind: target, name })], ...spec });
}

function gatewayExtension(settings: RenderSettings): Tree {
  const { timeoutMs, retries, retryBaseMs, retryMaxMs } = authzCall;
  const backoff = inline({ baseInterval: `${retryBaseMs}ms`, maxInterval: `${retryMaxMs}ms` });
  return own('GatewayExtension', settings, settings.name, {
    extAuth: {
      ...renamed(extAuthzSettings(settings), {
        failOpen: 'failure_mode_allow',
        statusOnError: { from: 'status_on_error', value: 503 },
        clearRouteCache: 'clear_route_cache',
        headersToForward: { from: 'allowed_headers', value: inline([...settings.shownHeaders]) },
      }),
      grpcService: {
        backendRef: inline(serviceReference(settings)),
        authority: serviceAddress(settings).host,
        requestTimeout: beside(
          `${timeoutMs}ms`,
          'for all attempts; the default of 200 ms is too short for a new connection',
        ),
        retry: { attempts: retries, backoff },
      },
    },
  });
}

function listenerPolicy(settings: RenderSettings): Tree {
  const { trustedHops, idleTimeoutSeconds, headersKib, takesWebSockets } = settings;
  return policy('ListenerPolicy', settings, gatewayOf(settings), 'Gateway', {
    default: {
      perConnectionBufferLimitBytes: 32_768,
      httpSettings: {
        xffNumTrustedHops: trustedHops === 0 ? undefined : trustedHops,
        streamIdleTimeout: toDuration(idleTimeoutSeconds),
        maxRequestHeadersKb: headersKib,
        upgradeConfig: takesWebSockets ? inline({ enabledUpgrades: ['websocket'] }) : undefined,
        earlyRequestHeaderModifier: beside(
          { remove: removedEarly(settings) },
          'names that only account-authz may set, names that make an app use another path or method',
        ),
      },
    },
  });
}

/** Those of account-authz come first in the table. */
function removedEarly(settings: RenderSettings): readonly string[] {
  const rules = settings.headers.filter(({ removed }) => removed === 'everywhere');
  return exactNames(settings, rules).slice(0, maxRemoved);
}

function removedBehind(settings: RenderSettings, kind: 'checked' | 'public'): readonly string[] {
  const early = new Set(removedEarly(settings));
  return removedNames(settings, kind).filter(name => !early.has(name));
}

function publicTrees(settings: RenderSettings): readonly Tree[] {
  if (settings.publicRoutes.length === 0) return [];
  const parts = removing(removedBehind(settings, 'public'));
  return [
    publicRoute(settings, parts, { patternOf: dotlessPathPattern, headers: hostCondition(settings) }),
    unchecked(settings, publicNameOf(settings), corsPolicy(settings, corsSeconds)),
  ];
}

/** Holds where a policy of the Gateway asks for a check of every route. */
function unchecked(settings: RenderSettings, route: string, cors?: Members): Tree {
  return policy('TrafficPolicy', settings, route, 'HTTPRoute', { extAuth: { disable: {} }, cors });
}

function metadataTrees(settings: RenderSettings): readonly Tree[] {
  if (settings.metadata === undefined) return [];
  const name = documentNameOf(settings);
  const headers = { 'content-type': 'application/json', 'access-control-allow-origin': '*' };
  return [
    documentRoute(settings, headers, { group, kind: 'DirectResponse' }),
    unchecked(settings, name),
    own('DirectResponse', settings, name, { status: 200, body: settings.metadata.json }),
  ];
}
