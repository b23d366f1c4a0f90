// The HTTPRoutes of the targets that speak the Gateway API: the protected one, and the public one, which is served without a check.
import type { HeaderRule } from '../../headers/header-rule.ts';
import { underscoreSpellings } from '../../headers/headers.ts';
import {
  documentMethods,
  domainOf,
  dotlessPathPattern,
  hostPattern,
  publicPathPattern,
} from '../envoy-settings/open-routes.ts';
import type { PublicRoute, RenderSettings } from '../envoy-settings/settings.ts';
import { beside, inline, type Members, type Tree } from '../envoy-settings/tree.ts';
import { gatewayApi, serviceAddress } from './authz-service.ts';
import { isKubernetesName, manifest } from './rendered-files.ts';
import { type ServedPath, servedPaths } from './upstreams.ts';

// Bounds of the Gateway API.
const maxMatches = 64;
const maxHosts = 16;
const maxPathLength = 1024;
export const routeMethods: readonly string[] = 'GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH'.split(' ');
export const maxRemoved = 16;

/** What each rule of a route does besides leading to its Service. */
export interface RuleParts {
  readonly filters: readonly Members[];
  /** For what has no room in the filters of the rule. */
  readonly backendFilters: readonly Members[];
}

/** GEP-2257: a number has at most five digits. */
export function toDuration(seconds: number): string {
  return seconds < 100_000 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}

/** What of the configuration does not fit into an HTTPRoute. */
export function httpRouteProblem(settings: RenderSettings): string | undefined {
  const { paths, publicRoutes, hosts = [], upstream, upstreams } = settings;
  if (paths.length + preflights(settings).length > maxMatches)
    return `routes of the configuration must lead to at most ${maxMatches} paths, more do not fit into a rule of an HTTPRoute`;
  if (publicRoutes.flatMap(({ methods }) => methods).length > maxMatches)
    return tooMany('methods of public', maxMatches);
  const method = publicRoutes.flatMap(({ methods }) => methods).find(each => !routeMethods.includes(each));
  if (method !== undefined)
    return `methods of public must be among ${routeMethods.join(', ')}: an HTTPRoute has no ${method}`;
  if (!isKubernetesName(serviceAddress(settings).host))
    return '--authz-host (or the host of listen) must be the name of a Service such as account-authz, its namespace --authz-namespace';
  if (![upstream, ...upstreams.map(({ address }) => address)].every(({ host }) => isKubernetesName(host)))
    return '--upstream must be a Service in the namespace of the HTTPRoute, by its name alone (orders:80)';
  const long = [...paths, ...publicRoutes.map(dotlessPathPattern)].find(({ length }) => length > maxPathLength);
  if (long !== undefined)
    return 'paths of routes and public of the configuration must be shorter: their patterns do not fit into an HTTPRoute';
  return hosts.length > maxHosts ? tooMany('account.hosts', maxHosts) : undefined;
}

export function tooMany(what: string, most: number): string {
  return `${what} of the configuration must be at most ${most}, more do not fit into an HTTPRoute`;
}

/** Removes these names: those that do not fit into the filter of a rule where it leads to its backend, if that takes them. */
export function removing(names: readonly string[]): RuleParts {
  const filtersOf = (remove: readonly string[]): readonly Members[] =>
    remove.length === 0
      ? []
      : [{ type: 'RequestHeaderModifier', requestHeaderModifier: inline({ remove: [...remove] }) }];
  return { filters: filtersOf(names.slice(0, maxRemoved)), backendFilters: filtersOf(names.slice(maxRemoved)) };
}

/** `removedOn`: by the kind of a route; `places`: of `removing` that the data plane has. */
export function removalProblem(
  settings: RenderSettings,
  removedOn: (settings: RenderSettings, kind: 'checked' | 'public') => readonly string[],
  places: 1 | 2,
): string | undefined {
  const kinds = settings.publicRoutes.length === 0 ? (['checked'] as const) : (['checked', 'public'] as const);
  return kinds.some(kind => removedOn(settings, kind).length > places * maxRemoved)
    ? 'account.headers of the configuration must be fewer or have fewer hyphens: their spellings with underscores do not fit into an HTTPRoute'
    : undefined;
}

/**
 * What a route of this kind removes, for data planes that know exact names alone, and remove after the check: on a checked route what an
 * answer sets or removes stays. Account headers are shown as they are written, so their other spellings go.
 */
export function removedNames(settings: RenderSettings, kind: 'checked' | 'public'): readonly string[] {
  const rules = settings.headers.filter(
    ({ removed, allow }) =>
      (removed === 'everywhere' || removed === kind) && (kind === 'public' || allow === undefined),
  );
  return [...exactNames(settings, rules), ...settings.accountHeaders.flatMap(underscoreSpellings)];
}

/** A prefix stands for the names that account-authz sets. */
export function exactNames({ identity }: RenderSettings, rules: readonly HeaderRule[]): readonly string[] {
  return rules.flatMap(({ names }) => names.flatMap(name => (name.endsWith('*') ? identity.all : name)));
}

export function checkedRoute(settings: RenderSettings, parts: RuleParts): Tree {
  const checked = settings.paths.flatMap(path => servedPaths(settings, { path, subtree: true }));
  const rules = byUpstream(checked).map(([upstream, paths], i) => ({
    matches: [
      ...paths.map(({ path }) => ({ path: inline({ type: 'PathPrefix', value: path }) })),
      ...(i === 0 ? preflights(settings) : []),
    ],
    ...ruleOf(settings, upstream, parts),
  }));
  const comment = 'whole segments: /api/ordersX does not match /api/orders. No other route: 404.';
  return httpRoute(settings, settings.name, settings.hosts?.map(domainOf), beside(rules, comment));
}

/** `patternOf`: RE2 for the paths of a public route. */
export function publicRoute(
  settings: RenderSettings,
  parts: RuleParts,
  { patternOf = publicPathPattern, headers }: { patternOf?: typeof publicPathPattern; headers?: Tree } = {},
): Tree {
  const { publicRoutes, hosts } = settings;
  const served = publicRoutes.flatMap(each => servedPaths(settings, each).map(path => ({ ...each, ...path })));
  const rules = byUpstream(served).map(([upstream, paths]) => ({
    matches: paths.flatMap(each =>
      each.methods.map(method => ({ path: regularExpression(patternOf(each)), method, headers })),
    ),
    ...ruleOf(settings, upstream, parts),
  }));
  return httpRoute(settings, publicNameOf(settings), hosts?.map(domainOf), rules);
}

/** For a route that only Envoy serves: the label of an account by its grammar, where `*.` of a host name takes several labels. */
export function hostCondition({ hosts }: RenderSettings): Tree {
  return hosts && [inline({ type: 'RegularExpression', name: 'host', value: hostPattern(hosts) })];
}

export function publicNameOf({ name }: RenderSettings): string {
  return `${name}-public`;
}

/** For the metadata document, which an object of the data plane answers: its name is that of the route. */
export function documentRoute(
  settings: RenderSettings,
  headers: Readonly<Record<string, string>>,
  answer: { readonly group: string; readonly kind: string },
): Tree {
  const { metadata, hosts } = settings;
  const name = documentNameOf(settings);
  const set = Object.entries(headers).map(([header, value]) => inline({ name: header, value }));
  const path = inline({ type: 'Exact', value: metadata?.path });
  const rule = {
    matches: documentMethods.map(method => ({ path, method })),
    filters: [
      { type: 'ResponseHeaderModifier', responseHeaderModifier: { set } },
      { type: 'ExtensionRef', extensionRef: inline({ ...answer, name }) },
    ],
  };
  return httpRoute(settings, name, hosts && metadata && [metadata.host], [rule]);
}

export function documentNameOf({ name }: RenderSettings): string {
  return `${name}-metadata`;
}

export function gatewayOf({ gateway, name }: RenderSettings): string | undefined {
  return gateway ?? name;
}

function httpRoute(
  settings: RenderSettings,
  name: string | undefined,
  hostnames: readonly string[] | undefined,
  rules: Tree,
): Tree {
  const { namespace, selector: labels } = settings;
  const parentRefs = [inline({ group: gatewayApi, kind: 'Gateway', name: gatewayOf(settings) })];
  return manifest(`${gatewayApi}/v1`, 'HTTPRoute', { name, namespace, labels }, { parentRefs, hostnames, rules });
}

/** Preflight requests to public routes are checked: what the CORS of the gateway does not answer is refused. */
function preflights({ publicRoutes, corsOrigins }: RenderSettings): readonly Members[] {
  if (corsOrigins.length === 0) return [];
  return publicRoutes
    .filter(({ methods }: PublicRoute) => !methods.includes('OPTIONS'))
    .map(each => ({ path: regularExpression(publicPathPattern(each)), method: 'OPTIONS' }));
}

function byUpstream<Path extends ServedPath>(
  paths: readonly Path[],
): readonly (readonly [number | undefined, readonly Path[]])[] {
  const groups = new Map<number | undefined, Path[]>();
  for (const each of paths) groups.set(each.upstream, [...(groups.get(each.upstream) ?? []), each]);
  return [...groups];
}

function ruleOf(
  { upstream, upstreams, requestTimeoutSeconds }: RenderSettings,
  index: number | undefined,
  { filters, backendFilters }: RuleParts,
): Members {
  const { host: name, port } = (index === undefined ? undefined : upstreams[index]?.address) ?? upstream;
  const service = { group: '', kind: 'Service', name, port, weight: 1 };
  return {
    filters: filters.length === 0 ? undefined : filters,
    backendRefs: [backendFilters.length === 0 ? inline(service) : { ...service, filters: backendFilters }],
    timeouts: inline({ request: toDuration(requestTimeoutSeconds) }),
  };
}

function regularExpression(value: string): Tree {
  return inline({ type: 'RegularExpression', value });
}
