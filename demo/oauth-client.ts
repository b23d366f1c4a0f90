// The client's side of the authentication service: how a browser application and a backend get tokens.
import { createHash, randomBytes } from 'node:crypto';
import type { BackendClient, PublicClient } from './directory.ts';
import { type HttpResponse, send } from './http-client.ts';

/** The PKCE verifier and challenge of one authorization request (RFC 7636). */
export interface ProofKey {
  readonly verifier: string;
  readonly challenge: string;
}

export function newProofKey(): ProofKey {
  const verifier = randomBytes(32).toString('base64url');
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') };
}

export function signIn(issuer: string, user: string, password: string): Promise<HttpResponse> {
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ user, password });
  return send({ origin: issuer, method: 'POST', target: '/auth/sign-in', headers, body });
}

/** Resolves with the response that redirects to the application. */
export function authorize(
  issuer: string,
  client: PublicClient,
  sessionToken: string,
  challenge: string,
): Promise<HttpResponse> {
  const query = new URLSearchParams({
    client_id: client.clientId,
    response_type: 'code',
    redirect_uri: client.redirectUri,
    scope: 'openid offline_access subscriptions',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    state: randomBytes(8).toString('base64url'),
  });
  return followAsBrowser(new URL(`/oauth2/authorize?${query}`, issuer), sessionToken);
}

/** Follows the redirects of an authorization request until one leaves the authentication service; resolves with that response. */
export async function followAsBrowser(request: URL, sessionToken: string): Promise<HttpResponse> {
  const issuer = request.origin;
  const cookies = new Map([['session', sessionToken]]);
  let target = request.pathname + request.search;
  for (let redirects = 0; redirects < 5; redirects += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await send({ origin: issuer, target, headers: { cookie } });
    for (const line of response.headers['set-cookie'] ?? []) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    if (response.headers.location === undefined) return response;
    const location = new URL(response.headers.location, issuer);
    if (location.origin !== issuer) return response;
    target = location.pathname + location.search;
  }
  throw new Error('too many redirects of the authorization request');
}

export function exchangeCode(
  issuer: string,
  client: PublicClient,
  code: string,
  verifier: string,
): Promise<HttpResponse> {
  return requestToken(issuer, {
    grant_type: 'authorization_code',
    client_id: client.clientId,
    redirect_uri: client.redirectUri,
    code,
    code_verifier: verifier,
  });
}

export function refresh(issuer: string, client: PublicClient, refreshToken: string): Promise<HttpResponse> {
  return requestToken(issuer, { grant_type: 'refresh_token', client_id: client.clientId, refresh_token: refreshToken });
}

export function requestBackendToken(issuer: string, client: BackendClient): Promise<HttpResponse> {
  const credentials = Buffer.from(`${client.clientId}:${client.clientSecret}`).toString('base64');
  const parameters = { grant_type: 'client_credentials', scope: 'subscriptions' };
  return requestToken(issuer, parameters, { authorization: `Basic ${credentials}` });
}

export function deriveAccountToken(issuer: string, sessionToken: string, account: string): Promise<HttpResponse> {
  const headers = { authorization: `Bearer ${sessionToken}` };
  return send({ origin: issuer, method: 'POST', target: `/api/accounts/${account}/token`, headers });
}

function requestToken(
  issuer: string,
  parameters: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<HttpResponse> {
  return send({
    origin: issuer,
    method: 'POST',
    target: '/oauth2/token',
    headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(parameters).toString(),
  });
}
