// Rules over all routes and templates of grants: their paths, what each may narrow, and that no public route and no metadata document hides one.
import type * as z from 'zod';
import { foldCase } from '../authz/path.ts';
import { parseGrant } from '../authz/permission.ts';
import {
  overlapsTemplate,
  parseRouteTemplate,
  type RouteTemplate,
  type TemplateSegment,
} from '../authz/route-template.ts';
import { isJsonObject, itemsOf, memberOf } from '../json/strict-json.ts';
import { resourceMetadataPath, resourceProblem } from '../text/url.ts';
import { accountParameterOf } from './policy-schema.ts';
import { report } from './value-schemas.ts';

/** Takes the unknown value of a whole configuration; reports each problem at its place. */
export function requireSoundRoutes(config: unknown, context: z.RefinementCtx): void {
  const routes = itemsOf(memberOf(config, 'routes'));
  const parameter = accountParameterOf(memberOf(config, 'account'));
  const templates: RouteTemplate[] = [];
  const shapes = new Set<string>();
  for (const [i, route] of routes.entries()) {
    for (const kind of ['roles', 'scopes'] as const) requireKnown(config, route, kind, ['routes', i], context);
    const path = memberOf(route, 'path');
    if (typeof path !== 'string') continue;
    const template = parseRouteTemplate(path, parameter);
    const problem =
      template.kind === 'problem'
        ? template.problem
        : (accountProblem(template, parameter, memberOf(route, 'accountInPath') !== false) ??
          repetitionProblem(template, shapes));
    report(context, problem, ['routes', i, 'path']);
    if (template.kind === 'template') templates.push(template);
  }
  requireKnown(config, memberOf(config, 'protectedResource'), 'scopes', ['protectedResource'], context);
  for (const kind of ['roles', 'scopes'] as const) requireSoundGrants(config, kind, parameter, context);
  const publicTemplates = requirePublicApart(config, templates, context);
  requireMetadataApart(config, [...templates, ...publicTemplates], context);
}

function requireKnown(
  config: unknown,
  narrowing: unknown,
  kind: 'roles' | 'scopes',
  place: readonly PropertyKey[],
  context: z.RefinementCtx,
): void {
  const known = memberOf(config, kind);
  if (known !== undefined && !isJsonObject(known)) return;
  const noun = kind.slice(0, -1);
  for (const [j, name] of itemsOf(memberOf(narrowing, kind)).entries()) {
    if (typeof name !== 'string' || (known !== undefined && Object.hasOwn(known, name))) continue;
    if (known === undefined && kind === 'roles') continue;
    const message = `must be a ${noun} that ${kind} defines: add it to ${kind}, or remove it here`;
    report(context, message, [...place, kind, j]);
  }
}

function requireSoundGrants(
  config: unknown,
  kind: 'roles' | 'scopes',
  parameter: string,
  context: z.RefinementCtx,
): void {
  const table = memberOf(config, kind);
  for (const [name, entry] of Object.entries(isJsonObject(table) ? table : {})) {
    const path = isJsonObject(entry) ? [kind, name, 'methods'] : [kind, name];
    for (const [i, grant] of itemsOf(isJsonObject(entry) ? memberOf(entry, 'methods') : entry).entries()) {
      const { template } = typeof grant === 'string' ? parseGrant(grant) : { template: undefined };
      const parsed = template === undefined ? undefined : parseRouteTemplate(template, parameter);
      if (parsed?.kind === 'problem') report(context, `has a template that ${parsed.problem}`, [...path, i]);
    }
  }
}

function accountProblem(template: RouteTemplate, parameter: string, accountInPath: boolean): string | undefined {
  const hasAccount = template.segments.some(({ kind }) => kind === 'account');
  const hasParameter = template.segments.some(({ kind }) => kind !== 'literal');
  if (accountInPath && hasParameter && !hasAccount) {
    const remedy = `name it :${parameter}, or set accountInPath: false if none is the account`;
    return `must say which parameter is the account: ${remedy}`;
  }
  if (accountInPath || (hasParameter && !hasAccount)) return undefined;
  return `must have parameters, none of them :${parameter}, where accountInPath is false: remove accountInPath`;
}

// Routes that differ only in the names of other parameters match the same paths.
function repetitionProblem({ segments, subtree }: RouteTemplate, shapes: Set<string>): string | undefined {
  const names = segments.map(each => (each.kind === 'literal' ? each.value : `:${each.kind}`));
  const shape = [...names, subtree ? '*' : ''].join('/');
  if (shapes.has(shape)) return 'must not name the same route twice';
  shapes.add(shape);
  return undefined;
}

function requirePublicApart(
  config: unknown,
  templates: readonly RouteTemplate[],
  context: z.RefinementCtx,
): readonly RouteTemplate[] {
  const overlapsRoute = createOverlapIndex(templates, foldCase);
  return itemsOf(memberOf(config, 'public')).flatMap((each, i) => {
    const path = memberOf(each, 'path');
    const open = typeof path === 'string' ? parseRouteTemplate(path) : undefined;
    if (open?.kind !== 'template') return [];
    if (overlapsRoute(open))
      report(context, 'must not match a path that one of routes matches, case ignored', ['public', i, 'path']);
    return [open];
  });
}

interface OverlapNode {
  readonly literals: Map<string, OverlapNode>;
  parameter?: OverlapNode;
  isEnd: boolean;
  isSubtree: boolean;
}

/**
 * overlapsTemplate for one of many templates, by a tree of their segments: 2,000 against 2,000 one by one takes seconds. `cuts`: what a server
 * may read in a literal that no template has there.
 */
export function createOverlapIndex(
  templates: readonly RouteTemplate[],
  fold = (literal: string): string => literal,
  cuts = (_: string): readonly string[] => [],
) {
  const create = (): OverlapNode => ({ literals: new Map(), isEnd: false, isSubtree: false });
  const childFor = (node: OverlapNode, segment: TemplateSegment): OverlapNode => {
    if (segment.kind !== 'literal') {
      node.parameter ??= create();
      return node.parameter;
    }
    const name = fold(segment.value);
    const child = node.literals.get(name) ?? create();
    node.literals.set(name, child);
    return child;
  };
  const root = create();
  for (const { segments, subtree } of templates) {
    const last = segments.reduce(childFor, root);
    last.isEnd = true;
    last.isSubtree ||= subtree;
  }
  return ({ segments, subtree }: RouteTemplate): boolean => {
    let reached: readonly OverlapNode[] = [root];
    for (const segment of segments) {
      if (reached.some(({ isSubtree }) => isSubtree)) return true;
      const name = segment.kind === 'literal' ? fold(segment.value) : undefined;
      reached = reached.flatMap(({ literals, parameter }) => {
        const whole = name === undefined ? [...literals.values()] : [literals.get(name)];
        const cut = name === undefined || literals.has(name) ? [] : cuts(name).map(each => literals.get(each));
        return [...whole, ...cut, parameter].filter(child => child !== undefined);
      });
    }
    return reached.some(({ isEnd }) => isEnd || subtree);
  };
}

function requireMetadataApart(config: unknown, templates: readonly RouteTemplate[], context: z.RefinementCtx): void {
  const resource = memberOf(memberOf(config, 'protectedResource'), 'resource');
  if (typeof resource !== 'string' || resourceProblem(resource) !== undefined) return;
  // A server may serve the document by the decoded path. Literals of templates have nothing to decode.
  const path = percentDecoded(resourceMetadataPath(resource));
  const segments = path.split('/').filter(segment => segment !== '');
  const document = { segments: segments.map(value => ({ kind: 'literal', value }) as const), subtree: false };
  if (!templates.some(template => overlapsTemplate(document, template, foldCase))) return;
  const message = 'must have a metadata document whose path no route and no public route matches';
  report(context, message, ['protectedResource', 'resource']);
}

function percentDecoded(text: string): string {
  return text.replace(/(?:%[0-9A-Fa-f]{2})+/g, escapes => Buffer.from(escapes.replaceAll('%', ''), 'hex').toString());
}
