// What Envoy serves without a check: public routes, the metadata document of RFC 9728, and the 404 for everything else.
import type { HostEntry } from '../../authz/places/host-place.ts';
import { filterNames, routeMutations } from './authz-filter.ts';
import { typed } from './extension.ts';
import { methodOverridePattern } from './method-override.ts';
import type { EnvoySettings, MetadataDocument, PublicRoute } from './settings.ts';
import { above, inline, type Members, type Tree } from './tree.ts';

type PublicPath = Pick<PublicRoute, 'path' | 'subtree' | 'characters'>;

const strictSegment = '[A-Za-z0-9._~:@-]+';
const dotlessSegment = '[.]*[A-Za-z0-9_~:@-][A-Za-z0-9._~:@-]*';
const wideSegment = toWideSegment();
const accountLabel = '[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?';
/** A method by which clients fetch a document. */
export const documentMethods = ['GET', 'HEAD'] as const;

export const uncheckedByExtAuthz = typed('filters.http.ext_authz.v3.ExtAuthzPerRoute', { disabled: true });

/** RE2: what lies under a public subtree, by its grammar. */
export const subtreePatterns = { strict: `(/${strictSegment})*`, rfc3986: `(/${wideSegment})*` } as const;

/** RE2: the paths of a public route, in the grammar of paths. One slash at the end is ignored, as in routes. */
export function publicPathPattern({ path, subtree, characters }: PublicPath): string {
  return `${literal(path)}${subtree ? subtreePatterns[characters] : ''}/?`;
}

/** The same where nothing resolves `..` before it chooses a route: a segment has a character that is no dot. */
export function dotlessPathPattern(route: PublicPath): string {
  return publicPathPattern(route).replace(strictSegment, dotlessSegment);
}

/**
 * RE2: a segment of `characters: rfc3986`, as authz/path.ts has it: pchar of RFC 3986 without `;`, encoded UTF-8, no encoded / \ % . ; ? and no
 * control character. At least one character is neither a dot nor of a block that has white space: servers drop dots and spaces at an end.
 */
function toWideSegment(): string {
  const [hex, next] = ['[0-9a-f]', '%[89ab][0-9a-f]'];
  const neutral = `[.]|%20|%c2%[ab]${hex}|%e1%9a${next}|%e2%8[01]${next}|%e3%80${next}|%ef%bb${next}`;
  const others = [
    "[a-z0-9_~:@!$&'()*+,=-]",
    `%2[1-46-9a-d]|%3[0-9ac-e]|%[46]${hex}|%5[0-9abd-f]|%7[0-9a-e]`,
    `%(?:c[3-9a-f]|d${hex})${next}`,
    `%e0%[ab]${hex}${next}|%e1%(?:[8ab]${hex}|9[0-9b-f])${next}|%e2%(?:8[2-9a-f]|[9ab]${hex})${next}`,
    `%e3%(?:8[1-9a-f]|[9ab]${hex})${next}|%e[4-9a-ce]${next}${next}|%ed%[89]${hex}${next}`,
    `%ef%(?:[89a]${hex}|b[0-9ac-f])${next}`,
    `%f0%[9ab]${hex}${next}${next}|%f[1-3]${next}${next}${next}|%f4%8${hex}${next}${next}`,
  ];
  return `(?i:(?:${neutral})*(?:(?:${others.join('|')})(?:${neutral})*)+)`;
}

/** RE2: the hosts of `account.hosts`, with any port. Letter case matters in the label of the account alone. */
export function hostPattern(hosts: readonly HostEntry[]): string {
  const names = hosts.map(entry =>
    entry.kind === 'literal' ? `(?i:${literal(entry.host)})` : `${accountLabel}(?i:${literal(entry.parent)})`,
  );
  return `(${names.join('|')})(:[0-9]*)?`;
}

/** The domains of an Envoy virtual host. `*` may cover several labels: account-authz refuses those. */
export function domainOf(entry: HostEntry): string {
  return entry.kind === 'literal' ? entry.host : `*${entry.parent}`;
}

/** The match of an Envoy route. `methods` undefined: all. */
export function openMatch(
  path: Members,
  methods: readonly string[] | undefined,
  hosts: readonly HostEntry[] | undefined,
): Members {
  const header = (name: string, regex: string): Tree => inline({ name, string_match: { safe_regex: { regex } } });
  const headers = [
    ...(methods === undefined ? [] : [header(':method', methods.join('|'))]),
    ...(hosts === undefined ? [] : [header(':authority', hostPattern(hosts))]),
  ];
  return { ...path, headers };
}

export function publicMatch(route: PublicRoute, { hosts }: Pick<EnvoySettings, 'hosts'>): Members {
  return openMatch({ safe_regex: inline({ regex: publicPathPattern(route) }) }, route.methods, hosts);
}

/** What Envoy removes on one kind of routes alone. `trailers` is the name of the header_mutation filter. */
export function routeFilters(settings: EnvoySettings, kind: 'checked' | 'public', trailers: string): Members {
  const mutations = { request_mutations: routeMutations(settings, kind) };
  const perRoute = typed('filters.http.header_mutation.v3.HeaderMutationPerRoute', { mutations });
  return { [trailers]: mutations.request_mutations.length === 0 ? undefined : perRoute };
}

/** Pages of every origin may read the document: it is public, and clients run in browsers too. */
export function metadataRoute({ path, host, json }: MetadataDocument, { hosts }: EnvoySettings): Members {
  const only = hosts && [{ kind: 'literal', host } as const];
  const set = (key: string, value: string): Tree =>
    inline({ header: { key, value }, append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' });
  return {
    name: 'protected-resource-metadata',
    match: openMatch({ path }, documentMethods, only),
    direct_response: { status: 200, body: { inline_string: json } },
    response_headers_to_add: [set('content-type', 'application/json'), set('access-control-allow-origin', '*')],
  };
}

/** For `max_direct_response_body_size_bytes`. Undefined: the default does. */
export function documentBytes({ metadata }: Pick<EnvoySettings, 'metadata'>): number | undefined {
  const bytes = Buffer.byteLength(metadata?.json ?? '');
  return bytes > 4096 ? bytes : undefined;
}

/** For a data plane that leaves the default in place: its Envoy would refuse all routes. */
export function documentProblem(settings: EnvoySettings): string | undefined {
  const bytes = documentBytes(settings);
  return bytes === undefined
    ? undefined
    : `the metadata document of protectedResource must have at most 4096 bytes, not ${bytes}: name fewer scopes or issuers`;
}

// RE2 counts about one instruction for each character, and Envoy allows 32,768 in a pattern.
const maxPatternLength = 16_384;

/** Before the public routes: a query parameter by which frameworks take another method is answered 404 there, as another method is. */
export function overrideRoutes({ publicRoutes }: EnvoySettings, guard?: string): readonly Members[] {
  const groups: string[] = [];
  for (const pattern of publicRoutes.map(publicPathPattern)) {
    const last = groups.at(-1);
    if (last === undefined || last.length + pattern.length > maxPatternLength) groups.push(pattern);
    else groups[groups.length - 1] = `${last}|${pattern}`;
  }
  const query = inline({ name: ':path', string_match: { safe_regex: { regex: methodOverridePattern } } });
  return groups.map(regex => ({
    name: 'public method override',
    match: { safe_regex: inline({ regex }), headers: [query] },
    direct_response: inline({ status: 404 }),
    typed_per_filter_config: unchecked(guard),
  }));
}

export const nothingElse = above('Deny by default. Nothing is behind this route, so there is nothing to check.', {
  name: 'nothing-else',
  match: inline({ prefix: '/' }),
  direct_response: inline({ status: 404 }),
  typed_per_filter_config: unchecked(),
});

/** Turns the check and the guard behind it off. */
export function unchecked(guard: string = filterNames.guard): Members {
  return { [filterNames.extAuthz]: uncheckedByExtAuthz, [guard]: typed('filters.http.rbac.v3.RBACPerRoute') };
}

function literal(text: string): string {
  return text.replaceAll('.', '\\.');
}
