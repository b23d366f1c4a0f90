// Every header name that matters, and why: what Envoy shows to the check, what it removes, what an answer sets or removes, and which names
// the configuration may use. render, lint, answers, check-config and docs/headers.md ask this file.
import type { AccountSettings } from '../authz/places/places.ts';
import { upstreamFields } from '../authz/principal.ts';
import { hasPlace, subprotocolHeader, type TokenSettings } from '../authz/token-places.ts';
import { hostOverrides, placeHeaders } from './account-places.ts';
import type { HeaderRule } from './header-rule.ts';

/** The part of the configuration that decides about headers. */
export interface HeaderConfig {
  readonly identityHeaders: string;
  readonly token: TokenSettings;
  readonly account: AccountSettings;
}

/** Name of a header after the prefix → where a token has what it sends. */
export type ForwardClaims = Readonly<Record<string, string>>;

const override = { kind: 'override', removed: 'everywhere', inTrailers: 'removed' } as const;

// Headers by which an upstream acts on another path, method or host than the checked one.
const pathOverrides = {
  names: ['x-original-url', 'x-rewrite-url', 'x-script-name', 'script-name'],
  why: 'an upstream takes another path from it, or cuts its value from the path',
  ...override,
} as const satisfies HeaderRule;
const prefixOverride = { ...pathOverrides, names: ['x-forwarded-prefix'] } as const satisfies HeaderRule;
const methodOverrides = {
  names: ['x-http-method-override', 'x-http-method', 'x-method-override'],
  why: 'an upstream takes another method from it',
  ...override,
} as const satisfies HeaderRule;
const setByExtAuthz = {
  names: ['x-envoy-auth-partial-body', 'x-envoy-auth-failure-mode-allowed'],
  kind: 'filter',
  why: 'only ext_authz may set it',
  removed: 'everywhere',
} as const satisfies HeaderRule;

/** `trustedHops`: of proxies in front of Envoy. They may tell a public route which prefix they cut from the path. */
export function toHeaderRules(
  { identityHeaders, token, account }: HeaderConfig,
  trustedHops: number,
): readonly HeaderRule[] {
  return [
    {
      names: [`${identityHeaders}*`],
      kind: 'identity',
      why: 'only account-authz may set it',
      removed: 'everywhere',
      inTrailers: 'removed',
      allow: 'sets',
    },
    setByExtAuthz,
    ...(trustedHops === 0
      ? [{ ...pathOverrides, names: [...pathOverrides.names, ...prefixOverride.names] }]
      : [pathOverrides, { ...prefixOverride, removed: 'checked' } as const]),
    methodOverrides,
    ...tokenHeaders(token),
    {
      names: ['x-request-id', 'traceparent', 'tracestate'],
      kind: 'context',
      why: 'joins logs and traces',
      shown: 'exactly',
    },
    // Envoy passes it on only with an upgrade.
    { names: ['connection'], kind: 'context', why: 'it may name headers that the next hop removes', shown: 'exactly' },
    ...placeHeaders(account),
  ];
}

// No service needs the token after the check.
function tokenHeaders({ from, forward }: TokenSettings): readonly HeaderRule[] {
  const why = 'the token; no service needs it after the check';
  const gone = forward ? {} : ({ removed: 'public', allow: 'removes' } as const);
  const token = { kind: 'token', why, inTrailers: 'removed' } as const;
  const names = from.flatMap(place => (typeof place === 'object' && 'header' in place ? [place.header] : []));
  const rewritten = rewrittenNames(from);
  return [
    { ...token, names: ['authorization'], shown: 'exactly', ...gone },
    ...names.map(name => ({ ...token, names: [name], shown: 'spellings', ...gone }) as const),
    ...rewritten.map(
      name =>
        ({
          ...token,
          names: [name],
          why: 'may have the token, without which the upstream gets it',
          shown: 'exactly',
          ...(forward ? {} : ({ allow: 'rewrites' } as const)),
        }) as const,
    ),
    ...(hasPlace(from, 'subprotocol')
      ? [{ names: ['upgrade'], kind: 'context', why: 'tells a WebSocket', shown: 'exactly' } as const]
      : []),
    ...(rewritten.length > 0
      ? [{ names: ['origin'], kind: 'context', why: 'the page that sends the token', shown: 'exactly' } as const]
      : []),
  ];
}

/** The headers that have the token beside what the upstream needs: those of pages. */
export function rewrittenNames(from: TokenSettings['from']): readonly string[] {
  return [
    ...(hasPlace(from, 'cookie') ? ['cookie'] : []),
    ...(hasPlace(from, 'subprotocol') ? [subprotocolHeader] : []),
  ];
}

/**
 * RE2 for the name with whatever sign in place of each hyphen: CGI reads each as an underscore (RFC 3875 section 4.1.18). One name a pattern:
 * without the setting of the runtime Envoy takes no program of more than 100 instructions, and before 1.39 it counts more of them.
 */
export function spellings(name: string): string {
  return name.replaceAll('-', '[^a-z0-9]').replace('*', '.*');
}

/** The names that an answer of account-authz may set or remove: RE2 for whole names. */
export function mutablePattern(rules: readonly HeaderRule[]): string {
  const names = rules.filter(({ allow }) => allow !== undefined).flatMap(each => each.names);
  const patterns = names.map(name => name.replaceAll('-', '[-_]').replace('*', '.*'));
  return patterns.length === 1 ? `^${patterns.join('')}$` : `^(${patterns.join('|')})$`;
}

/** Whether an answer of account-authz may set or remove a header of this name, in lower case. */
export function isMutable(rules: readonly HeaderRule[], name: string): boolean {
  const hyphenated = name.replaceAll('_', '-');
  const isOne = (each: string): boolean =>
    each.endsWith('*') ? hyphenated.startsWith(each.slice(0, -1)) : hyphenated === each;
  return rules.some(({ allow, names: own }) => allow !== undefined && own.some(isOne));
}

/** The names that an allow removes whatever was sent, besides the look-alikes of identity headers. */
export function removedByAllow(rules: readonly HeaderRule[]): readonly string[] {
  const names = rules.filter(({ allow }) => allow === 'removes').flatMap(each => each.names);
  return names.flatMap(name => [name, ...underscoreSpellings(name)]);
}

export interface IdentityHeaders {
  /** Field → header name, in the order of the response. */
  readonly names: ReadonlyMap<(typeof upstreamFields)[number], string>;
  /** Those of `forwardClaims`, in their order. */
  readonly forwarded: readonly string[];
  /** Both. */
  readonly all: readonly string[];
  /** Every spelling of them with `_` for one or more `-`: CGI and WSGI read both as the same variable (RFC 3875 section 4.1.18). */
  readonly lookAlikes: readonly string[];
  /** Those of the given request headers that have the prefix and are neither one of them nor a look-alike. */
  strayNames(received: Iterable<string>): readonly string[];
}

const headerName = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;

export function createIdentityHeaders(prefix: string, forwardClaims: ForwardClaims = {}): IdentityHeaders {
  const names = new Map(upstreamFields.map(field => [field, prefix + field]));
  const forwarded = Object.keys(forwardClaims).map(name => prefix + name);
  const all = [...names.values(), ...forwarded];
  const own = new Set(all);
  const lookAlikes = all.flatMap(underscoreSpellings);
  const removedAnyway = new Set(lookAlikes);
  return {
    names,
    forwarded,
    all,
    lookAlikes,
    strayNames(received) {
      let found: Set<string> | undefined;
      for (const name of received) {
        if (!isUnder(prefix, name) || own.has(name) || removedAnyway.has(name)) continue;
        // Envoy forwards no invalid name, and rejects a whole response that contains one.
        if (!headerName.test(name)) continue;
        found ??= new Set();
        found.add(name);
      }
      return found === undefined ? [] : [...found];
    },
  };
}

/** Whether a name starts with the prefix, with `_` read as `-`. */
function isUnder(prefix: string, name: string): boolean {
  if (name.length < prefix.length) return false;
  for (let i = 0; i < prefix.length; i += 1) {
    const character = name[i];
    if (character !== prefix[i] && !(character === '_' && prefix[i] === '-')) return false;
  }
  return true;
}

/** Every mixture of `-` and `_` but the name itself. */
export function underscoreSpellings(name: string): string[] {
  const spellings = name
    .split('-')
    .reduce<string[]>(
      (starts, part, i) => (i === 0 ? [part] : starts.flatMap(start => [`${start}-${part}`, `${start}_${part}`])),
      [],
    );
  return spellings.filter(spelling => spelling !== name);
}

// Prefixes that are reserved with every name below them.
const families = [
  'accept-',
  'access-control-',
  'cache-',
  'content-',
  'cross-origin-',
  'grpc-',
  'if-',
  'proxy-',
  'sec-',
  'transfer-',
  'www-',
  'x-amzn-',
  'x-b3-',
  'x-datadog-',
  'x-envoy-',
  'x-forwarded-',
  'x-http-',
  'x-ot-',
] as const;

// The IANA registry of HTTP field names where such a header is in use, the CORS and fetch headers of browsers, what Envoy
// reads or writes, tracing, and the headers by which frameworks let a client change a request's method, URL or address.
const names: ReadonlySet<string> = new Set([
  ...[pathOverrides, prefixOverride, methodOverrides, hostOverrides].flatMap(rule => rule.names),
  ...`a-im accept age allow alt-svc alt-used authentication-info authorization b3 baggage client-cert client-cert-chain
  connection cookie date depth destination dnt early-data etag expect expires from host http2-settings
  keep-alive last-event-id last-modified link location max-forwards mime-version origin origin-agent-cluster
  overwrite permissions-policy pragma prefer preference-applied priority range referer referrer-policy refresh
  report-to retry-after save-data server server-timing service-worker service-worker-allowed set-cookie signature
  signature-input strict-transport-security te timing-allow-origin traceparent tracestate trailer upgrade
  upgrade-insecure-requests user-agent vary via want-content-digest want-digest want-repr-digest warning
  x-client-trace-id x-cloud-trace-context x-content-type-options x-correlation-id x-csrf-token x-frame-options
  x-original-method x-permitted-cross-domain-policies x-powered-by
  x-ratelimit-limit x-ratelimit-remaining x-ratelimit-reset x-real-ip x-request-id x-requested-with x-robots-tag
  x-xsrf-token x-xss-protection`.split(/\s+/),
]);

const maxPrefixLength = 64;
// The service removes every spelling of its own headers with - and _ mixed: 2^hyphens names each.
const maxHyphens = 5;

// What proxies that sign users in call the token that they pass on: oauth2-proxy and the load balancer of AWS.
const passedTokens: ReadonlySet<string> = new Set(['x-forwarded-access-token', 'x-amzn-oidc-accesstoken']);

// The load balancer of AWS signs it with padded base64, and publishes each key as a PEM file of its own.
const unreadableToken =
  'must not be x-amzn-oidc-data, whose base64 has padding and whose keys are PEM files by kid, no key set: x-amzn-oidc-accesstoken has the token of the issuer';

/** The rest of a sentence about a lower-case name that cannot be a header of accounts, or of tokens, or undefined. */
export function accountHeaderProblem(name: string, example = 'x-account-id'): string | undefined {
  if (name.startsWith(':')) return 'must be a header, not a pseudo-header such as :path';
  if (name.includes('_'))
    return 'must have hyphens in place of underscores: a request with an underscore in this name is refused';
  if (!/^[a-z0-9](?:[a-z0-9-]{0,126}[a-z0-9])?$/.test(name)) {
    return 'must be a header name of at most 128 letters, digits and hyphens';
  }
  if (name === 'x-amzn-oidc-data') return unreadableToken;
  return isReserved(name)
    ? `must not be a header that HTTP, Envoy or account-authz uses: use a name of your own such as ${example}`
    : undefined;
}

/** The rest of a sentence about a prefix that identity headers cannot have, or undefined. */
export function identityPrefixProblem(prefix: string): string | undefined {
  if (!/^[a-z0-9][a-z0-9-]*-$/.test(prefix)) {
    return 'must be lower-case letters, digits and hyphens that end in a hyphen, such as x-auth-';
  }
  if (prefix.length < 4 || prefix.length > maxPrefixLength) return `must have 4 to ${maxPrefixLength} characters`;
  if (hyphensIn(prefix) > maxHyphens) return `must not have more than ${maxHyphens} hyphens`;
  const taken = reservedUnder(prefix);
  return taken === undefined
    ? undefined
    : `must not cover ${taken}, which others use: choose another prefix such as x-auth-`;
}

/** The rest of a sentence about a name of `forwardClaims` that no header under the prefix can have, or undefined. */
export function forwardedNameProblem(name: string, prefix: string): string | undefined {
  return hyphensIn(prefix + name) > maxHyphens
    ? `must not have more than ${maxHyphens - hyphensIn(prefix)} hyphens: with those of identityHeaders ${maxHyphens}`
    : undefined;
}

function hyphensIn(name: string): number {
  return name.split('-').length - 1;
}

function isReserved(name: string): boolean {
  return names.has(name) || (families.some(family => name.startsWith(family)) && !passedTokens.has(name));
}

function reservedUnder(prefix: string): string | undefined {
  const family = families.find(each => each.startsWith(prefix) || prefix.startsWith(each));
  return family === undefined ? [...names].find(name => name.startsWith(prefix)) : `${family}*`;
}
