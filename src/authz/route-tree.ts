// Matches a path against all routes, and the templates of all grants, by a tree over their segments that is built once per configuration.
// One walk finds the templates that match exactly, and the routes that match loosely: as a server may read the path that ignores case,
// decodes, trims a segment, or cuts a format from it. At each segment the walk holds the nodes that are reached by the path so far: from each
// node only its parameter and the literals that the segment may be read as, and never one twice. So other routes do not change the cost.
import { foldCase, isStrictSegment, type RequestPath } from './path.ts';
import { type Refusal, refusal } from './refusal.ts';
import {
  defaultAccountParameter,
  type RouteTemplate,
  type TemplateSegment,
  toRouteTemplate,
} from './route-template.ts';

/** A route as the configuration has it. */
export interface RouteDefinition {
  readonly path: string;
  readonly roles?: readonly string[] | undefined;
  /** `strict` by default. */
  readonly characters?: 'strict' | 'rfc3986' | undefined;
  readonly scopes?: readonly string[] | undefined;
}

export interface Route {
  readonly template: RouteTemplate;
  /** The segments of the template that are the account. */
  readonly accountsAt: readonly number[];
  /** The only roles that may call; undefined allows every role. */
  readonly roles: ReadonlySet<string> | undefined;
  /** Whether a parameter other than the account, and `/*`, may match a segment outside the strict grammar. */
  readonly isWide: boolean;
  /** The scopes of which a token needs one; undefined leaves all. */
  readonly scopes: ReadonlySet<string> | undefined;
}

/** All routes that a path matches; every one of them must permit the request. */
export interface RouteMatch {
  readonly kind: 'match';
  /** The template with the most segments, for the log. */
  readonly route: string;
  readonly routes: readonly Route[];
  /** The templates of grants that match too. */
  readonly grants: readonly string[];
  readonly segments: readonly string[];
}

/** The segment at every `:account_id` of every matching template. */
export function accountSegments({ routes, segments }: RouteMatch): readonly string[] {
  return routes.flatMap(({ accountsAt }) => accountsAt.map(i => segments[i] ?? ''));
}

/** The routes of one configuration, compiled for `matchRoutes`. */
export type RouteTree = RouteNode;

// Absent rather than empty: in a large tree, the walk waits for memory more than for anything else.
interface RouteNode {
  /** The literal that leads here, as it was written; empty for a parameter. */
  readonly literal: string;
  /** By literal in lower case: those that differ only in case. */
  literals: Map<string, RouteNode[]> | undefined;
  /** The lengths of these literals, once each: a segment is cut at each of them, and not at each of its signs. */
  lengths: number[] | undefined;
  /** The branch of `:account_id` and of every other parameter. */
  parameter: RouteNode | undefined;
  /** Routes whose template ends here. */
  exact: RankedRoute[] | undefined;
  /** Routes whose template ends here with `/*`. */
  subtrees: RankedRoute[] | undefined;
  /** Templates of grants that end here, and those that end here with `/*`. */
  exactGrants: string[] | undefined;
  subtreeGrants: string[] | undefined;
  /** Whether the template of a route leads here, and not only that of a grant. */
  isOfRoute: boolean;
}

interface RankedRoute {
  readonly route: Route;
  /** The number of segments. */
  readonly length: number;
  /** Its place in the configuration. */
  readonly order: number;
}

/** `grants`: templates of grants. Throws on an invalid template, which the validation of a configuration reports. */
export function compileRoutes(
  definitions: readonly RouteDefinition[],
  accountParameter = defaultAccountParameter,
  grants: readonly string[] = [],
): RouteTree {
  const root = createNode('');
  for (const [order, { path, roles, scopes, characters }] of definitions.entries()) {
    const template = toRouteTemplate(path, accountParameter);
    let node = root;
    for (const segment of template.segments) {
      node = childFor(node, segment);
      node.isOfRoute = true;
    }
    const route = {
      template,
      accountsAt: template.segments.flatMap(({ kind }, i) => (kind === 'account' ? i : [])),
      roles: roles && new Set(roles),
      scopes: scopes && new Set(scopes),
      isWide: characters === 'rfc3986',
    };
    const ranked = { route, length: template.segments.length, order };
    const ends = template.subtree ? 'subtrees' : 'exact';
    node[ends] ??= [];
    node[ends].push(ranked);
  }
  for (const text of grants) {
    const { segments, subtree } = toRouteTemplate(text, accountParameter);
    const node = segments.reduce(childFor, root);
    const ends = subtree ? 'subtreeGrants' : 'exactGrants';
    node[ends] ??= [];
    node[ends].push(text);
  }
  return root;
}

export function matchRoutes(root: RouteTree, { segments, decoded }: RequestPath): RouteMatch | Refusal {
  const matching: RankedRoute[] = [];
  const folded: RankedRoute[] = [];
  const cut: RankedRoute[] = [];
  const grants: string[] = [];
  let reached: Reached = { exact: [root], loose: [] };
  for (let i = 0; i < segments.length && reached.exact.length + reached.loose.length > 0; i += 1) {
    const segment = segments[i] ?? '';
    reached = step(reached, segment, decoded === undefined ? segment.toLowerCase() : foldCase(decoded[i] ?? ''));
    for (const { subtrees, subtreeGrants } of reached.exact) {
      if (subtrees !== undefined) matching.push(...subtrees);
      if (subtreeGrants !== undefined) grants.push(...subtreeGrants);
    }
    for (const { node, isCut } of reached.loose) (isCut ? cut : folded).push(...(node.subtrees ?? []));
  }
  for (const { exact, exactGrants } of reached.exact) {
    if (exact !== undefined) matching.push(...exact);
    if (exactGrants !== undefined) grants.push(...exactGrants);
  }
  for (const { node, isCut } of reached.loose) (isCut ? cut : folded).push(...(node.exact ?? []));

  // An upstream that reads the path loosely would serve a route whose rules were not applied.
  if (folded.length > 0)
    return refusal('request_invalid', 'the path matches a route only if case is ignored or segments are decoded');
  if (cut.some(isNarrow))
    return refusal('request_invalid', 'the path matches a route only if a segment is trimmed or cut at a sign');
  if (decoded !== undefined && !permitWide(matching, segments))
    return refusal('request_invalid', 'a character that not every matching route permits');
  if (matching.some(({ order }, i) => order < (matching[i - 1]?.order ?? 0)))
    matching.sort((one, other) => one.order - other.order);
  const [first] = matching;
  if (first === undefined) return refusal('route_unknown', 'no route matches');
  const mostSpecific = matching.reduce((best, each) => (each.length > best.length ? each : best), first);
  return {
    kind: 'match',
    route: mostSpecific.route.template.text,
    routes: matching.map(({ route }) => route),
    grants,
    segments,
  };
}

function createNode(literal: string): RouteNode {
  const ends = { exact: undefined, subtrees: undefined, exactGrants: undefined, subtreeGrants: undefined };
  return { literal, literals: undefined, lengths: undefined, parameter: undefined, ...ends, isOfRoute: false };
}

/** The branch of the segment, made where there is none. */
function childFor(node: RouteNode, segment: TemplateSegment): RouteNode {
  if (segment.kind !== 'literal') {
    node.parameter ??= createNode('');
    return node.parameter;
  }
  node.literals ??= new Map();
  node.lengths ??= [];
  if (!node.lengths.includes(segment.value.length)) node.lengths.push(segment.value.length);
  const folded = segment.value.toLowerCase();
  const alike = node.literals.get(folded) ?? [];
  node.literals.set(folded, alike);
  const known = alike.find(({ literal }) => literal === segment.value);
  if (known !== undefined) return known;
  const grown = createNode(segment.value);
  alike.push(grown);
  return grown;
}

/** The nodes that the path leads to so far. */
interface Reached {
  readonly exact: readonly RouteNode[];
  readonly loose: readonly LooseNode[];
}

/** A node that only another reading of the path leads to: in another case or decoded, or with a segment trimmed or cut. */
interface LooseNode {
  readonly node: RouteNode;
  readonly isCut: boolean;
}

const none: readonly RouteNode[] = [];

/** Where one element is usual: V8 makes room for 17 in an empty array that grows. */
function added<Item>(list: Item[] | undefined, item: Item): Item[] {
  if (list === undefined) return [item];
  list.push(item);
  return list;
}

/** `sent` is the segment as sent, `folded` the same decoded and in one case. */
function step({ exact, loose }: Reached, sent: string, folded: string): Reached {
  let exactNext: RouteNode[] | undefined;
  const looseNext: LooseNode[] = [];
  const trimmed = folded.trim();
  const isTrimmed = trimmed !== folded;
  let mayCut = loose.length > 0;
  let isName = false;
  for (const { literals, parameter } of exact) {
    if (parameter !== undefined) exactNext = added(exactNext, parameter);
    if (literals !== undefined) mayCut = true;
    for (const node of literals?.get(trimmed) ?? none) {
      if (node.literal !== sent) looseNext.push({ node, isCut: isTrimmed });
      else {
        exactNext = added(exactNext, node);
        isName ||= node.isOfRoute;
      }
    }
  }
  for (const { node, isCut } of loose) {
    if (node.parameter !== undefined) looseNext.push({ node: node.parameter, isCut });
    for (const child of node.literals?.get(trimmed) ?? none) looseNext.push({ node: child, isCut: isCut || isTrimmed });
  }
  // Django REST framework serves settings.json as settings and export.csv.json as export.csv in the format json, Google's APIs have methods
  // such as settings:reset. Where the API has a name with the sign, the segment is that name.
  const next = { exact: exactNext ?? none, loose: looseNext };
  if (isName || !mayCut || !sign.test(trimmed)) return next;
  for (const { literals, lengths } of [...exact, ...loose.map(({ node }) => node)]) {
    for (const length of lengths ?? [])
      if (sign.test(trimmed.charAt(length)))
        for (const node of literals?.get(trimmed.slice(0, length)) ?? none) looseNext.push({ node, isCut: true });
  }
  return next;
}

/** No API goes on in a name with it without a meaning of its own. */
const sign = /[^a-z0-9_~-]/;

/** Whether the route refuses more than the API would without it. */
function isNarrow({ route: { template, roles, scopes } }: RankedRoute): boolean {
  return roles !== undefined || scopes !== undefined || template.segments.some(({ kind }) => kind === 'account');
}

// A matching template covers every segment of a path, and its literals are strict.
function permitWide(matching: readonly RankedRoute[], segments: readonly string[]): boolean {
  if (matching.length === 0 || !matching.every(({ route }) => route.isWide)) return false;
  const isWide = segments.map(segment => !isStrictSegment(segment));
  return matching.every(({ route }) =>
    route.template.segments.every(({ kind }, i) => kind !== 'account' || !isWide[i]),
  );
}
