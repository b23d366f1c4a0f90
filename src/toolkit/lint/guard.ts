// Recognizes the guard: an rbac filter that lets only requests pass which account-authz allowed.
import { allowKey } from '../../authz/principal.ts';
import { filterNames } from '../envoy-settings/authz-filter.ts';
import { filterTypes, type HttpFilter, routeSettingsOf, stateOf } from './http-filter.ts';
import type { AuthzFilter } from './lint-model.ts';
import { memoized } from './memoized.ts';
import { readStringMatcher } from './name-pattern.ts';
import type { ProtoValue } from './proto-value.ts';

/** Whether a guard follows this check on every route that a protected path reaches. */
export function isGuarded({ later, manager, filter }: AuthzFilter): boolean {
  return manager.protectedScopes.every(scopes => later.some(each => guards(each, scopes, filter.name)));
}

const samples = ['', 'deny', 'unavailable', 'allowed', 'ALLOW'];

/** Whether this filter refuses what ext_authz, under its name, did not allow on a route with these scopes. */
export function guards(filter: HttpFilter, scopes: readonly ProtoValue[], extAuthz: string): boolean {
  if (filter.type !== filterTypes.rbac || !stateOf(filter, scopes).runs) return false;
  // The narrowest RBACPerRoute replaces the settings of the filter; an empty one turns it off.
  const own = routeSettingsOf(filter, scopes).at(-1);
  return own === undefined ? requiresAllowBy(filter.config)(extAuthz) : requiresAllowBy(rbacIn(own))(extAuthz);
}

const rbacIn = memoized((own: ProtoValue) => own.field('rbac'));

const requiresAllowBy = memoized((rbac: ProtoValue) => {
  const known = new Map<string, boolean>();
  return (extAuthz: string): boolean => {
    const found = known.get(extAuthz) ?? requireAllow(rbac, extAuthz);
    known.set(extAuthz, found);
    return found;
  };
});

/** Whether an envoy.extensions.filters.http.rbac.v3.RBAC lets only allowed requests pass. */
function requireAllow(rbac: ProtoValue, extAuthz: string): boolean {
  const rules = rbac.field('rules');
  if (!rules.isPresent) return false;
  const isAllowList = (rules.field('action').choice({ ALLOW: 0 }) ?? 0) === 0;
  const requires = (condition: ProtoValue) => requiresAllow(condition, extAuthz);
  const policies = rules.field('policies').entries();
  return (
    isAllowList && policies.every(each => ['permissions', 'principals'].some(list => each.items(list).every(requires)))
  );
}

/** Whether an envoy.config.rbac.v3.Permission or Principal holds for allowed requests alone. */
function requiresAllow(condition: ProtoValue, extAuthz: string): boolean {
  const requires = (each: ProtoValue) => requiresAllow(each, extAuthz);
  const [all, any] = [/^and_/, /^or_/].map(kind => condition.names().filter(name => kind.test(name)));
  if (all?.length) return all.some(name => condition.items(name, name.slice('and_'.length)).some(requires));
  if (any?.length) return any.every(name => condition.items(name, name.slice('or_'.length)).every(requires));
  const sourced = condition.field('sourced_metadata');
  // By default, the source is the dynamic metadata.
  if (sourced.isPresent && (sourced.field('metadata_source').choice({ DYNAMIC: 0 }) ?? 0) !== 0) return false;
  const matcher = sourced.isPresent ? sourced.field('metadata_matcher') : condition.field('metadata');
  const value = matcher.field('value', 'string_match');
  const isOfAllow = isOfCheck(matcher, [allowKey, 'decision'], extAuthz);
  if (!value.isPresent || !isOfAllow || matcher.field('invert').flag() === true) return false;
  const matches = readStringMatcher(value);
  return matches('allow') === true && samples.every(each => matches(each) === false);
}

/** Whether an envoy.type.matcher.v3.MetadataMatcher reads one of these keys of the metadata of ext_authz. */
export function isOfCheck(
  matcher: ProtoValue,
  keys: readonly string[],
  extAuthz: string = filterNames.extAuthz,
): boolean {
  const [key = '', ...deeper] = matcher.items('path').map(each => each.field('key').text());
  return (
    keys.includes(key) &&
    deeper.length === 0 &&
    [filterNames.extAuthz, extAuthz].includes(matcher.field('filter').text() ?? '')
  );
}
