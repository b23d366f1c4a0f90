// Reads which paths an Envoy route matches, and finds a protected path that it gets. In Envoy, the first match wins.
import type { RouteTemplate } from '../authz/route-template.ts';
import type { ProtoValue } from './proto-value.ts';

export interface RouteMatch {
  takes(path: string): boolean;
  /** Whether it depends on the path alone, so that no later route gets its paths. */
  readonly isSure: boolean;
  /** The first segments of its paths; the last may be a prefix of a segment, undefined is any segment. */
  readonly start: readonly (string | undefined)[];
  /** The part that the lint cannot judge; then `takes` accepts any path. */
  readonly unjudged: ProtoValue | undefined;
}

type PathMatch = Pick<RouteMatch, 'takes' | 'start'>;

export type Spelling = 'exact' | 'other case';

const uriTemplateType = 'envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig';
const pathFields: ReadonlySet<string> = new Set(['prefix', 'path', 'path_separated_prefix', 'path_match_policy']);
const unconditional: ReadonlySet<string> = new Set([...pathFields, 'case_sensitive']);

/** Undefined for CONNECT, which has no path. */
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

// Of envoy.extensions.path.match.uri_template.v3, reads whole segments only: literals, *, {name}, and ** as the last.
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
  return {
    start,
    takes(path) {
      const segments = path.split('/').slice(1);
      if (rest ? segments.length <= start.length : segments.length !== start.length) return false;
      return start.every((each, i) => (each === undefined ? segments[i] !== '' : segments[i] === each));
    },
  };
}

/** An example of a path under these routes that this match gets; undefined if it gets none. */
export function findRouted(
  routes: readonly RouteTemplate[],
  spelling: Spelling,
  match: RouteMatch,
  earlier: readonly RouteMatch[],
): string | undefined {
  const starts = [match, ...earlier].flatMap(({ start }) => start);
  // A segment that no match contains, as an example of any other.
  const fresh = `${[...'xyzabcdefghijklmnopqrstuvw'].find(letter => !starts.some(each => each?.startsWith(letter))) ?? 'x'}1`;
  return routes
    .flatMap(route => examplesOf(route, spelling, match, fresh))
    .find(path => match.takes(path) && !earlier.some(each => each.isSure && each.takes(path)));
}

/** Paths under the route that begin like the match as far as the route permits. */
function examplesOf(route: RouteTemplate, spelling: Spelling, { start }: RouteMatch, fresh: string): readonly string[] {
  const { segments, subtree } = route;
  const own = segments.map((segment, i) => {
    const wanted = start[i] ?? '';
    if (segment.kind !== 'literal') return wanted === '' ? fresh : wanted;
    const canStart = segment.value.toLowerCase().startsWith(wanted.toLowerCase());
    if (spelling === 'exact' || !canStart) return segment.value;
    return wanted + segment.value.slice(wanted.length).toUpperCase();
  });
  const base = `/${own.join('/')}`;
  // A trailing slash is ignored in matching.
  if (!subtree) return [base, `${base}/`];
  const further = start.slice(segments.length).map(each => each ?? fresh);
  const longer = [...further.slice(0, -1), `${further.at(-1) ?? ''}${fresh}`];
  return [[], [''], [fresh], further, [...further, fresh], longer].map(each => [base, ...each].join('/'));
}
