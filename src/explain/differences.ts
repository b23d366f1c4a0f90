// What exactly differs in one request: between it and the settings, or between it and its verified token. Speaks of settings, of
// the identity fields and times of a verified token, and of places in the request; never of what stands in the query.
import { accountsInQuery, compileAccountParameters } from '../authz/account-query.ts';
import { parseRequestTarget } from '../authz/path.ts';
import { matchRoutes } from '../authz/route.ts';
import { parseRouteTemplate, type RouteTemplate } from '../authz/route-template.ts';
import type { Config, RouteConfig } from '../config/schema.ts';
import { quotedForeignText } from '../foreign-text.ts';
import { issuerIn, type Known, type LiveFacts } from './known.ts';
import { duration, instant, keyAge, listed } from './wording.ts';

export function ofPath({ live }: Known): string | undefined {
  if (live === undefined) return undefined;
  const [path = ''] = live.request.target.split('?', 1);
  if (!path.startsWith('/')) return 'it does not start with /';
  const segments = path.slice(1).split('/');
  const wrong = segments.findIndex((segment, i) =>
    segment === '' ? i < segments.length - 1 : /[^A-Za-z0-9._~:@-]/.test(segment),
  );
  const segment = segments[wrong];
  if (segment === undefined) return undefined;
  if (segment === '') return `segment ${wrong + 1} is empty`;
  const [character = ''] = /[^A-Za-z0-9._~:@-]/u.exec(segment) ?? [];
  return `segment ${wrong + 1} has ${quotedForeignText(character)}`;
}

export function ofPlaceNames({ live }: Known): string | undefined {
  if (live === undefined) return undefined;
  const { headers, query } = live.config.account;
  const parts = [
    ...(headers.length > 0 ? [`account.headers: ${listed(headers)}`] : []),
    ...(query.length > 0 ? [`account.query: ${listed(query)}`] : []),
  ];
  return parts.join('; ');
}

export function ofRoutes({ live }: Known): string | undefined {
  return live && `routes: ${listed(live.config.routes.map(({ path }) => path))}`;
}

export function ofLength({ live }: Known): string | undefined {
  return live && `it has ${live.tokenLength} bytes, token.maxBytes is ${live.config.token.maxBytes}`;
}

export function ofIssuers({ live }: Known): string | undefined {
  return live && `issuers: ${listed(live.config.issuers.map(({ issuer }) => issuer))}`;
}

export function ofAlgorithms({ live }: Known): string | undefined {
  const issuer = live && issuerIn(live);
  return issuer && `algorithms: ${listed(issuer.algorithms)}`;
}

export function ofTokenTypes({ live }: Known): string | undefined {
  const issuer = live && issuerIn(live);
  return issuer && `tokenTypes: ${listed(issuer.tokenTypes.map(type => (type === '' ? '""' : type)))}`;
}

export function ofKeys({ live }: Known): string | undefined {
  const keys = live?.keys;
  if (keys === undefined) return undefined;
  const kids = keys.kids.length === 0 ? '' : `, kids: ${listed(keys.kids.map(kid => quotedForeignText(kid)))}`;
  return `the keys of ${keys.issuer}: ${keyAge(keys)}${kids}`;
}

export function ofAudiences({ live }: Known): string | undefined {
  const issuer = live && issuerIn(live);
  return issuer && `audiences: ${listed(issuer.audiences)}`;
}

export function ofClaimNames({ live }: Known): string | undefined {
  const issuer = live && issuerIn(live);
  if (issuer === undefined) return undefined;
  const names = Object.entries(issuer.claims).map(([field, claim]) => `${field} from ${quotedForeignText(claim)}`);
  return `claims: ${names.join(', ')}`;
}

export function ofStart({ live }: Known): string | undefined {
  if (live?.times === undefined) return undefined;
  const { iat, nbf } = live.times;
  const latest = Math.max(iat ?? -Infinity, nbf ?? -Infinity);
  const tolerance = `token.clockToleranceSeconds is ${live.config.token.clockToleranceSeconds}`;
  return `it starts at ${instant(latest)}, ${duration(latest - live.now)} from ${instant(live.now)}; ${tolerance}`;
}

export function ofLifetime({ live }: Known): string | undefined {
  if (live?.times?.exp === undefined) return undefined;
  const { exp, iat } = live.times;
  const limit = `token.maxLifetimeSeconds is ${live.config.token.maxLifetimeSeconds}`;
  if (iat === undefined) return `it has no iat and expires in ${duration(exp - live.now)}; ${limit}`;
  return `issued at ${instant(iat)}, expires at ${instant(exp)}; ${limit}`;
}

export function ofExpiry({ live }: Known): string | undefined {
  if (live?.times?.exp === undefined) return undefined;
  const { exp } = live.times;
  const tolerance = `token.clockToleranceSeconds is ${live.config.token.clockToleranceSeconds}`;
  return `expired ${duration(live.now - exp)} before ${instant(live.now)}, at ${instant(exp)}; ${tolerance}`;
}

export function ofApp({ live, principal }: Known): string | undefined {
  if (principal === undefined) return undefined;
  return withSettings(`app is ${principal.app}`, live && `apps: ${listed(live.config.apps)}`);
}

export function ofRole({ live, principal }: Known): string | undefined {
  if (principal === undefined) return undefined;
  return withSettings(`role is ${principal.role}`, live && `roles: ${listed(Object.keys(live.config.roles))}`);
}

export function ofMethod({ live, method, principal }: Known): string | undefined {
  if (principal === undefined) return undefined;
  const methods =
    live && Object.hasOwn(live.config.roles, principal.role) ? live.config.roles[principal.role] : undefined;
  return withSettings(
    `role is ${principal.role}, the method is ${method}`,
    methods && `roles.${principal.role}: ${listed(methods)}`,
  );
}

export function ofNarrowing({ live, route, principal }: Known): string | undefined {
  if (principal === undefined) return undefined;
  const narrowed =
    live === undefined ? [] : matchingRoutes(live).filter(({ roles }) => !roles.includes(principal.role));
  const settings = narrowed.map(({ path, roles }) => `${path} is for ${listed(roles)}`);
  const where =
    route === undefined || live !== undefined ? '' : `, the route is ${route} and there may be more that match`;
  return withSettings(`role is ${principal.role}${where}`, settings.join('; ') || undefined);
}

export function ofAccount({ live, route, principal }: Known): string | undefined {
  if (principal === undefined) return undefined;
  const own = `acc in the token is ${principal.acc}`;
  if (live !== undefined) return `${own}, another account is in ${listed(placesOfOthers(live, principal.acc))}`;
  const places = route === undefined ? [] : accountSegments(route).map(segment => `segment ${segment} of the path`);
  return `${own}, another account is in ${[...places, 'a header or a parameter of account'].join(', or in ')}`;
}

export function ofFault({ live }: Known): string | undefined {
  return live?.fault;
}

function withSettings(text: string, settings: string | undefined): string {
  return settings === undefined ? text : `${text}; ${settings}`;
}

/** Every place that names an account other than this one; the values stay where they are. */
function placesOfOthers({ config, request }: LiveFacts, acc: string): readonly string[] {
  const target = parseRequestTarget(request.target);
  if (target.kind === 'refusal') return [];
  const inPath = matchingTemplates(config, target.segments).flatMap(({ segments }) =>
    segments.flatMap(({ kind }, i) => (kind === 'account' && target.segments[i] !== acc ? [i + 1] : [])),
  );
  const inHeaders = config.account.headers.filter(name =>
    request.headers.some(([sent, value]) => sent === name && value !== acc),
  );
  const inQuery = config.account.query.filter(name => {
    const named = accountsInQuery(compileAccountParameters([name]), target.query);
    return !('kind' in named) && named.some(value => value !== acc);
  });
  return [
    ...Array.from(new Set(inPath).values(), segment => `segment ${segment} of the path`),
    ...inHeaders.map(name => `the header ${name}`),
    ...inQuery.map(name => `the parameter ${name}`),
  ];
}

function accountSegments(route: string): readonly number[] {
  const template = parseRouteTemplate(route);
  if (template.kind === 'problem') return [];
  return template.segments.flatMap(({ kind }, i) => (kind === 'account' ? [i + 1] : []));
}

function matchingTemplates(config: Config, segments: readonly string[]): readonly RouteTemplate[] {
  return config.routes.flatMap(({ path }) => {
    const template = parseRouteTemplate(path);
    return template.kind === 'template' && isMatch(template, segments) ? [template] : [];
  });
}

/** The routes that the path matches and that name roles. */
function matchingRoutes({ config, request }: LiveFacts): readonly Required<RouteConfig>[] {
  const target = parseRequestTarget(request.target);
  if (target.kind === 'refusal') return [];
  const texts = new Set(matchingTemplates(config, target.segments).map(({ text }) => text));
  return config.routes.flatMap(({ path, roles }) => (roles !== undefined && texts.has(path) ? [{ path, roles }] : []));
}

function isMatch(template: RouteTemplate, segments: readonly string[]): boolean {
  return matchRoutes([{ template, roles: undefined }], segments).kind === 'match';
}
