// Reads which paths an Envoy route matches.
import type { ProtoValue } from './proto-value.ts';

export interface RouteMatch {
  takes(path: string): boolean;
  /** Whether it depends on the path alone, so that no later route gets its paths. */
  readonly isSure: boolean;
  /** All its paths begin with this text, in lower case. */
  readonly head: string;
  /** The first segments of its paths; the last may be a prefix of a segment, undefined is any segment. */
  readonly start: readonly (string | undefined)[];
  /** The part that the lint cannot judge; then `takes` accepts any path. */
  readonly unjudged: ProtoValue | undefined;
}

type PathMatch = Pick<RouteMatch, 'takes' | 'head' | 'start'>;

const uriTemplateType = 'envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig';
const pathFields: ReadonlySet<string> = new Set(['prefix', 'path', 'path_separated_prefix', 'path_match_policy']);
const unconditional: ReadonlySet<string> = new Set([...pathFields, 'case_sensitive']);

/** Undefined for CONNECT, which has no path. */
export function readRouteMatch(match: ProtoValue): RouteMatch | undefined {
  if (match.field('connect_matcher').isPresent) return undefined;
  const paths = readPaths(match);
  if (paths === undefined) {
    const named = match.names().find(name => pathFields.has(name) || name === 'safe_regex');
    const unjudged = named === undefined ? match : match.field(named);
    return { takes: () => true, isSure: false, head: '', start: [], unjudged };
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
    head: text.toLowerCase(),
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
  const literals = start.slice(0, start.includes(undefined) ? start.indexOf(undefined) : undefined);
  return {
    head: `/${literals.join('/')}`.toLowerCase(),
    start,
    takes(path) {
      const segments = path.split('/').slice(1);
      if (rest ? segments.length <= start.length : segments.length !== start.length) return false;
      return start.every((each, i) => (each === undefined ? segments[i] !== '' : segments[i] === each));
    },
  };
}
