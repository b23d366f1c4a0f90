// The reasons of refusals: what the client gets for each. No other file of the product has a status code of a refusal.
import type { DetailOf } from './checks.ts';

interface RefusalAnswer {
  readonly decision: 'deny' | 'unavailable';
  /** HTTP status of the answer to the client. */
  readonly httpStatus: 400 | 401 | 403 | 404 | 503;
  /** google.rpc.Code of the CheckResponse; never 0, which Envoy reads as an allow. */
  readonly rpcCode: 3 | 5 | 7 | 14 | 16;
  readonly title: string;
  /** The `error` of WWW-Authenticate (RFC 6750 section 3), or `none` for a challenge without one; undefined: no challenge. */
  readonly challenge?: Challenge;
}

export type Challenge = 'invalid_token' | 'insufficient_scope' | 'none';

/** What a client needs to get a token that would do. */
export interface ChallengeHint {
  /** The configured scopes of which one would be enough; none: no scope is asked for. */
  readonly scopes: readonly string[];
  /** Whether the request is for the protected resource, so that its metadata names the authorization server. */
  readonly isOfResource: boolean;
}

const invalid = { decision: 'deny', httpStatus: 400, rpcCode: 3 } as const;
const unauthenticated = { decision: 'deny', httpStatus: 401, rpcCode: 16 } as const;
const badToken = { ...unauthenticated, challenge: 'invalid_token' } as const;
const forbidden = { decision: 'deny', httpStatus: 403, rpcCode: 7 } as const;
const unknown = { decision: 'deny', httpStatus: 404, rpcCode: 5 } as const;
const unavailable = { decision: 'unavailable', httpStatus: 503, rpcCode: 14 } as const;

export const refusalAnswers = {
  request_invalid: { ...invalid, title: 'The request is not valid' },
  token_missing: { ...unauthenticated, challenge: 'none', title: 'A bearer token is required' },
  token_invalid: { ...badToken, title: 'The bearer token is not valid' },
  token_expired: { ...badToken, title: 'The bearer token has expired' },
  token_revoked: { ...badToken, title: 'The bearer token has been revoked' },
  account_required: { ...invalid, title: 'The request must name an account' },
  // No challenge: no new token would help, and clients would sign in for ever.
  role_forbidden: { ...forbidden, title: 'The role may not do this' },
  scope_forbidden: {
    ...forbidden,
    challenge: 'insufficient_scope',
    title: 'The token does not have a scope that allows this',
  },
  origin_forbidden: { ...forbidden, title: 'Another page may not call this' },
  app_forbidden: { ...forbidden, title: 'The application may not call this' },
  account_mismatch: { ...forbidden, title: 'The request addresses another account' },
  route_unknown: { ...unknown, title: 'There is nothing here' },
  keys_unavailable: { ...unavailable, title: 'The token cannot be verified at the moment' },
  revocation_unavailable: { ...unavailable, title: 'It cannot be told at the moment whether the token is revoked' },
  internal: { ...unavailable, title: 'The request cannot be decided at the moment' },
} as const satisfies Record<string, RefusalAnswer>;

/** Stable: part of the API, in answer, log, metrics and documentation. */
export type Reason = keyof typeof refusalAnswers;

/** A refused request as a value. `detail` is for the log only and never holds a claim, a token or another foreign value. */
export interface Refusal {
  readonly kind: 'refusal';
  readonly reason: Reason;
  readonly detail: string;
  /** For the log only: what was found instead, in a token whose signature is verified. Bounded and printable. */
  readonly found?: string;
  /** What the challenge tells the client, where the reason has one. */
  readonly hint?: ChallengeHint;
}

/** Accepts only a detail that `checks` defines for the reason, so every refusal can be explained. */
export function refusal<R extends Reason>(reason: R, detail: DetailOf<R>, found?: string): Refusal {
  return found === undefined ? { kind: 'refusal', reason, detail } : { kind: 'refusal', reason, detail, found };
}

/** The row of the table, with the optional member visible to the type checker on every reason. */
export function answerOf(reason: Reason): RefusalAnswer {
  return refusalAnswers[reason];
}
