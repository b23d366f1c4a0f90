// Plans the requests that show whether a gateway does what a configuration says. Pure: sends nothing. Every request is a GET.
import { type HostEntry, parseHostEntry } from '../authz/hosts.ts';
import { parseRouteTemplate, type RouteTemplate } from '../authz/route-template.ts';
import type { Config } from '../config/schema.ts';

/** Where a request names another account. */
export type Place =
  | { readonly kind: 'path' }
  | { readonly kind: 'header'; readonly name: string }
  | { readonly kind: 'query'; readonly name: string }
  | { readonly kind: 'host'; readonly parent: string };

/** What the request is to show. */
export type Purpose =
  | { readonly kind: 'unmatched path' | 'path outside the grammar' | 'public path' }
  | { readonly kind: 'no token' | 'false signature' | 'own account' }
  | { readonly kind: 'other account'; readonly place: Place };

export interface PlannedRequest {
  readonly purpose: Purpose;
  /** For people. It has templates in the place of what the token says. */
  readonly name: string;
  readonly target: string;
  /** Value of the Host header. */
  readonly host: string;
  /** Account headers. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Value of the Authorization header. */
  readonly authorization: string | undefined;
}

export interface Plan {
  /** In the order to send them. */
  readonly requests: readonly PlannedRequest[];
  /** Names of those that exceed the limit. */
  readonly omitted: readonly string[];
}

/** The token on standard input, as far as the plan needs it. Its signature is not verified. */
export interface GivenToken {
  readonly authorization: string;
  /** Its accounts that its issuer may speak for. */
  readonly accounts: readonly string[];
}

export interface PlanOptions {
  readonly config: Pick<Config, 'routes' | 'public' | 'account'>;
  /** Host and port of the gateway, as the Host header has them. */
  readonly host: string;
  /** A token with a false signature for each issuer. */
  readonly falseTokens: readonly string[];
  readonly token: GivenToken | undefined;
}

export const maxRequests = 50;

const mark = 'account-authz-verify';

/** The entry of account.hosts for the gateway, or undefined if none matches. */
export function hostEntryOf({ hosts, parameter }: Config['account'], hostname: string): HostEntry | undefined {
  const entries = (hosts ?? []).map(text => parseHostEntry(text, parameter)).filter(entry => entry.kind !== 'problem');
  const isFor = (entry: HostEntry): boolean =>
    entry.kind === 'literal' ? entry.host === hostname : hostname.slice(hostname.indexOf('.')) === entry.parent;
  return entries.find(entry => entry.kind === 'literal' && isFor(entry)) ?? entries.find(isFor);
}

export function planRequests({ config, host, falseTokens, token }: PlanOptions): Plan {
  const { account } = config;
  const [own] = token?.accounts ?? [];
  const other = absentFrom(token?.accounts ?? []);
  const templates = config.routes.map(route => templateOf(route, account.parameter));
  const [hostname = '', port] = splitPort(host);
  const entry = hostEntryOf(account, hostname);
  const ownHost = own === undefined ? host : hostFor(own, account, entry, host, port);

  const request = (
    purpose: Purpose,
    path: string,
    more: Partial<Omit<PlannedRequest, 'purpose'>> & { readonly detail?: string } = {},
  ): PlannedRequest => {
    const { detail, name = path, ...rest } = more;
    const label = `GET ${name}, ${detail ?? purpose.kind}`;
    return { purpose, target: path, host, headers: [], authorization: undefined, ...rest, name: label };
  };
  const pathOf = (template: RouteTemplate, value: string): string => fill(template, value);
  const shownPath = (template: RouteTemplate): string => fill(template, `:${account.parameter}`);

  const noToken = templates.map(each => request({ kind: 'no token' }, pathOf(each, mark), { name: shownPath(each) }));
  const below = templates
    .filter(({ subtree }) => subtree)
    .map(each =>
      request({ kind: 'no token' }, `${pathOf(each, mark)}/${mark}`, { name: `${shownPath(each)}/${mark}` }),
    );
  const [first] = templates;
  const hosts = first === undefined ? [] : otherHosts(account, entry, port);
  const noTokenByHost = hosts.map(each =>
    request({ kind: 'no token' }, first === undefined ? '/' : pathOf(first, mark), {
      ...(first && { name: shownPath(first) }),
      host: each,
      detail: `no token, host ${each}`,
    }),
  );
  // Every issuer once, the first one on every route.
  const falseSignatures = templates.flatMap((template, i) =>
    falseTokens.slice(0, i === 0 ? falseTokens.length : 1).map((value, issuer) =>
      request({ kind: 'false signature' }, pathOf(template, mark), {
        name: shownPath(template),
        authorization: `Bearer ${value}`,
        detail: issuer === 0 ? 'false signature' : `false signature, issuer ${issuer + 1}`,
      }),
    ),
  );
  const withToken = token && {
    authorization: token.authorization,
    host: ownHost,
  };
  const owns = templates.map(template =>
    request({ kind: 'own account' }, pathOf(template, own ?? mark), {
      ...withToken,
      ...(needsName(template, token) ? naming(own ?? mark, pathOf(template, own ?? mark)) : {}),
      name: shownPath(template),
      detail: own === undefined ? 'the token' : 'own account',
    }),
  );
  const others =
    own === undefined
      ? []
      : placesOf(account).flatMap(place =>
          templates
            .filter(({ segments }) => place.kind !== 'path' || segments.some(({ kind }) => kind === 'account'))
            .map(template =>
              request({ kind: 'other account', place }, pathOf(template, place.kind === 'path' ? other : own), {
                ...withToken,
                ...placed(place, pathOf(template, own), port),
                name: shownPath(template),
                detail: `another account in ${describe(place)}`,
              }),
            ),
        );

  /** Names the account in the first place outside the path. */
  function naming(value: string, path: string): Partial<PlannedRequest> {
    const [header] = account.headers;
    if (header !== undefined) return { headers: [[header, value]] };
    const [parameter] = account.query;
    return parameter === undefined ? {} : { target: `${path}?${parameter}=${value}` };
  }

  function placed(place: Place, path: string, portOfHost: string): Partial<PlannedRequest> {
    switch (place.kind) {
      case 'path':
        return {};
      case 'header':
        return { headers: [[place.name, other]] };
      case 'query':
        return { target: `${path}?${place.name}=${other}` };
      case 'host':
        return { host: `${other}${place.parent}${portOfHost}` };
    }
  }

  const publicPaths = (config.public ?? []).map(({ path }) =>
    request({ kind: 'public path' }, path.replace(/\/\*$/, '')),
  );
  const byImportance = [
    request({ kind: 'unmatched path' }, `/${mark}/no/route`),
    request({ kind: 'path outside the grammar' }, `${openPart(templates)}/${mark}%2Fslash`),
    ...noToken,
    ...publicPaths,
    ...noTokenByHost,
    ...(token ? owns.slice(0, 1) : []),
    ...falseSignatures,
    ...others,
    ...(token ? owns.slice(1) : []),
    ...below,
  ];
  const order: readonly Purpose['kind'][] = [
    'unmatched path',
    'path outside the grammar',
    'public path',
    'no token',
    'false signature',
    'other account',
    'own account',
  ];
  const sent = byImportance.slice(0, maxRequests);
  return {
    requests: order.flatMap(kind => sent.filter(({ purpose }) => purpose.kind === kind)),
    omitted: byImportance.slice(maxRequests).map(({ name }) => name),
  };
}

function templateOf({ path }: Config['routes'][number], parameter: string): RouteTemplate {
  const template = parseRouteTemplate(path, parameter);
  if (template.kind === 'problem') throw new Error(`the configuration has an invalid path: it ${template.problem}`);
  return template;
}

function fill({ segments }: RouteTemplate, account: string): string {
  const values = segments.map(segment => {
    if (segment.kind === 'literal') return segment.value;
    return segment.kind === 'account' ? account : mark;
  });
  return `/${values.join('/')}`;
}

/** The start that Envoy routes by: the literal part of a template that covers more than itself. */
function openPart(templates: readonly RouteTemplate[]): string {
  const starts = templates.map(({ segments, subtree }) => {
    const literals = segments.findIndex(({ kind }) => kind !== 'literal');
    const fixed = literals === -1 ? segments : segments.slice(0, literals);
    return { covers: subtree || literals !== -1, path: fixed.map(each => `/${'value' in each ? each.value : ''}`) };
  });
  const start = starts.find(({ covers, path }) => covers && path.length > 0) ?? starts[0];
  return start?.path.join('') ?? '';
}

function absentFrom(accounts: readonly string[]): string {
  let name = mark;
  for (let i = 2; accounts.includes(name); i += 1) name = `${mark}-${i}`;
  return name;
}

function placesOf({ headers, query, hosts = [], parameter }: Config['account']): readonly Place[] {
  const parents = hosts.map(text => parseHostEntry(text, parameter)).filter(entry => entry.kind === 'account');
  return [
    { kind: 'path' },
    ...headers.map(name => ({ kind: 'header', name }) as const),
    ...query.map(name => ({ kind: 'query', name }) as const),
    ...parents.map(({ parent }) => ({ kind: 'host', parent }) as const),
  ];
}

function describe(place: Place): string {
  switch (place.kind) {
    case 'path':
      return 'the path';
    case 'header':
      return `the header ${place.name}`;
    case 'query':
      return `the parameter ${place.name}`;
    case 'host':
      return `the host (${mark}${place.parent})`;
  }
}

/** A token of several accounts must name one. */
function needsName({ segments }: RouteTemplate, token: GivenToken | undefined): boolean {
  return (token?.accounts.length ?? 0) > 1 && segments.every(({ kind }) => kind !== 'account');
}

/** `host:port` in its two parts; the port with its colon, empty if there is none. */
function splitPort(host: string): readonly [hostname: string, port: string] {
  const port = /:[0-9]+$/.exec(host)?.[0] ?? '';
  return [host.slice(0, host.length - port.length).toLowerCase(), port];
}

/** The host at which the token's own account is asked for: the gateway's, unless that names another account. */
function hostFor(
  own: string,
  { hosts = [], parameter }: Config['account'],
  entry: HostEntry | undefined,
  host: string,
  port: string,
): string {
  if (entry?.kind !== 'account') return host;
  if (/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(own)) return `${own}${entry.parent}${port}`;
  const literal = hosts.map(text => parseHostEntry(text, parameter)).find(each => each.kind === 'literal');
  return literal === undefined ? host : `${literal.host}${port}`;
}

/** A host for each entry of account.hosts but the gateway's. */
function otherHosts(
  { hosts = [], parameter }: Config['account'],
  entry: HostEntry | undefined,
  port: string,
): readonly string[] {
  const key = (each: HostEntry): string => (each.kind === 'literal' ? each.host : `${mark}${each.parent}`);
  return hosts
    .map(text => parseHostEntry(text, parameter))
    .filter(each => each.kind !== 'problem')
    .filter(each => entry === undefined || key(each) !== key(entry))
    .map(each => `${key(each)}${port}`);
}
