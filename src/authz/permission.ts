// Permission tables: the names that a token may have, the methods that each may use, and their order. The roles are one such table, the
// scopes another; both are the same on all protected routes, and a route narrows them.
import type { RouteMatch } from './route.ts';

/** As the configuration has it: the methods by name, in its order. */
export type PermissionTable = ReadonlyMap<string, readonly string[]>;

/** What `*` stands for. */
export const everyMethod: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

interface Permission {
  readonly name: string;
  /** Its place in the configuration. */
  readonly order: number;
  readonly methods: ReadonlySet<string>;
}

/** By name, in the order of the configuration. A name that is not a key may do nothing. */
export type Permissions = ReadonlyMap<string, Permission>;

/** Which of the tables, by the name of the setting that narrows it on a route. */
export type PermissionKind = 'roles' | 'scopes';

/** `*` stands for the seven usual methods; others (TRACE, CONNECT, PROPFIND) must be listed. */
export function compilePermissions(table: PermissionTable): Permissions {
  return new Map(
    Array.from(table, ([name, methods], order) => [
      name,
      { name, order, methods: new Set(methods.flatMap(method => (method === '*' ? everyMethod : [method]))) },
    ]),
  );
}

/** Those that the table has, once each and in its order. Takes as long as the list, however many the table has. */
export function namesIn(table: Permissions, claimed: readonly string[]): readonly string[] {
  const known = new Set<Permission>();
  for (const name of claimed) {
    const permission = table.get(name);
    if (permission !== undefined) known.add(permission);
  }
  return [...known].sort((one, other) => one.order - other.order).map(({ name }) => name);
}

/** In the order in which they are found. */
const obstacles = ['unknown', 'method', 'route'] as const;

/** Why a name does not allow a request: the table lacks it, the table denies it the method, or a route is narrowed to others. */
export type Obstacle = (typeof obstacles)[number];

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
  limit: number,
): readonly string[] {
  const names: string[] = [];
  for (const name of table.keys()) {
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
  { routes }: RouteMatch,
): Obstacle | undefined {
  const permission = table.get(name);
  if (permission === undefined) return 'unknown';
  if (!permission.methods.has(method)) return 'method';
  return routes.every(({ [kind]: permitted }) => permitted === undefined || permitted.has(name)) ? undefined : 'route';
}
