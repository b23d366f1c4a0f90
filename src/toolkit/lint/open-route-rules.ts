// Rules for what Envoy serves without the check: the public routes and the metadata document, and nothing else of the protected service.

import { listWords } from '../../text/printable.ts';
import { documentMethods } from '../envoy-settings/open-routes.ts';
import type { EnvoyPolicy, PublicRoute } from '../envoy-settings/settings.ts';
import { turnedOff, wayOf } from './bypass-rules.ts';
import { guards } from './guard.ts';
import { stateOf } from './http-filter.ts';
import { type AuthzFilter, type GuardedManager, type LintModel, openTargetsOf } from './lint-model.ts';
import type { HostRoute, RouteTarget } from './listener.ts';
import { memoized } from './memoized.ts';
import type { HeaderWay } from './mutations.ts';
import type { ProtoValue } from './proto-value.ts';
import { literalPath, type PathScope } from './route-match.ts';
import { createLooks, indexMatches } from './routed-path.ts';
import { type Finding, ifAny, quoted, type Rules } from './rule.ts';

interface OpenPath extends PathScope {
  readonly text: string;
  readonly methods: readonly string[];
  readonly characters: PublicRoute['characters'];
  /** The document that Envoy answers there. */
  readonly json?: string;
}

// Queries that frameworks take for the method.
const overrides = ['_method=DELETE', 'a=b&_METHOD=PUT', '%5fmethod=PUT', '.method=PUT', 'x-http-method-override=PUT'];

export const openRouteRules = {
  'open-route': {
    what: 'A route without the check leads to the protected service for a path or a method that `public` does not name, or on a listener without the check',
    why: 'anybody can call it without a token, and the configuration does not say so',
    fix: 'name the path and its methods in `public`, on the listener with the check, or let Envoy check the route',
    find: model => (model.protectedClusters.size === 0 ? [] : model.managers.flatMap(each => openTargets(model, each))),
  },
  'public-route-missing': {
    what: 'No Envoy route serves a path of `public`, or the metadata document of `protectedResource` as it is, without the check and the guard',
    why: 'Envoy answers 404 there, or asks account-authz, which refuses it',
    fix: 'add the route that `render` writes for it, before the routes of the protected paths',
    find: ({ guarded, isComplete, policy }) => {
      const [look] = guarded.map(({ manager }) => createLooks(manager.routes));
      const missing = guarded
        .flatMap(each => each.manager.hosts.map(({ routes }) => ({ each, routes })))
        .filter(({ routes }) => routes.length > 0)
        .reduce<readonly OpenPath[]>(
          (left, { each, routes }) => {
            if (look?.(left.length) !== true) return [];
            const first = firstAmong(left.length === 0 ? [] : routes);
            return left.filter(open => !isServed(each, open, first));
          },
          isComplete ? openPaths(policy) : [],
        );
      const names = missing.map(({ text }) => quoted(text));
      const hosts = guarded[0]?.manager.routes.field('virtual_hosts');
      return ifAny(names, hosts, 'have no open route for');
    },
  },
} as const satisfies Rules<LintModel>;

function openPaths({ publicRoutes, metadata }: EnvoyPolicy): readonly OpenPath[] {
  if (metadata === undefined) return publicRoutes;
  const { path: text, json } = metadata;
  const document = { text, path: text.replace(/\/$/, ''), subtree: false, characters: 'strict', json } as const;
  return [...publicRoutes, { ...document, methods: documentMethods }];
}

function openTargets(model: LintModel, manager: LintModel['managers'][number]): readonly Finding[] {
  const checks = model.checksOf.get(manager);
  // What has no start is a tunnel, which has a rule of its own.
  const open = openTargetsOf(model, manager).filter(target => target.match.starts.length > 0 && isOpen(checks, target));
  if (checks === undefined) {
    return open.slice(0, 1).map(target => ({
      at: manager.value.field('http_filters'),
      says: `have no check, and ${wayOf(target, pathOf(target))}`,
    }));
  }
  return open
    .filter(({ match }) => namedBy(model.policy, match) === undefined)
    .flatMap(target =>
      turnedOff({ checks }, target, pathOf(target)).map(({ at, says }) => ({
        at,
        says: says + methodsOf(model, target),
      })),
    );
}

/** Whether no check runs on it. Other rules judge what another spelling of a protected path reaches. */
function isOpen(checks: readonly AuthzFilter[] | undefined, target: RouteTarget): boolean {
  return checks === undefined || (target.lookAlikePath === undefined && isUnchecked(checks, target));
}

function isUnchecked(checks: readonly AuthzFilter[], { filterScopes }: Pick<RouteTarget, 'filterScopes'>): boolean {
  return uncheckedBy(checks)(filterScopes);
}

const uncheckedBy = memoized((checks: readonly AuthzFilter[]) =>
  memoized((scopes: readonly ProtoValue[]) => !checks.some(({ filter }) => stateOf(filter, scopes).runs)),
);

function pathOf({ match: { starts } }: RouteTarget): string {
  return literalPath(starts[0] ?? []);
}

/** Where `public` names the path for other methods. */
function methodsOf({ policy }: LintModel, { match }: RouteTarget): string {
  const named = namedBy(policy, { ...match, methods: [] });
  const open = match.methods === undefined ? 'every method' : listWords(match.methods, 3);
  return named === undefined ? '' : `, for ${open} where \`public\` names ${listWords(named.methods, 3)}`;
}

const openPathsOf = memoized((policy: EnvoyPolicy) => {
  const byKey = new Map(openPaths(policy).map(each => [keyOf(each), each]));
  return { byKey, longest: Math.max(0, ...[...byKey.keys()].map(key => key.length)) };
});

function keyOf({ path, subtree }: PathScope): string {
  return subtree ? `${path}/*` : path;
}

/** The route of `public` that names all that a route takes, its characters left out. */
function namedBy(policy: EnvoyPolicy, { scope, methods }: RouteTarget['match']): OpenPath | undefined {
  const { byKey, longest } = openPathsOf(policy);
  const openBy = (key: string): OpenPath | undefined => {
    const open = byKey.get(key);
    return methods?.every(method => open?.methods.includes(method)) ? open : undefined;
  };
  let found = scope && openBy(keyOf(scope));
  const path = scope?.path ?? '';
  for (let end = path.length; end > 0 && found === undefined; end = path.lastIndexOf('/', end - 1))
    if (end < longest) found = openBy(`${path.slice(0, end)}/*`);
  return found;
}

type First = (path: string, method: string, query: string) => HostRoute | undefined;

/** The first of the routes that may take a request. */
function firstAmong(routes: readonly HostRoute[]): First {
  const { first } = indexMatches(routes);
  return (path, method, query) => first(path, ({ match }) => match.methods?.includes(method) ?? true, query);
}

function isServed({ checks }: GuardedManager, open: OpenPath, first: First): boolean {
  const serves = (route: HostRoute | undefined) =>
    route !== undefined &&
    isAnswer(route, open.json) &&
    isUnchecked(checks, route) &&
    !checks.some(({ later, filter }) => later.some(each => guards(each, route.filterScopes, filter.name)));
  const below = open.characters === 'rfc3986' ? 'x+y' : 'x';
  const paths = open.subtree ? [open.path, `${open.path}/${below}`] : [open.text];
  return paths.every(path => open.methods.every(method => serves(first(path, method, ''))));
}

function isAnswer({ value, isAnswered }: HostRoute, json: string | undefined): boolean {
  const answer = value.field('direct_response');
  const status = answer.field('status').number() ?? 500;
  return !isAnswered || (status < 400 && (json === undefined || answer.field('body', 'inline_string').text() === json));
}

/** What public routes serve beyond what `render` lets them serve. */
export function looseRoutes({ guarded, policy }: LintModel): readonly Finding[] {
  return guarded.flatMap(({ manager, checks }) =>
    manager.hosts.flatMap(({ routes }) => {
      const open = routes.filter(
        each => each.value.field('route').isPresent && isUnchecked(checks, each) && namedBy(policy, each.match),
      );
      const first = firstAmong(open.length === 0 ? [] : routes);
      return open.flatMap(({ value, match }) => {
        const { scope, methods, characters } = match;
        const permitted = ['strict', namedBy(policy, match)?.characters];
        const isRefused = (query: string): boolean => {
          const answer = first(`${scope?.path}${scope?.subtree ? '/x' : ''}`, methods?.[0] ?? '', `?${query}`);
          const status = answer?.value.field('direct_response', 'status').number() ?? 0;
          return answer?.match.isSureByTarget === true && status >= 400;
        };
        const at = value.field('match');
        const loose = [
          ...(permitted.includes(characters ?? '')
            ? []
            : ['takes paths outside the grammar too, such as /..;/, which servers may resolve']),
          ...(overrides.every(isRefused)
            ? []
            : ['takes a query such as _method=DELETE, by which servers choose the method']),
          ...value
            .items('route', 'upgrade_configs')
            .map(() => 'lets a public route upgrade: Envoy does not see what follows'),
        ];
        return loose.map(says => ({ at, says }));
      });
    }),
  );
}

/** Whether it is a route of `public`, or of the metadata document, in an Envoy that checks others. */
export function isPublic({ model, manager, target, check }: HeaderWay): boolean {
  return (
    check === undefined &&
    target.protectedPath === undefined &&
    target.lookAlikePath === undefined &&
    model.checksOf.has(manager) &&
    namedBy(model.policy, target.match) !== undefined
  );
}

const mcpFilter = 'envoy.extensions.filters.http.mcp.v3.Mcp';

/** Filters that answer 400 to a client that asks for the metadata document, which is no message of MCP. */
export function documentRefused({ guarded, policy: { metadata } }: LintModel): readonly Finding[] {
  if (metadata === undefined) return [];
  return guarded.flatMap(({ manager }) => {
    const filters = manager.chains
      .flatMap(chain => chain.filters)
      .filter(
        ({ type, config }) => type === mcpFilter && config.field('traffic_mode').choice({ REJECT_NO_MCP: 1 }) === 1,
      );
    const routes =
      filters.length === 0 ? [] : manager.hosts.map(each => firstAmong(each.routes)(metadata.path, 'GET', ''));
    return filters
      .filter(each => routes.some(route => route !== undefined && stateOf(each, route.filterScopes).runs))
      .map(({ value: at }) => ({
        at,
        says: `runs for ${quoted(metadata.path)}, and answers 400 to clients that read the metadata document: switch it off on that route`,
      }));
  });
}
