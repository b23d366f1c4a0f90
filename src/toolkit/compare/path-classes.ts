// The classes of paths that two configurations cannot tell apart, from the tree of the templates of both.
import { grantTemplates } from '../../authz/permission.ts';
import { toRouteTemplate } from '../../authz/route-template.ts';
import type { Config } from '../../config/schema.ts';

/** The old configuration, then the new one. */
export type Both<T> = readonly [T, T];

type ClassSegment =
  | { readonly kind: 'literal'; readonly text: string }
  /** Every segment that is none of the literals there. */
  | { readonly kind: 'other'; readonly name: string; readonly apartFrom: ReadonlyMap<string, unknown> }
  /** A spelling of the literal by which some server may read it: in another case, or with a format. */
  | { readonly kind: 'loose'; readonly text: string; readonly literal: string };

export interface PathClass {
  readonly segments: readonly ClassSegment[];
  /** Whether any segments may follow. The last one is `other` then. */
  readonly hasTail: boolean;
  /** The templates that match, as indices. */
  readonly templates: readonly number[];
  readonly isLoose: boolean;
}

/** The classes as a tree. Those that are read loosely are not in it. */
export interface ClassNode {
  readonly literals: Map<string, ClassNode>;
  other: ClassNode | undefined;
  pathClass: PathClass | undefined;
}

export interface PathClasses {
  /** The templates of routes and grants, each once. Those that differ in the names of parameters alone are one. */
  readonly templates: readonly string[];
  readonly root: ClassNode;
  /** Every literal, in lower case. */
  readonly literals: ReadonlySet<string>;
  /** Calls `visit` for each class until it returns false. */
  visit(visit: (pathClass: PathClass) => boolean): void;
}

interface TemplateNode {
  readonly children: Map<string, TemplateNode>;
  /** By literal in lower case. */
  readonly folded: Map<string, TemplateNode[]>;
  readonly text: string;
  parameter: TemplateNode | undefined;
  readonly exact: Set<number>;
  readonly subtrees: Set<number>;
  /** What routes of each configuration end here. */
  readonly ends: [Set<string>, Set<string>];
  /** Equal numbers: a loose reading that leads here is refused alike from here on. 0: no route is here or below. */
  readonly shape: [number, number];
}

interface LooseNode {
  readonly node: TemplateNode;
  readonly isCut: boolean;
}

interface Reached {
  readonly exact: readonly TemplateNode[];
  readonly loose: Both<readonly LooseNode[]>;
}

const sides = [0, 1] as const;

export function createPathClasses(configs: Both<Config>): PathClasses {
  const templates: string[] = [];
  const ids = new Map<string, number>();
  const literals = new Set<string>();
  const top = createNode('');
  const add = (text: string, parameter: string): { readonly node: TemplateNode; readonly subtree: boolean } => {
    const { segments, subtree } = toRouteTemplate(text, parameter);
    const key = segments.map(each => (each.kind === 'literal' ? each.value : `:${each.kind}`)).join('/');
    const id = ids.get(`${key}${subtree}`) ?? templates.push(text) - 1;
    ids.set(`${key}${subtree}`, id);
    let node = top;
    for (const segment of segments) {
      if (segment.kind === 'literal') literals.add(segment.value.toLowerCase());
      node = childFor(node, segment.kind === 'literal' ? segment.value : undefined, nameOf(segment, parameter));
    }
    node[subtree ? 'subtrees' : 'exact'].add(id);
    return { node, subtree };
  };
  // Of a template that both have, the new spelling is shown.
  for (const side of [1, 0] as const) {
    const { routes, roles, scopes, account } = configs[side];
    for (const route of routes) {
      const { node, subtree } = add(route.path, account.parameter);
      const isNarrow = route.roles ?? route.scopes ?? (route.path.includes(`:${account.parameter}`) || undefined);
      node.ends[side].add(`${subtree ? 'subtree' : 'exact'} ${isNarrow === undefined ? 'plain' : 'narrow'}`);
    }
    for (const text of grantTemplates(roles, scopes)) add(text, account.parameter);
  }
  setShapes(top, new Map());

  const root = createClassNode();
  return {
    templates,
    root,
    literals,
    visit: visit => walk(top, root, visit),
  };
}

/**
 * Each step takes every segment that the templates tell apart: each literal of the nodes that the path leads to so far, any other segment, and
 * for each literal another case and a cut one. A loose reading makes a path invalid, so it is followed only where the routes that it leads to
 * differ between the configurations: elsewhere both refuse it, or neither does, which the class of any other segment shows.
 */
function walk(top: TemplateNode, root: ClassNode, visit: (pathClass: PathClass) => boolean): void {
  step1({ exact: [top], loose: [[], []] }, root, [], []);

  function step1(
    reached: Reached,
    at: ClassNode | undefined,
    segments: readonly ClassSegment[],
    subtrees: readonly number[],
  ): boolean {
    const { exact, loose } = reached;
    const open = [...exact, ...loose.flatMap(nodes => nodes.map(({ node }) => node))];
    const found = new Map(open.flatMap(({ children }) => [...children]));
    for (const text of found.keys()) {
      const child = createClassNode();
      at?.literals.set(text, child);
      if (!follow(step(reached, text), at && child, [...segments, { kind: 'literal', text }], subtrees)) return false;
    }
    const folds = new Set<string>();
    for (const literal of found.keys()) {
      if (folds.has(literal.toLowerCase())) continue;
      folds.add(literal.toLowerCase());
      for (const text of looseSpellings(literal, found)) {
        const next = step(reached, text);
        if (next.loose.every(nodes => nodes.length === 0)) continue;
        if (!follow(next, undefined, [...segments, { kind: 'loose', text, literal }], subtrees)) return false;
      }
    }
    const name = open.find(({ parameter }) => parameter !== undefined)?.parameter?.text ?? 'any';
    const child = at && createClassNode();
    if (at !== undefined) at.other = child;
    return follow(step(reached, undefined), child, [...segments, { kind: 'other', name, apartFrom: found }], subtrees);
  }

  function follow(
    next: Reached,
    at: ClassNode | undefined,
    segments: readonly ClassSegment[],
    before: readonly number[],
  ): boolean {
    const subtrees = [...before, ...next.exact.flatMap(node => [...node.subtrees])];
    if (next.exact.length === 0 && subtrees.length === 0) return true;
    const hasTail = next.exact.length === 0 && next.loose.every(nodes => nodes.length === 0);
    const ends = next.exact.flatMap(node => [...node.exact]);
    const isLoose = at === undefined;
    const pathClass = { segments, hasTail, templates: [...new Set([...subtrees, ...ends])], isLoose };
    if (at !== undefined) at.pathClass = pathClass;
    return visit(pathClass) && (hasTail || step1(next, at, segments, subtrees));
  }
}

function createClassNode(): ClassNode {
  return { literals: new Map(), other: undefined, pathClass: undefined };
}

/** Mirrors the walk of `matchRoutes`, for both configurations at once. Undefined: a segment that is no literal. */
function step({ exact, loose }: Reached, sent: string | undefined): Reached {
  const folded = sent === undefined ? '' : decodeURIComponent(sent).toLowerCase();
  const next = exact.flatMap(({ parameter, children }) => {
    const child = sent === undefined ? undefined : children.get(sent);
    return [parameter, child].filter(each => each !== undefined);
  });
  const found = sides.map(side => {
    const nodes = new Map<TemplateNode, number>();
    const put = (node: TemplateNode, isCut: boolean): void => {
      if (node.shape[side] !== 0) nodes.set(node, (nodes.get(node) ?? 0) | (isCut ? 2 : 1));
    };
    for (const { node, isCut } of loose[side]) if (node.parameter !== undefined) put(node.parameter, isCut);
    if (sent === undefined) return nodes;
    for (const node of exact)
      for (const child of node.folded.get(folded) ?? []) if (child.text !== sent) put(child, false);
    for (const { node, isCut } of loose[side]) for (const child of node.folded.get(folded) ?? []) put(child, isCut);
    if (exact.some(({ children }) => children.get(sent)?.shape[side])) return nodes;
    for (const { index } of folded.matchAll(/[^a-z0-9_~-]/g))
      for (const node of [...exact, ...loose[side].map(each => each.node)])
        for (const child of node.folded.get(folded.slice(0, index)) ?? []) put(child, true);
    return nodes;
  });
  const [before, after] = [found[0] ?? new Map(), found[1] ?? new Map()];
  const differing = [...new Set([...before.keys(), ...after.keys()])].filter(
    node => before.get(node) !== after.get(node) || node.shape[0] !== node.shape[1],
  );
  const kept = (nodes: ReadonlyMap<TemplateNode, number>): readonly LooseNode[] =>
    differing.flatMap(node =>
      [1, 2].flatMap(kind => ((nodes.get(node) ?? 0) & kind ? { node, isCut: kind === 2 } : [])),
    );
  return { exact: next, loose: [kept(before), kept(after)] };
}

/** In another case, or percent-encoded where it has none; and with a format. None is a literal of its own. */
function looseSpellings(literal: string, literals: ReadonlyMap<string, unknown>): readonly string[] {
  const spellings = Array.from(literal, (letter, i) => {
    const other = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase();
    return `${literal.slice(0, i)}${other}${literal.slice(i + 1)}`;
  });
  const inOtherCase = [literal.toUpperCase(), ...spellings].find(text => !literals.has(text));
  let cut = `${literal}.x`;
  while (literals.has(cut)) cut += 'x';
  const encoded = `%${literal.charCodeAt(0).toString(16).toUpperCase()}${literal.slice(1)}`;
  return [inOtherCase ?? encoded, cut];
}

function nameOf(segment: { readonly kind: string; readonly name?: string }, parameter: string): string {
  return segment.kind === 'account' ? parameter : (segment.name ?? '');
}

function createNode(text: string): TemplateNode {
  return {
    children: new Map(),
    folded: new Map(),
    text,
    parameter: undefined,
    exact: new Set(),
    subtrees: new Set(),
    ends: [new Set(), new Set()],
    shape: [0, 0],
  };
}

function childFor(node: TemplateNode, literal: string | undefined, name: string): TemplateNode {
  if (literal === undefined) {
    node.parameter ??= createNode(name);
    return node.parameter;
  }
  const child = node.children.get(literal) ?? createNode(literal);
  if (!node.children.has(literal)) {
    node.children.set(literal, child);
    const folded = literal.toLowerCase();
    node.folded.set(folded, [...(node.folded.get(folded) ?? []), child]);
  }
  return child;
}

function setShapes(node: TemplateNode, known: Map<string, number>): void {
  const below = [...node.children.values(), ...(node.parameter === undefined ? [] : [node.parameter])];
  for (const child of below) setShapes(child, known);
  for (const side of sides) {
    const children = below.flatMap(child =>
      child.shape[side] === 0 ? [] : `${child === node.parameter ? ':' : child.text}=${child.shape[side]}`,
    );
    if (children.length === 0 && node.ends[side].size === 0) continue;
    const text = `${[...node.ends[side]].sort().join()} ${children.sort().join('/')}`;
    node.shape[side] = known.get(text) ?? known.size + 1;
    known.set(text, node.shape[side]);
  }
}
