// Permission tables: what each name that a token may have grants. The roles are one such table, the scopes another; both are the same on
// all protected routes, and a route narrows them.
import type { RouteMatch } from './route-tree.ts';

/** A name of a table as the configuration has it: its grants, with `names` also what tokens call it. */
export type PermissionEntry =
  | readonly string[]
  | { readonly methods: readonly string[]; readonly names: readonly string[] };

/** By name, in the order of the configuration. */
export type PermissionTable = ReadonlyMap<string, PermissionEntry>;

/** What `*` stands for. */
export const allMethods: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** A method, or `*`, and the template of the paths where it is granted; undefined: everywhere. */
export interface Grant {
  readonly method: string;
  readonly template: string | undefined;
}

export function parseGrant(text: string): Grant {
  const space = text.indexOf(' ');
  return space === -1
    ? { method: text, template: undefined }
    : { method: text.slice(0, space), template: text.slice(space + 1) };
}

/** As they are written. */
export function grantsOf(entry: PermissionEntry): readonly string[] {
  return 'methods' in entry ? entry.methods : entry;
}

/** What tokens call the name. */
export function claimedNamesOf(name: string, entry: PermissionEntry): readonly string[] {
  return 'names' in entry ? entry.names : [name];
}

/** Every template of a grant once. */
export function grantTemplates(...tables: readonly (PermissionTable | undefined)[]): readonly string[] {
  const grants = tables.flatMap(table => [...(table?.values() ?? [])].flatMap(grantsOf));
  return [...new Set(grants.flatMap(text => parseGrant(text).template ?? []))];
}

/** The methods that the grant is for. */
export function methodsOf({ method }: Grant): readonly string[] {
  return method === '*' ? allMethods : [method];
}

interface Permission {
  readonly name: string;
  /** Its place in the configuration. */
  readonly order: number;
  /** Those that are granted everywhere. */
  readonly methods: ReadonlySet<string>;
  /** By template: those that are granted where it matches. Undefined if there are none. */
  readonly grants: ReadonlyMap<string, ReadonlySet<string>> | undefined;
}

export interface Permissions {
  /** In the order of the configuration. A name that is not a key may do nothing. */
  readonly byName: ReadonlyMap<string, Permission>;
  readonly byClaim: ReadonlyMap<string, Permission>;
}

/** `*` stands for the seven usual methods; others (TRACE, CONNECT, PROPFIND) must be listed. */
export function compilePermissions(table: PermissionTable): Permissions {
  const byName = new Map<string, Permission>();
  const byClaim = new Map<string, Permission>();
  for (const [name, entry] of table) {
    const methods = new Set<string>();
    const grants = new Map<string, Set<string>>();
    for (const grant of grantsOf(entry).map(parseGrant)) {
      const granted = grant.template === undefined ? methods : (grants.get(grant.template) ?? new Set());
      if (grant.template !== undefined) grants.set(grant.template, granted);
      for (const method of methodsOf(grant)) granted.add(method);
    }
    const permission = { name, order: byName.size, methods, grants: grants.size === 0 ? undefined : grants };
    byName.set(name, permission);
    for (const claimed of claimedNamesOf(name, entry)) byClaim.set(claimed, permission);
  }
  return { byName, byClaim };
}

/** The names of those that a token has, once each and in the order of the table. Takes as long as the list, however many the table has. */
export function namesIn({ byClaim }: Permissions, claimed: readonly string[]): readonly string[] {
  const known = new Set<Permission>();
  for (const name of claimed) {
    const permission = byClaim.get(name);
    if (permission !== undefined) known.add(permission);
  }
  return [...known].sort((one, other) => one.order - other.order).map(({ name }) => name);
}

/** In the order in which they are found. */
const obstacles = ['unknown', 'method', 'route'] as const;

/** Why a name does not allow a request: the table lacks it, the table denies it the method, or a route is narrowed to others. */
export type Obstacle = (typeof obstacles)[number];

/** Which of the tables, by the name of the setting that narrows it on a route. */
export type PermissionKind = 'roles' | 'scopes';

/** The one name that decides; undefined if the table has none of the names. */
export type PermissionChoice =
  | { readonly name: string; readonly obstacle: undefined }
  | { readonly name: string | undefined; readonly obstacle: Obstacle };

/** The name that decides, of names in the order of the table: the first that allows the request, or else the one that comes nearest. */
export function choosePermission(
  table: Permissions,
  kind: PermissionKind,
  claimed: readonly string[],
  method: string,
  match: RouteMatch,
): PermissionChoice {
  let nearest: PermissionChoice = { name: undefined, obstacle: obstacles[0] };
  for (const name of claimed) {
    const obstacle = obstacleTo(table, kind, name, method, match);
    if (obstacle === undefined) return { name, obstacle };
    if (obstacles.indexOf(obstacle) > obstacles.indexOf(nearest.obstacle)) nearest = { name, obstacle };
  }
  return nearest;
}

/** Every name that would allow the request, in the order of the table; at most `limit` of them. */
export function permittedNames(
  table: Permissions,
  kind: PermissionKind,
  method: string,
  match: RouteMatch,
  limit = Number.POSITIVE_INFINITY,
): readonly string[] {
  const names: string[] = [];
  for (const name of table.byName.keys()) {
    if (names.length === limit) break;
    if (obstacleTo(table, kind, name, method, match) === undefined) names.push(name);
  }
  return names;
}

function obstacleTo(
  table: Permissions,
  kind: PermissionKind,
  name: string,
  method: string,
  { routes, grants }: RouteMatch,
): Obstacle | undefined {
  const permission = table.byName.get(name);
  if (permission === undefined) return 'unknown';
  const { methods, grants: granted } = permission;
  const mayUse = methods.has(method) || (granted && grants.some(template => granted.get(template)?.has(method)));
  if (!mayUse) return 'method';
  return routes.every(({ [kind]: permitted }) => permitted === undefined || permitted.has(name)) ? undefined : 'route';
}
