// The roles: the methods that each may use, the same on all protected routes, and their order.

const everyMethod = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

/** By role, in the order of the configuration. A role that is not a key may do nothing. */
export type Roles = ReadonlyMap<string, { readonly order: number; readonly methods: ReadonlySet<string> }>;

/** `*` stands for the seven usual methods; others (TRACE, CONNECT, PROPFIND) must be listed. */
export function compileRoles(roles: Readonly<Record<string, readonly string[]>>): Roles {
  return new Map(
    Object.entries(roles).map(([role, methods], order) => [
      role,
      { order, methods: new Set(methods.flatMap(method => (method === '*' ? everyMethod : [method]))) },
    ]),
  );
}

export function roleAllows(roles: Roles, role: string, method: string): boolean {
  return roles.get(role)?.methods.has(method) ?? false;
}

/** Those that the configuration names, in its order. Takes as long as the list of the token, however many roles are configured. */
export function configuredRoles(roles: Roles, claimed: readonly string[]): readonly string[] {
  const orderOf = (role: string): number => roles.get(role)?.order ?? Number.POSITIVE_INFINITY;
  return claimed.filter(role => roles.has(role)).sort((one, other) => orderOf(one) - orderOf(other));
}
