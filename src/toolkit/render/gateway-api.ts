// What data planes of the Gateway API need (Cilium, agentgateway), so that they ask account-authz by the filter ExternalAuth (GEP-1494).

import { dotlessPathPattern } from '../envoy-settings/open-routes.ts';
import type { RenderSettings } from '../envoy-settings/settings.ts';
import { inline, type Tree } from '../envoy-settings/tree.ts';
import { backendTlsPolicy, gatewayApi, referenceGrant, serviceReference } from './authz-service.ts';
import {
  checkedRoute,
  httpRouteProblem,
  publicRoute,
  removalProblem,
  removedNames,
  removing,
  tooMany,
} from './http-routes.ts';
import { type RenderedFile, type RenderedFiles, renderedFile } from './rendered-files.ts';

export function gatewayApiFiles(settings: RenderSettings): RenderedFiles {
  const { publicRoutes, metadata } = settings;
  const document =
    metadata &&
    `The Gateway API answers nothing by itself: serve this at ${metadata.path}, without the filter: ${metadata.json}`;
  const parts = removing(removedNames(settings, 'public'));
  const open = publicRoutes.length === 0 ? [] : [publicRoute(settings, parts, { patternOf: dotlessPathPattern })];
  return [
    renderedFile('http-route.yaml', [protectedRoute(settings)], document === undefined ? [] : [document]),
    referenceGrant(settings, { group: gatewayApi, kind: 'HTTPRoute' }),
    openFile(open),
    tlsFile(settings),
  ];
}

export function gatewayApiProblem(settings: RenderSettings): string | undefined {
  // The bound of the filter.
  if (settings.shownHeaders.length > 64) return tooMany('account.headers', 50);
  return httpRouteProblem(settings) ?? removalProblem(settings, removedNames, 2);
}

function protectedRoute(settings: RenderSettings): Tree {
  const { filters, backendFilters } = removing(removedNames(settings, 'checked'));
  const externalAuth = {
    type: 'ExternalAuth',
    externalAuth: {
      protocol: 'GRPC',
      backendRef: inline(serviceReference(settings)),
      grpc: { allowedHeaders: inline([...settings.shownHeaders]) },
    },
  };
  return checkedRoute(settings, { filters: [externalAuth, ...filters], backendFilters });
}

export function openFile(trees: readonly Tree[]): RenderedFile {
  return renderedFile('open-routes.yaml', trees, [
    'What is served without a check. It cannot refuse a query parameter by which a framework takes another method (_method): turn that off in the service.',
  ]);
}

/** The authority is a ConfigMap, the form that each implementation has. */
export function tlsFile(settings: RenderSettings): RenderedFile {
  const policy = backendTlsPolicy(settings, { kind: 'ConfigMap', name: 'account-authz-ca' });
  return renderedFile('backend-tls.yaml', settings.tls === undefined ? [] : [policy]);
}
