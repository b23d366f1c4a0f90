// The checks of a request in the order in which they are made: check → reason → detail → remedy. A refusal can be made only with a reason
// and a detail of this table; `explain` reads the same table from a detail back to the check. `{}` stands for what the refusal fills in.

const once = 'Envoy must call account-authz itself: something in between changed the check or sent a value twice';
const oneSpelling =
  'the request must name the account at most once in each place, by the configured name and without encoding';
const ownIssuer = 'iss must equal one of issuers byte for byte, a slash at the end included';
const malformed = 'the token is malformed or was cut: get a new one, or report it to its issuer';
const dotsSwitch =
  'an account may have dots only with account.dots: true, which is safe where no server behind cuts at a dot';
const accountGrammar = 'an account is 1 to 128 of A-Z a-z 0-9 _ ~ -, and never encoded';
const issuerTimes =
  'synchronize the clocks of the issuer and of this machine, and check the times that the issuer sets, in seconds and not milliseconds';
const retry = 'repeat the request';
const seeKeys = 'see "What an operator sees" of docs/keys.md';
const seeList = 'see "If the list cannot be fetched" of docs/revocation.md';
const sourceForms =
  'claims of the issuer must name a claim of the token: a name leads to a string, for acc, role and scope also to a list, { keysOf: NAME } to an object, { wordsOf: NAME } to the words of a string';
const oneToken = 'the client must send each place of token.from at most once, with a token and nothing else';
const sameSite =
  'a WebSocket, and a request with its token in a cookie that is no GET, HEAD or OPTIONS, must come from a page whose origin token.origins has';
const issuerMay = 'accounts of the issuer must cover the account, or another issuer must issue the token';

export const checks = {
  // No check of the request: account-authz itself failed.
  service: {
    internal: {
      'internal error: see the log line before this one':
        'the cause is in account-authz, not in the request: report that log line',
    },
  },
  message: {
    request_invalid: {
      'no HTTP attributes': 'only the HTTP filter ext_authz of Envoy may call account-authz',
      'more than {} headers': 'the client must send fewer headers',
      'two values in one header': once,
      'two header lists that disagree': once,
      ':path contradicts the path': once,
      ':method contradicts the method': once,
      'query contradicts the path': once,
      'a fragment beside the path': once,
    },
  },
  method: { request_invalid: { 'method outside the grammar': 'a method is 1 to 32 upper-case letters' } },
  path: {
    request_invalid: {
      'target longer than {} bytes': 'the client must send a shorter path and query',
      'a fragment in the target': 'the client must not send # and what follows it',
      'path longer than {} bytes': 'the client must send a shorter path',
      'more than {} query parameters': 'the client must send fewer query parameters',
      'path outside the grammar':
        'a path starts with / and has non-empty segments, without ; and encoded / \\ % . ; ? and control characters',
      'a dot segment in the path': 'no segment may be . or ..',
      'a segment of nothing but dots and white space': 'servers drop such a segment, or the end of it',
    },
  },
  authorization: {
    request_invalid: {
      'more than one Authorization': 'the client must send one Authorization header',
      'a comma in Authorization': 'the client must send one Authorization header with one value',
      'a token header twice': oneToken,
      'an empty token header': oneToken,
      'a list in a token header': oneToken,
      'a look-alike of a token header': oneToken,
      'more than {} cookies': 'the client must send fewer cookies, or the service set fewer',
      'a token cookie twice': oneToken,
      'an empty token cookie': oneToken,
      'a token cookie in quotes': oneToken,
      'more than {} subprotocols': 'the client must offer fewer subprotocols',
      'a token subprotocol twice': oneToken,
      'a token subprotocol without its token': oneToken,
      'a token beside that of a subprotocol': oneToken,
      'a subprotocol that is not UTF-8 beside that of the token':
        'the client must offer names of ASCII alone (RFC 6455)',
      'a cookie that is not UTF-8 beside that of the token':
        'Envoy can put back no such cookie: the service must encode what it sets',
    },
  },
  'account-places': {
    request_invalid: {
      'an account header twice': oneSpelling,
      'an empty account header': oneSpelling,
      'a list in an account header': oneSpelling,
      'a look-alike of an account header': oneSpelling,
      'an account parameter with an ambiguous value': oneSpelling,
      'a look-alike of an account parameter': oneSpelling,
      'a parameter that overrides the method':
        'the client must send the method itself, without _method and x-http-method-override in the query',
      'connection with more than {} names': 'the client must name fewer headers in connection',
      'connection nominates a header that the upstream needs':
        'connection must not name an identity header, an account header or a token header',
      'content-type with an ambiguous charset':
        'with account.query, content-type has at most one charset: utf-8 or us-ascii, without quotes',
      'an account with a dot, and account.dots is off': dotsSwitch,
      'an account outside the grammar': accountGrammar,
    },
  },
  host: {
    request_invalid: {
      'the host contradicts :authority': once,
      'an empty host': 'the client must send the host that it means',
      'a host longer than {} characters': 'no name of DNS is longer (RFC 1035 section 2.3.4)',
      'a host with a dot at its end': 'the client must send the host without the dot',
      'an account label outside the grammar': 'the label of the account is 1 to 63 of a-z 0-9 -, in lower case',
    },
  },
  route: {
    request_invalid: {
      'the path matches a route only if case is ignored or segments are decoded':
        'the path must have literal segments as routes has them, in upper and lower case, and not encoded',
      'the path matches a route only if a segment is trimmed or cut at a sign':
        'servers read settings.json and settings:x as settings: the path must have literal segments as routes has them, or a path with this segment must be one of routes',
      'a character that not every matching route permits':
        'segments have A-Z a-z 0-9 . _ ~ : @ -, or every route that matches must have characters: rfc3986; the account is never encoded',
      'a segment with a dot names an account, and account.dots is off': dotsSwitch,
      'the segment of an account is outside its grammar': accountGrammar,
    },
    route_unknown: {
      'no host matches': 'the host must match one of account.hosts',
      'no route matches': 'the path must match one of routes',
    },
  },
  'token-present': {
    token_missing: {
      'no Authorization': 'the client must send Authorization: Bearer and a token',
      'Authorization has another scheme': 'the scheme must be Bearer, with a space before the token',
      'no token after the scheme': 'a token must follow Bearer and a space',
      'no token in its header': 'token.from names the places where the client may send its token',
      'no token in its subprotocol':
        'token.from names the subprotocol after which a WebSocket handshake must have the token',
      'no token in its cookie': 'token.from names the places where the client may send its token',
    },
  },
  'token-origin': {
    origin_forbidden: {
      'no origin beside a token in a cookie or a subprotocol': sameSite,
      'more than one origin': sameSite,
      'the origin is not one of token.origins': sameSite,
    },
  },
  'token-length': { token_invalid: { 'longer than maxBytes': 'shorten the token, or raise token.maxBytes' } },
  'token-format': {
    token_invalid: {
      'the token is in quotes': 'the client must send the token without quotes',
      'a word in the place of the token': 'the client has no token yet: it sent null or a placeholder',
      'another word before the token': 'the client must send the token alone after Bearer',
      'a token in base64 once more': 'the client must decode what it has, of a Secret for example',
      'Bearer twice':
        'the client must write Bearer once before the token in Authorization, and nothing before it elsewhere',
      'an opaque token, no JWT':
        'the token must be a signed JWT: an opaque one may mean that the client requested no audience, or that the issuer is not set to issue JWTs',
      'a PASETO, no JWT': 'the issuer must issue signed JWTs: a PASETO cannot be verified with a key set',
      'an encrypted token': 'the issuer must sign tokens for this audience, not encrypt them',
      'an unsigned token': 'the issuer must sign tokens: no token with alg none is accepted',
      'a token without its last segment':
        'the token was cut on its way: the client must send header, payload and signature',
      'segments in base64, not base64url': 'the issuer must write base64url without padding (RFC 7515 section 2)',
      '{} segments, not the three of a signed JWT': 'the client must send one token, whole, and nothing after it',
      'not three base64url segments': 'the token must be a signed JWT in its compact form',
      'a segment is not canonical base64url': malformed,
      'header: {} is not accepted':
        'the issuer must leave this header member out: a token must not choose how it is verified',
      'header: kid is not a non-empty string': 'the issuer must set kid to the id of the signing key',
      'header: {}': malformed,
      'payload: {}': malformed,
    },
  },
  issuer: {
    token_invalid: {
      'there is no iss': 'the issuer must write itself into iss, as one of issuers',
      'iss is not a configured issuer': ownIssuer,
      'iss is not the issuer': ownIssuer,
    },
  },
  algorithm: {
    token_invalid: {
      'alg is not one of algorithms': 'the issuer must sign with one of algorithms',
      'alg is a shared secret':
        'whoever verifies a token with it can make one: let the issuer sign with RS256 or ES256',
    },
  },
  'token-type': {
    token_invalid: { 'typ is not one of tokenTypes': 'tokenTypes must list typ of the token, or "" if it has none' },
  },
  key: {
    token_invalid: {
      'kid is not a key of the issuer': 'the token must be signed with a key that its issuer publishes now',
      'the key is not for this algorithm': 'alg of the token must be an algorithm of the key that kid names',
      'no key of the issuer is for this algorithm':
        'the token has no kid: a key that its issuer publishes now must serve its alg',
      'several keys of the issuer fit, and neither kid nor x5t names one':
        'the token must have the kid of its key, or an x5t that the key set has too',
    },
    keys_unavailable: {
      'no key set yet{}': `the keys of the issuer must be fetched once; ${seeKeys}`,
      'key set too old{}': `the keys of the issuer must be confirmed within keys.maxAgeSeconds; ${seeKeys}`,
      'kid not in the key set{}': `the issuer must answer before an unknown kid can be refused as wrong; ${seeKeys}`,
      'the refresh takes longer than {} ms': `the issuer must answer faster: ${retry}`,
      stopped: `account-authz was stopping: ${retry}`,
      'the key was replaced meanwhile': `the issuer changed its keys during the check: ${retry}`,
    },
  },
  signature: {
    token_invalid: {
      'the signature does not verify': 'the token was changed or forged: get a new one from the issuer',
    },
    internal: {
      'too many tokens wait for their verification':
        'add replicas, or limit the rate of clients that send many different tokens',
    },
  },
  audience: {
    token_invalid: {
      'aud names none of audiences':
        'the issuer must write one of audiences into aud: some issuers do if the client requests it, others by their configuration',
    },
  },
  claims: {
    token_invalid: {
      'there is no exp': 'the issuer must set exp: no token without an end is accepted',
      '{} is not a time': 'it must be a number of seconds since 1970',
      '{} a number and allowIntegerClaims is off': 'the issuer must write a string, or set allowIntegerClaims: true',
      '{} a number that is no integer from 0 to 2^53 - 1':
        'the issuer must send it as a string: readers of JSON round larger numbers',
      '{} is missing or not a string': sourceForms,
      '{} is missing': sourceForms,
      '{} is a list': 'it is one text: its source must lead to a member of the list, or the issuer must write a string',
      '{} has another type than its source reads': sourceForms,
      '{} has a member that is not a string': sourceForms,
      '{} has words that single spaces do not separate': 'the issuer must write one space between words',
      '{} has words that single commas do not separate': 'the issuer must write one comma between words',
      'acc names more than {} accounts': 'a token names at most 1,000 different accounts',
      '{} has more than 250 members': 'a token has at most 250 roles and 250 scopes',
      'acc has a dot, and account.dots is off': dotsSwitch,
      'acc has an upper-case letter, and account.case is lower':
        'the issuer must write accounts in lower case, or account.case must be exact',
      'acc is outside the grammar': accountGrammar,
      '{} is outside the grammar': 'it is 1 to 128 visible characters without space , ; and "',
    },
  },
  binding: {
    token_invalid: {
      'cnf has not x5t#S256 alone':
        'the issuer must bind tokens to a certificate (RFC 8705) or to nothing: no other proof can be checked here',
      'cnf names a certificate, and the check shows none':
        'the client must present its certificate to Envoy, whose ext_authz must have include_peer_certificate: true',
      'cnf names another certificate than that of the client':
        'the client must present the certificate with which it got the token',
    },
  },
  times: {
    token_invalid: {
      'iat is in the future': issuerTimes,
      'iat is after exp': issuerTimes,
      'lives longer than maxLifetimeSeconds':
        'issue tokens with a shorter lifetime (exp in seconds, not milliseconds), or raise token.maxLifetimeSeconds',
      'nbf is in the future': issuerTimes,
    },
  },
  expiry: {
    token_expired: { 'exp has passed': 'the client must get a new token, unless the clock of this machine is fast' },
  },
  'revocation-list': {
    revocation_unavailable: {
      'no revocation list yet{}': `revocation.url must be fetched once; ${seeList}`,
      'revocation list too old{}': `revocation.url must be confirmed within revocation.maxAgeSeconds; ${seeList}`,
    },
  },
  revocation: {
    token_revoked: {
      'the revocation list has an entry for {}':
        'the client must get a new token that no entry matches, or remove the entry from the list',
    },
  },
  app: { app_forbidden: { 'the application is not one of apps': 'app of the token must be one of apps' } },
  'account-named': {
    account_mismatch: {
      'the request names different accounts': 'every place of the request that names an account must name the same one',
    },
    account_required: {
      'the token has several accounts and the request names none':
        'the request must name the account in its path, or in one of the places of account',
    },
  },
  'issuer-account': {
    account_mismatch: {
      'the token has no account inside the grammar':
        'an account is 1 to 128 of A-Z a-z 0-9 _ ~ -, with account.dots: true also ., with account.case: lower without A-Z',
      'the token has no account that its issuer may speak for': issuerMay,
      'the issuer may not speak for the account that the request names': issuerMay,
    },
  },
  account: {
    account_mismatch: {
      'the request names another account than the token':
        'every account that the request names must be one of the token',
    },
  },
  role: {
    token_invalid: { 'role {}, for the addressed account': sourceForms },
    role_forbidden: {
      'the role is not one of roles': 'role of the token must be one of roles, by its key or by its names',
      'the role may not use this method': 'roles must grant this method on this path to the role',
      'the route is narrowed to other roles':
        'every route that matches the path must list the role in its roles, or have no roles',
    },
  },
  scope: {
    token_invalid: { 'scope {}, for the addressed account': sourceForms },
    scope_forbidden: {
      'the token has none of scopes': 'scope of the token must have one of scopes',
      'no scope of the token may use this method': 'scopes must grant this method on this path to a scope of the token',
      'the route is narrowed to other scopes':
        'every route that matches the path must list the scope in its scopes, or have no scopes',
    },
  },
} as const;

type Checks = typeof checks;
type TextOf<D> = D extends `${infer Before}{}${infer After}` ? `${Before}${string}${After}` : D;

/** Every `detail` that a refusal with the reason may have. */
export type DetailOf<R> = {
  [C in keyof Checks]: R extends keyof Checks[C] ? TextOf<keyof Checks[C][R]> : never;
}[keyof Checks];

/** The same as the table has it. */
export type DetailTemplate = { [C in keyof Checks]: KeyOfEach<Checks[C][keyof Checks[C]]> }[keyof Checks];
type KeyOfEach<Union> = Union extends unknown ? keyof Union & string : never;

export type CheckName = Exclude<keyof Checks, 'service'>;

export const checkNames = Object.keys(checks).filter(name => name !== 'service') as readonly CheckName[];

/** Whether the one check is made after the other. */
export function isAfter(one: CheckName, other: CheckName): boolean {
  return checkNames.indexOf(one) > checkNames.indexOf(other);
}
