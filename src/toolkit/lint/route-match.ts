// Reads which paths and methods an Envoy route matches.

import { subtreePatterns } from '../envoy-settings/open-routes.ts';
import type { PublicRoute } from '../envoy-settings/settings.ts';
import { maxPatternLength, readRegex, readStringMatcher } from './name-pattern.ts';
import type { ProtoValue } from './proto-value.ts';

/** Paths in letters of this case: one path with or without a slash at its end, or also everything under it. */
export interface PathScope {
  /** Without a slash at its end. */
  readonly path: string;
  readonly subtree: boolean;
}

export interface EnvoyRouteMatch {
  /** `query` with its question mark; without one, conditions on it are met. */
  takes(path: string, query?: string): boolean;
  /** What its conditions on `:method` leave; undefined where that is every method, or a condition is not understood. */
  readonly methods: readonly string[] | undefined;
  /** Covers all its paths; undefined if no scope is known that does. */
  readonly scope: PathScope | undefined;
  /** Whether it depends on the path alone, so that no later route gets its paths. */
  readonly isSure: boolean;
  /** The same with the query. */
  readonly isSureByTarget: boolean;
  /** The grammar of all its paths; undefined if it takes others too. */
  readonly characters: PublicRoute['characters'] | undefined;
  /** For each alternative, the first segments of its paths; the last may be a prefix of a segment, undefined is any segment. */
  readonly starts: readonly PathStart[];
}

export type PathStart = readonly (string | undefined)[];
type PathMatch = Pick<EnvoyRouteMatch, 'takes' | 'starts' | 'scope' | 'characters'>;

const uriTemplateType = 'envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig';
const pathFields: ReadonlySet<string> = new Set(['prefix', 'path', 'path_separated_prefix', 'path_match_policy']);
const unconditional: ReadonlySet<string> = new Set([...pathFields, 'safe_regex', 'case_sensitive']);
// As `render` writes public routes: a path, perhaps followed by segments in the strict grammar.
const plainRegex = /^((?:\/(?:[\w~:@-]|\\\.)+)+)(\(\/\[A-Za-z0-9\._~:@-\]\+\)\*)?(\/\?)?$/;

const strictRest = /^(?:\/[A-Za-z0-9._~:@-]+)*\/?$/;

const unsure = { isSure: false, isSureByTarget: false, characters: undefined, scope: undefined };
const anyPath: EnvoyRouteMatch = { takes: () => true, methods: undefined, ...unsure, starts: [[]] };

export function readRouteMatch(match: ProtoValue): EnvoyRouteMatch {
  if (!match.isPresent) return anyPath;
  // CONNECT has no path.
  if (match.field('connect_matcher').isPresent)
    return { takes: () => false, methods: undefined, ...unsure, starts: [] };
  const paths = readPaths(match);
  const headers = match.items('headers');
  const methods = readMethods(headers);
  if (paths === undefined) {
    // Where the lint cannot tell, it takes any path.
    return headers.length === 0 ? anyPath : { ...anyPath, methods };
  }
  const targets = headersNamed(headers, ':path')
    .map(each => each.field('string_match'))
    .filter(({ isPresent }) => isPresent)
    .map(readStringMatcher);
  const isPlain = match.names().every(name => name === 'headers' || unconditional.has(name));
  const { takes, starts, scope, characters } = paths;
  return {
    // Every value may meet a pattern that is not understood.
    takes:
      targets.length === 0
        ? takes
        : (path, query) => takes(path) && (query === undefined || targets.every(each => each(path + query) ?? true)),
    starts,
    scope,
    characters,
    methods,
    isSure: isPlain && headers.length === 0,
    isSureByTarget: isPlain && targets.length === headers.length,
  };
}

/** By the prefix that its route matches, as Contour writes it. */
export function rewritesToItself(rewrite: ProtoValue): boolean {
  const [, kind] = /^(prefix|path)_?rewrite$/i.exec(String(rewrite.path.at(-1))) ?? [];
  if (kind === undefined) return false;
  const match = rewrite.parent.parent.field('match');
  const [prefix] = match.present('path', ...(kind === 'prefix' ? ['prefix', 'path_separated_prefix'] : []));
  return prefix?.text() === rewrite.text() && match.field('case_sensitive').flag() !== false;
}

/** The conditions on a header. */
function headersNamed(headers: readonly ProtoValue[], name: string): readonly ProtoValue[] {
  return headers.filter(each => each.field('name').text() === name && each.field('invert_match').flag() !== true);
}

function readMethods(headers: readonly ProtoValue[]): readonly string[] | undefined {
  const lists = headersNamed(headers, ':method').flatMap(each => {
    const matcher = each.field('string_match');
    // The other two are older, and Envoy 1.40 reads them still.
    const exact = matcher.field('exact').text() ?? each.field('exact_match').text();
    const regex = [matcher.field('safe_regex'), each.field('safe_regex_match')].find(({ isPresent }) => isPresent);
    const text = exact ?? regex?.field('regex').text() ?? '';
    if (!/^\(?[A-Z]+(?:\|[A-Z]+)*\)?$/.test(text)) return [];
    const names = text.replace(/[()]/g, '').split('|');
    // Envoy tells GET and get apart.
    return [matcher.field('ignore_case').flag() === true ? names.flatMap(name => [name, name.toLowerCase()]) : names];
  });
  const sets = lists.map(each => new Set(each));
  return lists.at(0)?.filter(method => sets.every(each => each.has(method)));
}

function readPaths(match: ProtoValue): PathMatch | undefined {
  const policy = match.field('path_match_policy');
  if (policy.isPresent) return readTemplate(policy);
  const [prefix, path, separated] = ['prefix', 'path', 'path_separated_prefix'].map(name => match.field(name).text());
  const isExact = match.field('case_sensitive').flag() !== false;
  if (prefix !== undefined) return readLiteral(prefix, isExact, prefixKind);
  if (path !== undefined) return readLiteral(path, isExact, pathKind);
  if (separated !== undefined) return readLiteral(separated, isExact, separatedKind);
  return readPattern(match.field('safe_regex'));
}

interface LiteralKind {
  readonly fits: (path: string, text: string) => boolean;
  readonly scopeOf: (text: string) => PathScope;
  readonly characters: 'strict' | undefined;
}

const prefixKind: LiteralKind = {
  fits: (path, text) => path.startsWith(text),
  scopeOf: text => ({ path: text.slice(0, Math.max(text.lastIndexOf('/'), 0)), subtree: true }),
  characters: undefined,
};
const pathKind: LiteralKind = {
  fits: (path, text) => path === text,
  scopeOf: text => ({ path: text.replace(/\/$/, ''), subtree: false }),
  characters: 'strict',
};
const separatedKind: LiteralKind = {
  fits: (path, text) => path === text || path.startsWith(`${text}/`),
  scopeOf: path => ({ path, subtree: true }),
  characters: undefined,
};

// What `takes` keeps is small: a file has a hundred thousand routes.
function readLiteral(text: string, isExact: boolean, { fits, scopeOf, characters }: LiteralKind): PathMatch {
  const cased = isExact ? text : text.toLowerCase();
  return {
    takes: path => fits(isExact ? path : path.toLowerCase(), cased),
    starts: [text.split('/').slice(1)],
    scope: isExact ? scopeOf(text) : undefined,
    characters: isExact ? characters : undefined,
  };
}

function readPattern(regex: ProtoValue): PathMatch | undefined {
  const text = regex.field('regex').text() ?? '';
  // The wide pattern has alternatives of its own.
  const narrowed = text.replaceAll(subtreePatterns.rfc3986, subtreePatterns.strict);
  const plain = text.length > maxPatternLength ? [null] : narrowed.split('|').map(each => plainRegex.exec(each));
  if (plain.includes(null)) return undefined;
  const scopes = plain.map(each => ({
    path: each?.[1]?.replaceAll('\\', '') ?? '',
    subtree: each?.[2] !== undefined,
    hasSlash: each?.[3] !== undefined,
  }));
  // Compiling takes a second for each MiB, so only the wide pattern is.
  const wide = narrowed === text ? undefined : readRegex(regex);
  const takes = (each: string): boolean =>
    wide?.(each) ??
    scopes.some(({ path, subtree, hasSlash }) => {
      const rest = each.startsWith(path) ? each.slice(path.length) : undefined;
      if (rest === undefined || rest === '') return rest === '';
      return (hasSlash || !rest.endsWith('/')) && (rest === '/' || (subtree && strictRest.test(rest)));
    });
  const [only] = scopes.length === 1 ? scopes : [];
  return {
    takes,
    starts: scopes.map(each => each.path.split('/').slice(1)),
    scope: only,
    characters: narrowed === text ? 'strict' : 'rfc3986',
  };
}

// Reads only whole segments of envoy.extensions.path.match.uri_template.v3: literals, *, {name}, and ** as the last.
function readTemplate(policy: ProtoValue): PathMatch | undefined {
  const { type, message } = policy.field('typed_config').any();
  const template = message.field('path_template').text()?.split('/').slice(1);
  const operators = template?.map(segment =>
    segment.replace(/^\{\w+(?:=(\*\*?))?\}$/, (_, inner: string | undefined) => inner ?? '*'),
  );
  const isRead = operators?.every(
    (each, i) => each === '*' || (each === '**' && i === operators.length - 1) || !/[*{}]/.test(each),
  );
  if (type !== uriTemplateType || operators === undefined || isRead !== true) return undefined;
  const rest = operators.at(-1) === '**';
  const start = (rest ? operators.slice(0, -1) : operators).map(each => (each === '*' ? undefined : each));
  const path = literalPath(start);
  return {
    starts: [start],
    scope: { path, subtree: true },
    characters: undefined,
    takes(path) {
      const segments = path.split('/').slice(1);
      if (rest ? segments.length <= start.length : segments.length !== start.length) return false;
      return start.every((each, i) => (each === undefined ? segments[i] !== '' : segments[i] === each));
    },
  };
}

/** The text that all paths with this start begin with. */
export function literalPath(start: PathStart): string {
  return `/${start.slice(0, start.includes(undefined) ? start.indexOf(undefined) : undefined).join('/')}`;
}
