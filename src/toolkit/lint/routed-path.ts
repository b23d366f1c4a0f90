// Finds a protected path that an Envoy route gets. In Envoy, the first match wins. Routes of the configuration and of Envoy are looked up
// by the text that their paths begin with: trying each with each other takes minutes for ten thousand.
import { literalStart, type RouteTemplate } from '../../authz/route-template.ts';
import { type EnvoyRouteMatch, literalPath, type PathStart } from './route-match.ts';

type Spelling = 'exact' | 'other case';

/** The templates of the configuration. */
export interface ProtectedRoutes {
  /** Those whose paths may begin with this text in lower case. */
  beginningWith(head: string): Iterable<RouteTemplate>;
}

/** The matches of a virtual host, in their order. */
export interface RouteOrder {
  /** A segment that none of them contains, as an example of any other. */
  readonly fresh: string;
  /** The places of those that may take the path, in their order. */
  taking(path: string, query?: string): readonly number[];
  /** Whether one before this place gets the path whatever else is in the request. */
  isTaken(path: string, before: number): boolean;
  /** Whether every path of a template is led on, if perhaps for some requests only. */
  leadsOn(template: RouteTemplate): boolean;
}

export function indexProtectedRoutes(templates: readonly RouteTemplate[]): ProtectedRoutes {
  const byHead = createHeadIndex<RouteTemplate>();
  for (const template of templates) byHead.add(literalStart(template).toLowerCase(), template);
  const sorted = byHead.heads().sort();
  return {
    *beginningWith(head) {
      yield* byHead.headsOf(head);
      for (let i = firstAfter(sorted, head); sorted[i]?.startsWith(head); i += 1) yield* byHead.at(sorted[i] ?? '');
    },
  };
}

interface RoutedMatch {
  readonly match: EnvoyRouteMatch;
  /** Whether Envoy answers its requests itself. */
  readonly isAnswered: boolean;
}

export function indexMatches(matches: readonly RoutedMatch[]): RouteOrder {
  const [sure, others] = [createHeadIndex<number>(), createHeadIndex<number>()];
  const letters = new Set<string>();
  for (const [order, { match }] of matches.entries()) {
    for (const start of match.starts) {
      (match.isSure ? sure : others).add(literalPath(start).toLowerCase(), order);
      for (const segment of start) letters.add(segment?.charAt(0) ?? '');
    }
  }
  const fresh = `${[...'xyzabcdefghijklmnopqrstuvw'].find(letter => !letters.has(letter)) ?? 'x'}1`;
  const taking = (path: string, query?: string): readonly number[] =>
    [sure, others]
      .flatMap(each => [...each.headsOf(path.toLowerCase())])
      .filter(order => matches[order]?.match.takes(path, query))
      .sort((one, other) => one - other);
  const leads = (path: string): boolean => {
    const deciding = taking(path)
      .map(order => matches[order])
      .find(each => each?.isAnswered === false || each?.match.isSure);
    return deciding?.isAnswered === false;
  };
  return {
    fresh,
    taking,
    isTaken(path, before) {
      for (const order of sure.headsOf(path.toLowerCase()))
        if (order < before && matches[order]?.match.takes(path)) return true;
      return false;
    },
    leadsOn({ segments, subtree }) {
      const base = segments.map(segment => (segment.kind === 'literal' ? segment.value : fresh));
      const paths = subtree ? [base, [...base, fresh], [...base, fresh, fresh]] : [base];
      return paths.every(each => leads(`/${each.join('/')}`));
    },
  };
}

// A pattern with more counts as one that takes any path.
const maxAlternatives = 8;

/** An example of a protected path that the match at this place gets; undefined if it gets none. */
export function findRouted(
  routes: ProtectedRoutes,
  spelling: Spelling,
  match: EnvoyRouteMatch,
  { fresh, isTaken }: Pick<RouteOrder, 'fresh' | 'isTaken'>,
  place: number,
): string | undefined {
  const isLong = match.starts.length > maxAlternatives;
  for (const start of match.starts.slice(0, isLong ? 1 : maxAlternatives)) {
    for (const route of routes.beginningWith(isLong ? '' : literalPath(start).toLowerCase())) {
      const examples = examplesOf(route, spelling, start, fresh);
      const found = examples.find(path => (isLong || match.takes(path)) && !isTaken(path, place));
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/** Paths under the route that begin like the match as far as the route permits. */
function examplesOf(route: RouteTemplate, spelling: Spelling, start: PathStart, fresh: string): readonly string[] {
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

function createHeadIndex<Item>() {
  const byHead = new Map<string, Item[]>();
  const lengths = new Set<number>();
  const at = (head: string): readonly Item[] => byHead.get(head) ?? [];
  return {
    at,
    heads: () => [...byHead.keys()],
    add(head: string, item: Item) {
      const items = byHead.get(head);
      if (items === undefined) byHead.set(head, [item]);
      else items.push(item);
      lengths.add(head.length);
    },
    /** The items with whose head the text begins. */
    *headsOf(text: string) {
      for (const length of lengths) if (length <= text.length) yield* at(text.slice(0, length));
    },
  };
}

/** The first place behind all texts that are not greater. */
function firstAfter(sorted: readonly string[], text: string): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? '') <= text) low = middle + 1;
    else high = middle;
  }
  return low;
}
