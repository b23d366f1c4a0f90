// The methods that each role may use, the same on all protected routes.

const everyMethod = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

/** Role → methods it may use. A role that is not a key may do nothing. */
export type RoleMethods = ReadonlyMap<string, ReadonlySet<string>>;

/** `*` stands for the seven usual methods; others (TRACE, CONNECT, PROPFIND) must be listed. */
export function compileRoles(roles: Readonly<Record<string, readonly string[]>>): RoleMethods {
  return new Map(
    Object.entries(roles).map(([role, methods]) => [
      role,
      new Set(methods.flatMap(method => (method === '*' ? everyMethod : [method]))),
    ]),
  );
}

export function roleAllows(roles: RoleMethods, role: string, method: string): boolean {
  return roles.get(role)?.has(method) ?? false;
}
