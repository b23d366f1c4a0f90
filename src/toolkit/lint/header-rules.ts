// Rules for the headers of a request on its way: what no client may send past the check, and what only the check may set or remove.
import { type HeaderWay, kept, type Mutation } from './mutations.ts';
import { isPublic } from './open-route-rules.ts';
import type { OwnedNames } from './owned-names.ts';
import { type Finding, ifAny, quoted, type Rules } from './rule.ts';

export const headerRules = {
  'owned-header-set': {
    what: 'Something other than the check sets an identity header, an account header, the token, a header that overrides path, method or host, or one that frames the body, in headers or trailers: an early mutation, a filter, `request_headers_to_add` on any level, a mirror policy, a filter of the cluster. Not where a later mutation before the check removes it',
    why: 'the service would take it for what account-authz verified, or serve another request than the checked one',
    fix: 'remove it: a client sends the token and the account, and only the check sets identity headers',
    find: ({ before, after, model: { names } }) => [
      ...(isFirst.set(before) ? setting(before, names, false) : []),
      ...setting(after.filter(isNew.set), names, true),
    ],
  },
  'owned-header-removed': {
    what: 'A mutation behind the check removes an identity header, an account header, or the token where `token.forward` is on; or one before it a place of the token, a header of `account.headers`, or the `origin` of a page that sends a cookie',
    why: 'the service does not learn who calls, or account-authz gets no token and cannot compare the account that the request names',
    fix: 'remove the header from the list: account-authz removes the token itself',
    find: way => {
      const { needed, served } = way.model.names;
      if (!isChecked(way)) return [];
      return [
        ...(isFirst.removed(way.before) ? removing(way.before, needed) : []),
        ...removing(way.after.filter(isNew.removed), served),
      ];
    },
  },
  'owned-headers-kept': {
    what: 'Envoy does not remove headers under the prefix `identityHeaders` before the check, or headers that override path or method (x-original-url, x-rewrite-url, x-script-name, script-name, x-forwarded-prefix, x-http-method-override, x-http-method, x-method-override), with `account.hosts` also those that override the host (x-forwarded-host, forwarded, …), or other spellings of them (x.http.method); or, on a route of `public`, also the headers of `account.headers` and a header that may hold the token (`authorization`, `token.from`)',
    why: 'a client can claim any identity, frameworks use overrides in place of the checked path, method and host, interfaces such as CGI and WSGI read a dot and other signs as a hyphen, and the service may act on an account or a token that nobody checked',
    fix: 'remove the whole prefix and each override in `early_header_mutation_extensions`, with `remove_on_match` and [^a-z0-9] in place of each hyphen, and the others in a HeaderMutationPerRoute on the public route',
    find: way => {
      const { manager, target } = way;
      const [kind, at] = isPublic(way)
        ? (['publicly', target.scopes[2]?.field('typed_per_filter_config')] as const)
        : (['always', isChecked(way) ? manager.value.field('early_header_mutation_extensions') : undefined] as const);
      return at === undefined ? [] : ifAny(kept(way, kind), at, 'keeps', ' as a client sent it');
    },
  },
  'trailers-kept': {
    what: 'Identity headers, headers of `account.headers`, the token, or headers that override path, method or host are not removed from request trailers',
    why: 'a service that Envoy calls over HTTP/2, or with `enable_trailers`, gets the trailers unchecked, and some servers merge them into the headers',
    fix: 'add a header_mutation filter before ext_authz, with a `remove_on_match` for each of them in `request_trailers_mutations`, and leave it on for every route',
    find: way =>
      isChecked(way) || isPublic(way) ? ifAny(kept(way, 'inTrailers'), way.chain, 'keeps', ' as a trailer') : [],
  },
} as const satisfies Rules<HeaderWay>;

/** Whether a check runs, on a route that account-authz may allow. */
function isChecked({ check, target }: HeaderWay): boolean {
  return check !== undefined && target.protectedPath !== undefined;
}

/** Many ways share the mutations before the check, which are judged once. */
const isFirst = { set: firstTime<readonly Mutation[]>(), removed: firstTime<readonly Mutation[]>() };
/** Behind the check, each is judged by itself. */
const isNew = { set: firstTime<Mutation>(), removed: firstTime<Mutation>() };

function firstTime<Key extends object>(): (key: Key) => boolean {
  const seen = new WeakSet<Key>();
  return key => !seen.has(key) && seen.add(key) !== undefined;
}

/** Those that set what only the check may set, without what a later one before the check removes. */
function setting(mutations: readonly Mutation[], names: OwnedNames, isBehind: boolean): readonly Finding[] {
  const found = mutations.flatMap((each, place) => {
    const meaning = each.sets === undefined ? undefined : names.meaningOf(each.sets, isBehind);
    return meaning === undefined ? [] : [{ ...each, name: each.sets?.toLowerCase() ?? '', meaning, place }];
  });
  if (found.length === 0) return [];
  const [inHeaders, inTrailers] = isBehind ? [] : [false, true].map(each => lastRemovals(mutations, found, each));
  return found
    .filter(({ isTrailer, name, place }) => place > ((isTrailer ? inTrailers : inHeaders)?.get(name) ?? -1))
    .map(({ at, sets, meaning }) => ({ at, says: `sets ${quoted(sets ?? '')}, ${meaning}` }));
}

// Further ones count as if they removed nothing.
const maxPatterns = 256;

/** The place of the last mutation that removes each of the names. */
function lastRemovals(
  mutations: readonly Mutation[],
  found: readonly { name: string; isTrailer: boolean }[],
  isTrailer: boolean,
): ReadonlyMap<string, number> {
  const names = [...new Set(found.filter(each => each.isTrailer === isTrailer).map(({ name }) => name))];
  const last = new Map<string, number>();
  let patterns = 0;
  for (const [place, each] of mutations.entries()) {
    if (names.length === 0 || each.isTrailer !== isTrailer || each.sets !== undefined) continue;
    if (each.exact === undefined) patterns += 1;
    const removed = each.exact === undefined ? (patterns > maxPatterns ? [] : each.removed(names)) : [each.exact];
    for (const name of removed) last.set(name, place);
  }
  return last;
}

function removing(mutations: readonly Mutation[], names: readonly string[]): readonly Finding[] {
  return mutations
    .filter(({ isTrailer }) => !isTrailer)
    .flatMap(each => ifAny(each.removed(names), each.at, 'removes'));
}
