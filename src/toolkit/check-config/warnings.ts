// Finds settings that are valid and rarely meant, and what an operator should know about valid ones.
import { isUnder } from '../../authz/challenge.ts';
import { issuerPlaceholder, overlap, parseIssuerTemplate } from '../../authz/issuer-template.ts';
import { foldCase } from '../../authz/path.ts';
import { grantsOf, parseGrant } from '../../authz/permission.ts';
import { permissionGrid } from '../../authz/permission-grid.ts';
import { isAccountLabel } from '../../authz/places/host-place.ts';
import { toAccountGrammar } from '../../authz/places/places.ts';
import { isAccount } from '../../authz/principal.ts';
import {
  coversTemplate,
  defaultAccountParameter,
  literalStart,
  type RouteTemplate,
  toRouteTemplate,
} from '../../authz/route-template.ts';
import { compileRoutes, matchRoutes, type RouteMatch } from '../../authz/route-tree.ts';
import type { WrittenConfig } from '../../config/load.ts';
import { createOverlapIndex } from '../../config/route-rules.ts';
import type { Config, IssuerConfig } from '../../config/schema.ts';
import type { PathProblem } from '../../config/yaml-document.ts';
import { quotedPrintable } from '../../text/printable.ts';
import { resourcePath } from '../../text/url.ts';
import { compileSource, textsOf } from '../../token/claim-source.ts';

type Revoked = WrittenConfig['revoked'];

/** What check-config says of a valid configuration: what is rarely meant, and what is right and should be known. */
export function findRemarks({ config, revoked, problemAt }: WrittenConfig) {
  const warnings = findWarnings(config, revoked).map(problemAt);
  return { warnings, information: findInformation(config).map(problemAt) };
}

function findWarnings(config: Config, revoked: Revoked): readonly PathProblem[] {
  return [
    ...config.apps.flatMap((app, i) => {
      const message = app === '*' ? undefined : literal(app, [/\*/], '"*" alone stands for all applications');
      return message === undefined ? [] : [{ path: ['apps', i], message }];
    }),
    ...config.issuers.flatMap((issuer, i) => issuerWarnings(issuer, i, config)),
    ...routeWarnings(config),
    ...everyRoleWarnings(config),
    ...publicWarnings(config),
    ...grantWarnings(config),
    ...resourceWarnings(config),
    ...revocationWarnings(config, revoked),
    ...forwardedWarnings(config),
    ...placeholderWarnings(config),
  ];
}

/** Not wrong, so never an error: what nothing but the API decides. */
function findInformation(config: Config): readonly PathProblem[] {
  const {
    routes,
    account: { parameter },
    identityHeaders,
    protectedResource,
  } = config;
  const starts = routes.map(({ path }) => literalStart(toRouteTemplate(path, parameter)));
  const resource = protectedResource && { path: resourcePath(protectedResource.resource) };
  const isUnnamed = resource !== undefined && !starts.some(start => isUnder(resource, start));
  const message = 'lies above no path of routes: no refusal names its metadata document';
  const unnamed = isUnnamed ? [{ path: ['protectedResource', 'resource'], message }] : [];
  const withoutAccount = routes.flatMap(({ path }, i) => {
    if (namesAccount(toRouteTemplate(path, parameter))) return [];
    const duty = `which must compare the account that it serves with ${identityHeaders}acc`;
    const message = `compares no account: all accounts' data under it rests on the API, ${duty}`;
    return [{ path: ['routes', i, 'path'], message }];
  });
  return [...withoutAccount, ...unnamed];
}

function issuerWarnings(own: IssuerConfig, i: number, { issuers, account }: Config): readonly PathProblem[] {
  const { issuer, audiences, claims, accounts, allowHttp } = own;
  const warnings: PathProblem[] = [];
  const warn = (message: string | undefined, ...path: readonly string[]): void => {
    if (message !== undefined) warnings.push({ path: ['issuers', i, ...path], message });
  };
  const inIssuer = 'as a whole segment of the path or the first label of the host';
  const asTemplate = literal(issuer, likeTemplate, `${issuerPlaceholder} stands for the account, ${inIssuer}`);
  warn(asTemplate ?? literal(issuer, placeholders, nothingFills), 'issuer');
  for (const each of audiences)
    warn(literal(each, likeAudiences, 'only tokens with this very text are accepted'), 'audiences');
  for (const [field, source] of Object.entries(claims))
    for (const each of textsOf(source))
      warn(literal(each, inClaims, '{acc} stands for the addressed account'), 'claims', field);
  for (const field of ['uid', 'app'] as const)
    for (const each of textsOf(claims[field]))
      warn(literal(each, [/,|\|\||\?\?/], 'several sources are a list, such as [sub, client_id]'), 'claims', field);
  if (allowHttp)
    warn(
      'lets the keys be fetched over http: whoever is on the way can replace them, unless a mesh encrypts it',
      'allowHttp',
    );
  if (typeof claims.acc === 'object' && 'keysOf' in claims.acc && !isByAccount(claims.role)) {
    const remedy = 'write {acc} where the account stands, or having, unless the issuer means that';
    warn(`gives the same roles in every account of a token: ${remedy}`, 'claims', 'role');
  }
  const template = parseIssuerTemplate(issuer);
  const isLabel = typeof template === 'object' && template.isLabel;
  const grammar = toAccountGrammar(account);
  for (const entry of accounts) {
    const name = entry.replace(/^!/, '').replace(/\*$/, 'a');
    if (!isAccount(name, grammar) || (isLabel && !isAccountLabel(name)))
      warn(`has "${entry}", which no account fits with account.case, account.dots and issuer as they are`, 'accounts');
  }
  // Whoever has the one's keys has the other's: two names of one provider.
  const hasOthers = issuers.some(other => keySourceOf(other) !== keySourceOf(own));
  if (hasOthers && accounts.includes('*') && !accounts.some(entry => entry.startsWith('!'))) {
    const remedy = 'name its own accounts, a prefix such as partner-*, or with ! those that it may not speak for';
    warn(`lets this issuer speak for every account, those of the other issuers too: ${remedy}`, 'accounts');
  }
  return warnings;
}

function keySourceOf({ jwksUrl, discoveryUrl, jwksFile }: IssuerConfig): string {
  // Without the case of the host and a default port.
  return JSON.stringify([jwksUrl && new URL(jwksUrl), discoveryUrl && new URL(discoveryUrl), jwksFile]);
}

// In other products, in shells and in documentation, these stand for something else.
const signs = [
  /\$?\{(?!acc\})[^{}]*\}|<[^<>]*>|\$\([\w.-]+\)|\(\([\w.-]+\)\)|%(?:s\b|\(\w+\)s)/,
  /\$[A-Z_][A-Z0-9_]*|%[A-Z][A-Z0-9_]{2,}%|__[A-Z][A-Z0-9_]*__|@[A-Z][A-Z0-9_]*@|\.\.\.|0{8}-(?:0{4}-){3}0{12}/,
];
// Paths may have such words, names of claims $id and $values.
const inClaims = [
  ...signs,
  /\b(?:YOUR[-_][A-Z0-9_-]+|INSERT[-_][A-Z0-9_-]+|[A-Z0-9_]+_HERE|TODO|FIXME|TBD)\b/,
  /\byour[-_]?(?:account|api|app|audience|client|company|domain|group|host|idp|issuer|org|project|realm|region|server|tenant)[\w-]*/i,
  /\b(?:change[-_]?me|replace[-_]?(?:me|this|with))(?![a-z])[\w-]*|\bx{4,}(?:-x+)*\b/i,
];
const placeholders = [
  ...inClaims,
  /(?<!\w)\$[a-z_]\w+/,
  /(?<=^|\/)\[[a-z][\w -]*\](?=$|\/)/i,
  /(?<=\w\/):[a-z]\w*(?=\/|$)/i,
];
const likeAudiences = [/^\*$|\{[^{}]*\}/, ...placeholders];
const likeTemplate = [/\{(?!acc\})[^{}]*\}?|<[^<>]*>|\*|(?<=\/)(?:common|organizations|consumers)(?=\/|$)/];
const nothingFills = 'nothing fills it in, and no environment variable is read';

/** In texts other than those that issuerWarnings judges. */
function placeholderWarnings({ issuers, ...others }: Config): readonly PathProblem[] {
  const unjudged = issuers.map(({ issuer: _, audiences: __, claims: ___, ...rest }) => rest);
  return textsIn({ issuers: unjudged, ...others }, []).flatMap(([path, text]) => {
    const isPath = path[0] === 'routes' || path[0] === 'public' || /^\S+ \//.test(text);
    const message = literal(text, isPath ? signs : placeholders, nothingFills);
    return message === undefined ? [] : [{ path, message }];
  });
}

type PlacedText = readonly [path: readonly PropertyKey[], text: string];

function textsIn(value: unknown, path: readonly PropertyKey[]): readonly PlacedText[] {
  if (typeof value === 'string') return [[path, value]];
  const isMap = value instanceof Map;
  const entries = isMap || Array.isArray(value) ? [...value.entries()] : Object.entries(value ?? {});
  return entries.flatMap(([key, each]): readonly PlacedText[] => {
    const place = [...path, key];
    // Names of roles and scopes are texts too.
    return [...(isMap ? [[place, String(key)] as const] : []), ...textsIn(each, place)];
  });
}

function literal(text: string, patterns: readonly RegExp[], remedy: string): string | undefined {
  const found = patterns.map(each => each.exec(text)?.[0]).find(each => each);
  return found && `has ${quotedPrintable(found)}, which stands for itself: ${remedy}`;
}

function isByAccount(role: IssuerConfig['claims']['role']): boolean {
  const { parts, havingAccount } = compileSource(role, false);
  return havingAccount || parts.length > 1;
}

function routeWarnings(config: Config): readonly PathProblem[] {
  const { routes, account } = config;
  const tree = compileRoutes(routes, account.parameter);
  return routes.flatMap((route, i) => {
    const path = ['routes', i, 'path'];
    const template = toRouteTemplate(route.path, account.parameter);
    const { segments, subtree } = template;
    if (segments.some(each => each.kind === 'any' && each.name === defaultAccountParameter)) {
      const message = `has :${defaultAccountParameter}, which is not the account: account.parameter is ${account.parameter}`;
      return [{ path, message }];
    }
    if (subtree) return [];
    // Some path under it, whose parameters equal no literal of another template.
    const under = [...segments.map(each => (each.kind === 'literal' ? each.value : sample)), sample];
    const match = matchRoutes(tree, { segments: under, decoded: undefined });
    const lack = match.kind === 'match' ? lackUnder(route, template, match, config) : undefined;
    if (match.kind === 'refusal' || lack === undefined) return [];
    const message = `leaves what lies under it to ${quotedPrintable(match.route, 128)}, which ${lack} there: end it with /*`;
    return [{ path, message }];
  });
}

/** What the routes that match under an exact route do not do, and the exact one does. */
function lackUnder(
  route: Config['routes'][number],
  template: RouteTemplate,
  { routes }: RouteMatch,
  config: Config,
): string | undefined {
  if (namesAccount(template) && !routes.some(under => namesAccount(under.template))) return 'compares no account';
  // A longer route says what is meant under this one.
  if (routes.some(under => under.template.segments.length > template.segments.length)) return undefined;
  const wider = (['roles', 'scopes'] as const).find(kind => {
    const own = route[kind];
    const left = [...(config[kind]?.keys() ?? [])].filter(name =>
      routes.every(({ [kind]: permitted }) => permitted?.has(name) ?? true),
    );
    return own !== undefined && left.some(name => !own.includes(name));
  });
  return wider && `permits other ${wider}`;
}

function namesAccount({ segments }: RouteTemplate): boolean {
  return segments.some(({ kind }) => kind === 'account');
}

const sample = '~any~';

// Where roles are told apart by narrowed routes, a route without roles is open to the least of them: it may have been forgotten.
function everyRoleWarnings(config: Config): readonly PathProblem[] {
  const { routes, roles, account } = config;
  const templates = routes.map(({ path }) => toRouteTemplate(path, account.parameter));
  const isNarrowed = (i: number): boolean => routes[i]?.roles !== undefined && routes[i].roles.length < roles.size;
  const narrowed = templates.filter((_, i) => isNarrowed(i));
  if (narrowed.length === 0) return [];
  const grid = permissionGrid(config, 'roles');
  return templates.flatMap((template, i) => {
    // What all roles may use and narrowed routes lie under is the rule from which they are the exceptions.
    const isBase = narrowed.some(under => coversTemplate(template, under));
    if (routes[i]?.roles !== undefined || isBase || grid(i).some(({ grants }) => grants.length === 0)) return [];
    const message =
      'is for every role, and other routes are narrowed: list the roles that may use it, all of them if you mean that';
    return [{ path: ['routes', i, 'path'], message }];
  });
}

// As route-tree.ts reads requests: Django REST framework serves settings.json as settings.
function publicWarnings({ routes, public: open = [], account }: Config): readonly PathProblem[] {
  const templates = routes.map(({ path }) => toRouteTemplate(path, account.parameter));
  const stems = (literal: string): readonly string[] =>
    Array.from(literal.matchAll(/[^a-z0-9_~-]/g), ({ index }) => literal.slice(0, index));
  const overlapsRoute = createOverlapIndex(templates, foldCase, stems);
  return open.flatMap(({ path }, i) => {
    if (!overlapsRoute(toRouteTemplate(path))) return [];
    const message =
      'is a path of routes for a server that cuts a segment at a sign, as settings.json to settings: then Envoy serves that one without a check';
    return [{ path: ['public', i, 'path'], message }];
  });
}

function grantWarnings({ routes, account, ...tables }: Config): readonly PathProblem[] {
  const overlapsRoute = createOverlapIndex(routes.map(({ path }) => toRouteTemplate(path, account.parameter)));
  return (['roles', 'scopes'] as const).flatMap(kind =>
    [...(tables[kind] ?? [])].flatMap(([name, entry]) =>
      grantsOf(entry).flatMap((text, i) => {
        const { template } = parseGrant(text);
        if (template === undefined) return [];
        const own = toRouteTemplate(template, account.parameter);
        if (overlapsRoute(own)) return [];
        const path = [kind, name, ...('methods' in entry ? ['methods'] : []), i];
        return [{ path, message: 'grants nothing: no route matches a path of its template' }];
      }),
    ),
  );
}

function resourceWarnings({ protectedResource, issuers }: Config): readonly PathProblem[] {
  if (protectedResource === undefined) return [];
  const { resource } = protectedResource;
  const path = ['protectedResource', 'resource'];
  const leftOut = issuers.flatMap(({ issuer }) => {
    if (!issuer.includes(issuerPlaceholder)) return [];
    const message = `has a metadata document without the authorization server ${quotedPrintable(issuer, 256)}: no client knows the account before its user signs in, so each must be told where`;
    return [{ path, message }];
  });
  if (issuers.some(({ audiences }) => audiences.includes(resource))) return leftOut;
  const message =
    'is not among the audiences of an issuer: a client asks for a token with this audience (RFC 8707), which would be refused';
  return [...leftOut, { path, message }];
}

function forwardedWarnings({ forwardClaims = {}, identityHeaders }: Config): readonly PathProblem[] {
  const doubled = Object.keys(forwardClaims).filter(name => name.startsWith(identityHeaders));
  const message = 'has the prefix of identityHeaders, which stands before each name: write what follows it';
  return doubled.map(name => ({ path: ['forwardClaims', name], message }));
}

function revocationWarnings({ issuers, account, revocation }: Config, { iss, acc }: Revoked): readonly PathProblem[] {
  const grammar = toAccountGrammar(account);
  const known = new Set(issuers.map(({ issuer }) => issuer));
  const templates = [...known].filter(issuer => issuer.includes(issuerPlaceholder));
  const isKnown = (issuer: string): boolean =>
    known.has(issuer) ? !templates.includes(issuer) : templates.some(each => overlap(each, issuer, grammar));
  const unknown = [...iss].filter(each => !isKnown(each));
  const messages = unknown.map(
    each =>
      `has an entry whose iss ${quotedPrintable(each, 128)} is no issuer of the configuration: it revokes nothing`,
  );
  const [impossible] = [...acc].filter(each => !isAccount(each, grammar));
  if (impossible !== undefined)
    messages.push(
      `has entries whose acc no token can have with account.case and account.dots as they are, such as ${quotedPrintable(impossible)}: they revoke nothing`,
    );
  const warnings = messages.map(message => ({ path: ['revocation', 'file'], message }));
  if (revocation?.url !== undefined && revocation.allowHttp) {
    const message =
      'lets the list be fetched over http: whoever is on the way can lift revocations, unless a mesh encrypts it';
    warnings.push({ path: ['revocation', 'allowHttp'], message });
  }
  return warnings;
}
