// What differs between a refused request and the settings or its verified token. Names settings, identity fields and times of a verified
// token, and places in the request; never what stands in the query or in a header.
import type { DetailTemplate } from '../../authz/checks.ts';
import { isStrictSegment, parseRequestTarget } from '../../authz/path.ts';
import {
  compilePermissions,
  grantsOf,
  grantTemplates,
  methodsOf,
  type PermissionEntry,
  type PermissionKind,
  parseGrant,
  permittedNames,
} from '../../authz/permission.ts';
import { toAccountGrammar } from '../../authz/places/places.ts';
import { foldAccountCase, type SignedIdentity } from '../../authz/principal.ts';
import type { RouteTemplate } from '../../authz/route-template.ts';
import { compileRoutes, matchRoutes, type RouteMatch } from '../../authz/route-tree.ts';
import type { Config, IssuerConfig } from '../../config/schema.ts';
import { placeEntries } from '../../headers/account-places.ts';
import { parsePath, toPointer } from '../../json/strict-json.ts';
import { quotedPrintable } from '../../text/printable.ts';
import { describeSource, textOf } from '../../token/claim-source.ts';
import { formatList, instant, issuerIn, type Known, keyAge, listAge, type MissingClaim, maxListed } from './known.ts';
import type { RefusedCheck } from './refused-checks.ts';

/** Undefined where nothing is known beyond the remedy. */
export function findDifference({ check, template }: RefusedCheck, known: Known): string | undefined {
  const { principal } = known;
  const ofToken = tokenSide[template] ?? tokenSide[check];
  const ofSettings = settingsSide[template] ?? settingsSide[check];
  const sides = [principal && ofToken?.(principal, known), ofSettings?.(known)];
  return sides.filter(side => side).join('; ') || undefined;
}

/** By check, or by a detail that differs from the others of its check. */
type ByRefusal<Difference> = Readonly<Partial<Record<RefusedCheck['check'] | DetailTemplate, Difference>>>;

const tokenSide: ByRefusal<(principal: SignedIdentity, known: Known) => string | undefined> = {
  app: ({ app }) => `app is ${app}`,
  role: roleOf,
  'role {}, for the addressed account': () => undefined,
  'the role may not use this method': (principal, known) =>
    `${roleOf(principal, known)}, the method is ${known.method}`,
  'the token has none of scopes': (_, known) => scopesOf(known),
  'no scope of the token may use this method': (_, known) => `${scopesOf(known)}, the method is ${known.method}`,
  'acc is outside the grammar': (_, known) => wordsHint('acc', known),
  'the token has no account inside the grammar': (_, known) => wordsHint('acc', known),
  'the request names different accounts': ({ acc }, known) => acc && otherAccounts(acc, known),
  account: ({ acc }, known) => (acc === undefined ? 'the token has several accounts' : otherAccounts(acc, known)),
};

const settingsSide: ByRefusal<(known: Known) => string | undefined> = {
  service: ({ fault }) => fault,
  'path outside the grammar': ({ request }) => wrongSegment(request.target, neverAllowed),
  'a character that not every matching route permits': ({ config, request }) =>
    publicHint(config, request.target) ?? wrongSegment(request.target, notStrict),
  'account-places': ({ config: { account } }) => placeSettings(account).join('; '),
  host: ({ config }) => hostsOf(config),
  'no host matches': ({ config }) => hostsOf(config),
  route: ({ config, request }) =>
    publicHint(config, request.target) ?? `routes: ${formatList(config.routes.map(({ path }) => path))}`,
  'token-origin': ({ config }) => `token.origins: ${formatList(config.token.origins ?? [])}`,
  'token-length': ({ tokenLength, config }) =>
    `it has ${tokenLength} bytes, token.maxBytes is ${config.token.maxBytes}`,
  'there is no iss': ({ config }) => `issuers: ${formatList(config.issuers.map(({ issuer }) => issuer))}`,
  issuer: ({ config, header }) => `${header?.iss}; issuers: ${formatList(config.issuers.map(({ issuer }) => issuer))}`,
  algorithm: known =>
    `${known.header?.alg}${ofOwn(known, ({ algorithms }) => `algorithms: ${formatList(algorithms)}`)}`,
  'token-type': known =>
    `${known.header?.typ}${ofOwn(known, ({ tokenTypes }) => `tokenTypes: ${formatList(tokenTypes.map(type => type || '""'))}`)}`,
  key({ keys, header }) {
    const kids = keys?.keys ? `, kids: ${formatList(keys.kids.map(kid => quotedPrintable(kid))) || 'none'}` : '';
    return keys && `${header?.kid}, ${header?.alg}; the keys of ${keys.issuer}: ${keyAge(keys)}${kids}`;
  },
  signature: ({ header, config: { keys } }) =>
    `${header?.kid}; where the issuer replaces a key under its old kid, serve has the old one for up to keys.refreshSeconds (${keys.refreshSeconds} s)`,
  // The detail has the problem of the last refresh.
  'no key set yet{}': ({ keys }) => keys && `the keys of ${keys.issuer}`,
  audience: known =>
    ofIssuer(known, ({ audiences, claims }) =>
      [
        `audiences: ${formatList(audiences)}`,
        ...hints(known, ({ name, pointer }) => pointer && name === claims.aud),
      ].join('; '),
    ),
  claims: known =>
    ofIssuer(known, ({ claims }) => {
      const names = Object.entries(claims).map(([field, claim]) => `${field} from ${describeSource(claim)}`);
      return [`claims: ${names.join(', ')}`, ...hints(known, ({ pointer }) => pointer)].join('; ');
    }),
  times: timesOf,
  expiry: timesOf,
  'revocation-list': ({ list }) => list && listAge({ ...list, lastProblem: undefined }),
  revocation: ({ config: { revocation }, list }) =>
    list
      ? `revocation.url: ${listAge(list)}`
      : revocation && `revocation.file: ${quotedPrintable(revocation.file ?? '')}`,
  app: ({ config }) => `apps: ${formatList(config.apps)}`,
  'the token has several accounts and the request names none': ({ config: { account, routes } }) =>
    [`routes: ${formatList(routes.map(({ path }) => path))}`, ...placeSettings(account)].join('; '),
  'the token has no account inside the grammar': known =>
    ofIssuer(known, ({ claims }) => claims.acc && `acc from ${describeSource(claims.acc)}`),
  'issuer-account': known => ofIssuer(known, ({ accounts }) => `accounts: ${formatList(accounts)}`),
  role: known => leastChange('roles', known, known.principal?.role),
  'role {}, for the addressed account': known =>
    ofIssuer(known, ({ claims }) => `role from ${describeSource(claims.role)}`),
  scope: known => leastChange('scopes', known, known.principal?.scope),
  'scope {}, for the addressed account': known =>
    ofIssuer(known, ({ claims }) => `scope from ${describeSource(claims.scope)}`),
};

function placeSettings(account: Config['account']): readonly string[] {
  return Object.entries(account).flatMap(([key, value]) =>
    typeof value === 'object' && value.length > 0 ? `account.${key}: ${formatList(value)}` : [],
  );
}

/** What the name that decides may do, and the least change that would allow the request. */
function leastChange(kind: PermissionKind, known: Known, name: string | undefined): string | undefined {
  const { config, request, method } = known;
  const match = matchOf(request.target, config);
  const table = config[kind];
  if (match === undefined || table === undefined) return undefined;
  const entry = name === undefined ? undefined : table.get(name);
  if (name === undefined || entry === undefined) {
    const enough = permittedNames(compilePermissions(table), kind, method, match, maxListed);
    const lists = `${kind}: ${formatList(Array.from(table, nameOf))}; that may ${method} here: ${formatList(enough) || 'none'}`;
    const source = issuerIn(known)?.claims[kind === 'roles' ? 'role' : 'scope'] ?? '';
    return [lists, ...hints(known, ({ name: claim }) => claim === textOf(source))].join('; ');
  }
  const place = `${kind}.${name}${'methods' in entry ? '.methods' : ''}`;
  const excluding = match.routes.filter(({ [kind]: permitted }) => permitted?.has(name) === false);
  const change = [
    ...(grantFor(entry, method, match) === undefined ? [`"${method} ${ownTemplate(match)}" to ${place}`] : []),
    ...excluding.map(({ template }) => `${name} to ${kind} of the route ${template.text}`),
  ];
  return `${place}: ${formatList(grantsOf(entry))}; the least change: add ${change.join(', and ')}`;
}

/** With what tokens call it, where that is another name. */
function nameOf([name, entry]: readonly [string, PermissionEntry]): string {
  if (!('names' in entry)) return name;
  return `${name} (called ${formatList(entry.names.map(each => quotedPrintable(each)))})`;
}

/** The grant by which the entry allows the method here, as it is written. */
export function grantFor(entry: PermissionEntry, method: string, { grants }: RouteMatch): string | undefined {
  return grantsOf(entry).find(text => {
    const grant = parseGrant(text);
    return methodsOf(grant).includes(method) && (grant.template === undefined || grants.includes(grant.template));
  });
}

/** The template of this path alone: the parameters of the most specific route, and what lies under it as it was sent. */
function ownTemplate({ route, segments }: RouteMatch): string {
  const parts = route.replace(/\/\*$/, '').split('/').slice(1);
  const own = segments.map(
    (segment, i) => parts[i] ?? (isStrictSegment(segment) && !segment.startsWith(':') ? segment : ':any'),
  );
  return `/${own.join('/')}`;
}

function hostsOf({ account: { hosts = [] } }: Config): string {
  return `account.hosts: ${formatList(hosts)}`;
}

function publicHint(config: Config, target: string): string | undefined {
  const parsed = parseRequestTarget(target);
  if (parsed.kind === 'refusal') return undefined;
  const open = config.public?.find(route => matchRoutes(compileRoutes([route]), parsed).kind === 'match');
  return open && `public has ${open.path}: Envoy serves ${formatList(open.methods)} of it without asking account-authz`;
}

function scopesOf(known: Known): string {
  const { scopes = [] } = known;
  if (scopes.length === 0) return 'the token has no scopes';
  return `scopes are ${formatList(scopes.map(each => quotedPrintable(each)))}${wordsHint('scope', known, ', ')}`;
}

function roleOf({ role }: SignedIdentity, known: Known): string {
  const { roles = [] } = known;
  if (roles.length === 0) return role === undefined ? 'the token has no role that roles names' : `role is ${role}`;
  return `roles are ${formatList([roles].flat().map(each => quotedPrintable(each)))}${wordsHint('role', known, ', ')}`;
}

/** What reads the words of one text, or of the only one in a list. Of several texts each is meant as it stands: names of roles may have spaces. */
function wordsHint(field: keyof Known['texts'], known: Known, before = ''): string {
  const [value, source] = [known.texts[field] ?? '', issuerIn(known)?.claims[field] ?? ''];
  const [text = '', ...others] = [value].flat();
  if (others.length > 0 || !/[\s,;|]/.test(text)) return '';
  const [, separator] = /^[^\s,;|"]+([ ,])(?:[^\s,;|"]+\1)*[^\s,;|"]+$/.exec(text) ?? [];
  const name = typeof value === 'string' ? 'NAME' : `${toPointer(parsePath(textOf(source)) ?? [])}/0`;
  if (field === 'scope') {
    if (separator !== ' ') return `${before}one text: the issuer must write single spaces between its words, or a list`;
    return typeof value === 'string' ? '' : `${before}one text: ${name} reads several of it`;
  }
  if (separator === undefined)
    return `${before}one text: { wordsOf: NAME } reads single spaces alone, with by: ',' single commas: the issuer must write those, or a list`;
  const isRead = typeof source === 'object' && 'wordsOf' in source && (source.by ?? ' ') === separator;
  return isRead
    ? ''
    : `${before}one text: { wordsOf: ${name}${separator === ',' ? ", by: ','" : ''} } reads several of it`;
}

function hints(
  { missingClaims }: Known,
  isWanted: (claim: MissingClaim) => boolean | string | undefined,
): readonly string[] {
  return missingClaims.filter(isWanted).map(({ name, pointer }) => {
    const remedy = pointer && `: for a member of an object write the JSON Pointer ${quotedPrintable(pointer)}`;
    return `the token has no claim ${quotedPrintable(name)}${remedy ?? ''}`;
  });
}

function ofOwn(known: Known, spell: (issuer: IssuerConfig) => string): string {
  const text = ofIssuer(known, spell);
  return text === undefined ? '' : `; ${text}`;
}

function ofIssuer(known: Known, spell: (issuer: IssuerConfig) => string | undefined): string | undefined {
  const issuer = issuerIn(known);
  return issuer && spell(issuer);
}

// As authz/path.ts has them.
const neverAllowed = /%(?:2[5ef]|3[bf]|5c|[01][0-9a-f]|7f)|%(?![0-9a-f]{2})|[^a-z0-9._~:@!$&'()*+,=%-]/iu;
const notStrict = /%[0-9a-f]{2}|[^a-z0-9._~:@-]/iu;

const encodings: Readonly<Record<string, string>> = {
  '%25': 'an encoded percent sign',
  '%2E': 'an encoded dot',
  '%2F': 'an encoded slash',
  '%3B': 'an encoded semicolon',
  '%3F': 'an encoded question mark',
  '%5C': 'an encoded backslash',
};

function wrongSegment(target: string, wrong: RegExp): string | undefined {
  const [path = ''] = target.split('?', 1);
  if (!path.startsWith('/')) return 'it does not start with /';
  const segments = path.slice(1).split('/');
  for (const [i, segment] of segments.entries()) {
    if (segment === '' && i < segments.length - 1) return `segment ${i + 1} is empty`;
    const [found] = wrong.exec(segment) ?? [];
    if (found === undefined) continue;
    const name = encodings[found.toUpperCase()] ?? (/^%[017]/.test(found) ? 'an encoded control character' : undefined);
    return `segment ${i + 1} has ${quotedPrintable(found)}${name === undefined ? '' : `, ${name}`}`;
  }
  return 'its escapes are not UTF-8, or control characters';
}

function timesOf({ times, now, config }: Known): string {
  const ofToken = Object.entries(times ?? {}).flatMap(([name, at]) =>
    at === undefined ? [] : `${name} is ${instant(at)}`,
  );
  const { clockToleranceSeconds, maxLifetimeSeconds } = config.token;
  const limits = [
    `token.clockToleranceSeconds is ${clockToleranceSeconds}`,
    `token.maxLifetimeSeconds is ${maxLifetimeSeconds}`,
  ];
  return [`now is ${instant(now)}`, ...ofToken, ...limits].join(', ');
}

function otherAccounts(acc: string, known: Known): string {
  const { config } = known;
  const lower = { ...known, config: { ...config, account: { ...config.account, case: 'lower' } as const } };
  const remedy = placesOfOthers(lower, acc).length > 0 ? '' : ', but for its case: account.case: lower takes it';
  return `acc in the token is ${acc}, another account is in ${placesOfOthers(known, acc).join(', ')}${remedy}`;
}

/** Every place that names an account other than this one; the values stay where they are. */
function placesOfOthers({ config, request }: Known, acc: string): readonly string[] {
  const target = parseRequestTarget(request.target);
  if (target.kind === 'refusal') return [];
  const grammar = toAccountGrammar(config.account);
  const inPath = (matchOf(request.target, config)?.routes ?? []).flatMap(({ template }) =>
    accountPositions(template).filter(i => foldAccountCase(target.segments[i - 1] ?? '', grammar) !== acc),
  );
  const headers = new Map(request.headers.map(([name, value]) => [name, [value]]));
  const facts = { host: headers.get('host')?.[0] ?? '', headers };
  const match = matchRoutes(compileRoutes(config.routes, config.account.parameter), target);
  const elsewhere = placeEntries(config.account).filter(({ place }) => {
    const named = place?.read({ facts, query: target.query, match }) ?? [];
    return !('kind' in named) && named.some(value => value !== acc);
  });
  return [
    ...[...new Set(inPath)].map(segment => `segment ${segment} of the path`),
    ...elsewhere.map(({ name }) => name),
  ];
}

/** Counted from 1. */
function accountPositions({ segments }: RouteTemplate): readonly number[] {
  return segments.flatMap(({ kind }, i) => (kind === 'account' ? [i + 1] : []));
}

/** Undefined where no route matches. */
export function matchOf(path: string, { routes, roles, scopes, account }: Config): RouteMatch | undefined {
  const target = parseRequestTarget(path);
  if (target.kind === 'refusal') return undefined;
  const match = matchRoutes(compileRoutes(routes, account.parameter, grantTemplates(roles, scopes)), target);
  return match.kind === 'match' ? match : undefined;
}
