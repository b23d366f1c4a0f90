// The files of the target envoy-gateway, and its HTTPRoutes: the protected one, and those that are served without a check.
import type { MetadataDocument, RenderSettings } from '../settings.ts';
import { above, inline, type Tree } from '../tree.ts';
import { referenceGrant } from './authz-service.ts';
import { backendTls, clientTrafficPolicy, corsOf, own, policyTarget, securityPolicy } from './envoy-gateway.ts';
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
import { type RenderedFile, type RenderedFiles, renderedFile } from './rendered-files.ts';

/** What of the configuration does not fit into an HTTPRoute. */
export function gatewayRoutesProblem(settings: RenderSettings): string | undefined {
  const isFull = settings.publicRoutes.length > 0 && removedOn(settings, 'public').length > maxRemoved;
  return httpRouteProblem(settings) ?? (isFull ? tooMany('account.headers', maxRemoved - 1) : undefined);
}

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
    renderedFile('http-route.yaml', [checkedRoute(settings, removing(removedOn(settings, 'checked')))], []),
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

/** Public routes and the metadata document, each with what belongs to it. */
function openHttpRoutes(settings: RenderSettings): readonly Tree[] {
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
