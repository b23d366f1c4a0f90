// The chain of HTTP filters of a connection manager or of one of its upgrades; a filter is known by the type of its
// configuration, since its name is anybody's choice.
import type { ProtoValue } from './proto-value.ts';

export const filterTypes = {
  extAuthz: 'envoy.extensions.filters.http.ext_authz.v3.ExtAuthz',
  extAuthzPerRoute: 'envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute',
  filterConfig: 'envoy.config.route.v3.FilterConfig',
  headerMutation: 'envoy.extensions.filters.http.header_mutation.v3.HeaderMutation',
  headerMutationPerRoute: 'envoy.extensions.filters.http.header_mutation.v3.HeaderMutationPerRoute',
  rbac: 'envoy.extensions.filters.http.rbac.v3.RBAC',
  router: 'envoy.extensions.filters.http.router.v3.Router',
} as const;

const conditionalFilter = 'envoy.extensions.common.matching.v3.ExtensionWithMatcher';

export interface HttpFilter {
  readonly value: ProtoValue;
  readonly name: string;
  readonly type: string;
  readonly config: ProtoValue;
  /** Off where no route turns it on. */
  readonly isOff: boolean;
  /** Where a matcher stands that decides by request whether the filter runs. */
  readonly condition: ProtoValue | undefined;
}

export interface FilterChain {
  /** Where its list stands. */
  readonly value: ProtoValue;
  readonly filters: readonly HttpFilter[];
  /** The protocol for which it takes the place of the main chain. */
  readonly upgrade: string | undefined;
}

export function readFilterChain(list: ProtoValue, upgrade?: string): FilterChain {
  return { value: list, filters: list.items().map(readHttpFilter), upgrade };
}

function readHttpFilter(value: ProtoValue): HttpFilter {
  const outer = value.field('typed_config').any();
  const isConditional = outer.type === conditionalFilter;
  const inner = isConditional ? outer.message.field('extension_config').field('typed_config').any() : outer;
  const isCheck = inner.type === filterTypes.extAuthz;
  return {
    value,
    name: value.field('name').text() ?? '',
    type: isConditional && !isCheck ? outer.type : inner.type,
    config: isConditional && !isCheck ? outer.message : inner.message,
    isOff: value.field('disabled').flag() === true,
    condition: isConditional && isCheck ? outer.message : undefined,
  };
}

/** Whether a filter runs for what is routed through these scopes (from the widest to the narrowest), and who says so. */
export function stateOf(filter: HttpFilter, scopes: readonly ProtoValue[]): FilterState {
  const entries = scopes.map(scope => scope.field('typed_per_filter_config').entry(filter.name)).filter(isPresent);
  const narrowest = entries.at(-1);
  if (narrowest === undefined) return { runs: !filter.isOff, by: filter.value.field('disabled') };
  const { type, message } = narrowest.any();
  const switched = message.field('disabled');
  if (type === filterTypes.filterConfig && switched.flag() === true) return { runs: false, by: switched };
  // Of ext_authz: the narrowest of its own settings, and only that, says whether it asks.
  const own = filter.type === filterTypes.extAuthz ? routeSettingsOf(filter, scopes).at(-1) : undefined;
  const disabled = own?.field('disabled');
  if (disabled?.flag() === true) return { runs: false, by: disabled };
  return { runs: true, by: narrowest };
}

export interface FilterState {
  readonly runs: boolean;
  readonly by: ProtoValue;
}

/** What these scopes set for the filter, from the widest to the narrowest. */
export function routeSettingsOf(filter: HttpFilter, scopes: readonly ProtoValue[]): readonly ProtoValue[] {
  return scopes.flatMap(scope => {
    const { type, message } = scope.field('typed_per_filter_config').entry(filter.name).any();
    const own = type === filterTypes.filterConfig ? message.field('config').any().message : message;
    return own.isPresent ? [own] : [];
  });
}

function isPresent(value: ProtoValue): boolean {
  return value.isPresent;
}
