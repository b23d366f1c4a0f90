// The OAuth 2.0 and OpenID Connect part of the demo's authentication service: oidc-provider, its settings, its storage in memory and the
// identity claims of its access tokens.
import type { JWK } from 'jose';
// Not from the package's main module, which only adds a warning that asks for Node 22.
import { type IssuedToken, Provider, type ResourceServerInfo, type StoredPayload } from 'oidc-provider/lib/provider.js';
import { type Client, clients, membershipOf, users } from './directory.ts';

export type SigningJwk = JWK & { readonly kid: string };

export interface ProviderSettings {
  readonly issuer: string;
  readonly resourceServer: ResourceServerInfo;
  readonly registration: boolean;
  readonly cookieKey: string;
  readonly records: Map<string, StoredPayload>;
  /** The first one signs. */
  keys: readonly [SigningJwk, ...SigningJwk[]];
}

export const algorithm = 'ES256';
export const sessionSeconds = 3600;

/** oidc-provider reads its keys only at construction, so a rotation creates a new provider with the same records. */
export function createProvider(settings: ProviderSettings): Provider {
  const { issuer, resourceServer, registration, cookieKey, records, keys } = settings;
  return new Provider(issuer, {
    adapter: (model: string) => recordsOf(records, model),
    clients: clients.map(clientMetadata),
    clientDefaults: { id_token_signed_response_alg: algorithm },
    cookies: { keys: [cookieKey] },
    jwks: { keys },
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
    extraTokenClaims: async (_context: unknown, token: IssuedToken) => identityClaims(token),
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
      registration: { enabled: registration },
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
function identityClaims(token: IssuedToken): Readonly<Record<string, unknown>> {
  const { clientId: app } = token;
  const user = users.find(each => each.uid === token.accountId);
  if (user !== undefined) {
    const membership = membershipOf(user.uid, token.extra?.acc ?? user.homeAccount);
    return membership === undefined ? {} : { uid: user.uid, app, acc: membership.account, role: membership.role };
  }
  const client = clients.find(each => each.clientId === app);
  return client?.kind === 'backend' ? { uid: client.uid, app, acc: client.account, role: client.role } : {};
}

// The storage of oidc-provider for codes, grants, sessions and refresh tokens. oidc-provider checks their expiry itself.
function recordsOf(records: Map<string, StoredPayload>, model: string): object {
  const key = (id: string) => `${model} ${id}`;
  return {
    upsert: async (id: string, payload: StoredPayload) => void records.set(key(id), payload),
    find: async (id: string) => records.get(key(id)),
    findByUid: async (uid: string) =>
      [...records].find(([name, payload]) => name.startsWith(key('')) && payload.uid === uid)?.[1],
    async consume(id: string) {
      const payload = records.get(key(id));
      if (payload !== undefined) records.set(key(id), { ...payload, consumed: Math.floor(Date.now() / 1000) });
    },
    destroy: async (id: string) => void records.delete(key(id)),
    async revokeByGrantId(grantId: string) {
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
