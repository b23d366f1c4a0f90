// The schema of the policy: routes, public routes, places of the account, roles, scopes and applications.
import * as z from 'zod';
import { parseHostEntry } from '../authz/places/host-place.ts';
import { isMethodOverride } from '../authz/places/query-place.ts';
import { upstreamFields } from '../authz/principal.ts';
import { defaultAccountParameter, parameterGrammar, parseRouteTemplate } from '../authz/route-template.ts';
import { isJsonObject, itemsOf, memberOf } from '../json/strict-json.ts';
import { resourceProblem } from '../text/url.ts';
import { claimText } from './claims-schema.ts';
import {
  accountHeader,
  evenIfInvalid,
  identityField,
  list,
  mapping,
  maxEntries,
  notControl,
  patternedText,
  report,
  scopeToken,
  text,
  tooMany,
} from './value-schemas.ts';

const accountParameterGrammar = /^(?=[._~-]*[A-Za-z0-9])[A-Za-z0-9._~-]{1,128}$/;

const method = () => patternedText(/^[A-Z]{1,32}$/, 'must be a method in upper case such as GET');

// The grammar of src/authz/route-template.ts for the JSON Schema.
const literalPattern = '(?!\\.{1,2}(?:/|$))[A-Za-z0-9._~@-][A-Za-z0-9._~:@-]*';
function pathPattern(segment: string): string {
  return `^(?:/(?:${segment}))+(?:/\\*)?$`;
}

// The grammar of src/authz/places/host-place.ts likewise.
const labelPattern = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
const hostPattern = `^(?::[A-Za-z_][A-Za-z0-9_]*\\.)?${labelPattern}(?:\\.${labelPattern})*$`;

const characters = () =>
  z.enum(['strict', 'rfc3986']).default('strict').meta({
    description:
      'Which characters a path may have where :other and /* cover it. strict: A-Z a-z 0-9 . _ ~ : @ -. rfc3986: the characters of RFC 3986 except ";", percent-encoded ones too.',
  });

// route-rules.ts checks the path: what is right depends on account.parameter.
const route = mapping({
  path: z.string().meta({
    description:
      'Path template: literal segments, :account_id for the account, :other for any one segment, and /* at the end for the path itself and everything under it.',
    examples: ['/api/subscriptions/*', '/api/subscriptions/accounts/:account_id/*'],
    pattern: pathPattern(`:[A-Za-z_][A-Za-z0-9_]*|${literalPattern}`),
  }),
  roles: list(identityField('a role'), { noun: 'role' }).exactOptional().meta({
    description: 'The roles that may use this route. It narrows what roles allows and never widens it.',
  }),
  scopes: list(scopeToken(), { noun: 'scope' }).exactOptional().meta({
    description: 'The scopes of which a token must have one here. It narrows what scopes allows and never widens it.',
  }),
  accountInPath: z.literal(false).exactOptional().meta({
    description:
      'Set it to false for a path with parameters of which none is the account: the route serves them to every token. Any other path must leave it out.',
  }),
  characters: characters(),
}).meta({ description: 'A protected route.' });

// route-rules.ts finds those that are the same but for the names of parameters.
export const routes = list(route, {
  noun: 'route',
  sameBy: () => undefined,
  repeatedAt: 'path',
  max: maxEntries.routes,
}).meta({
  description:
    'The protected routes. A request must match at least one of them; every :account_id of every match must be the addressed account.',
});

const publicRoute = mapping({
  path: text(publicPathProblem).meta({
    description: 'A literal path; with /* at the end also everything under it. No route may match such a path too.',
    examples: ['/healthz', '/assets/*'],
    pattern: pathPattern(literalPattern),
  }),
  methods: list(method(), { noun: 'method' })
    .default(['GET', 'HEAD'])
    .meta({ description: 'The methods that Envoy serves without a check. It answers any other with 404.' }),
  characters: characters(),
}).meta({ description: 'A path that Envoy serves without a check. account-authz itself never allows it.' });

export const publicRoutes = list(publicRoute, {
  noun: 'public route',
  sameBy: item => memberOf(item, 'path'),
  repeatedAt: 'path',
  max: maxEntries.public,
});

export const account = mapping({
  headers: list(accountHeader(), { noun: 'header' }).default([]).meta({
    description: 'Request headers that name the account. Every place that names one must name the same.',
  }),
  query: list(text(accountParameterProblem).meta({ pattern: accountParameterGrammar.source }), {
    noun: 'parameter',
    sameBy: item => (typeof item === 'string' ? toParameterFamily(item) : item),
  })
    .default([])
    .meta({ description: 'Query parameters that name the account. Every place that names one must name the same.' }),
  hosts: list(z.string().meta({ pattern: hostPattern }), { noun: 'host', sameBy: each => lowerCase(each) })
    .exactOptional()
    .meta({
      description:
        'The hosts that requests may be for. The first label may be :account_id (as account.parameter names it) and then names the account. Without hosts, any host is accepted.',
      examples: [[':account_id.api.example.com', 'api.example.com']],
    }),
  parameter: patternedText(parameterGrammar, 'must be a name of letters, digits and _ that starts with a letter or _')
    .default(defaultAccountParameter)
    .meta({ description: 'The name of the path parameter that is the account: with tenant, paths write :tenant.' }),
  dots: z.boolean().default(false).meta({
    description:
      'Whether an account may have dots (acme.com). Many servers read /accounts/acme.json as the account acme in the format json.',
  }),
  case: z.enum(['exact', 'lower']).default('exact').meta({
    description:
      'With lower, accounts are lower case, and A to Z in an account that a request names is read as a to z, as in UUIDs that clients send in upper case.',
  }),
}).superRefine(requireHosts, evenIfInvalid);

// route-rules.ts checks the template: what is right depends on account.parameter.
const grants = list(
  text(grant =>
    /^(?:[A-Z]{1,32}|\*)(?: \/[^ ]*)?$/.test(grant)
      ? undefined
      : 'must be a method in upper case such as GET, or "*"; for some paths alone, then a space and their template: "POST /a/*"',
  ).meta({
    pattern: `^(?:[A-Z]{1,32}|\\*)(?: ${pathPattern(`:[A-Za-z_][A-Za-z0-9_]*|${literalPattern}`).slice(1, -1)})?$`,
  }),
  { noun: 'grant' },
);

const called = mapping({
  methods: grants.meta({ description: 'The grants of the role.' }),
  names: list(text(calledProblem).meta({ pattern: `^${notControl}{1,256}$` }), {
    noun: 'name',
    max: 100,
  }).meta({ description: 'What tokens call the role. Its key is no name then.' }),
});

/** What holders of each name may do: roles and scopes alike. */
function permissions<Name extends z.core.$ZodRecordKey, Entry extends z.ZodType>(
  name: Name,
  entry: Entry,
  noun: string,
) {
  return z
    .record(name, entry)
    .superRefine((value: unknown, context) => {
      const count = isJsonObject(value) ? Object.keys(value).length : 1;
      if (count === 0) report(context, `must name at least one ${noun}`);
      if (isJsonObject(value) && Object.hasOwn(value, '*'))
        report(context, `must be the name of one ${noun} ("*" does not stand for all ${noun}s)`, ['*']);
    })
    .meta({ minProperties: 1, maxProperties: maxEntries.roles, not: { required: ['*'] } });
}

const grantForm =
  'A grant is a method, or a method and a template ("POST /api/comments/*"): then only where the template matches the path. "*" stands for GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS.';

export const roles = permissions(
  identityField('a role'),
  z.union([grants, called], { error: () => 'must be a list of grants, or { methods, names }' }),
  'role',
)
  .superRefine(requireOneRoleOfEachName, evenIfInvalid)
  .meta({
    description: `What each role may do, the same on all routes: a list of grants, or { methods, names } with that list and what tokens call the role. ${grantForm} A role that is not named here is refused. Of several roles in a token, the first in this order that is enough counts.`,
    examples: [
      { admin: ['*'], member: ['GET', 'HEAD', 'POST /api/comments/*'] },
      { manager: { methods: ['GET', 'POST'], names: ['Site Manager'] } },
    ],
  });

export const scopes = permissions(scopeToken(), grants, 'scope').meta({
  description: `What each scope may do, the same on all routes, beside what roles allows: a request needs one role and one scope that may use its method on its path. ${grantForm} Without scopes, the scopes of a token are not looked at.`,
  examples: [{ billing: ['*'], 'orders:read': ['GET', 'HEAD'] }],
});

export const apps = list(identityField('an app id'), { noun: 'app' })
  .superRefine(refuseWildcardAmongOthers, evenIfInvalid)
  .meta({ not: { minItems: 2, contains: { const: '*' } } })
  .default(['*'])
  .meta({ description: 'The applications that may call, or "*" alone for all of them.' });

const forwardedRule = `must be 1 to 32 lower-case letters, digits and hyphens that start with a letter, and none of ${upstreamFields.join(', ')}`;
const maxForwarded = 10;

export const forwardClaims = z
  .record(
    text(name => (isForwardedName(name) ? undefined : forwardedRule)).meta({
      pattern: `^(?!(?:${upstreamFields.join('|')})$)[a-z][a-z0-9-]{0,31}$`,
    }),
    claimText(),
  )
  // Only of a valid value: from another one, zod has taken the names that are reported already.
  .superRefine((value, context) => {
    if (Object.keys(value).length === 0) report(context, 'must name at least one header');
  })
  .superRefine((value: unknown, context) => {
    if (isJsonObject(value) && Object.keys(value).length > maxForwarded)
      report(context, tooMany(maxForwarded, 'header'));
  }, evenIfInvalid)
  .meta({
    minProperties: 1,
    maxProperties: maxForwarded,
    description:
      'Further claims for the upstream: the name of a header after the prefix identityHeaders, and where a token has its value, as in claims. Sent where the claim is a string of 1 to 256 visible ASCII characters and single spaces within it, an integer or a boolean. At most 10 names of 1 to 32 characters. They are in no log, metric, span or metadata.',
    examples: [{ email: 'email', plan: '/app_metadata/plan' }],
  });

export const protectedResource = mapping({
  resource: text(resourceProblem).meta({
    format: 'uri',
    pattern: '^https://[A-Za-z0-9[][^\\s"/?#@<>\\\\^`{|}]*(?:[/?][^\\s"#<>\\\\^`{|}]*)?$',
    description:
      'The resource identifier of this API (RFC 9728): an https URL. Refusals name the metadata document at its well-known URL, by which clients find the authorization server.',
    examples: ['https://api.example.com/subscriptions'],
  }),
  scopes: list(scopeToken(), { noun: 'scope' })
    .exactOptional()
    .meta({
      description:
        'The scopes that a client asks for first, names of scopes: those of the metadata document, and of a 401 where one of them would do. Default: all.',
      examples: [['mcp:tools']],
    }),
});

function isForwardedName(name: string): boolean {
  return /^[a-z][a-z0-9-]{0,31}$/.test(name) && !upstreamFields.some(field => field === name);
}

function publicPathProblem(path: string): string | undefined {
  const template = parseRouteTemplate(path);
  if (template.kind === 'problem') return template.problem;
  return template.segments.every(({ kind }) => kind === 'literal')
    ? undefined
    : 'must not have parameters: a public route is a literal path';
}

function accountParameterProblem(name: string): string | undefined {
  if (!accountParameterGrammar.test(name))
    return 'must be 1 to 128 of the characters A-Z a-z 0-9 . _ ~ -, with a letter or digit among them';
  return isMethodOverride(name)
    ? 'must not be a parameter by which servers let a client change the method: requests with it are refused'
    : undefined;
}

// Two such parameters would be look-alikes of each other, and every request with one of them refused.
function toParameterFamily(name: string): string {
  return name.toLowerCase().replaceAll('.', '_');
}

function lowerCase(item: unknown): unknown {
  return typeof item === 'string' ? item.toLowerCase() : item;
}

function requireOneRoleOfEachName(roles: unknown, context: z.RefinementCtx): void {
  const known = new Set<unknown>();
  for (const [role, entry] of Object.entries(isJsonObject(roles) ? roles : {})) {
    const names = memberOf(entry, 'names');
    for (const [i, name] of (Array.isArray(names) ? names : [role]).entries()) {
      const path = Array.isArray(names) ? [role, 'names', i] : [role];
      if (known.has(name)) report(context, 'must not be what another role is called by too', path);
    }
    for (const name of Array.isArray(names) ? names : [role]) known.add(name);
  }
}

function refuseWildcardAmongOthers(apps: unknown, context: z.RefinementCtx): void {
  if (Array.isArray(apps) && apps.length > 1 && apps.includes('*'))
    report(context, 'must be either "*" alone or app ids without "*"');
}

/** The parameter that is the account, where it is valid; the default otherwise. */
export function accountParameterOf(account: unknown): string {
  const parameter = memberOf(account, 'parameter');
  return typeof parameter === 'string' && parameterGrammar.test(parameter) ? parameter : defaultAccountParameter;
}

function requireHosts(account: unknown, context: z.RefinementCtx): void {
  for (const [i, host] of itemsOf(memberOf(account, 'hosts')).entries()) {
    if (typeof host !== 'string') continue;
    const entry = parseHostEntry(host, accountParameterOf(account));
    if (entry.kind === 'problem') report(context, entry.problem, ['hosts', i]);
  }
}

export function requireResourceAmongHosts(config: unknown, context: z.RefinementCtx): void {
  const resource = memberOf(memberOf(config, 'protectedResource'), 'resource');
  const account = memberOf(config, 'account');
  const hosts = memberOf(account, 'hosts');
  if (typeof resource !== 'string' || resourceProblem(resource) !== undefined || !Array.isArray(hosts)) return;
  const parameter = accountParameterOf(account);
  const entries = itemsOf(hosts).flatMap(host => (typeof host === 'string' ? [parseHostEntry(host, parameter)] : []));
  const { hostname } = new URL(resource);
  if (entries.some(entry => entry.kind === 'literal' && entry.host === hostname)) return;
  const message = 'must have a host that account.hosts has without the account: clients fetch its metadata from there';
  report(context, message, ['protectedResource', 'resource']);
}

function calledProblem(name: string): string | undefined {
  return name !== '' && name.length <= 256 && !/\p{Cc}/u.test(name)
    ? undefined
    : 'must be 1 to 256 characters without control characters';
}
