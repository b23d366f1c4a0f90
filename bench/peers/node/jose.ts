// The service that most people would write: grpc-js, proto-loader, and jose's jwtVerify with a remote key set on every request.
import { type handleUnaryCall, Server } from '@grpc/grpc-js';
import { createRemoteJWKSet, errors, type JWTPayload, jwtVerify } from 'jose';
import { answerMessage, authorizationService, peerOptions, serve } from './proto.ts';

interface CheckRequest {
  readonly attributes?: {
    readonly request?: {
      readonly http?: { readonly method: string; readonly path: string; readonly headers: Record<string, string> };
    };
  };
}

interface Answer {
  readonly ok_response: { readonly headers_to_remove: readonly string[] };
}

const options = peerOptions();
const service = authorizationService(options);
// The headers that an allow removes are the same as the product's, so that the answers weigh the same.
const { headers_to_remove: removed } = (answerMessage(options) as Answer).ok_response;
const keys = createRemoteJWKSet(new URL(options.jwksUrl));
const fields = ['uid', 'app', 'acc', 'role', 'iss'] as const;
const methods: Readonly<Record<string, readonly string[]>> = {
  owner: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
  admin: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
  member: ['GET', 'HEAD'],
};

async function decide(request: CheckRequest): Promise<unknown> {
  const http = request.attributes?.request?.http;
  const path = http?.path.split('?')[0] ?? '';
  const account = /^\/api\/subscriptions\/accounts\/([A-Za-z0-9._~-]+)(?:\/|$)/.exec(path)?.[1];
  if (http === undefined || account === undefined) return denied(404, 5, 'route_unknown');
  const [scheme, token] = (http.headers.authorization ?? '').split(' ');
  if (scheme?.toLowerCase() !== 'bearer' || token === undefined) return denied(401, 16, 'token_missing');
  let payload: JWTPayload;
  try {
    ({ payload } = await jwtVerify(token, keys, {
      issuer: options.issuer,
      audience: options.audience,
      algorithms: ['RS256', 'ES256', 'EdDSA'],
      typ: 'JWT',
      clockTolerance: 30,
      requiredClaims: ['exp', 'uid', 'app', 'acc', 'role'],
    }));
  } catch (error) {
    return denied(401, 16, error instanceof errors.JWTExpired ? 'token_expired' : 'token_invalid');
  }
  for (const field of fields) if (typeof payload[field] !== 'string') return denied(401, 16, 'token_invalid');
  if (methods[String(payload.role)]?.includes(http.method) !== true) return denied(403, 7, 'role_forbidden');
  if (payload.acc !== account) return denied(403, 7, 'account_mismatch');
  return {
    status: { code: 0 },
    ok_response: {
      headers: fields.map(field => overwrite(`x-auth-${field}`, String(payload[field]))),
      headers_to_remove: removed,
    },
    dynamic_metadata: {
      fields: Object.fromEntries(
        Object.entries({ decision: 'allow', reason: 'allowed', ...pick(payload) }).map(([name, value]) => [
          name,
          { stringValue: value },
        ]),
      ),
    },
  };
}

function pick(payload: JWTPayload): Record<string, string> {
  return Object.fromEntries(fields.map(field => [field, String(payload[field])]));
}

function denied(status: number, code: number, reason: string): unknown {
  return {
    status: { code },
    denied_response: {
      status: { code: status },
      headers: [overwrite('content-type', 'application/problem+json')],
      body: JSON.stringify({ status, reason }),
    },
  };
}

function overwrite(key: string, value: string): unknown {
  return { header: { key, value }, append: { value: false }, append_action: 2 };
}

const check: handleUnaryCall<CheckRequest, unknown> = (call, callback) => {
  decide(call.request).then(
    answer => callback(null, answer),
    () => callback(null, denied(503, 14, 'internal')),
  );
};

const server = new Server();
server.addService(service, { Check: check });
serve(server, options);
