// The HTTPRoutes of Envoy Gateway: the protected one, and those that are served without a check.
import type { MetadataDocument, RenderSettings } from '../settings.ts';
import { above, inline, type Tree } from '../tree.ts';
import { corsOf, own, policyTarget } from './envoy-gateway.ts';
import {
  checkedRoute,
  hostCondition,
  httpRoute,
  httpRouteProblem,
  maxRemoved,
  publicNameOf,
  publicRoute,
  removing,
  tooMany,
} from './http-routes.ts';
import { documentMethods } from './open-routes.ts';

/** What of the configuration does not fit into an HTTPRoute. */
export function gatewayRoutesProblem(settings: RenderSettings): string | undefined {
  const isFull = settings.publicRoutes.length > 0 && removedOn(settings, 'public').length > maxRemoved;
  return httpRouteProblem(settings) ?? (isFull ? tooMany('account.headers', maxRemoved - 1) : undefined);
}

export function protectedRoute(settings: RenderSettings): Tree {
  return checkedRoute(settings, removing(removedOn(settings, 'checked')));
}

/** Public routes and the metadata document, each with what belongs to it. */
export function openHttpRoutes(settings: RenderSettings): readonly Tree[] {
  const { publicRoutes, metadata, namespace } = settings;
  const name = publicNameOf(settings);
  const cors = publicRoutes.length === 0 ? undefined : corsOf(settings);
  return [
    ...(publicRoutes.length === 0
      ? []
      : [publicRoute(settings, removing(removedOn(settings, 'public')), { headers: hostCondition(settings) })]),
    ...(cors === undefined
      ? []
      : [own('SecurityPolicy', { ...policyTarget(settings, name), cors }, { name, namespace })]),
    ...(metadata === undefined ? [] : metadataRoute(metadata, settings)),
  ];
}

function removedOn({ headers }: RenderSettings, kind: 'checked' | 'public'): readonly string[] {
  return headers.filter(({ removed }) => removed === kind).flatMap(({ names }) => names);
}

function metadataRoute({ path, host, json }: MetadataDocument, settings: RenderSettings): readonly Tree[] {
  const { name, namespace, hosts } = settings;
  const documentName = `${name}-metadata`;
  const set = [inline({ name: 'access-control-allow-origin', value: '*' })];
  return [
    httpRoute(settings, documentName, hosts && [host], [
      {
        matches: documentMethods.map(method => ({ path: inline({ type: 'Exact', value: path }), method })),
        filters: [
          { type: 'ResponseHeaderModifier', responseHeaderModifier: { set } },
          {
            type: 'ExtensionRef',
            extensionRef: inline({ group: 'gateway.envoyproxy.io', kind: 'HTTPRouteFilter', name: documentName }),
          },
        ],
      },
    ]),
    above(
      'RFC 9728: by it, clients find the authorization server. Pages of every origin may read it.',
      own(
        'HTTPRouteFilter',
        {
          directResponse: {
            statusCode: 200,
            contentType: 'application/json',
            body: { type: 'Inline', inline: json },
          },
        },
        { name: documentName, namespace },
      ),
    ),
  ];
}
