// Which header names of a client are gone before a request is checked or forwarded: refused, or removed from headers or trailers.
import type { ConnectionManager } from './connection-manager.ts';
import { filterTypes } from './http-filter.ts';
import type { AuthzFilter } from './lint-model.ts';
import { readStringMatcher } from './name-pattern.ts';
import type { ProtoValue } from './proto-value.ts';

const underscores = { ALLOW: 0, REJECT_REQUEST: 1, DROP_HEADER: 2 };
const earlyHeaderMutation = 'envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation';

export function underscoresAction({ value }: ConnectionManager): ProtoValue {
  return value.field('common_http_protocol_options').field('headers_with_underscores_action');
}

export function refusesUnderscores(manager: ConnectionManager): boolean {
  const action = underscoresAction(manager).choice(underscores);
  return action === underscores.REJECT_REQUEST || action === underscores.DROP_HEADER;
}

/** Whether a name is removed from every request before any of these checks. */
export function readRemovals(manager: ConnectionManager, checks: readonly AuthzFilter[]): (name: string) => boolean {
  const early = manager.value
    .field('early_header_mutation_extensions')
    .items()
    .map(each => each.field('typed_config').any())
    .filter(({ type }) => type === earlyHeaderMutation)
    .flatMap(({ message }) => message.field('mutations').items());
  const everywhere = early.map(readRemoval);
  // The same by a filter, where it stands before each check.
  const byChain = checks.map(({ chain, filter }) =>
    headerMutations(chain.filters.slice(0, chain.filters.indexOf(filter)), 'request_mutations'),
  );
  return name =>
    everywhere.some(removes => removes(name)) || byChain.every(removals => removals.some(removes => removes(name)));
}

/** Whether a name is removed from the trailers of every request that the check is asked about. */
export function readTrailerRemovals({ chain }: AuthzFilter): (name: string) => boolean {
  const removals = headerMutations(chain.filters, 'request_trailers_mutations');
  return name => removals.some(removes => removes(name));
}

type Removal = (name: string) => boolean;

function headerMutations(filters: AuthzFilter['chain']['filters'], list: string): readonly Removal[] {
  return filters
    .filter(({ type, isOff }) => type === filterTypes.headerMutation && !isOff)
    .flatMap(({ config }) => config.field('mutations').field(list).items())
    .map(readRemoval);
}

function readRemoval(mutation: ProtoValue): Removal {
  const exact = mutation.field('remove').text()?.toLowerCase();
  const onMatch = mutation.field('remove_on_match').field('key_matcher');
  if (!onMatch.isPresent) return name => name === exact;
  const pattern = readStringMatcher(onMatch);
  return name => pattern(name) ?? true;
}
