// Finds a protected path that an Envoy route gets. In Envoy, the first match wins. Routes of the configuration and of Envoy are looked up
// by the text that their paths begin with: trying each with each other takes minutes for ten thousand.
import { literalStart, type RouteTemplate } from '../../authz/route-template.ts';
import type { ProtoValue } from './proto-value.ts';
import { type EnvoyRouteMatch, literalPath, type PathStart } from './route-match.ts';

type Spelling = 'exact' | 'other case';

/** The templates of the configuration. */
export interface ProtectedRoutes {
  /** Those whose paths may begin with this text in lower case. */
  beginningWith(head: string): Iterable<RouteTemplate>;
}

/** The matches of a virtual host, in their order. */
export interface RouteOrder<Match> {
  /** A segment that none of them contains, as an example of any other. */
  readonly fresh: string;
  /** The first one that is wanted of those that may take the path. */
  first(path: string, isWanted: (match: Match) => boolean, query?: string): Match | undefined;
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
      for (const each of byHead.headsOf(head)) yield* each;
      for (let i = firstAfter(sorted, head); sorted[i]?.startsWith(head); i += 1) yield* byHead.at(sorted[i] ?? '');
    },
  };
}

/** On average: what is not looked at counts as a match that takes nothing, so that more is found, in linear time. */
const maxLooksPerMatch = 200;

interface RoutedMatch {
  readonly match: EnvoyRouteMatch;
  /** Whether Envoy answers its requests itself. */
  readonly isAnswered: boolean;
}

export function indexMatches<Match extends RoutedMatch>(matches: readonly Match[]): RouteOrder<Match> {
  const [sure, others] = [indexHeads(matches, true), indexHeads(matches, false)];
  const letters = new Set<string>();
  for (const { match } of matches)
    for (const start of match.starts) for (const segment of start) letters.add(segment?.charAt(0) ?? '');
  let looks = maxLooksPerMatch * matches.length;
  const firstAmong = (lists: readonly Orders[], takes: (match: Match) => boolean, end: number): number => {
    let first = end;
    for (const orders of lists)
      for (const order of orders) {
        looks -= 1;
        if (order >= first || looks < 0) break;
        const each = matches[order];
        if (each === undefined || !takes(each)) continue;
        first = order;
        break;
      }
    return first;
  };
  const fresh = `${[...'xyzabcdefghijklmnopqrstuvw'].find(letter => !letters.has(letter)) ?? 'x'}1`;
  const first: RouteOrder<Match>['first'] = (path, isWanted, query) =>
    matches[
      firstAmong([...sure(path), ...others(path)], each => each.match.takes(path, query) && isWanted(each), Infinity)
    ];
  const leads = (path: string): boolean =>
    first(path, ({ match, isAnswered }) => !isAnswered || match.isSure)?.isAnswered === false;
  return {
    fresh,
    first,
    isTaken: (path, before) => firstAmong(sure(path), ({ match }) => match.takes(path), before) < before,
    leadsOn({ segments, subtree }) {
      const base = segments.map(segment => (segment.kind === 'literal' ? segment.value : fresh));
      const paths = subtree ? [base, [...base, fresh], [...base, fresh, fresh]] : [base];
      return paths.every(each => leads(`/${each.join('/')}`));
    },
  };
}

/** Whether so many routes of the configuration may be looked up in one more virtual host of the file. */
export function createLooks(at: ProtoValue): (routes: number) => boolean {
  let left = 1_000_000;
  return routes => {
    left -= routes;
    if (left >= 0 || routes === 0) return true;
    at.cannotBeJudged('has more virtual hosts than the lint judges for so many routes of the configuration');
    return false;
  };
}

// An index of fewer takes longer than to try each.
const minIndexed = 8;
// Each length of a head is looked up by itself.
const maxHead = 128;

type Orders = readonly number[];

/** The places of those that may take a path, in a few lists that are in order. */
function indexHeads(matches: readonly RoutedMatch[], isSure: boolean): (path: string) => readonly Orders[] {
  const orders: number[] = [];
  for (let order = 0; order < matches.length; order += 1)
    if (matches[order]?.match.isSure === isSure) orders.push(order);
  if (orders.length < minIndexed) return () => [orders];
  const [index, wholes] = [createHeadIndex<number>(), createHeadIndex<number>()];
  // Of a match that takes one path alone, with or without a slash at its end.
  const whole = (path: string): string => `=${path.toLowerCase().replace(/\/$/, '')}`;
  for (const order of orders) {
    const { scope, starts = [] } = matches[order]?.match ?? {};
    if (scope?.subtree === false) wholes.add(whole(scope.path), order);
    else for (const start of starts) index.add(literalPath(start).slice(0, maxHead).toLowerCase(), order);
  }
  return path => [...index.headsOf(path.toLowerCase()), wholes.at(whole(path))];
}

// A pattern with more counts as one that takes any path.
const maxAlternatives = 8;

/** An example of a protected path that the match at this place gets; undefined if it gets none. */
export function findRouted(
  routes: ProtectedRoutes,
  spelling: Spelling,
  match: EnvoyRouteMatch,
  { fresh, isTaken }: Pick<RouteOrder<RoutedMatch>, 'fresh' | 'isTaken'>,
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
    /** The items with whose head the text begins, for each length of a head. */
    headsOf: (text: string) =>
      [...lengths].filter(length => length <= text.length).map(length => at(text.slice(0, length))),
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
