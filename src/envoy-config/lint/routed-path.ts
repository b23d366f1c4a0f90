// Finds a protected path that an Envoy route gets. In Envoy, the first match wins. Routes of the configuration and of Envoy are looked up
// by the text that their paths begin with: trying each with each other takes minutes for ten thousand.
import { literalStart, type RouteTemplate } from '../../authz/route-template.ts';
import type { EnvoyRouteMatch } from './route-match.ts';

type Spelling = 'exact' | 'other case';

/** The templates of the configuration. */
export interface ProtectedRoutes {
  /** Those whose paths may begin with this text in lower case. */
  beginningWith(head: string): Iterable<RouteTemplate>;
}

/** The matches of a virtual host that come before a route. */
export interface EarlierMatches {
  add(match: EnvoyRouteMatch): void;
  /** Whether one of them gets the path whatever else is in the request. */
  take(path: string): boolean;
  /** Whether a segment of one of them starts with the letter. */
  useLetter(letter: string): boolean;
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

export function createEarlierMatches(): EarlierMatches {
  const sure = createHeadIndex<EnvoyRouteMatch>();
  const letters = new Set<string>();
  return {
    add(match) {
      if (match.isSure) sure.add(match.head, match);
      for (const segment of match.start) letters.add(segment?.charAt(0) ?? '');
    },
    take(path) {
      for (const match of sure.headsOf(path.toLowerCase())) if (match.takes(path)) return true;
      return false;
    },
    useLetter: letter => letters.has(letter),
  };
}

/** An example of a protected path that this match gets; undefined if it gets none. */
export function findRouted(
  routes: ProtectedRoutes,
  spelling: Spelling,
  match: EnvoyRouteMatch,
  earlier: EarlierMatches,
): string | undefined {
  const isUsed = (letter: string) => earlier.useLetter(letter) || match.start.some(each => each?.startsWith(letter));
  const fresh = freshSegment(isUsed);
  for (const route of routes.beginningWith(match.head)) {
    const found = examplesOf(route, spelling, match, fresh).find(path => match.takes(path) && !earlier.take(path));
    if (found !== undefined) return found;
  }
  return undefined;
}

interface RoutedMatch {
  readonly match: EnvoyRouteMatch;
  /** Whether Envoy answers its requests itself. */
  readonly isAnswered: boolean;
}

/** Whether every path of a template is led on, if perhaps for some requests only. */
export type Leads = (template: RouteTemplate) => boolean;

/** `matches` in their order. */
export function createLeads(matches: readonly RoutedMatch[]): Leads {
  const byHead = createHeadIndex<RoutedMatch & { readonly order: number }>();
  for (const [order, each] of matches.entries()) byHead.add(each.match.head, { ...each, order });
  const fresh = freshSegment(letter => matches.some(({ match }) => match.start.some(each => each?.startsWith(letter))));
  const leads = (path: string): boolean => {
    const taking = [...byHead.headsOf(path.toLowerCase())].filter(({ match }) => match.takes(path));
    const deciding = taking
      .toSorted((one, other) => one.order - other.order)
      .find(({ match, isAnswered }) => !isAnswered || match.isSure);
    return deciding?.isAnswered === false;
  };
  return ({ segments, subtree }) => {
    const base = segments.map(segment => (segment.kind === 'literal' ? segment.value : fresh));
    const paths = subtree ? [base, [...base, fresh], [...base, fresh, fresh]] : [base];
    return paths.every(each => leads(`/${each.join('/')}`));
  };
}

/** A segment that no match contains, as an example of any other. */
function freshSegment(isUsed: (letter: string) => boolean): string {
  return `${[...'xyzabcdefghijklmnopqrstuvw'].find(letter => !isUsed(letter)) ?? 'x'}1`;
}

/** Paths under the route that begin like the match as far as the route permits. */
function examplesOf(
  route: RouteTemplate,
  spelling: Spelling,
  { start }: EnvoyRouteMatch,
  fresh: string,
): readonly string[] {
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
