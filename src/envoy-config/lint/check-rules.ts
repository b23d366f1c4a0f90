// Rules for the ext_authz filter: it must check every request, fail closed and apply the response as intended.
import { authzCall, filterNames, seconds } from '../authz-filter.ts';
import { mutablePattern } from '../headers.ts';
import { isGuarded } from './guard.ts';
import { filterTypes, routeSettingsOf } from './http-filter.ts';
import type { AuthzFilter } from './lint-model.ts';
import type { ProtoValue } from './proto-value.ts';
import { ifPresent, ifTrue, type Rules, unless, unlessTrue, when } from './rule.ts';

const maxTimeoutSeconds = 2;
const denominators = { HUNDRED: 0, TEN_THOUSAND: 1, MILLION: 2 };
const wholes = [100, 10_000, 1_000_000];

export const checkRules = {
  'failure-mode-allow': {
    what: '`failure_mode_allow` is true',
    why: 'Envoy forwards each request that it cannot check, with identity headers that the client can forge',
    fix: 'write `failure_mode_allow: false`',
    find: ({ settings }) => ifTrue(settings.field('failure_mode_allow')),
  },
  'failure-mode-header': {
    what: '`failure_mode_allow_header_add` is true',
    why: 'it adds a header to requests that Envoy forwarded unchecked: there must be none, and a client can send that header itself',
    fix: 'remove it',
    find: ({ settings }) => ifTrue(settings.field('failure_mode_allow_header_add')),
  },
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
  'filter-optional': {
    what: '`is_optional` of the filter is true',
    why: 'an Envoy that is built without ext_authz starts without the filter, and checks nothing',
    fix: 'remove it',
    find: ({ filter }) => ifTrue(filter.value.field('is_optional')),
  },
  'status-on-error': {
    what: '`status_on_error` is missing or not 503',
    why: 'an outage of account-authz looks like a refusal (403 by default): clients do not retry and no alert fires',
    fix: 'write `status_on_error: { code: ServiceUnavailable }`',
    find: ({ settings }) => {
      const status = settings.field('status_on_error');
      return unless(status.field('code').choice({ ServiceUnavailable: 503 }) === 503, status, 'is not 503');
    },
  },
  'check-timeout': {
    what: '`grpc_service.timeout` is missing, zero or above 2 s',
    why: 'the default of 0.2 s is too short for a new connection; without a limit, requests queue behind a check that hangs',
    fix: `write \`timeout: ${seconds(authzCall.timeoutMs)}\``,
    find: ({ service }) => {
      const timeout = service.field('timeout');
      const seconds = timeout.seconds();
      return [
        ...when(service.isPresent && !timeout.isPresent, timeout, 'is missing'),
        ...when(seconds === 0, timeout, 'is zero, which means no limit or an immediate error'),
        ...when((seconds ?? 0) > maxTimeoutSeconds, timeout, `is longer than ${maxTimeoutSeconds} s`),
      ];
    },
  },
  'filter-enabled': {
    what: '`filter_enabled` is below 100 % or can be changed at run time',
    why: 'Envoy does not check the other requests',
    fix: 'remove it',
    find: ({ settings }) => {
      const enabled = settings.field('filter_enabled');
      const hasKey = enabled.field('runtime_key').isPresent;
      return when(isPartial(enabled), enabled, hasKey ? 'is a share that can be changed at run time' : 'is not 100 %');
    },
  },
  'filter-enabled-metadata': {
    what: '`filter_enabled_metadata` is set, other than by a CUSTOM policy of Istio with the guard behind the check',
    why: 'Envoy does not check a request without the metadata',
    fix: 'remove it; with Istio, add the rbac filter that `render istio` writes after ext_authz',
    find: check => (isLeftToPolicy(check) ? [] : ifPresent(check.settings.field('filter_enabled_metadata'))),
  },
  'deny-at-disable': {
    what: '`filter_enabled` or `filter_enabled_metadata` is used without `deny_at_disable`, other than by a CUSTOM policy of Istio with the guard behind the check',
    why: 'Envoy forwards a request for which the filter is not enabled, instead of refusing it',
    fix: 'remove these settings, or add `deny_at_disable: { default_value: true }`',
    find: check => {
      const { settings } = check;
      const hasCondition = settings.field('filter_enabled_metadata').isPresent && !isLeftToPolicy(check);
      const skipsSome = hasCondition || isPartial(settings.field('filter_enabled'));
      const deny = settings.field('deny_at_disable');
      return unless(!skipsSome || deny.field('default_value').flag() === true, deny, 'is not true');
    },
  },
  'shadow-mode': {
    what: '`shadow_mode` is true',
    why: 'Envoy refuses no request',
    fix: 'remove it when the trial run is over',
    find: ({ settings }) => ifTrue(settings.field('shadow_mode')),
  },
  'clear-route-cache': {
    what: '`clear_route_cache` is true, other than where the routes tell requests apart by identity headers',
    why: 'after the check, a request can move to a route other than the checked one',
    fix: 'write `clear_route_cache: false`',
    find: check => (isRoutedByIdentity(check) ? [] : ifTrue(check.settings.field('clear_route_cache'))),
  },
  'transport-api-version': {
    what: '`transport_api_version` is V2',
    why: 'account-authz and Envoy since 1.18 support only version 3 of the protocol, so every check would fail',
    fix: 'write `transport_api_version: V3`',
    find: ({ settings }) => {
      const version = settings.field('transport_api_version');
      return when(![undefined, 0, 2].includes(version.choice({ AUTO: 0, V2: 1, V3: 2 })), version, 'is not V3');
    },
  },
  'google-grpc': {
    what: '`google_grpc` is used',
    why: 'it has no retry policy, circuit breaker or `max_receive_message_length`, so each restart of account-authz fails requests',
    fix: 'use `envoy_grpc` with a cluster',
    find: ({ service }) => ifPresent(service.field('google_grpc')),
  },
  'request-body': {
    what: '`with_request_body` is set, on the filter or on a route',
    why: 'Envoy buffers the body of each request before the check, and account-authz does not read it',
    fix: 'remove it',
    find: check =>
      [check.settings, ...checkSettings(check)].flatMap(each => ifPresent(each.field('with_request_body'))),
  },
  'check-service-override': {
    what: 'A route sends the check to another service (`check_settings.grpc_service` or `http_service`)',
    why: 'that service decides in place of account-authz, and Envoy releases before August 2026 use freed memory there (CVE-2026-47205)',
    fix: 'remove it',
    find: check =>
      checkSettings(check).flatMap(each =>
        ['grpc_service', 'http_service'].flatMap(name => ifPresent(each.field(name))),
      ),
  },
  'metadata-ingestion': {
    what: '`enable_dynamic_metadata_ingestion` is false and an rbac filter after the check reads its metadata',
    why: 'the rbac filter decides on metadata that is missing, or that another filter wrote',
    fix: 'write `enable_dynamic_metadata_ingestion: true`',
    find: ({ settings, later, filter }) => {
      const ingestion = settings.field('enable_dynamic_metadata_ingestion');
      const readers = later.filter(
        ({ type, config }) =>
          type === filterTypes.rbac && config.holds(text => text === filterNames.extAuthz || text === filter.name),
      );
      return when(ingestion.flag() === false && readers.length > 0, ingestion, 'is false');
    },
  },
  'validate-mutations': {
    what: '`validate_mutations` is missing or false',
    why: 'Envoy passes on a line break in a header of an answer to the client or the service: response splitting',
    fix: 'write `validate_mutations: true`',
    find: ({ settings }) => unlessTrue(settings.field('validate_mutations')),
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

const fixedConditions: ReadonlySet<string> = new Set(
  'prefix path path_separated_prefix safe_regex case_sensitive query_parameters headers'.split(' '),
);

/**
 * Whether the check can move a request only to a route that asks for the identity it has set. What it changes are headers: a route may
 * ask for a value of an identity header, and for nothing else that an answer changes, `authorization` for example.
 */
function isRoutedByIdentity({ manager, policy }: AuthzFilter): boolean {
  const changed = new RegExp(mutablePattern(policy.headers));
  const isSafe = (condition: ProtoValue): boolean => {
    const name = condition.field('name').text()?.toLowerCase() ?? '';
    if (!changed.test(name)) return true;
    const isInverted = ['invert_match', 'treat_missing_header_as_empty'].some(
      each => condition.field(each).flag() === true,
    );
    return name.startsWith(policy.identityPrefix) && condition.field('string_match').isPresent && !isInverted;
  };
  const matches = manager.hosts.flatMap(({ value }) => value.items('routes')).map(route => route.field('match'));
  return (
    manager.dynamic.length === 0 &&
    !manager.hosts.some(({ value }) => value.field('matcher').isPresent) &&
    matches.every(
      match => match.names().every(name => fixedConditions.has(name)) && match.items('headers').every(isSafe),
    ) &&
    matches.some(match =>
      match.items('headers').some(each => changed.test(each.field('name').text()?.toLowerCase() ?? '')),
    )
  );
}

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
