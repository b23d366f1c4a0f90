// The HTTPRoutes of Envoy Gateway: the protected one, and those that are served without a check.
import type { MetadataDocument, RenderSettings } from '../settings.ts';
import { above, beside, inline, type Members, type Tree } from '../tree.ts';
import { corsOf, gatewayApi, gatewayOf, own, standard } from './envoy-gateway.ts';
import { documentMethods, domainOf, hostPattern, publicPathPattern } from './open-routes.ts';
import { type ServedPath, servedPaths } from './upstreams.ts';

// Bounds of the Gateway API.
const maxMatches = 64;
const maxHosts = 16;
const maxRemoved = 16;

/** What of the configuration does not fit into an HTTPRoute. */
export function gatewayRoutesProblem(settings: RenderSettings): string | undefined {
  const { paths, publicRoutes, hosts = [] } = settings;
  const tooMany = (what: string, most: number): string =>
    `${what} of the configuration must be at most ${most}, more do not fit into an HTTPRoute`;
  if (paths.length + preflights(settings).length > maxMatches)
    return `routes of the configuration must lead to at most ${maxMatches} paths, more do not fit into a rule of an HTTPRoute`;
  if (publicRoutes.flatMap(({ methods }) => methods).length > maxMatches)
    return tooMany('methods of public', maxMatches);
  if (hosts.length > maxHosts) return tooMany('account.hosts', maxHosts);
  return publicRoutes.length > 0 && removedOn(settings, 'public').length > maxRemoved
    ? tooMany('account.headers', maxRemoved - 1)
    : undefined;
}

export function httpRoute(settings: RenderSettings): Tree {
  const remove = removedOn(settings, 'checked');
  const filters = remove.length === 0 ? undefined : [toRemoval(remove)];
  const checked = settings.paths.flatMap(path => servedPaths(settings, { path, subtree: true }));
  const rules = byUpstream(checked).map(([upstream, paths], i) => ({
    matches: [
      ...paths.map(({ path }) => ({ path: inline({ type: 'PathPrefix', value: path }) })),
      ...(i === 0 ? preflights(settings) : []),
    ],
    filters,
    ...toService(settings, upstream),
  }));
  const comment = 'whole segments: /api/ordersX does not match /api/orders. No other route: 404.';
  return route(settings, settings.name, settings.hosts?.map(domainOf), beside(rules, comment));
}

function byUpstream<Path extends ServedPath>(
  paths: readonly Path[],
): readonly (readonly [number | undefined, readonly Path[]])[] {
  const groups = new Map<number | undefined, Path[]>();
  for (const each of paths) groups.set(each.upstream, [...(groups.get(each.upstream) ?? []), each]);
  return [...groups];
}

/** Public routes and the metadata document, each with what belongs to it. */
export function openHttpRoutes(settings: RenderSettings): readonly Tree[] {
  const { publicRoutes, metadata } = settings;
  return [
    ...(publicRoutes.length === 0 ? [] : publicRoute(settings)),
    ...(metadata === undefined ? [] : metadataRoute(metadata, settings)),
  ];
}

/** Preflight requests to public routes are checked: what the CORS of the gateway does not answer is refused. */
function preflights({ publicRoutes, corsOrigins }: RenderSettings): readonly Members[] {
  if (corsOrigins.length === 0) return [];
  return publicRoutes
    .filter(({ methods }) => !methods.includes('OPTIONS'))
    .map(each => ({ path: regularExpression(publicPathPattern(each)), method: 'OPTIONS' }));
}

function publicRoute(settings: RenderSettings): readonly Tree[] {
  const { name, namespace, publicRoutes, hosts } = settings;
  const publicName = `${name}-public`;
  const headers = hosts && [inline({ type: 'RegularExpression', name: 'host', value: hostPattern(hosts) })];
  const remove = removedOn(settings, 'public');
  const served = publicRoutes.flatMap(each =>
    servedPaths(settings, each).map(path => ({ ...path, methods: each.methods })),
  );
  const rules = byUpstream(served).map(([upstream, paths]) => ({
    matches: paths.flatMap(each =>
      each.methods.map(method => ({ path: regularExpression(publicPathPattern(each)), method, headers })),
    ),
    filters: remove.length === 0 ? undefined : [toRemoval(remove)],
    ...toService(settings, upstream),
  }));
  const cors = corsOf(settings);
  return [
    route(settings, publicName, hosts?.map(domainOf), rules),
    cors &&
      own(
        'SecurityPolicy',
        { targetRefs: [inline({ group: gatewayApi, kind: 'HTTPRoute', name: publicName })], cors },
        { name: publicName, namespace },
      ),
  ].filter(each => each !== undefined);
}

function removedOn({ headers }: RenderSettings, kind: 'checked' | 'public'): readonly string[] {
  return headers.filter(({ removed }) => removed === kind).flatMap(({ names }) => names);
}

function toRemoval(remove: readonly string[]): Members {
  return { type: 'RequestHeaderModifier', requestHeaderModifier: inline({ remove }) };
}

function metadataRoute({ path, host, json }: MetadataDocument, settings: RenderSettings): readonly Tree[] {
  const { name, namespace, hosts } = settings;
  const documentName = `${name}-metadata`;
  const set = [inline({ name: 'access-control-allow-origin', value: '*' })];
  return [
    route(settings, documentName, hosts && [host], [
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

function toService({ upstream, upstreams, requestTimeoutSeconds }: RenderSettings, index: number | undefined): Members {
  const { host: name, port } = (index === undefined ? undefined : upstreams[index]?.address) ?? upstream;
  return {
    backendRefs: [inline({ group: '', kind: 'Service', name, port, weight: 1 })],
    timeouts: inline({ request: `${requestTimeoutSeconds}s` }),
  };
}

function route(
  settings: RenderSettings,
  name: string | undefined,
  hostnames: readonly string[] | undefined,
  rules: Tree,
): Tree {
  const { namespace, selector } = settings;
  return standard(
    'HTTPRoute',
    {
      parentRefs: [inline({ group: gatewayApi, kind: 'Gateway', name: gatewayOf(settings) })],
      hostnames,
      rules,
    },
    { name, namespace, labels: selector },
  );
}

function regularExpression(value: string): Tree {
  return inline({ type: 'RegularExpression', value });
}
