// The client's side of the standard grants: authorization code with PKCE (RFC 7636) and client credentials (RFC 6749 section 4.4).
import { createHash, randomBytes } from 'node:crypto';
import type { DecodedToken } from '../../lab/provider-page.ts';
import { logInWithBrowser } from './browser.ts';

export interface Tokens {
  readonly access_token: string;
  readonly id_token?: string;
  readonly refresh_token?: string;
}

export interface Endpoints {
  readonly authorization: string;
  readonly token: string;
}

export interface CodeGrant {
  readonly clientId: string;
  readonly redirectUri: string;
  readonly scope: string;
  /** The fields of the login form. */
  readonly fields: Readonly<Record<string, string>>;
  /** Additional parameters of the authorization request. */
  readonly parameters?: Readonly<Record<string, string>>;
}

export async function authorizationCode(endpoints: Endpoints, grant: CodeGrant): Promise<Tokens> {
  const verifier = randomBytes(32).toString('base64url');
  const client = { client_id: grant.clientId, redirect_uri: grant.redirectUri };
  const request = new URLSearchParams({
    ...client,
    response_type: 'code',
    scope: grant.scope,
    state: randomBytes(16).toString('base64url'),
    nonce: randomBytes(16).toString('base64url'),
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...grant.parameters,
  });
  const answer = await logInWithBrowser(`${endpoints.authorization}?${request}`, grant.fields, grant.redirectUri);
  const code = answer.get('code');
  if (code === null) throw new Error(`no code, but ${answer}`);
  return requestTokens(endpoints.token, { ...client, grant_type: 'authorization_code', code, code_verifier: verifier });
}

export function clientCredentials(
  endpoints: Endpoints,
  client: { readonly id: string; readonly secret: string },
  parameters: Readonly<Record<string, string>> = {},
): Promise<Tokens> {
  const authorization = `Basic ${Buffer.from(`${client.id}:${client.secret}`).toString('base64')}`;
  return requestTokens(endpoints.token, { grant_type: 'client_credentials', ...parameters }, { authorization });
}

async function requestTokens(
  url: string,
  parameters: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Tokens> {
  const answer = await fetch(url, { method: 'POST', headers, body: new URLSearchParams(parameters) });
  if (!answer.ok) throw new Error(`${answer.status} from the token endpoint: ${await answer.text()}`);
  return (await answer.json()) as Tokens;
}

export function decodeToken(token: string): DecodedToken {
  const part = (index: number): Record<string, unknown> =>
    JSON.parse(Buffer.from(token.split('.')[index] ?? '', 'base64url').toString());
  return { header: part(0), claims: part(1) };
}
