// The service that most people would write: grpc-js, proto-loader, and jose's jwtVerify with a remote key set on every request.
import { randomUUID } from 'node:crypto';
import { type handleUnaryCall, Server } from '@grpc/grpc-js';
import { createRemoteJWKSet, errors, type JWTPayload, type JWTVerifyResult, jwtVerify } from 'jose';
import { answerMessage, authorizationService, peerOptions, serve } from './proto.ts';
import { type Asked, type HttpAttributes, readRequest } from './request.ts';

interface CheckRequest {
  readonly attributes?: { readonly request?: { readonly http?: HttpAttributes } };
}

interface Answer {
  readonly ok_response: { readonly headers_to_remove: readonly string[] };
}

const options = peerOptions();
const service = authorizationService(options);
// What every allow removes is the same as the product's.
const { headers_to_remove: alwaysRemoved } = (answerMessage(options) as Answer).ok_response;
const keys = createRemoteJWKSet(new URL(options.jwksUrl));
const fields = ['uid', 'app', 'acc', 'role', 'iss'] as const;
const methods = new Map([
  ['owner', new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])],
  ['admin', new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])],
  ['member', new Set(['GET', 'HEAD'])],
]);
const tokenTypes = new Set(['jwt', 'at+jwt', 'application/jwt', 'application/at+jwt']);
const refusedMembers = ['crit', 'b64', 'zip', 'jwk', 'jku', 'x5u'];
const maxTokenBytes = 8192;
const clockTolerance = 30;
const maxLifetimeSeconds = 86_400;

const realm = 'Bearer realm="account-authz"';
const refusals = {
  request_invalid: { status: 400, code: 3, title: 'The request is not valid', challenge: '' },
  token_missing: { status: 401, code: 16, title: 'A bearer token is required', challenge: realm },
  token_invalid: {
    status: 401,
    code: 16,
    title: 'The bearer token is not valid',
    challenge: `${realm}, error="invalid_token"`,
  },
  token_expired: {
    status: 401,
    code: 16,
    title: 'The bearer token has expired',
    challenge: `${realm}, error="invalid_token"`,
  },
  role_forbidden: {
    status: 403,
    code: 7,
    title: 'The role may not do this',
    challenge: `${realm}, error="insufficient_scope"`,
  },
  account_mismatch: { status: 403, code: 7, title: 'The request addresses another account', challenge: '' },
  route_unknown: { status: 404, code: 5, title: 'There is nothing here', challenge: '' },
  internal: { status: 503, code: 14, title: 'The request cannot be decided at the moment', challenge: '' },
} as const;

async function decide(http: HttpAttributes): Promise<unknown> {
  const asked = readRequest(http);
  if (typeof asked === 'string') return denied(http, asked);
  if (asked.token.length > maxTokenBytes) return denied(http, 'token_invalid');
  let verified: JWTVerifyResult;
  try {
    verified = await jwtVerify(asked.token, keys, {
      issuer: options.issuer,
      audience: options.audience,
      algorithms: ['RS256', 'ES256', 'EdDSA'],
      clockTolerance,
      requiredClaims: ['exp'],
    });
  } catch (error) {
    return denied(http, error instanceof errors.JWTExpired ? 'token_expired' : 'token_invalid');
  }
  const { payload } = verified;
  if (!isHeader(verified) || !areClaims(payload)) return denied(http, 'token_invalid');
  const refusal = permits(payload, asked);
  return refusal === undefined ? allowed(http, payload) : denied(http, refusal, payload);
}

function isHeader({ protectedHeader }: JWTVerifyResult): boolean {
  const { kid, typ } = protectedHeader;
  if (typeof kid !== 'string' || kid === '' || typeof typ !== 'string') return false;
  if (typ !== 'JWT' && !tokenTypes.has(typ.toLowerCase())) return false;
  return !refusedMembers.some(member => member in protectedHeader);
}

const fieldGrammar = /^[!#-+\--:<-~]{1,128}$/;
const accountGrammar = /^[A-Za-z0-9._~-]{1,128}$/;

/** What jwtVerify leaves open. */
function areClaims(payload: JWTPayload): boolean {
  const { aud, exp = 0, iat, uid, app, acc, role } = payload;
  const now = Date.now() / 1000;
  if (iat !== undefined && (iat > now + clockTolerance || iat > exp)) return false;
  if (exp - (iat ?? now) > maxLifetimeSeconds) return false;
  if ('cnf' in payload || (Array.isArray(aud) && aud.some(each => typeof each !== 'string'))) return false;
  if (typeof acc !== 'string' || !accountGrammar.test(acc) || acc === '.' || acc === '..') return false;
  return [uid, app, role].every(field => typeof field === 'string' && fieldGrammar.test(field));
}

function permits(
  { role, acc }: JWTPayload,
  { method, isNarrowed, accounts }: Asked,
): keyof typeof refusals | undefined {
  if (methods.get(role as string)?.has(method) !== true) return 'role_forbidden';
  if (isNarrowed && role !== 'owner' && role !== 'admin') return 'role_forbidden';
  return accounts.every(account => account === acc) ? undefined : 'account_mismatch';
}

function allowed(http: HttpAttributes, payload: JWTPayload): unknown {
  return {
    status: { code: 0 },
    ok_response: {
      headers: fields.map(field => overwrite(`x-auth-${field}`, String(payload[field]))),
      headers_to_remove: removedFrom(http),
    },
    dynamic_metadata: metadata('allow', 'allowed', payload),
  };
}

const set = new Set<string>(fields.map(field => `x-auth-${field}`));

/** Whatever is under the prefix, and read as if it were. */
function removedFrom({ headers }: HttpAttributes): readonly string[] {
  const shown = Object.keys(headers).filter(name => /^x[-_]auth[-_]/.test(name) && !set.has(name));
  return shown.length === 0 ? alwaysRemoved : [...new Set([...alwaysRemoved, ...shown])];
}

function denied({ headers }: HttpAttributes, reason: keyof typeof refusals, payload?: JWTPayload): unknown {
  const { status, code, title, challenge } = refusals[reason];
  const sent = headers['x-request-id'];
  const request_id = sent !== undefined && /^[A-Za-z0-9._-]{1,128}$/.test(sent) ? sent : randomUUID();
  return {
    status: { code },
    denied_response: {
      status: { code: status },
      headers: [
        overwrite('content-type', 'application/problem+json'),
        overwrite('cache-control', 'no-store'),
        ...(challenge === '' ? [] : [overwrite('www-authenticate', challenge)]),
        ...(status === 503 ? [overwrite('retry-after', '5')] : []),
      ],
      body: JSON.stringify({ type: `urn:account-authz:${reason}`, title, status, reason, request_id }),
    },
    dynamic_metadata: metadata(status === 503 ? 'unavailable' : 'deny', reason, payload),
  };
}

function metadata(decision: string, reason: string, payload?: JWTPayload): unknown {
  const words: Record<string, unknown> = { decision: { stringValue: decision }, reason: { stringValue: reason } };
  if (payload !== undefined) for (const field of fields) words[field] = { stringValue: payload[field] };
  return { fields: words };
}

function overwrite(key: string, value: string): unknown {
  return { header: { key, value }, append: { value: false }, append_action: 2 };
}

const nothing: HttpAttributes = { method: '', path: '', headers: {} };

const check: handleUnaryCall<CheckRequest, unknown> = (call, callback) => {
  const http = call.request.attributes?.request?.http ?? nothing;
  decide(http).then(
    answer => callback(null, answer),
    () => callback(null, denied(http, 'internal')),
  );
};

const server = new Server();
server.addService(service, { Check: check });
serve(server, options);
