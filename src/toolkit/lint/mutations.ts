// The header mutations that a request of each route meets, in Envoy's order: what the check sees has met those before it.
import { type Cluster, readProtocolOptions } from './cluster.ts';
import { filterTypes, type HttpFilter, readFilterChain, routeSettingsOf, stateOf } from './http-filter.ts';
import type { AuthzFilter, LintModel } from './lint-model.ts';
import type { ConnectionManager, RouteTarget } from './listener.ts';
import { memoized } from './memoized.ts';
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
  let followed = 0;
  const follow = (manager: ConnectionManager, count: number): boolean => {
    const isEnough = followed > maxFollowed;
    followed += count;
    if (followed > maxFollowed && !isEnough)
      manager.value.cannotBeJudged('has more filters and header mutations than the lint follows for so many routes');
    return followed <= maxFollowed;
  };
  return model.managers.filter(({ isOutbound }) => !isOutbound).flatMap(manager => readWays(model, manager, follow));
}

/** On all ways of a file together. */
const maxFollowed = 2_000_000;
/** Filters towards a cluster. */
const maxUncounted = 16;

function readWays(
  model: LintModel,
  manager: ConnectionManager,
  follow: (manager: ConnectionManager, count: number) => boolean,
): readonly HeaderWay[] {
  const checks = model.checksOf.get(manager) ?? [];
  const hasTrustedProxy = (manager.value.field('xff_num_trusted_hops').number() ?? 0) > 0;
  const held = model.names.held(refusesUnderscores(manager), hasTrustedProxy);
  const isWidestFirst = manager.routes.field('most_specific_header_mutations_wins').flag() === true;
  return manager.chains.flatMap(({ value: chain, filters }) => {
    const same = new Map<string, Pick<HeaderWay, 'check' | 'before' | 'after'>>();
    const inRouters = filters.flatMap(each => (each.type === filterTypes.router ? upstreamFilters(each) : [])).length;
    const read = memoized((scopes: readonly ProtoValue[]) => {
      if (inRouters > maxUncounted && !follow(manager, inRouters))
        return { check: undefined, before: none, after: none };
      const check = checks.find(each => each.chain.value === chain && stateOf(each.filter, scopes).runs);
      const end = check === undefined ? filters.length : filters.indexOf(check.filter);
      const lists = filters.map(each => mutationsOf(each, scopes));
      // The settings of most routes change nothing of this.
      const key = [end, ...lists.map(numberOf)].join();
      const [early, late] = [lists.slice(0, end), lists.slice(end)];
      const found = same.get(key) ?? { check, before: [earlyMutations(manager), ...early].flat(), after: late.flat() };
      if (!same.has(key)) follow(manager, found.before.length + found.after.length);
      same.set(key, found);
      return found;
    });
    const seen = { open: new Set(), protected: new Set() };
    return manager.targets.flatMap((target): readonly HeaderWay[] => {
      if (!follow(manager, 0)) return [];
      const { scopes, filterScopes, action, upstream: cluster, protectedPath } = target;
      const found = read(filterScopes);
      const levels = (isWidestFirst ? scopes : scopes.toReversed())
        .filter(each => listsIn(each).length > 0)
        .flatMap(mutationsOfScope);
      const ofCluster = cluster && mutationsOfCluster(cluster);
      if (ofCluster !== undefined && ofCluster.count > maxUncounted && !follow(manager, ofCluster.count)) return [];
      const upstream = ofCluster?.by(filterScopes) ?? [];
      const last = [
        ...levels,
        ...(action.field('request_mirror_policies').isPresent ? copiesOf(action) : []),
        ...upstream,
      ];
      const { check, before, after } = found;
      // Checked routes with nothing of their own are alike: a file may have 500,000 of them.
      const alike = protectedPath === undefined ? seen.open : seen.protected;
      if (check !== undefined && last.length === 0 && alike.has(found)) return [];
      if (last.length === 0) alike.add(found);
      else follow(manager, last.length + (check === undefined ? before : after).length);
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
const mutationsOfScope = memoized((scope: ProtoValue): readonly Mutation[] =>
  listsIn(scope)
    .flatMap(readList)
    .sort((one, other) => Number(one.sets !== undefined) - Number(other.sets !== undefined)),
);

const listsIn = memoized((scope: ProtoValue) => scope.present('request_headers_to_remove', 'request_headers_to_add'));

/** By the action of a route. */
const copiesOf = memoized((action: ProtoValue): readonly Mutation[] =>
  action
    .items('request_mirror_policies')
    .flatMap(mutationsIn)
    .filter(({ sets }) => sets !== undefined),
);

/** By the HTTP filters of a cluster, on a route with these scopes. */
const mutationsOfCluster = memoized((cluster: Cluster) => {
  const filters = readProtocolOptions(cluster).flatMap(each => readFilterChain(each.field('http_filters')).filters);
  const by = memoized((scopes: readonly ProtoValue[]) => filters.flatMap(each => mutationsOf(each, scopes)));
  return { by, count: filters.length };
});

const earlyMutations = memoized(({ value }: ConnectionManager): readonly Mutation[] =>
  value
    .items('early_header_mutation_extensions')
    .map(each => each.field('typed_config').any())
    .flatMap(({ type, message }) => (type === earlyHeaderMutation ? readList(message.field('mutations')) : [])),
);

/** Those of the names that some protected request still has at this check. */
export function keptBefore({ manager, chain, filter }: AuthzFilter, names: readonly string[]): readonly string[] {
  const filters = chain.filters.slice(0, chain.filters.indexOf(filter));
  const early = leftInHeaders(earlyMutations(manager))(names);
  if (early.length === 0) return early;
  const left = manager.protectedScopes.flatMap(scopes =>
    filters.reduce((all, each) => leftInHeaders(mutationsOf(each, scopes))(all), early),
  );
  return [...new Set(left)];
}

const none: readonly Mutation[] = [];
let count = 0;
const numberOf = memoized((_list: readonly Mutation[]): number => {
  count += 1;
  return count;
});

/** Of a filter on a route with these scopes, those of a router's upstream filters included. The same list where they say nothing about it. */
function mutationsOf(filter: HttpFilter, scopes: readonly ProtoValue[]): readonly Mutation[] {
  if (filter.type === filterTypes.extAuthz) return none;
  const upstream = filter.type === filterTypes.router ? upstreamFilters(filter) : [];
  if (upstream.length > 0) return upstream.flatMap(each => mutationsOf(each, scopes));
  if (filter.type === filterTypes.router || !stateOf(filter, scopes).runs) return none;
  const own = mutationsIn(filter.config);
  const settings = routeSettingsOf(filter, scopes);
  if (settings.length === 0) return own;
  const isWidestFirst = filter.config.field('most_specific_header_mutations_wins').flag() === true;
  return [...own, ...(isWidestFirst ? settings : settings.toReversed()).flatMap(mutationsIn)];
}

const upstreamFilters = memoized(
  ({ config }: HttpFilter) => readFilterChain(config.field('upstream_http_filters')).filters,
);

/** By the lists at any depth of a message. */
const mutationsIn = memoized((message: ProtoValue): readonly Mutation[] =>
  message.inner(name => listName.test(name)).flatMap(readList),
);

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

/** Those of the names that no mutation of the headers, or of the trailers, removes. */
function leftOf(mutations: readonly Mutation[], names: readonly string[], isTrailer: boolean): readonly string[] {
  return mutations.reduce(
    (left, each) => (left.length > 0 && each.isTrailer === isTrailer ? without(left, each.removed(left)) : left),
    names,
  );
}

const leftBy = (isTrailer: boolean) =>
  memoized((all: readonly Mutation[]) => memoized((names: readonly string[]) => leftOf(all, names, isTrailer)));
const [leftInHeaders, leftInTrailers] = [leftBy(false), leftBy(true)];

/** The names that a client can send past all mutations before the check, or on the whole way. */
export function kept({ before, after, held }: HeaderWay, kind: keyof HeaderWay['held']): readonly string[] {
  // No check sees trailers, so that they may be removed behind it.
  if (kind === 'inTrailers') return leftOf(after, leftInTrailers(before)(held[kind]), true);
  return leftInHeaders(before)(held[kind]);
}
