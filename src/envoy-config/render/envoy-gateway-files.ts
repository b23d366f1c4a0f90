// The files of the target envoy-gateway.
import type { RenderSettings } from '../settings.ts';
import type { Tree } from '../tree.ts';
import { referenceGrant } from './authz-service.ts';
import { backendTls, clientTrafficPolicy, securityPolicy } from './envoy-gateway.ts';
import { openHttpRoutes, protectedRoute } from './envoy-gateway-routes.ts';
import { type RenderedFile, type RenderedFiles, renderedFile } from './rendered-files.ts';

export function gatewayFiles(settings: RenderSettings): RenderedFiles {
  return [
    renderedFile(
      'security-policy.yaml',
      [securityPolicy(settings)],
      settings.merges
        ? []
        : [
            'It replaces a SecurityPolicy of the Gateway for this route, with its allow lists, without a word: if there is one, render with --merge.',
          ],
    ),
    renderedFile(
      'client-traffic-policy.yaml',
      [clientTrafficPolicy(settings)],
      ['As strict as a bootstrap of `render envoy`, which has the reasons.'],
    ),
    renderedFile('http-route.yaml', [protectedRoute(settings)], []),
    ...referenceGrant(settings, { group: 'gateway.envoyproxy.io', kind: 'SecurityPolicy' }),
    ...openFiles(openHttpRoutes(settings)),
    ...(settings.tls === undefined
      ? []
      : [
          renderedFile('backend-tls.yaml', backendTls(settings), [
            'The gateway speaks TLS to account-authz, and only to a server whose certificate has its name. The EnvoyProxy belongs to your Gateway',
            'or GatewayClass: `parametersRef`.',
            'routingType: without a ready pod, Envoy Gateway rejects a SecurityPolicy whose service it reaches by its pods. When one is ready again,',
            'connections that clients have kept open reach the route without the check. Never leave it out; the Service needs a ClusterIP.',
          ]),
        ]),
  ];
}

function openFiles(routes: readonly Tree[]): readonly RenderedFile[] {
  if (routes.length === 0) return [];
  return [
    renderedFile('open-routes.yaml', routes, [
      'What the gateway serves without a check: no SecurityPolicy with extAuth names these routes. It cannot refuse a query parameter by',
      'which a framework takes another method (_method): turn that off in the service.',
    ]),
  ];
}
