// Compares the operations of a document with a configuration: which routes match, where the account is compared, who may call. The engine's
// own tree and tables decide, for a path whose parameters have a value that no route names.
import { parseRequestTarget, type RequestPath } from '../../authz/path.ts';
import {
  compilePermissions,
  grantsOf,
  grantTemplates,
  methodsOf,
  parseGrant,
  permittedNames,
} from '../../authz/permission.ts';
import { isMethodOverride } from '../../authz/places/query-place.ts';
import { compileRoutes, matchRoutes, type RouteMatch } from '../../authz/route-tree.ts';
import type { Config } from '../../config/schema.ts';
import { type CoverageProblem, type Operation, type Operations, sentPath } from './operations.ts';

/** What the policy does with one operation. */
export interface Coverage {
  readonly method: string;
  readonly path: string;
  readonly access: Operation['access'];
  readonly outcome: 'checked' | 'public' | 'no route' | 'refused' | 'nobody';
  readonly routes: readonly string[];
  /** Where the account is compared: `path`, `host`, `query account_id`, `header x-account-id`. Empty: not compared. */
  readonly account: readonly string[];
  readonly roles: readonly string[];
  /** Absent where the configuration has no `scopes`. */
  readonly scopes?: readonly string[];
}

export interface CoverageReport {
  readonly operations: readonly Coverage[];
  readonly problems: readonly CoverageProblem[];
}

type CoveredConfig = Pick<Config, 'routes' | 'public' | 'account' | 'roles' | 'scopes'>;

export function coverOperations({ operations, problems }: Operations, config: CoveredConfig): CoverageReport {
  const { routes, account, roles, scopes } = config;
  const grants = grantTemplates(roles, scopes);
  const tree = compileRoutes(routes, account.parameter, grants);
  const wideRoutes = routes.map(route => ({ ...route, characters: 'rfc3986' as const }));
  const wideTree = compileRoutes(wideRoutes, account.parameter, grants);
  const tables = { roles: compilePermissions(roles), scopes: scopes && compilePermissions(scopes) };
  const findPublic = createPublicFinder(config.public ?? []);
  const isAccount = createAccountFinder(account);
  const strictPaths = new Set(routes.filter(route => route.characters === 'strict').map(({ path: each }) => each));
  const hasAccountHost = account.hosts?.some(host => host.startsWith(`:${account.parameter}.`)) ?? false;
  const used = { routes: new Set<string>(), public: new Set<string>(), grants: new Set<string>() };
  const found: CoverageProblem[] = [...problems];
  if (operations.length === 0) found.push({ severity: 'warning', place: 'paths', message: 'has no operation' });

  function cover(operation: Operation): Coverage {
    const { method, path, access, segments, parameters } = operation;
    const report = (severity: CoverageProblem['severity'], message: string) =>
      found.push({ severity, method, path, message });
    const open = findPublic(operation);
    const row = { method, path, access, routes: [], account: [], roles: [] };
    const judgeAccount = (isCompared: (parameter: Operation['parameters'][number]) => boolean): void => {
      for (const parameter of parameters)
        if (isAccount(parameter.name) && parameter.in !== 'body' && !isCompared(parameter))
          report(
            'error',
            `its ${parameter.in} parameter ${parameter.name} is the account by its name, and is compared with no account: ${accountRemedy(parameter.in)}`,
          );
    };
    for (const { name, in: where } of parameters)
      if ((where === 'query' && isMethodOverride(name)) || (where === 'header' && overrideHeader.test(name)))
        report(
          'warning',
          `its ${where} parameter ${name} changes the method: roles are compared with the method that is sent`,
        );
    for (const segment of segments)
      if (segment.kind === 'mixed')
        report(
          'warning',
          `${segment.text} is a parameter beside text in one segment, which no template can write: only :other or /* of a route covers it, whole`,
        );

    if (open?.methods.includes(method)) {
      used.public.add(open.path);
      if (access === 'protected')
        report('error', `the document protects it, and the public route ${open.path} serves it without a check`);
      judgeAccount(() => false);
      return { ...row, outcome: 'public' };
    }
    const target = parseRequestTarget(sentPath(operation));
    if (target.kind === 'refusal' || !/^[A-Z]{1,32}$/.test(method)) {
      const what =
        target.kind === 'refusal'
          ? `path is refused (${target.detail})`
          : 'method is refused (upper-case letters alone)';
      report('warning', `its ${what}, and no setting permits it`);
      return { ...row, outcome: 'refused' };
    }
    const match = matchRoutes(tree, target);
    if (match.kind === 'refusal' && match.reason === 'route_unknown') {
      const other = open === undefined ? '' : `; the public route ${open.path} has ${open.methods.join(', ')} alone`;
      report('warning', `no route matches: 404 for everyone${other}`);
      return { ...row, outcome: 'no route' };
    }
    if (match.kind === 'refusal') {
      report('warning', `its path is refused (${match.detail}): ${remedyFor(target)}`);
      return { ...row, outcome: 'refused' };
    }
    if (access === 'public') report('warning', `the document calls it public, and ${match.route} checks it`);
    const accountAt = accountIndices(match);
    judgeAccount(({ name, in: where }) => {
      if (where === 'path')
        return segments.some(
          (each, i) =>
            accountAt.has(i) &&
            (each.kind === 'mixed' ? each.names.includes(name) : each.kind === 'parameter' && each.name === name),
        );
      if (where === 'query') return account.query.includes(name);
      return where === 'header' && account.headers.includes(name.toLowerCase());
    });
    for (const [i, segment] of segments.entries())
      if (accountAt.has(i) && segment.kind !== 'parameter')
        report(
          'information',
          `${segment.text} stands where ${match.route} has the account: only a token of an account of that name may call it`,
        );
    const places = [
      ...(accountAt.size > 0 ? ['path'] : []),
      ...(hasAccountHost ? ['host'] : []),
      ...parameters.flatMap(({ name, in: where }) => {
        if (where === 'query' && account.query.includes(name)) return [`query ${name}`];
        return where === 'header' && account.headers.includes(name.toLowerCase()) ? [`header ${name}`] : [];
      }),
    ];
    const may = {
      roles: permittedNames(tables.roles, 'roles', method, match, Infinity),
      ...(tables.scopes && {
        scopes: permittedNames(tables.scopes, 'scopes', method, match, Infinity),
      }),
    };
    const lacking = [...(may.roles.length === 0 ? ['role'] : []), ...(may.scopes?.length === 0 ? ['scope'] : [])];
    for (const noun of lacking) report('warning', `no ${noun} may call it: 403 for everyone`);
    for (const { template } of match.routes) used.routes.add(template.text);
    // A server that has GET has HEAD.
    for (const each of method === 'GET' ? ['GET', 'HEAD'] : [method])
      for (const template of ['', ...match.grants]) used.grants.add(`${each} ${template}`);
    return {
      ...row,
      ...may,
      outcome: lacking.length > 0 ? 'nobody' : 'checked',
      routes: match.routes.map(({ template }) => template.text),
      account: places,
    };
  }

  /** What would permit a path that routes match loosely, or with a character that they do not permit. */
  function remedyFor(target: RequestPath): string {
    const wide = matchRoutes(wideTree, target);
    if (wide.kind === 'match') {
      const strict = wide.routes.flatMap(({ template: { text } }) => (strictPaths.has(text) ? [text] : []));
      return `characters: rfc3986 of ${strict.join(', ')} permits it`;
    }
    return target.decoded === undefined
      ? 'a route that writes it as the API does permits it'
      : 'characters: rfc3986 of a route whose :other or /* covers the segment permits it';
  }

  const rows = operations.map(cover);
  found.push(...unusedOf(config, used), { severity: 'information', message: countOf(rows) });
  const order = ['error', 'warning', 'information'];
  return {
    operations: rows,
    problems: found.toSorted((one, other) => order.indexOf(one.severity) - order.indexOf(other.severity)),
  };
}

const overrideHeader = /^x[-_]?(?:http[-_]?)?method(?:[-_]?override)?$/i;

function accountRemedy(where: string): string {
  if (where === 'path') return 'write a route that has the account at this place';
  if (where === 'query' || where === 'header') return `add it to account.${where === 'query' ? 'query' : 'headers'}`;
  return 'account-authz does not read it there';
}

function accountIndices({ routes }: RouteMatch): ReadonlySet<number> {
  return new Set(
    routes.flatMap(({ template }) => template.segments.flatMap(({ kind }, i) => (kind === 'account' ? [i] : []))),
  );
}

/** Whether a parameter is the account by its name. */
function createAccountFinder({ parameter, headers, query }: Config['account']): (name: string) => boolean {
  const names = new Set([parameter, ...headers, ...query].map(toPlainName));
  return name => names.has(toPlainName(name));
}

/** Names that differ in case, `_` and `-` alone are one. */
export function toPlainName(name: string): string {
  return name.toLowerCase().replace(/[_-]/g, '');
}

type PublicRoute = NonNullable<Config['public']>[number];

/** The public route that serves every path of the operation, whatever its methods. */
function createPublicFinder(routes: readonly PublicRoute[]): (operation: Operation) => PublicRoute | undefined {
  const byPath = new Map(routes.map(route => [route.path, route]));
  return ({ segments }) => {
    let prefix = '';
    for (const segment of segments) {
      // No template is longer.
      if (segment.kind !== 'literal' || prefix.length > 2048) return undefined;
      if (segment.text === '') break;
      prefix = `${prefix}/${segment.text}`;
      const subtree = byPath.get(`${prefix}/*`);
      if (subtree !== undefined) return subtree;
    }
    return byPath.get(prefix);
  };
}

function unusedOf(
  { routes, public: open = [], roles, scopes }: CoveredConfig,
  used: Readonly<Record<'routes' | 'public' | 'grants', ReadonlySet<string>>>,
): readonly CoverageProblem[] {
  const unused = (place: string, message: string): CoverageProblem => ({ severity: 'information', place, message });
  const matches = 'no operation of the document';
  return [
    ...routes.flatMap(({ path }, i) =>
      used.routes.has(path) ? [] : [unused(`routes[${i}]`, `${path} matches ${matches}`)],
    ),
    ...open.flatMap(({ path }, i) =>
      used.public.has(path) ? [] : [unused(`public[${i}]`, `${path} serves ${matches}`)],
    ),
    ...(['roles', 'scopes'] as const).flatMap(kind =>
      [...(kind === 'roles' ? roles : (scopes ?? []))].flatMap(([name, entry]) =>
        grantsOf(entry).flatMap(text => {
          const grant = parseGrant(text);
          const isUsed = methodsOf(grant).some(method => used.grants.has(`${method} ${grant.template ?? ''}`));
          return isUsed ? [] : [unused(`${kind}.${name}`, `"${text}" is for ${matches}`)];
        }),
      ),
    ),
  ];
}

function countOf(rows: readonly Coverage[]): string {
  const counts = new Map<string, number>();
  for (const { outcome, account } of rows) {
    const key = outcome === 'checked' && account.length === 0 ? 'checked without an account' : outcome;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const parts = [...counts].map(([outcome, count]) => `${count} ${outcome}`);
  return `${rows.length} operation${rows.length === 1 ? '' : 's'}${parts.length === 0 ? '' : `: ${parts.join(', ')}`}`;
}
