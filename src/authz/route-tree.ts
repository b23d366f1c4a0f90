// Matches a path against all routes at once, by a tree over the segments of their templates that is built once per configuration.
// Literals that differ only in case share a branch: one walk finds the templates that match exactly and those that match if segments are
// decoded and case is ignored. At each segment the walk holds the nodes that are reached by the path so far: from each node at most two
// (its literal and its parameter), and never one twice. So other routes do not change the cost of a match.
import { foldCase } from './fold-case.ts';
import { isStrictSegment, type RequestPath } from './path.ts';
import { type Refusal, refusal } from './refusal.ts';
import type { Route, RouteDefinition, RouteMatch } from './route.ts';
import {
  defaultAccountParameter,
  type RouteTemplate,
  type TemplateSegment,
  toRouteTemplate,
} from './route-template.ts';

/** The routes of one configuration, compiled for `matchRoutes`. */
export type RouteTree = RouteNode;

// Absent rather than empty, and one object per route: with 10,000 routes, the walk waits for memory more than for anything else.
interface RouteNode {
  /** By literal in lower case. */
  literals: Map<string, RouteNode> | undefined;
  /** The branch of `:account_id` and of every other parameter. */
  parameter: RouteNode | undefined;
  /** Routes whose template ends here. */
  exact: RankedRoute[] | undefined;
  /** Routes whose template ends here with `/*`. */
  subtrees: RankedRoute[] | undefined;
}

interface RankedRoute {
  readonly route: Route;
  /** The number of segments. */
  readonly length: number;
  /** Its place in the configuration. */
  readonly order: number;
}

/** Throws on an invalid template, which the validation of a configuration reports. */
export function compileRoutes(
  definitions: readonly RouteDefinition[],
  accountParameter = defaultAccountParameter,
): RouteTree {
  const root = createNode();
  for (const [order, { path, roles, scopes, characters }] of definitions.entries()) {
    const template = toRouteTemplate(path, accountParameter);
    let node = root;
    for (const segment of template.segments) node = childFor(node, segment);
    const route = {
      template,
      roles: roles && new Set(roles),
      scopes: scopes && new Set(scopes),
      isWide: characters === 'rfc3986',
    };
    const ranked = { route, length: template.segments.length, order };
    const ends = template.subtree ? 'subtrees' : 'exact';
    node[ends] ??= [];
    node[ends].push(ranked);
  }
  return root;
}

export function matchRoutes(root: RouteTree, { segments, decoded }: RequestPath): RouteMatch | Refusal {
  const matching: RankedRoute[] = [];
  let reached: readonly RouteNode[] = [root];
  for (const segment of decoded ?? segments) {
    reached = step(reached, decoded === undefined ? segment.toLowerCase() : foldCase(segment));
    for (const { subtrees } of reached) if (subtrees !== undefined) matching.push(...subtrees);
  }
  for (const { exact } of reached) if (exact !== undefined) matching.push(...exact);

  // An upstream that ignores case, or decodes, would serve a route whose rules were not applied.
  if (!matching.every(({ route }) => hasLiterals(route.template, segments)))
    return refusal('request_invalid', 'the path matches a route only if case is ignored or segments are decoded');
  if (decoded !== undefined && !permitWide(matching, segments))
    return refusal('request_invalid', 'a character that not every matching route permits');
  matching.sort((one, other) => one.order - other.order);
  const [first, ...others] = matching;
  if (first === undefined) return refusal('route_unknown', 'no route matches');
  const mostSpecific = others.reduce((best, each) => (each.length > best.length ? each : best), first);
  return {
    kind: 'match',
    route: mostSpecific.route.template.text,
    routes: matching.map(({ route }) => route),
    segments,
  };
}

function createNode(): RouteNode {
  return { literals: undefined, parameter: undefined, exact: undefined, subtrees: undefined };
}

/** The branch of the segment, made where there is none. */
function childFor(node: RouteNode, segment: TemplateSegment): RouteNode {
  if (segment.kind !== 'literal') {
    node.parameter ??= createNode();
    return node.parameter;
  }
  node.literals ??= new Map();
  const folded = segment.value.toLowerCase();
  const known = node.literals.get(folded);
  if (known !== undefined) return known;
  const grown = createNode();
  node.literals.set(folded, grown);
  return grown;
}

function step(reached: readonly RouteNode[], folded: string): readonly RouteNode[] {
  const next: RouteNode[] = [];
  for (const { literals, parameter } of reached) {
    const literal = literals?.get(folded);
    if (literal !== undefined) next.push(literal);
    if (parameter !== undefined) next.push(parameter);
  }
  return next;
}

function hasLiterals(template: RouteTemplate, segments: readonly string[]): boolean {
  return template.segments.every((segment, i) => segment.kind !== 'literal' || segment.value === segments[i]);
}

// A matching template covers every segment of a path, and its literals are strict.
function permitWide(matching: readonly RankedRoute[], segments: readonly string[]): boolean {
  if (matching.length === 0 || !matching.every(({ route }) => route.isWide)) return false;
  const isWide = segments.map(segment => !isStrictSegment(segment));
  return matching.every(({ route }) =>
    route.template.segments.every(({ kind }, i) => kind !== 'account' || !isWide[i]),
  );
}
