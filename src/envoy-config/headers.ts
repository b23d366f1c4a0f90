// Which header names matter: those that account-authz reads, those that make an upstream serve another request, and those that a
// configuration may use.

/** Headers that make an upstream act on another path, method or host than the checked one. */
export const pathOverrideHeaders = ['x-original-url', 'x-rewrite-url'] as const;
export const methodOverrideHeaders = ['x-http-method-override', 'x-http-method', 'x-method-override'] as const;
/** They matter with `account.hosts`: the host names the account. */
export const hostOverrideHeaders = [
  ...['forwarded', 'x-forwarded-host', 'x-forwarded-server'],
  ...['x-host', 'x-original-host', 'x-http-host-override'],
] as const;

/** The headers that account-authz must be shown, in lower case. */
export function shownHeaders({ headers, query }: AccountNames): readonly string[] {
  return [
    ...['authorization', 'x-request-id', 'traceparent', 'tracestate'],
    // Envoy passes it on only with an upgrade. It may name headers that the next hop removes.
    'connection',
    // Some servers decode a query by the charset that it names.
    ...(query.length === 0 ? [] : ['content-type']),
    ...headers.map(header => header.toLowerCase()),
  ];
}

/** `account.headers` and `account.query` of a configuration. */
interface AccountNames {
  readonly headers: readonly string[];
  readonly query: readonly string[];
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
  ...pathOverrideHeaders,
  ...methodOverrideHeaders,
  ...hostOverrideHeaders,
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
// The service removes every spelling of its six headers with - and _ mixed: 2^hyphens names each.
const maxPrefixHyphens = 5;

/** The rest of a sentence about a lower-case name that cannot be an account header, or undefined. */
export function accountHeaderProblem(name: string): string | undefined {
  if (name.startsWith(':')) return 'must be a header, not a pseudo-header such as :path';
  if (name.includes('_'))
    return 'must have hyphens in place of underscores: a request with an underscore in this name is refused';
  if (!/^[a-z0-9](?:[a-z0-9-]{0,126}[a-z0-9])?$/.test(name)) {
    return 'must be a header name of at most 128 letters, digits and hyphens';
  }
  return isReserved(name)
    ? 'must not be a header that HTTP, Envoy or account-authz uses: use a name of your own such as x-account-id'
    : undefined;
}

/** The rest of a sentence about a prefix that identity headers cannot have, or undefined. */
export function identityPrefixProblem(prefix: string): string | undefined {
  if (!/^[a-z0-9][a-z0-9-]*-$/.test(prefix)) {
    return 'must be lower-case letters, digits and hyphens that end in a hyphen, such as x-auth-';
  }
  if (prefix.length < 4 || prefix.length > maxPrefixLength) return `must have 4 to ${maxPrefixLength} characters`;
  if (prefix.split('-').length - 1 > maxPrefixHyphens) return `must not have more than ${maxPrefixHyphens} hyphens`;
  const taken = reservedUnder(prefix);
  return taken === undefined
    ? undefined
    : `must not cover ${taken}, which others use: choose another prefix such as x-auth-`;
}

function isReserved(name: string): boolean {
  return names.has(name) || families.some(family => name.startsWith(family));
}

function reservedUnder(prefix: string): string | undefined {
  const family = families.find(each => each.startsWith(prefix) || prefix.startsWith(each));
  return family === undefined ? [...names].find(name => name.startsWith(prefix)) : `${family}*`;
}
