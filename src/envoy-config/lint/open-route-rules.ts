// Rules for what Envoy serves without the check: the public routes and the metadata document, and nothing else of the protected service.
import { everyMethod } from '../../authz/permission.ts';
import { documentMethods } from '../render/open-routes.ts';
import type { EnvoyPolicy } from '../settings.ts';
import { turnedOff, wayOf } from './bypass-rules.ts';
import { guards } from './guard.ts';
import { stateOf } from './http-filter.ts';
import { type AuthzFilter, type GuardedManager, type LintModel, openTargetsOf } from './lint-model.ts';
import type { HostRoute, RouteTarget } from './listener.ts';
import { otherSpellings } from './owned-names.ts';
import { readOpenRemovals, refusesUnderscores } from './removed-names.ts';
import type { PathScope } from './route-match.ts';
import { type Finding, ifAny, quoted, type Rules } from './rule.ts';

interface OpenPath extends PathScope {
  readonly text: string;
  readonly methods: readonly string[];
}

// A route for all methods takes each of them.
const otherMethods = [...everyMethod, 'TRACE', 'OTHER'];

export const openRouteRules = {
  'open-route': {
    what: 'A route without the check leads to the protected service for a path or a method that `public` does not name, or on a listener without the check',
    why: 'anybody can call it without a token, and the configuration does not say so',
    fix: 'name the path and its methods in `public`, on the listener with the check, or let Envoy check the route',
    find: model => (model.protectedClusters.size === 0 ? [] : model.managers.flatMap(each => openTargets(model, each))),
  },
  'public-route-missing': {
    what: 'No Envoy route serves a path of `public`, or the metadata document of `protectedResource`, without the check and the guard',
    why: 'Envoy answers 404 there, or asks account-authz, which refuses it',
    fix: 'add the route that `render` writes for it, before the routes of the protected paths',
    find: ({ guarded, isComplete, policy }) => {
      const missing = openPaths(policy).filter(each => !guarded.some(manager => isServed(manager, each)));
      const names = missing.map(({ text }) => quoted(text));
      const hosts = guarded[0]?.manager.routes.field('virtual_hosts');
      return isComplete ? ifAny(names, hosts, 'have no open route for') : [];
    },
  },
  'public-headers-kept': {
    what: 'A route of `public` does not remove the headers of `account.headers`, their other spellings (x.account.id), or a header that may hold the token (`authorization`, `token.from`)',
    why: 'the service may act on an account or a token that nobody checked',
    fix: 'remove them in the `request_mutations` of a HeaderMutationPerRoute on the route',
    find: model => model.guarded.flatMap(each => keptOnOpenRoutes(model, each)),
  },
} as const satisfies Rules<LintModel>;

function openPaths({ publicRoutes, metadata }: EnvoyPolicy): readonly OpenPath[] {
  if (metadata === undefined) return publicRoutes;
  const { path: text } = metadata;
  return [...publicRoutes, { text, path: text.replace(/\/$/, ''), subtree: false, methods: documentMethods }];
}

function openTargets(model: LintModel, manager: LintModel['managers'][number]): readonly Finding[] {
  const guarded = model.guarded.find(each => each.manager === manager);
  const open = openTargetsOf(model, manager).filter(target => isOpen(guarded, target));
  if (guarded === undefined) {
    return open.slice(0, 1).map(target => ({
      at: manager.value.field('http_filters'),
      says: `have no check, and ${wayOf(target, pathOf(target))}`,
    }));
  }
  const named = openPaths(model.policy);
  return open
    .filter(({ match }) => !named.some(each => covers(each, match)))
    .flatMap(target => turnedOff(guarded, target, pathOf(target)));
}

/** Whether no check runs on it. Other rules judge what another spelling of a protected path reaches. */
function isOpen(guarded: GuardedManager | undefined, target: RouteTarget): boolean {
  return guarded === undefined || (target.lookAlikePath === undefined && isUnchecked(guarded.checks, target));
}

function isUnchecked(checks: readonly AuthzFilter[], { filterScopes }: Pick<RouteTarget, 'filterScopes'>): boolean {
  return !checks.some(({ filter }) => stateOf(filter, filterScopes).runs);
}

function pathOf({ match: { scope } }: RouteTarget): string {
  return scope === undefined || scope.path === '' ? '/' : scope.path;
}

function covers(open: OpenPath, { scope, takesMethod }: RouteTarget['match']): boolean {
  if (scope === undefined) return false;
  const isSame = scope.path === open.path && (open.subtree || !scope.subtree);
  const isUnder = open.subtree && scope.path.startsWith(`${open.path}/`);
  return (isSame || isUnder) && otherMethods.every(method => open.methods.includes(method) || !takesMethod(method));
}

function isServed({ manager, checks }: GuardedManager, open: OpenPath): boolean {
  const paths = open.subtree ? [open.path, `${open.path}/x`] : [open.text];
  const serves = ({ value, filterScopes }: HostRoute) =>
    isAnswer(value) &&
    isUnchecked(checks, { filterScopes }) &&
    !checks.some(({ later, filter }) => later.some(each => guards(each, filterScopes, filter.name)));
  return manager.hosts.some(host =>
    paths.every(path =>
      open.methods.every(method => {
        const first = host.routes.find(({ match }) => match.takes(path) && match.takesMethod(method));
        return first !== undefined && serves(first);
      }),
    ),
  );
}

function isAnswer(route: HostRoute['value']): boolean {
  const status = route.field('direct_response', 'status').number();
  return ['route', 'redirect'].some(action => route.field(action).isPresent) || (status !== undefined && status < 400);
}

function keptOnOpenRoutes(model: LintModel, guarded: GuardedManager): readonly Finding[] {
  const { manager, checks, names } = guarded;
  // Envoy removes the identity headers on every route, or another rule reports it.
  const account = [...names.account, ...otherSpellings(names.account, !refusesUnderscores(manager))];
  const tokens = model.policy.headers.filter(({ kind, removed }) => kind === 'token' && removed === 'public');
  const held = [...account, ...tokens.flatMap(each => each.names)];
  const named = openPaths(model.policy);
  return openTargetsOf(model, manager)
    .filter(target => isOpen(guarded, target) && named.some(each => covers(each, target.match)))
    .flatMap(({ scopes }) => {
      const removes = readOpenRemovals(manager, checks, scopes);
      const left = held.filter(name => !removes(name));
      return ifAny(left, scopes[2]?.field('typed_per_filter_config'), 'keeps', ' as a client sent it');
    });
}
