// The authentication service of the demo and of the end-to-end tests: OAuth 2.0 and OpenID Connect with oidc-provider, plus sign-in
// and account tokens. account-authz knows only its issuer, its audience and its public keys.
import { randomBytes, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
  type JWTHeaderParameters,
  type JWTPayload,
  SignJWT,
} from 'jose';
import * as errors from 'oidc-provider/lib/helpers/errors.js';
// Not from the package's main module, which only adds a warning that asks for Node 22.
import {
  type Adapter,
  type IssuedToken,
  Provider,
  type ResourceServerInfo,
  type StoredPayload,
} from 'oidc-provider/lib/provider.js';
import { authenticate, type Client, type Directory, demoDirectory, membershipOf, type User } from './directory.ts';

export interface AuthenticationService {
  readonly issuer: string;
  readonly port: number;
  readonly audience: string;
  readonly jwksUrl: string;
  readonly discoveryUrl: string;
  /** The `kid` of the current signing key. */
  readonly signingKid: string;
  /** Replaces the signing key. The previous one stays published, unless the rotation is hard. */
  rotateKeys(options?: { readonly hard?: boolean }): Promise<void>;
  /** Signs any claims with the current key, for tokens that no OAuth flow issues. */
  signToken(claims: JWTPayload, header?: Partial<JWTHeaderParameters>): Promise<string>;
  /** Closes the port; sessions, refresh tokens and keys are kept for `startAgain`. */
  stop(): Promise<void>;
  startAgain(): Promise<void>;
}

export interface AuthenticationServiceOptions {
  /** Default: 127.0.0.1. */
  readonly host?: string;
  /** Default: a free one. */
  readonly port?: number;
  /** Default: `http://127.0.0.1:PORT`. */
  readonly issuer?: string;
  /** The `aud` of every access token. */
  readonly audience: string;
  readonly directory?: Directory;
  readonly accessTokenSeconds?: number;
  /** The scopes of the API, separated by spaces. Default: `subscriptions`. */
  readonly scope?: string;
  /** Whether any client may register itself (RFC 7591), as MCP clients do. Default: false. */
  readonly registration?: boolean;
}

interface SignInSession {
  readonly user: User;
  readonly expiresAt: number;
}

/** The state that all handlers share. A rotation replaces `provider` and keeps the records. */
interface State {
  readonly issuer: string;
  readonly directory: Directory;
  readonly resourceServer: ResourceServerInfo;
  readonly registration: boolean;
  readonly cookieKey: string;
  readonly records: Map<string, StoredPayload>;
  readonly sessions: Map<string, SignInSession>;
  /** The first one signs. */
  keys: readonly [SigningJwk, ...SigningJwk[]];
  provider: Provider;
}

type SigningJwk = JWK & { readonly kid: string };

const algorithm = 'ES256';
const sessionSeconds = 3600;
const sessionCookie = 'session';
const maxBodyBytes = 4096;

/** Rejects if the port is in use. */
export async function startAuthenticationService(
  options: AuthenticationServiceOptions,
): Promise<AuthenticationService> {
  const { host = '127.0.0.1', audience, directory = demoDirectory, accessTokenSeconds = 600 } = options;
  const { scope = 'subscriptions', registration = false } = options;
  // The issuer contains the port, so listen first and answer 503 until the provider exists.
  let handler: (request: IncomingMessage, response: ServerResponse) => void = (_request, response) => {
    response.writeHead(503).end();
  };
  let server = await listen(host, options.port ?? 0, (request, response) => handler(request, response));
  const { port } = server.address() as AddressInfo;
  const issuer = options.issuer ?? `http://127.0.0.1:${port}`;
  const resourceServer: ResourceServerInfo = {
    scope,
    audience,
    accessTokenFormat: 'jwt',
    accessTokenTTL: accessTokenSeconds,
    jwt: { sign: { alg: algorithm } },
  };
  const cookieKey = randomBytes(32).toString('base64url');
  const records = new Map<string, StoredPayload>();
  const keys: State['keys'] = [await newKey()];
  const settings = { issuer, directory, resourceServer, registration, cookieKey, records, keys };
  const state: State = { ...settings, sessions: new Map(), provider: createProvider(settings) };
  handler = (request, response) => void handle(state, request, response);

  return {
    issuer,
    port,
    audience,
    jwksUrl: `${issuer}/.well-known/jwks.json`,
    discoveryUrl: `${issuer}/.well-known/openid-configuration`,
    get signingKid() {
      return state.keys[0].kid;
    },
    async rotateKeys({ hard = false } = {}) {
      const [previous] = state.keys;
      const key = await newKey();
      state.keys = hard ? [key] : [key, previous];
      state.provider = createProvider(state);
    },
    async signToken(claims, header = {}) {
      const [key] = state.keys;
      return new SignJWT(claims)
        .setProtectedHeader({ alg: algorithm, kid: key.kid, typ: 'at+jwt', ...header })
        .sign(await importJWK(key, algorithm));
    },
    async stop() {
      server.closeAllConnections();
      await new Promise<void>(resolve => server.close(() => resolve()));
    },
    async startAgain() {
      server = await listen(host, port, (request, response) => handler(request, response));
    },
  };
}

function listen(
  host: string,
  port: number,
  handler: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer(handler);
    server.once('error', reject);
    server.listen(port, host, () => resolve(server));
  });
}

async function newKey(): Promise<SigningJwk> {
  const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
  return { ...(await exportJWK(privateKey)), kid: randomUUID(), alg: algorithm, use: 'sig' };
}

// oidc-provider reads its keys only at construction, so a rotation creates a new provider with the same records.
function createProvider(state: Omit<State, 'provider' | 'sessions'>): Provider {
  const { issuer, directory, resourceServer, registration } = state;
  return new Provider(issuer, {
    adapter: (model: string) => recordsOf(state.records, model),
    clients: directory.clients.map(clientMetadata),
    clientDefaults: { id_token_signed_response_alg: algorithm },
    cookies: { keys: [state.cookieKey] },
    jwks: { keys: state.keys },
    routes: { authorization: '/oauth2/authorize', token: '/oauth2/token', jwks: '/.well-known/jwks.json' },
    interactions: { url: (_context: unknown, interaction: { uid: string }) => `/interaction/${interaction.uid}` },
    // A client that registers itself may name only these.
    scopes: ['openid', 'offline_access', ...(registration ? resourceServer.scope.split(' ') : [])],
    responseTypes: ['code'],
    clientAuthMethods: ['none', 'client_secret_basic'],
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: async (_context: unknown, client: { grantTypeAllowed(type: string): boolean }) =>
      client.grantTypeAllowed('refresh_token'),
    findAccount: async (_context: unknown, uid: string) => ({ accountId: uid, claims: async () => ({ sub: uid }) }),
    extraTokenClaims: async (_context: unknown, token: IssuedToken) => identityClaims(directory, token),
    expiresWithSession: async () => false,
    renderError: async (context: { type: string; body: unknown }, error: unknown) => {
      context.type = 'json';
      context.body = error;
    },
    ttl: {
      AccessToken: resourceServer.accessTokenTTL,
      ClientCredentials: resourceServer.accessTokenTTL,
      AuthorizationCode: 60,
      Grant: 86_400,
      IdToken: 600,
      Interaction: 600,
      RefreshToken: 86_400,
      Session: sessionSeconds,
    },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      dPoP: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      registration: { enabled: registration },
      rpInitiatedLogout: { enabled: false },
      userinfo: { enabled: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resourceServer.audience,
        getResourceServerInfo: () => resourceServer,
        useGrantedResource: () => true,
      },
    },
  });
}

function clientMetadata(client: Client): Readonly<Record<string, unknown>> {
  switch (client.kind) {
    case 'public':
      return {
        client_id: client.clientId,
        application_type: 'native',
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        redirect_uris: [client.redirectUri],
      };
    case 'backend':
      return {
        client_id: client.clientId,
        client_secret: client.clientSecret,
        token_endpoint_auth_method: 'client_secret_basic',
        grant_types: ['client_credentials'],
        response_types: [],
        redirect_uris: [],
      };
  }
}

/** uid, app, acc and role for an access token: of the user in the derived or home account, or of the backend client. */
function identityClaims(directory: Directory, token: IssuedToken): Readonly<Record<string, unknown>> {
  const { clientId: app } = token;
  const user = directory.users.find(each => each.uid === token.accountId);
  if (user !== undefined) return userClaims(directory, user, token.extra?.acc ?? user.homeAccount, app) ?? {};
  const client = directory.clients.find(each => each.clientId === app);
  if (client?.kind === 'backend') return { uid: client.uid, app, acc: client.account, role: client.role };
  return {};
}

function userClaims(directory: Directory, user: User, account: string, app: string) {
  const membership = membershipOf(directory, user.uid, account);
  return membership && { uid: user.uid, app, acc: account, role: membership.role };
}

async function handle(state: State, request: IncomingMessage, response: ServerResponse): Promise<void> {
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
  const user = authenticate(state.directory, name, password);
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
  const accounts = state.directory.memberships
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
  const { directory, provider, resourceServer } = state;
  const user = userOf(state, /^Bearer ([\w-]+)$/i.exec(request.headers.authorization ?? '')?.[1]);
  if (user === undefined) {
    response.setHeader('www-authenticate', 'Bearer');
    send(response, 401, { error: 'invalid_session' });
    return;
  }
  const claims = userClaims(directory, user, account, directory.signInClient);
  if (claims === undefined) {
    send(response, 403, { error: 'not_a_member' });
    return;
  }
  const client = await provider.Client.find(directory.signInClient);
  if (client === undefined) throw new Error('the directory names an unknown sign-in client');
  const token = new provider.AccessToken({ accountId: user.uid, client, gty: 'account_token' });
  token.resourceServer = new provider.ResourceServer(resourceServer.audience, resourceServer);
  token.extra = { acc: claims.acc };
  token.scope = resourceServer.scope;
  send(response, 200, {
    access_token: await token.save(),
    token_type: 'Bearer',
    expires_in: resourceServer.accessTokenTTL,
    account_id: claims.acc,
    role: claims.role,
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

async function readJson(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > maxBodyBytes) throw new BadRequest();
    chunks.push(chunk);
  }
  try {
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString());
    if (typeof value === 'object' && value !== null) return value as Readonly<Record<string, unknown>>;
  } catch {
    // Handled below, as a body that is not a JSON object.
  }
  throw new BadRequest();
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(JSON.stringify(body));
}

// The storage of oidc-provider for codes, grants, sessions and refresh tokens. oidc-provider checks their expiry itself.
function recordsOf(records: Map<string, StoredPayload>, model: string): Adapter {
  const key = (id: string) => `${model} ${id}`;
  const findWhere = (matches: (payload: StoredPayload) => boolean) =>
    [...records].find(([name, payload]) => name.startsWith(`${model} `) && matches(payload))?.[1];
  return {
    async upsert(id, payload) {
      records.set(key(id), payload);
    },
    async find(id) {
      return records.get(key(id));
    },
    async findByUid(uid) {
      return findWhere(payload => payload.uid === uid);
    },
    async findByUserCode() {
      return undefined;
    },
    async consume(id) {
      const payload = records.get(key(id));
      if (payload !== undefined) records.set(key(id), { ...payload, consumed: Math.floor(Date.now() / 1000) });
    },
    async destroy(id) {
      records.delete(key(id));
    },
    async revokeByGrantId(grantId) {
      for (const [name, payload] of records) if (payload.grantId === grantId) records.delete(name);
    },
  };
}

// oidc-provider 9 needs URL.parse, which Node 20 does not have.
if (!('parse' in URL)) {
  Object.assign(URL, {
    parse: (input: string, base?: string) => (URL.canParse(input, base) ? new URL(input, base) : null),
  });
}
