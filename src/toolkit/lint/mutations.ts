// The header mutations that a request of each route meets, in Envoy's order: what the check sees has met those before it.
import { type Cluster, readProtocolOptions } from './cluster.ts';
import { filterTypes, type HttpFilter, readFilterChain, routeSettingsOf, stateOf } from './http-filter.ts';
import type { AuthzFilter, LintModel } from './lint-model.ts';
import type { ConnectionManager, RouteTarget } from './listener.ts';
import { readRemoval, without } from './name-pattern.ts';
import type { OwnedNames } from './owned-names.ts';
import type { ProtoValue } from './proto-value.ts';

export interface Mutation {
  readonly at: ProtoValue;
  readonly isTrailer: boolean;
  /** The name that it sets. */
  readonly sets: string | undefined;
  /** The name that it removes, where it has no pattern. */
  readonly exact?: string | undefined;
  /** Those of these names that it removes. */
  removed(names: readonly string[]): readonly string[];
}

/** What a request of a route meets in one of the filter chains. */
export interface HeaderWay {
  readonly model: LintModel;
  readonly manager: ConnectionManager;
  readonly target: RouteTarget;
  readonly chain: ProtoValue;
  /** Undefined if none runs; then all mutations are before it. */
  readonly check: AuthzFilter | undefined;
  readonly before: readonly Mutation[];
  readonly after: readonly Mutation[];
  readonly held: ReturnType<OwnedNames['held']>;
}

const earlyHeaderMutation = 'envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation';
// The lists of routes, of mirrors, of rate limits (`request_headers_to_add_when_not_enforced`) and of header_mutation.
const listName = /^request_(?:headers_to_(?:add|remove)\w*|(?:headers_|trailers_)?mutations)$/;

/** From every listener that is not for outbound traffic. */
export function readHeaderWays(model: LintModel): readonly HeaderWay[] {
  return model.managers.filter(({ isOutbound }) => !isOutbound).flatMap(manager => readWays(model, manager));
}

function readWays(model: LintModel, manager: ConnectionManager): readonly HeaderWay[] {
  const checks = model.guarded.find(each => each.manager === manager)?.checks ?? [];
  const hasTrustedProxy = (manager.value.field('xff_num_trusted_hops').number() ?? 0) > 0;
  const held = model.names.held(refusesUnderscores(manager), hasTrustedProxy);
  const isWidestFirst = manager.routes.field('most_specific_header_mutations_wins').flag() === true;
  return manager.chains.flatMap(({ value: chain, filters }) => {
    const inChain = new Map<readonly ProtoValue[], Pick<HeaderWay, 'check' | 'before' | 'after'>>();
    const read = (scopes: readonly ProtoValue[]) => {
      const check = checks.find(each => each.chain.value === chain && stateOf(each.filter, scopes).runs);
      const end = check === undefined ? filters.length : filters.indexOf(check.filter);
      const after = filters.slice(end).flatMap(each => mutationsOf(each, scopes));
      return { check, before: mutationsBefore(manager, filters.slice(0, end), scopes), after };
    };
    const seen = { open: new Set(), protected: new Set() };
    return manager.targets.flatMap((target): readonly HeaderWay[] => {
      const { scopes, filterScopes, action, upstream: cluster, protectedPath } = target;
      const found = inChain.get(filterScopes) ?? read(filterScopes);
      inChain.set(filterScopes, found);
      const levels = (isWidestFirst ? scopes : scopes.toReversed()).flatMap(mutationsOfScope);
      const copies = known.get(action) ?? action.items('request_mirror_policies').flatMap(mutationsIn);
      known.set(action, copies);
      const upstream = filtersOf(cluster).flatMap(each => mutationsOf(each, filterScopes));
      const last = [...levels, ...copies.filter(({ sets }) => sets !== undefined), ...upstream];
      const { check, before, after } = found;
      // Checked routes with nothing of their own are alike: a file may have 500,000 of them.
      const alike = protectedPath === undefined ? seen.open : seen.protected;
      if (check !== undefined && last.length === 0 && alike.has(found)) return [];
      if (last.length === 0) alike.add(found);
      const all = { model, manager, target, chain, check, held };
      return check === undefined
        ? [{ ...all, before: last.length === 0 ? before : [...before, ...last], after: [] }]
        : [{ ...all, before, after: [...after, ...last] }];
    });
  });
}

export function refusesUnderscores({ value }: ConnectionManager): boolean {
  const action = value.field('common_http_protocol_options', 'headers_with_underscores_action');
  return [1, 2].includes(action.choice({ REJECT_REQUEST: 1, DROP_HEADER: 2 }) ?? 0);
}

/** On one level, Envoy removes before it adds. */
function mutationsOfScope(scope: ProtoValue): readonly Mutation[] {
  const lists = scope.present('request_headers_to_remove', 'request_headers_to_add');
  if (lists.length === 0) return [];
  return lists
    .flatMap(readList)
    .sort((one, other) => Number(one.sets !== undefined) - Number(other.sets !== undefined));
}

/** The HTTP filters of a cluster. */
function filtersOf(cluster: Cluster | undefined): readonly HttpFilter[] {
  if (cluster === undefined) return [];
  const filters =
    filtersByCluster.get(cluster) ??
    readProtocolOptions(cluster).flatMap(options => readFilterChain(options.field('http_filters')).filters);
  filtersByCluster.set(cluster, filters);
  return filters;
}

const filtersByCluster = new WeakMap<Cluster, readonly HttpFilter[]>();

/** Early ones, and those of these filters. */
function mutationsBefore({ value }: ConnectionManager, filters: readonly HttpFilter[], scopes: readonly ProtoValue[]) {
  const early =
    known.get(value) ??
    value
      .items('early_header_mutation_extensions')
      .map(each => each.field('typed_config').any())
      .flatMap(({ type, message }) => (type === earlyHeaderMutation ? readList(message.field('mutations')) : []));
  known.set(value, early);
  return [...early, ...filters.flatMap(each => mutationsOf(each, scopes))];
}

/** Whether a name is removed from every request before this check. */
export function isRemovedBefore({ manager, chain, filter }: AuthzFilter, name: string): boolean {
  const filters = chain.filters.slice(0, chain.filters.indexOf(filter));
  return manager.protectedScopes.every(scopes =>
    mutationsBefore(manager, filters, scopes).some(each => !each.isTrailer && each.removed([name]).length > 0),
  );
}

// By filter, by connection manager, or by the action of a route.
const known = new WeakMap<object, readonly Mutation[]>();

/** Of a filter on a route with these scopes, those of a router's upstream filters included. */
function mutationsOf(filter: HttpFilter, scopes: readonly ProtoValue[]): readonly Mutation[] {
  if (filter.type === filterTypes.extAuthz) return [];
  if (filter.type === filterTypes.router)
    return readFilterChain(filter.config.field('upstream_http_filters')).filters.flatMap(each =>
      mutationsOf(each, scopes),
    );
  if (!stateOf(filter, scopes).runs) return [];
  const own = known.get(filter) ?? mutationsIn(filter.config);
  known.set(filter, own);
  const settings = routeSettingsOf(filter, scopes);
  const isWidestFirst = filter.config.field('most_specific_header_mutations_wins').flag() === true;
  return [...own, ...(isWidestFirst ? settings : settings.toReversed()).flatMap(mutationsIn)];
}

/** By the lists at any depth of a message. */
function mutationsIn(message: ProtoValue): readonly Mutation[] {
  return message.inner(name => listName.test(name)).flatMap(readList);
}

/** Of a list of HeaderValueOption, of HeaderMutation or of names to remove. */
export function readList(list: ProtoValue): readonly Mutation[] {
  const isTrailer = /trailer/i.test(String(list.path.at(-1)));
  return list.items().map(item => {
    const option = !item.isMapping || item.field('header').isPresent ? item : item.field('append');
    const key = item.isMapping ? option.field('header', 'key') : item;
    if (item.isMapping && option.isPresent) return { at: key, isTrailer, sets: key.text() ?? '', removed: () => [] };
    const onMatch = item.isMapping ? item.field('remove_on_match', 'key_matcher') : key.entry('');
    const exact = (item.isMapping ? item.field('remove') : item).text()?.toLowerCase();
    if (!onMatch.isPresent)
      return { at: item, isTrailer, sets: undefined, exact, removed: names => names.filter(name => name === exact) };
    return { at: item, isTrailer, sets: undefined, removed: readRemoval(onMatch) };
  });
}

const keptBy = new WeakMap<readonly Mutation[], Map<readonly string[], readonly string[]>>();

/** The names that a client can send past all mutations before the check, or on the whole way. */
export function kept({ before, after, held }: HeaderWay, kind: keyof HeaderWay['held']): readonly string[] {
  const names = held[kind];
  const isTrailer = kind === 'inTrailers';
  const left = (mutations: readonly Mutation[], all: readonly string[]) =>
    mutations.reduce(
      (names, each) => (names.length > 0 && each.isTrailer === isTrailer ? without(names, each.removed(names)) : names),
      all,
    );
  const byNames = keptBy.get(before) ?? new Map<readonly string[], readonly string[]>();
  keptBy.set(before, byNames);
  const found = byNames.get(names) ?? left(before, names);
  byNames.set(names, found);
  // No check sees trailers, so that they may be removed behind it.
  return isTrailer ? left(after, found) : found;
}
