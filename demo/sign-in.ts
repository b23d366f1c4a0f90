// The requests that the demo's authentication service answers beside oidc-provider: sign-in, account tokens, and the login page of the
// authorization code flow.
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import * as errors from 'oidc-provider/lib/helpers/errors.js';
import type { Provider } from 'oidc-provider/lib/provider.js';
import { membershipOf, memberships, type User, users, webApp } from './directory.ts';
import { type ProviderSettings, sessionSeconds } from './oauth-provider.ts';

/** What all handlers share. A rotation replaces `keys` and `provider`, and keeps the records. */
export interface State extends ProviderSettings {
  readonly sessions: Map<string, SignInSession>;
  provider: Provider;
}

interface SignInSession {
  readonly user: User;
  readonly expiresAt: number;
}

const sessionCookie = 'session';
const maxBodyCharacters = 4096;

/** Never rejects. */
export async function handle(state: State, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const { pathname } = new URL(request.url ?? '/', state.issuer);
    const account = /^\/api\/accounts\/([A-Za-z0-9._~-]+)\/token$/.exec(pathname)?.[1];
    if (request.method === 'POST' && pathname === '/auth/sign-in') await signIn(state, request, response);
    else if (request.method === 'POST' && account !== undefined) await deriveToken(state, account, request, response);
    else if (request.method === 'GET' && pathname.startsWith('/interaction/')) await logIn(state, request, response);
    else await state.provider.callback()(request, response);
  } catch (error) {
    const isClientError =
      error instanceof BadRequest || (error instanceof errors.OIDCProviderError && error.status < 500);
    if (response.headersSent) response.destroy();
    else send(response, isClientError ? 400 : 500, { error: isClientError ? 'invalid_request' : 'server_error' });
  }
}

/** POST /auth/sign-in: returns the session token for account tokens, and sets the cookie for the authorization code flow. */
async function signIn(state: State, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { user: name, password } = await readJson(request);
  if (typeof name !== 'string' || typeof password !== 'string') throw new BadRequest();
  const user = users.find(each => each.name === name && each.password === password);
  if (user === undefined) {
    send(response, 401, { error: 'invalid_credentials' });
    return;
  }
  const token = randomBytes(32).toString('base64url');
  state.sessions.set(token, { user, expiresAt: Date.now() + sessionSeconds * 1000 });
  response.setHeader(
    'set-cookie',
    `${sessionCookie}=${token}; Path=/; Max-Age=${sessionSeconds}; HttpOnly; SameSite=Lax`,
  );
  const accounts = memberships
    .filter(each => each.uid === user.uid)
    .map(each => ({ account_id: each.account, role: each.role }));
  send(response, 200, {
    session_token: token,
    expires_in: sessionSeconds,
    uid: user.uid,
    home_account: user.homeAccount,
    accounts,
  });
}

/** POST /api/accounts/:account_id/token: an access token for an account of the user, with the user's role in it. */
async function deriveToken(
  state: State,
  account: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { provider, resourceServer } = state;
  const user = userOf(state, /^Bearer ([\w-]+)$/i.exec(request.headers.authorization ?? '')?.[1]);
  if (user === undefined) {
    response.setHeader('www-authenticate', 'Bearer');
    send(response, 401, { error: 'invalid_session' });
    return;
  }
  const membership = membershipOf(user.uid, account);
  if (membership === undefined) {
    send(response, 403, { error: 'not_a_member' });
    return;
  }
  const client = await provider.Client.find(webApp.clientId);
  if (client === undefined) throw new Error(`no client ${webApp.clientId}`);
  const token = new provider.AccessToken({ accountId: user.uid, client, gty: 'account_token' });
  token.resourceServer = new provider.ResourceServer(resourceServer.audience, resourceServer);
  token.extra = { acc: account };
  token.scope = resourceServer.scope;
  send(response, 200, {
    access_token: await token.save(),
    token_type: 'Bearer',
    expires_in: resourceServer.accessTokenTTL,
    account_id: account,
    role: membership.role,
  });
}

/** The login page of the authorization code flow: accepts a session cookie and grants consent. */
async function logIn(state: State, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { provider, resourceServer } = state;
  const user = userOf(state, cookieOf(request, sessionCookie));
  if (user === undefined) {
    send(response, 401, { error: 'login_required', sign_in: `${state.issuer}/auth/sign-in` });
    return;
  }
  const { params } = await provider.interactionDetails(request, response);
  const grant = new provider.Grant({ accountId: user.uid, clientId: params.client_id });
  grant.addOIDCScope(`openid offline_access ${resourceServer.scope}`);
  grant.addResourceScope(resourceServer.audience, resourceServer.scope);
  const grantId = await grant.save();
  await provider.interactionFinished(request, response, { login: { accountId: user.uid }, consent: { grantId } });
}

function userOf(state: State, sessionToken: string | undefined): User | undefined {
  const session = state.sessions.get(sessionToken ?? '');
  return session !== undefined && session.expiresAt > Date.now() ? session.user : undefined;
}

function cookieOf(request: IncomingMessage, name: string): string | undefined {
  const pairs = (request.headers.cookie ?? '').split('; ').map(pair => pair.split('='));
  return pairs.find(([key]) => key === name)?.[1];
}

class BadRequest extends Error {}

/** The members of a JSON object; none of another JSON value. */
async function readJson(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  let body = '';
  for await (const text of request.setEncoding('utf8')) {
    body += text;
    if (body.length > maxBodyCharacters) throw new BadRequest();
  }
  try {
    return Object(JSON.parse(body));
  } catch {
    throw new BadRequest();
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(JSON.stringify(body));
}
