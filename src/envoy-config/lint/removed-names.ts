// Finds out which header names of a client Envoy refuses or removes before the check, from headers or from trailers.
import { filterTypes, type HttpFilter, routeSettingsOf, stateOf } from './http-filter.ts';
import type { AuthzFilter } from './lint-model.ts';
import type { ConnectionManager } from './listener.ts';
import { readStringMatcher } from './name-pattern.ts';
import type { ProtoValue } from './proto-value.ts';

const earlyHeaderMutation = 'envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation';

type Removal = (name: string) => boolean;

function underscoresAction({ value }: ConnectionManager): ProtoValue {
  return value.field('common_http_protocol_options', 'headers_with_underscores_action');
}

export function refusesUnderscores(manager: ConnectionManager): boolean {
  const action = underscoresAction(manager).choice({ REJECT_REQUEST: 1, DROP_HEADER: 2 });
  return action === 1 || action === 2;
}

/** Whether a name is removed from every request before each of these checks. */
export function readRemovals(manager: ConnectionManager, checks: readonly AuthzFilter[]): Removal {
  const early = manager.value
    .items('early_header_mutation_extensions')
    .map(each => each.field('typed_config').any())
    .flatMap(({ type, message }) => (type === earlyHeaderMutation ? message.items('mutations') : []));
  const isRemovedEarly = anyOf(early);
  const byChain = checks.map(({ chain, filter }) =>
    filterRemovals(chain.filters.slice(0, chain.filters.indexOf(filter)), 'request_mutations', manager),
  );
  const byRoute = manager.protectedScopes.map(scopes => routeRemovals(checks, scopes));
  return name =>
    isRemovedEarly(name) ||
    byChain.every(removes => removes(name)) ||
    (byRoute.length > 0 && byRoute.every(removes => removes(name)));
}

/** Whether a name is removed from the requests of an unchecked route with these scopes. */
export function readOpenRemovals(
  manager: ConnectionManager,
  checks: readonly AuthzFilter[],
  scopes: readonly ProtoValue[],
): Removal {
  const removesAlways = readRemovals(manager, checks);
  const isRemovedByRoute = routeRemovals(checks, scopes);
  const exact = new Set(
    scopes.flatMap(scope => scope.items('request_headers_to_remove')).map(name => name.text()?.toLowerCase()),
  );
  return name => removesAlways(name) || exact.has(name) || isRemovedByRoute(name);
}

/** By the settings that these scopes have for the filters of each chain. */
function routeRemovals(checks: readonly AuthzFilter[], scopes: readonly ProtoValue[]): Removal {
  const byRoute = checks.map(({ chain }) =>
    anyOf(
      chain.filters
        .filter(filter => filter.type === filterTypes.headerMutation && stateOf(filter, scopes).runs)
        .flatMap(filter => routeSettingsOf(filter, scopes))
        .flatMap(settings => settings.field('mutations').items('request_mutations')),
    ),
  );
  return name => byRoute.every(removes => removes(name));
}

/** Whether a name is removed from the trailers of every request that is checked. */
export function readTrailerRemovals({ chain, manager }: AuthzFilter): Removal {
  return filterRemovals(chain.filters, 'request_trailers_mutations', manager);
}

/** Counts the filters that no protected route turns off. */
function filterRemovals(filters: readonly HttpFilter[], list: string, { protectedScopes }: ConnectionManager): Removal {
  const active = filters
    .filter(({ type, isOff }) => type === filterTypes.headerMutation && !(isOff && protectedScopes.length === 0))
    .filter(filter => protectedScopes.every(scopes => stateOf(filter, scopes).runs));
  return anyOf(active.flatMap(({ config }) => config.field('mutations').items(list)));
}

function anyOf(mutations: readonly ProtoValue[]): Removal {
  const removals = mutations.map(readRemoval);
  return name => removals.some(removes => removes(name));
}

function readRemoval(mutation: ProtoValue): Removal {
  const exact = mutation.field('remove').text()?.toLowerCase();
  const onMatch = mutation.field('remove_on_match', 'key_matcher');
  if (!onMatch.isPresent) return name => name === exact;
  const pattern = readStringMatcher(onMatch);
  return name => pattern(name) ?? true;
}
