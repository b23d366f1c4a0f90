// Who may do what: for each route, the grants that each role or scope has there. For people: the tree decides.
import { grantsOf, type PermissionKind, type PermissionTable, parseGrant } from './permission.ts';
import { coversTemplate, overlapsTemplate, type RouteTemplate, toRouteTemplate } from './route-template.ts';
import type { RouteDefinition } from './route-tree.ts';

export interface GridPolicy {
  readonly routes: readonly RouteDefinition[];
  readonly roles: PermissionTable;
  readonly scopes?: PermissionTable | undefined;
  readonly account: { readonly parameter: string };
}

/** What one name may do on one route: methods, or grants of a part of its paths as they are written. None: nothing. */
export interface GridCell {
  readonly name: string;
  readonly grants: readonly string[];
}

/** Returns a function from the index of a route to a cell for each name of the table, in its order. */
export function permissionGrid(policy: GridPolicy, kind: PermissionKind): (route: number) => readonly GridCell[] {
  const { routes, account } = policy;
  const toTemplate = (text: string): RouteTemplate => toRouteTemplate(text, account.parameter);
  const templates = routes.map(({ path }) => toTemplate(path));
  const names = Array.from(policy[kind] ?? [], ([name, entry]) => {
    const grants = grantsOf(entry).map(text => {
      const { method, template } = parseGrant(text);
      return { text, method, template: template === undefined ? undefined : toTemplate(template) };
    });
    return { name, grants };
  });
  return index => {
    const own = templates[index];
    if (own === undefined) return [];
    // Those that match every path of this one.
    const narrowing = routes.flatMap(({ [kind]: permitted }, i) => {
      const outer = templates[i];
      return permitted !== undefined && outer !== undefined && coversTemplate(outer, own) ? [new Set(permitted)] : [];
    });
    return names.map(({ name, grants }) => {
      const here = grants.flatMap(({ text, method, template }) => {
        if (template === undefined || coversTemplate(template, own)) return [method];
        return overlapsTemplate(template, own) ? [text] : [];
      });
      return { name, grants: narrowing.every(permitted => permitted.has(name)) ? [...new Set(here)] : [] };
    });
  };
}
