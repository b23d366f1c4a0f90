// Matches a path against all routes at once, by a tree over the segments of their templates that is built once per configuration.
// Literals that differ only in case share a branch: one walk finds the templates that match exactly and those that match if case is
// ignored. At each segment the walk holds the nodes that are reached by the path so far, two more per node at most (its literal and its
// parameter) and never one twice. So the cost of a match is bounded by those nodes, which the number of other routes does not change.
import { type Refusal, refusal } from './refusal.ts';
import type { Route, RouteDefinition, RouteMatch } from './route.ts';
import { parseRouteTemplate, type RouteTemplate } from './route-template.ts';

/** The routes of one configuration, compiled for `matchRoutes`. */
export interface RouteTree {
  /** By literal in lower case. */
  readonly literals: ReadonlyMap<string, RouteTree>;
  /** The branch of `:account_id` and of every other parameter. */
  readonly parameter: RouteTree | undefined;
  /** Routes whose template ends here. */
  readonly exact: readonly OrderedRoute[];
  /** Routes whose template ends here with `/*`. */
  readonly subtrees: readonly OrderedRoute[];
}

interface OrderedRoute {
  readonly route: Route;
  /** Its place in the configuration. */
  readonly order: number;
}

/** A node under construction. */
interface Branch extends RouteTree {
  readonly literals: Map<string, Branch>;
  parameter: Branch | undefined;
  readonly exact: OrderedRoute[];
  readonly subtrees: OrderedRoute[];
}

/** Throws on an invalid template, which the validation of a configuration reports. */
export function compileRoutes(definitions: readonly RouteDefinition[]): RouteTree {
  const root = createBranch();
  for (const [order, { path, roles }] of definitions.entries()) {
    const template = parseRouteTemplate(path);
    if (template.kind === 'problem') throw new Error(`the configuration has an invalid route: ${template.problem}`);
    const route = { template, roles: roles === undefined ? undefined : new Set(roles) };
    const { exact, subtrees } = growBranch(root, template);
    (template.subtree ? subtrees : exact).push({ route, order });
  }
  return root;
}

export function matchRoutes(root: RouteTree, segments: readonly string[]): RouteMatch | Refusal {
  const candidates: OrderedRoute[] = [];
  let reached: readonly RouteTree[] = [root];
  for (const segment of segments) {
    reached = step(reached, segment.toLowerCase());
    for (const { subtrees } of reached) candidates.push(...subtrees);
    if (reached.length === 0) break;
  }
  for (const { exact } of reached) candidates.push(...exact);

  // An upstream that ignores case would serve a route whose rules were not applied.
  if (!candidates.every(({ route }) => isSameCase(route.template, segments)))
    return refusal('request_invalid', 'the path matches a route only if case is ignored');
  const [first, ...others] = candidates.sort((one, other) => one.order - other.order).map(({ route }) => route);
  if (first === undefined) return refusal('route_unknown', 'no route matches');
  const most = others.reduce((so, each) => (isMoreSpecific(each.template, so.template) ? each : so), first);
  return { kind: 'match', route: most.template.text, routes: [first, ...others], segments };
}

function createBranch(): Branch {
  return { literals: new Map(), parameter: undefined, exact: [], subtrees: [] };
}

/** The branch at the end of the template. */
function growBranch(root: Branch, { segments }: RouteTemplate): Branch {
  let branch = root;
  for (const segment of segments) {
    const literal = segment.kind === 'literal' ? segment.value.toLowerCase() : undefined;
    const known = literal === undefined ? branch.parameter : branch.literals.get(literal);
    const next = known ?? createBranch();
    if (literal === undefined) branch.parameter = next;
    else branch.literals.set(literal, next);
    branch = next;
  }
  return branch;
}

function step(reached: readonly RouteTree[], folded: string): readonly RouteTree[] {
  const next: RouteTree[] = [];
  for (const { literals, parameter } of reached) {
    const literal = literals.get(folded);
    if (literal !== undefined) next.push(literal);
    if (parameter !== undefined) next.push(parameter);
  }
  return next;
}

function isSameCase(template: RouteTemplate, segments: readonly string[]): boolean {
  return template.segments.every((segment, i) => segment.kind !== 'literal' || segment.value === segments[i]);
}

function isMoreSpecific(one: RouteTemplate, other: RouteTemplate): boolean {
  return one.segments.length > other.segments.length;
}
