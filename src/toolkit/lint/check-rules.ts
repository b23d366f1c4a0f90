// Rules for the ext_authz filter: it must check every request, fail closed and apply the response as intended.
import { allowKey } from '../../authz/principal.ts';
import { isMutable } from '../../headers/headers.ts';
import { isGuarded, isOfCheck } from './guard.ts';
import { filterTypes, routeSettingsOf } from './http-filter.ts';
import type { AuthzFilter } from './lint-model.ts';
import type { ConnectionManager } from './listener.ts';
import { memoized } from './memoized.ts';
import type { ProtoValue } from './proto-value.ts';
import { ifPresent, ifTrue, type Rules, when } from './rule.ts';

const denominators = { HUNDRED: 0, TEN_THOUSAND: 1, MILLION: 2 };
const wholes = [100, 10_000, 1_000_000];

export const checkRules = {
  'foreign-check-same-name': {
    what: 'An ext_authz filter beside the check has its name, and asks another service',
    why: 'Envoy applies settings of a route to both, and Istio merges what is rendered for one into both: one of them is off, or asks the wrong service',
    fix: 'give each filter a name of its own, or leave one ext_authz on this workload',
    find: ({ chain, filter, service }) => {
      const asks = (config: ProtoValue) => config.field('grpc_service', 'envoy_grpc', 'cluster_name').text();
      const own = service.field('envoy_grpc', 'cluster_name').text();
      return chain.filters
        .filter(each => each.type === filterTypes.extAuthz && each.name === filter.name && asks(each.config) !== own)
        .map(({ value }) => ({ at: value.field('name'), says: 'is also the name of the check' }));
    },
  },
  'conditional-check': {
    what: 'A matcher (ExtensionWithMatcher) decides by request whether the check runs, `filter_enabled` is below 100 % or can be changed at run time, or `filter_enabled_metadata` is set, other than as `render` writes it or by a CUSTOM policy of Istio with the guard behind the check',
    why: 'Envoy does not check the other requests, and a client may choose what a matcher reads',
    fix: 'remove it; with Istio, add the rbac filter that `render istio` writes after ext_authz',
    find: check => {
      const enabled = check.settings.field('filter_enabled');
      const hasKey = enabled.field('runtime_key').isPresent;
      return [
        ...when(true, check.filter.condition, 'makes the check depend on a matcher'),
        ...when(isPartial(enabled), enabled, hasKey ? 'is a share that can be changed at run time' : 'is not 100 %'),
        ...(isLeftToPolicy(check) || isUnasked(check)
          ? []
          : ifPresent(check.settings.field('filter_enabled_metadata'))),
      ];
    },
  },
  'clear-route-cache': {
    what: '`clear_route_cache` is true, other than where the routes tell requests apart by identity headers',
    why: 'after the check, a request can move to a route other than the checked one',
    fix: 'write `clear_route_cache: false`',
    find: check => ifTrue(check.settings.field('clear_route_cache')).filter(() => !isRoutedByIdentity(check)),
  },
  'check-service-override': {
    what: 'A route sends the check to another service (`check_settings.grpc_service` or `http_service`), or the body with it (`with_request_body`)',
    why: 'that service decides in place of account-authz, and Envoy releases before August 2026 use freed memory there (CVE-2026-47205); a body is buffered, and account-authz does not read it',
    fix: 'remove it',
    find: check =>
      checkSettings(check).flatMap(each =>
        ['grpc_service', 'http_service', 'with_request_body'].flatMap(name => ifPresent(each.field(name))),
      ),
  },
} as const satisfies Rules<AuthzFilter>;

/** Whether a policy in front decides what is checked, as a CUSTOM policy of Istio does, and the guard refuses what was not. */
function isLeftToPolicy(check: AuthzFilter): boolean {
  const { manager, chain, filter, settings } = check;
  const condition = settings.field('filter_enabled_metadata', 'filter').text();
  const earlier = chain.filters.slice(0, chain.filters.indexOf(filter));
  const policy = earlier.find(({ type, name }) => type === filterTypes.rbac && name === condition);
  const isPolicy = policy?.config.field('shadow_rules').isPresent === true;
  return isPolicy && manager.protectedTargets.length > 0 && isGuarded(check);
}

/** Whether the condition is only that nothing else has written what an allow of account-authz has, and refuses a request otherwise. */
function isUnasked({ settings }: AuthzFilter): boolean {
  const matcher = settings.field('filter_enabled_metadata');
  const refuses = settings.field('deny_at_disable', 'default_value').flag() === true;
  const isAbsence = matcher.field('invert').flag() === true && matcher.field('value', 'present_match').flag() === true;
  return refuses && isAbsence && isOfCheck(matcher, [allowKey]);
}

const fixedConditions: ReadonlySet<string> = new Set(
  'prefix path path_separated_prefix safe_regex case_sensitive query_parameters headers'.split(' '),
);

/**
 * Whether the check can move a request only to a route that asks for the identity it has set. What it changes are headers: a route may
 * ask for a value of an identity header, and for nothing else that an answer changes, `authorization` for example.
 */
function isRoutedByIdentity({ manager, policy }: AuthzFilter): boolean {
  const nameIn = (condition: ProtoValue): string => condition.field('name').text()?.toLowerCase() ?? '';
  const isChanged = (condition: ProtoValue): boolean => isMutable(policy.headers, nameIn(condition));
  const isSafe = (condition: ProtoValue): boolean => {
    if (!isChanged(condition)) return true;
    const isInverted = ['invert_match', 'treat_missing_header_as_empty'].some(
      each => condition.field(each).flag() === true,
    );
    return (
      nameIn(condition).startsWith(policy.identityPrefix) && condition.field('string_match').isPresent && !isInverted
    );
  };
  const matches = matchesOf(manager);
  return (
    manager.dynamic.length === 0 &&
    !manager.hosts.some(({ value }) => value.field('matcher').isPresent) &&
    matches.every(
      match => match.names().every(name => fixedConditions.has(name)) && match.items('headers').every(isSafe),
    ) &&
    matches.some(match => match.items('headers').some(isChanged))
  );
}

const matchesOf = memoized(({ hosts }: ConnectionManager) =>
  hosts.flatMap(({ value }) => value.items('routes')).map(route => route.field('match')),
);

/** Whether an envoy.config.core.v3.RuntimeFractionalPercent is below 100 %, or may become so at run time. */
function isPartial(share: ProtoValue): boolean {
  if (!share.isPresent) return false;
  const whole = wholes[share.field('default_value', 'denominator').choice(denominators) ?? denominators.HUNDRED];
  const numerator = share.field('default_value', 'numerator').number() ?? 0;
  return whole === undefined || numerator < whole || share.field('runtime_key').isPresent;
}

/** The envoy.extensions.filters.http.ext_authz.v3.CheckSettings of all scopes of protected routes. */
function checkSettings({ manager, filter }: AuthzFilter): readonly ProtoValue[] {
  const settings = manager.protectedScopes.flatMap(scopes => routeSettingsOf(filter, scopes));
  return settings.map(each => each.field('check_settings'));
}
