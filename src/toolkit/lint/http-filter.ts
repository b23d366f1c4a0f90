// Reads a chain of HTTP filters. The type of its configuration identifies a filter, since its name is free.
import { memoized } from './memoized.ts';
import type { ProtoValue } from './proto-value.ts';
import type { ByName } from './resources.ts';

export const filterTypes = {
  extAuthz: 'envoy.extensions.filters.http.ext_authz.v3.ExtAuthz',
  filterConfig: 'envoy.config.route.v3.FilterConfig',
  headerMutation: 'envoy.extensions.filters.http.header_mutation.v3.HeaderMutation',
  rbac: 'envoy.extensions.filters.http.rbac.v3.RBAC',
  router: 'envoy.extensions.filters.http.router.v3.Router',
} as const;

const conditionalFilter = 'envoy.extensions.common.matching.v3.ExtensionWithMatcher';

export interface HttpFilter {
  readonly value: ProtoValue;
  readonly name: string;
  readonly type: string;
  readonly config: ProtoValue;
  /** Off unless a route turns it on. */
  readonly isOff: boolean;
  /** The matcher that decides per request whether the filter runs. */
  readonly condition: ProtoValue | undefined;
  /** Where its configuration comes from, if that is not in the file. */
  readonly discovery: ProtoValue | undefined;
}

export interface FilterChain {
  /** Its list of filters. */
  readonly value: ProtoValue;
  readonly filters: readonly HttpFilter[];
  /** The upgrade protocol for which it replaces the main chain. */
  readonly upgrade: string | undefined;
}

/** `discovered` has each envoy.config.core.v3.TypedExtensionConfig from a control plane. */
export function readFilterChain(list: ProtoValue, upgrade?: string, discovered?: ByName): FilterChain {
  return { value: list, filters: list.items().map(each => readHttpFilter(each, discovered)), upgrade };
}

function readHttpFilter(value: ProtoValue, discovered: ByName | undefined): HttpFilter {
  const discovery = value.field('config_discovery');
  const found = discovery.isPresent ? discovered?.get(value.field('name').text()) : undefined;
  const outer = (found ?? value).field('typed_config').any();
  const inner =
    outer.type === conditionalFilter ? outer.message.field('extension_config', 'typed_config').any() : outer;
  const { type, message } = inner.type === filterTypes.extAuthz ? inner : outer;
  return {
    value,
    name: value.field('name').text() ?? '',
    type,
    config: message,
    isOff: value.field('disabled').flag() === true,
    condition: message === outer.message ? undefined : outer.message,
    discovery: discovery.isPresent && found === undefined ? discovery : undefined,
  };
}

/** Whether a filter runs for a route with these scopes (from the widest to the narrowest), and which setting decides it. */
export function stateOf(filter: HttpFilter, scopes: readonly ProtoValue[]): { runs: boolean; by: ProtoValue } {
  const entries = scopes.map(scope => scope.field('typed_per_filter_config').entry(filter.name));
  const narrowest = entries.filter(({ isPresent }) => isPresent).at(-1);
  if (narrowest === undefined) return { runs: !filter.isOff, by: filter.value.field('disabled') };
  const { type, message } = narrowest.any();
  // For ext_authz, its narrowest own settings decide too.
  const own = filter.type === filterTypes.extAuthz ? routeSettingsOf(filter, scopes).slice(-1) : [];
  const off = [...(type === filterTypes.filterConfig ? [message] : []), ...own]
    .map(each => each.field('disabled'))
    .find(disabled => disabled.flag() === true);
  return { runs: off === undefined, by: off ?? narrowest };
}

/** The settings of these scopes for the filter, from the widest to the narrowest. */
export function routeSettingsOf(filter: HttpFilter, scopes: readonly ProtoValue[]): readonly ProtoValue[] {
  return scopes.flatMap(scope => settingsIn(scope)(filter.name));
}

/** The same message each time, since many routes are in one virtual host. */
const settingsIn = memoized((scope: ProtoValue) => {
  const known = new Map<string, readonly ProtoValue[]>();
  const read = (name: string): readonly ProtoValue[] => {
    const { type, message } = scope.field('typed_per_filter_config').entry(name).any();
    if (type !== filterTypes.filterConfig) return message.isPresent ? [message] : [];
    // An empty `config` turns a filter on with its own settings.
    const inner = message.field('config').any();
    return inner.type === '' ? [] : [inner.message];
  };
  return (name: string): readonly ProtoValue[] => {
    const found = known.get(name) ?? read(name);
    if (found.length > 0) known.set(name, found);
    return found;
  };
});
