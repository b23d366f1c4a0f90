// Rules for the headers of a request on its way: what no client may send past the check, and what only the check may set or remove.
import { type HeaderWay, kept, type Mutation } from './mutations.ts';
import { isPublic } from './open-route-rules.ts';
import { type Finding, ifAny, quoted, type Rules, when } from './rule.ts';

export const headerRules = {
  'owned-header-set': {
    what: 'Something other than the check sets an identity header, an account header, the token, a header that overrides path, method or host, or one that frames the body, in headers or trailers: an early mutation, a filter, `request_headers_to_add` on any level, a mirror policy, a filter of the cluster. Not where a later mutation before the check removes it',
    why: 'the service would take it for what account-authz verified, or serve another request than the checked one',
    fix: 'remove it: a client sends the token and the account, and only the check sets identity headers',
    find: ({ before, after, model: { names } }) =>
      [...setBefore(before), ...after].flatMap(each => {
        const meaning = each.sets && names.meaningOf(each.sets, after.includes(each));
        return when(meaning !== undefined, each.at, `sets ${quoted(each.sets ?? '')}, ${meaning}`);
      }),
  },
  'owned-header-removed': {
    what: 'A mutation behind the check removes an identity header, an account header, or the token where `token.forward` is on; or one before it a place of the token, a header of `account.headers`, or the `origin` of a page that sends a cookie',
    why: 'the service does not learn who calls, or account-authz gets no token and cannot compare the account that the request names',
    fix: 'remove the header from the list: account-authz removes the token itself',
    find: way => {
      const { needed, served } = way.model.names;
      return isChecked(way) ? [...removing(way.before, needed), ...removing(way.after, served)] : [];
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

// Further ones count as if they removed nothing.
const maxPatterns = 256;

/** Without what a later mutation before the check removes. */
function setBefore(mutations: readonly Mutation[]): readonly Mutation[] {
  const [patterns, names] = [[] as Mutation[], new Set<string>()];
  const keyOf = ({ isTrailer }: Mutation, name: string): string => `${isTrailer} ${name}`;
  return mutations.toReversed().filter(each => {
    const name = each.sets?.toLowerCase();
    if (each.exact !== undefined) names.add(keyOf(each, each.exact));
    else if (name === undefined && patterns.length < maxPatterns) patterns.push(each);
    return (
      name !== undefined &&
      !names.has(keyOf(each, name)) &&
      !patterns.some(other => other.isTrailer === each.isTrailer && other.removed([name]).length > 0)
    );
  });
}

function removing(mutations: readonly Mutation[], names: readonly string[]): readonly Finding[] {
  return mutations
    .filter(({ isTrailer }) => !isTrailer)
    .flatMap(each => ifAny(each.removed(names), each.at, 'removes'));
}
