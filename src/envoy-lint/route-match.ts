// Which paths an Envoy route takes, and an example of a protected path that a route gets: the first match wins.
import { parseRouteTemplate, type RouteTemplate } from '../authz/route-template.ts';
import type { ProtoValue } from './proto-value.ts';

export interface RouteMatch {
  takes(path: string): boolean;
  /** Whether it takes each of its paths whatever else the request has, so that no later route gets them. */
  readonly isSure: boolean;
  /** The segments that its paths begin with; the last may be the beginning of one, undefined stands for any. */
  readonly start: readonly (string | undefined)[];
  /** What says which paths it takes, where that cannot be judged; it may take any then. */
  readonly unjudged: ProtoValue | undefined;
}

type PathMatch = Pick<RouteMatch, 'takes' | 'start'>;

export type Spelling = 'exact' | 'other case';

const uriTemplateType = 'envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig';
const pathFields: ReadonlySet<string> = new Set(['prefix', 'path', 'path_separated_prefix', 'path_match_policy']);
const unconditional: ReadonlySet<string> = new Set([...pathFields, 'case_sensitive']);

/** Undefined for what has no path: CONNECT. */
export function readRouteMatch(match: ProtoValue): RouteMatch | undefined {
  if (match.field('connect_matcher').isPresent) return undefined;
  const paths = readPaths(match);
  if (paths === undefined) {
    const named = match.names().find(name => pathFields.has(name) || name === 'safe_regex');
    return { takes: () => true, isSure: false, start: [], unjudged: named === undefined ? match : match.field(named) };
  }
  return { ...paths, isSure: match.names().every(name => unconditional.has(name)), unjudged: undefined };
}

function readPaths(match: ProtoValue): PathMatch | undefined {
  const policy = match.field('path_match_policy');
  if (policy.isPresent) return readTemplate(policy);
  const [prefix, path, separated] = ['prefix', 'path', 'path_separated_prefix'].map(name => match.field(name).text());
  const isExact = match.field('case_sensitive').flag() !== false;
  const cased = (text: string): string => (isExact ? text : text.toLowerCase());
  const literal = (text: string, fits: (path: string, text: string) => boolean): PathMatch => ({
    takes: each => fits(cased(each), cased(text)),
    start: text.split('/').slice(1),
  });
  if (prefix !== undefined) return literal(prefix, (each, text) => each.startsWith(text));
  if (path !== undefined) return literal(path, (each, text) => each === text);
  if (separated !== undefined) return literal(separated, (each, text) => each === text || each.startsWith(`${text}/`));
  return undefined;
}

// envoy.extensions.path.match.uri_template.v3, of which whole segments are read: literals, *, {name}, and ** as the last.
function readTemplate(policy: ProtoValue): PathMatch | undefined {
  const { type, message } = policy.field('typed_config').any();
  const operators = message
    .field('path_template')
    .text()
    ?.split('/')
    .slice(1)
    .map(segment => segment.replace(/^\{\w+(?:=(\*\*?))?\}$/, (_, inner: string | undefined) => inner ?? '*'));
  const isRead = operators?.every(
    (each, i) => each === '*' || (each === '**' && i === operators.length - 1) || !/[*{}]/.test(each),
  );
  if (type !== uriTemplateType || operators === undefined || isRead !== true) return undefined;
  const rest = operators.at(-1) === '**';
  const start = (rest ? operators.slice(0, -1) : operators).map(each => (each === '*' ? undefined : each));
  return {
    start,
    takes(path) {
      const segments = path.split('/').slice(1);
      if (rest ? segments.length <= start.length : segments.length !== start.length) return false;
      return start.every((each, i) => (each === undefined ? segments[i] !== '' : segments[i] === each));
    },
  };
}

/** The routes of the configuration. */
export function toProtectedRoutes(templates: readonly string[]): readonly RouteTemplate[] {
  return templates.map(parseRouteTemplate).filter(template => template.kind === 'template');
}

/** A path of the routes that this match gets, for people to read; undefined if it gets none of them. */
export function findRouted(
  routes: readonly RouteTemplate[],
  spelling: Spelling,
  match: RouteMatch,
  earlier: readonly RouteMatch[],
): string | undefined {
  const starts = [match, ...earlier].flatMap(({ start }) => start);
  // A segment that no match names, so that it stands for any.
  const fresh = `${[...'xyzabcdefghijklmnopqrstuvw'].find(letter => !starts.some(each => each?.startsWith(letter))) ?? 'x'}1`;
  return routes
    .flatMap(route => examplesOf(route, spelling, match.start, fresh).filter(path => isUnder(route, spelling, path)))
    .find(path => match.takes(path) && !earlier.some(each => each.isSure && each.takes(path)));
}

/** Paths of the route that begin as the match wants, as far as the route lets them. */
function examplesOf(
  { segments, subtree }: RouteTemplate,
  spelling: Spelling,
  start: readonly (string | undefined)[],
  fresh: string,
): readonly string[] {
  const own = segments.map((segment, i) => {
    const wanted = start[i] ?? '';
    if (segment.kind !== 'literal') return wanted === '' ? fresh : wanted;
    if (spelling === 'exact') return segment.value;
    return wanted + segment.value.slice(wanted.length).toUpperCase();
  });
  const base = `/${own.join('/')}`;
  // A trailing slash is ignored in matching.
  if (!subtree) return [base, `${base}/`];
  const further = start.slice(segments.length).map(each => each ?? fresh);
  const beyond = [
    [],
    [''],
    [fresh],
    further,
    [...further, fresh],
    [...further.slice(0, -1), `${further.at(-1) ?? ''}${fresh}`],
  ];
  return beyond.map(each => [base, ...each].join('/'));
}

function isUnder({ segments, subtree }: RouteTemplate, spelling: Spelling, path: string): boolean {
  const cased = (text: string | undefined): string | undefined => (spelling === 'exact' ? text : text?.toLowerCase());
  const given = path.split('/').slice(1);
  const further = given.slice(segments.length);
  if (!subtree && further.join('/') !== '') return false;
  return segments.every((segment, i) =>
    segment.kind === 'literal' ? cased(given[i]) === cased(segment.value) : (given[i] ?? '') !== '',
  );
}
