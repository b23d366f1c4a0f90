// What a change of each setting does to what is allowed: the table that `compare` reads. A setting without a line fails a test.

/**
 * `more`: a larger number, true, a further entry of a list, or a value where there was none allows more; `less`: it allows less. A list of
 * values: each allows more than those before it. `accounts`: entries with `!` allow less, others more. `unordered`: neither can be said.
 * `other`: clients or upstreams see another answer. `policy`: the decisions of the engine are compared. `operator`: only an operator sees it.
 */
export type Direction =
  | 'more'
  | 'less'
  | 'accounts'
  | 'unordered'
  | 'other'
  | 'policy'
  | 'operator'
  | readonly string[];

const characters = ['strict', 'rfc3986'] as const;

/** By the path of the setting, `[]` for each item of a list; `*` at the end: this and everything in it. */
export const directions: Readonly<Record<string, Direction>> = {
  listen: 'unordered',
  listenInsecure: 'more',
  'tls*': 'unordered',
  admin: 'operator',
  issuers: 'more',
  'issuers[].issuer': 'more',
  'issuers[].audiences': 'more',
  'issuers[].jwksUrl': 'unordered',
  'issuers[].discoveryUrl': 'unordered',
  'issuers[].jwksFile': 'unordered',
  'issuers[].algorithms': 'more',
  'issuers[].tokenTypes': 'more',
  'issuers[].claims*': 'unordered',
  'issuers[].accounts': 'accounts',
  'issuers[].allowIntegerClaims': 'more',
  // Another authority, or another caller, may get other keys.
  'issuers[].caFile': 'unordered',
  'issuers[].clientCertFile': 'unordered',
  'issuers[].clientKeyFile': 'unordered',
  'issuers[].bearerTokenFile': 'unordered',
  'issuers[].allowHttp': 'more',
  'token.clockToleranceSeconds': 'more',
  'token.maxLifetimeSeconds': 'more',
  'token.maxBytes': 'more',
  'token.forward': 'more',
  'token.from*': 'other',
  'token.origins': 'more',
  // A key that its issuer took back is used until the next refresh.
  'keys.refreshSeconds': 'more',
  'keys.maxAgeSeconds': 'more',
  'keys.cooldownSeconds': 'other',
  'keys.timeoutSeconds': 'other',
  // Keys of an earlier run, where nothing was decided without them.
  'keys.cacheDirectory': 'more',
  'routes*': 'policy',
  public: 'more',
  'public[].path': 'more',
  'public[].methods': 'more',
  'public[].characters': characters,
  'account.headers': 'policy',
  'account.query': 'policy',
  'account.hosts': 'policy',
  'account.parameter': 'policy',
  'account.dots': 'more',
  'account.case': ['exact', 'lower'],
  'roles*': 'policy',
  'scopes*': 'policy',
  apps: 'policy',
  'protectedResource*': 'other',
  revocation: 'less',
  'revocation.file': 'unordered',
  'revocation.url': 'unordered',
  'revocation.refreshSeconds': 'more',
  'revocation.maxAgeSeconds': 'more',
  'revocation.caFile': 'unordered',
  'revocation.clientCertFile': 'unordered',
  'revocation.clientKeyFile': 'unordered',
  'revocation.bearerTokenFile': 'unordered',
  'revocation.allowHttp': 'more',
  'forwardClaims*': 'other',
  identityHeaders: 'unordered',
  'cache*': 'operator',
  'log*': 'operator',
  'shutdown*': 'operator',
};

/** Of the setting itself, or of one that it is a part of. */
export function directionOf(path: string): Direction | undefined {
  const isIn = (key: string): boolean => path === key || path.startsWith(`${key}.`) || path.startsWith(`${key}[`);
  const whole = Object.keys(directions).find(key => key.endsWith('*') && isIn(key.slice(0, -1)));
  return directions[path] ?? (whole === undefined ? undefined : directions[whole]);
}
