// Refusal → the check that it comes from and what would have to be different. One row for each detail that the product can log;
// test/explain/refused-checks.test.ts holds them against the code.
import type { Reason } from '../authz/refusal.ts';
import type { CheckName } from './checks.ts';
import * as differences from './differences.ts';
import type { Known } from './known.ts';

export interface RefusedCheck {
  /** `service`: a fault of ours, which no check of the request stands for. */
  readonly check: CheckName | 'service';
  /** What would have to be different, true for every request that is refused so. */
  readonly must: string;
  /** The same with the settings and the verified values of this request, where they are known. */
  readonly seen?: (known: Known) => string | undefined;
}

interface RefusalRow extends RefusedCheck {
  /** As it stands in the log; a pattern where it names what it found. */
  readonly detail: string | RegExp;
}

const once = 'what stands between Envoy and account-authz must send each thing once';
const oneSpelling = 'an account may be named once in a place, under the configured name and in plain characters';
const newToken = 'the token was not made as a JWT should be; ask who issued it';
const notAccepted = 'a token must not choose how or with which key it is verified; ask who issued it';
const issuerTimes = 'compare the clock of the issuer with ours, and the lifetimes that it gives';

const rows: readonly RefusalRow[] = [
  { detail: 'no HTTP attributes', check: 'message', must: 'account-authz must be asked by an HTTP filter of Envoy' },
  { detail: /^more than \d+ headers$/, check: 'message', must: 'the client must send fewer headers' },
  { detail: 'two values in one header', check: 'message', must: once },
  { detail: 'two header lists that disagree', check: 'message', must: once },
  { detail: ':path contradicts the path', check: 'message', must: once },
  { detail: ':method contradicts the method', check: 'message', must: once },
  { detail: 'query contradicts the path', check: 'message', must: once },
  { detail: 'a fragment beside the path', check: 'message', must: once },

  { detail: 'method outside the grammar', check: 'method', must: 'a method is 1 to 32 upper-case letters' },

  { detail: /^target longer than /, check: 'path', must: 'path and query must be shorter' },
  { detail: 'a fragment in the target', check: 'path', must: 'the part from # on must not be sent' },
  { detail: /^path longer than /, check: 'path', must: 'the path must be shorter' },
  {
    detail: /^more than \d+ query parameters$/,
    check: 'path',
    must: 'the query must have fewer parameters',
  },
  {
    detail: 'path outside the grammar',
    check: 'path',
    must: 'a path starts with / and has segments of A-Z a-z 0-9 . _ ~ : @ - of which none is empty; nothing is decoded',
    seen: differences.ofPath,
  },
  { detail: 'a dot segment in the path', check: 'path', must: 'no segment may be . or ..' },

  {
    detail: 'more than one Authorization',
    check: 'authorization',
    must: 'the client must send one Authorization header',
  },
  {
    detail: 'a comma in Authorization',
    check: 'authorization',
    must: 'the client must send one Authorization header with one value',
  },

  { detail: 'an account header twice', check: 'account-places', must: oneSpelling, seen: differences.ofPlaceNames },
  { detail: 'an empty account header', check: 'account-places', must: oneSpelling, seen: differences.ofPlaceNames },
  { detail: 'a list in an account header', check: 'account-places', must: oneSpelling, seen: differences.ofPlaceNames },
  {
    detail: 'a look-alike of an account header',
    check: 'account-places',
    must: oneSpelling,
    seen: differences.ofPlaceNames,
  },
  {
    detail: 'an account parameter with an ambiguous value',
    check: 'account-places',
    must: oneSpelling,
    seen: differences.ofPlaceNames,
  },
  {
    detail: 'a look-alike of an account parameter',
    check: 'account-places',
    must: oneSpelling,
    seen: differences.ofPlaceNames,
  },

  {
    detail: 'the path matches a route only if case is ignored',
    check: 'route',
    must: 'literal segments must be spelt as in routes',
    seen: differences.ofRoutes,
  },
  { detail: 'no route matches', check: 'route', must: 'the path must match one of routes', seen: differences.ofRoutes },

  {
    detail: 'no Authorization',
    check: 'token-present',
    must: 'the client must send Authorization: Bearer and a token',
  },
  {
    detail: 'Authorization has another scheme',
    check: 'token-present',
    must: 'the scheme must be Bearer, one space before the token',
  },
  { detail: 'no token after the scheme', check: 'token-present', must: 'a token must follow Bearer and one space' },

  {
    detail: 'longer than maxBytes',
    check: 'token-length',
    must: 'the token must be shorter, or token.maxBytes larger',
    seen: differences.ofLength,
  },

  {
    detail: 'not three base64url segments',
    check: 'token-format',
    must: `a signed JWT in its compact form; ${newToken}`,
  },
  { detail: 'a segment is not canonical base64url', check: 'token-format', must: newToken },
  { detail: /^header: \w+ is not accepted$/, check: 'token-format', must: notAccepted },
  {
    detail: 'header: kid is not a non-empty string',
    check: 'token-format',
    must: 'the issuer must name its key: kid is required',
  },
  { detail: /^(?:header|payload): /, check: 'token-format', must: newToken },

  {
    detail: 'iss is not a configured issuer',
    check: 'issuer',
    must: 'iss must equal one of issuers, byte for byte',
    seen: differences.ofIssuers,
  },
  { detail: 'iss is not the issuer', check: 'issuer', must: 'iss must equal one of issuers, byte for byte' },

  {
    detail: 'alg is not one of algorithms',
    check: 'algorithm',
    must: 'the token must be signed with one of algorithms of its issuer',
    seen: differences.ofAlgorithms,
  },
  {
    detail: 'typ is not one of tokenTypes',
    check: 'token-type',
    must: 'typ must be one of tokenTypes of its issuer; "" in the list accepts a token without typ',
    seen: differences.ofTokenTypes,
  },

  {
    detail: 'kid is not a key of the issuer',
    check: 'key',
    must: 'the token must be signed with a key that its issuer publishes now',
    seen: differences.ofKeys,
  },
  {
    detail: 'the key is not for this algorithm',
    check: 'key',
    must: 'alg of the token must be what the key under its kid is for',
    seen: differences.ofKeys,
  },
  {
    detail: /^no key set yet/,
    check: 'key',
    must: 'the keys of the issuer must be had once; see "What an operator sees" of docs/keys.md',
    seen: differences.ofKeys,
  },
  {
    detail: /^key set too old/,
    check: 'key',
    must: 'the keys of the issuer must be confirmed within keys.maxAgeSeconds; see "What an operator sees" of docs/keys.md',
    seen: differences.ofKeys,
  },
  {
    detail: /^kid not in the key set/,
    check: 'key',
    must: 'the issuer must answer before a key that is not known can be called wrong; see "What an operator sees" of docs/keys.md',
    seen: differences.ofKeys,
  },
  {
    detail: /^the refresh takes longer than /,
    check: 'key',
    must: 'the issuer must answer faster; the request can be repeated',
    seen: differences.ofKeys,
  },
  { detail: 'stopped', check: 'key', must: 'account-authz was about to end; the request can be repeated' },
  {
    detail: 'the key was replaced meanwhile',
    check: 'key',
    must: 'the issuer changed its keys during the check; the request can be repeated',
  },

  {
    detail: 'the signature does not verify',
    check: 'signature',
    must: 'the token was changed, or signed by somebody else under a kid of the issuer; a new token is needed',
  },

  {
    detail: 'aud does not name us',
    check: 'audience',
    must: 'aud of the token must contain one of audiences; the client must ask the issuer for it',
    seen: differences.ofAudiences,
  },
  {
    detail: /^cnf: /,
    check: 'binding',
    must: 'the issuer must give out plain bearer tokens: what proves the key is not shown to account-authz',
  },

  { detail: /^(?:exp|nbf|iat) is not a time$/, check: 'claims', must: 'it must be a number of seconds since 1970' },
  {
    detail: /^(?:uid|app|acc|role) is a number and allowIntegerClaims is off$/,
    check: 'claims',
    must: 'the issuer must write it as a string, or allowIntegerClaims must be true for it',
    seen: differences.ofClaimNames,
  },
  {
    detail: /^(?:uid|app|acc|role) is /,
    check: 'claims',
    must: 'uid, app and role are 1 to 128 visible characters without space , ; and ", acc is 1 to 128 of A-Z a-z 0-9 . _ ~ -',
    seen: differences.ofClaimNames,
  },

  { detail: 'iat is in the future', check: 'times', must: issuerTimes, seen: differences.ofStart },
  { detail: 'iat is after exp', check: 'times', must: issuerTimes, seen: differences.ofLifetime },
  {
    detail: 'lives longer than maxLifetimeSeconds',
    check: 'times',
    must: 'the issuer must give out tokens of a shorter life, or token.maxLifetimeSeconds must be larger',
    seen: differences.ofLifetime,
  },
  { detail: 'nbf is in the future', check: 'times', must: issuerTimes, seen: differences.ofStart },
  { detail: 'exp has passed', check: 'expiry', must: 'the client must get a new token', seen: differences.ofExpiry },

  {
    detail: 'the application is not one of apps',
    check: 'app',
    must: 'app of the token must be one of apps',
    seen: differences.ofApp,
  },
  {
    detail: 'the role is not one of roles',
    check: 'role',
    must: 'role of the token must be one of roles',
    seen: differences.ofRole,
  },
  {
    detail: 'the role may not use this method',
    check: 'role',
    must: 'roles must give the role this method',
    seen: differences.ofMethod,
  },
  {
    detail: 'the route is narrowed to other roles',
    check: 'role',
    must: 'the role must be in the roles of every route that the path matches',
    seen: differences.ofNarrowing,
  },
  {
    detail: 'the request names another account than the token',
    check: 'account',
    must: 'every place that names an account must name acc of the token',
    seen: differences.ofAccount,
  },

  {
    detail: 'too many tokens wait for their verification',
    check: 'signature',
    must: 'more new tokens come than signatures can be checked: add replicas, or look who sends them',
  },

  {
    detail: /^a fault/,
    check: 'service',
    must: 'this is an error in account-authz, whatever the request is; the log has a line "fault" just before this one',
    seen: differences.ofFault,
  },
];

// The first check that a reason can come from: of a detail that is not known here, nothing is said that may not be so.
const firstChecks = {
  request_invalid: 'message',
  route_unknown: 'route',
  token_missing: 'token-present',
  token_invalid: 'token-length',
  token_expired: 'expiry',
  app_forbidden: 'app',
  role_forbidden: 'role',
  account_mismatch: 'account',
  keys_unavailable: 'key',
  internal: 'service',
} as const satisfies Record<Reason, CheckName | 'service'>;

export function isKnownDetail(detail: string): boolean {
  return rowOf(detail) !== undefined;
}

export function findRefusedCheck(reason: Reason, detail: string): RefusedCheck {
  return rowOf(detail) ?? { check: firstChecks[reason], must: 'this version of explain knows no more about it' };
}

function rowOf(detail: string): RefusalRow | undefined {
  return rows.find(row => (typeof row.detail === 'string' ? row.detail === detail : row.detail.test(detail)));
}
