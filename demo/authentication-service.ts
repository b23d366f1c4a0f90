// The authentication service of the demo and of the end-to-end tests: OAuth 2.0 and OpenID Connect with oidc-provider, plus sign-in
// and account tokens. account-authz knows only its issuer, its audience and its public keys.
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, importJWK, type JWTHeaderParameters, type JWTPayload, SignJWT } from 'jose';
import { algorithm, createProvider, type ProviderSettings, type SigningJwk } from './oauth-provider.ts';
import { handle, type State } from './sign-in.ts';

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
  readonly accessTokenSeconds?: number;
  /** The scopes of the API, separated by spaces. Default: `subscriptions`. */
  readonly scope?: string;
  /** Whether any client may register itself (RFC 7591), as MCP clients do. Default: false. */
  readonly registration?: boolean;
}

/** Rejects if the port is in use. */
export async function startAuthenticationService(
  options: AuthenticationServiceOptions,
): Promise<AuthenticationService> {
  const { host = '127.0.0.1', audience, accessTokenSeconds = 600 } = options;
  const { scope = 'subscriptions', registration = false } = options;
  // The issuer contains the port, so listen first and answer 503 until the provider exists.
  let handler: RequestListener = (_, response) => response.writeHead(503).end();
  const server = createServer((request, response) => handler(request, response));
  await once(server.listen(options.port ?? 0, host), 'listening');
  const { port } = server.address() as AddressInfo;
  const issuer = options.issuer ?? `http://127.0.0.1:${port}`;
  const settings: ProviderSettings = {
    issuer,
    resourceServer: {
      scope,
      audience,
      accessTokenFormat: 'jwt',
      accessTokenTTL: accessTokenSeconds,
      jwt: { sign: { alg: algorithm } },
    },
    registration,
    cookieKey: randomBytes(32).toString('base64url'),
    records: new Map(),
    keys: [await newKey()],
  };
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
      await once(server.listen(port, host), 'listening');
    },
  };
}

async function newKey(): Promise<SigningJwk> {
  const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
  return { ...(await exportJWK(privateKey)), kid: randomUUID(), alg: algorithm, use: 'sig' };
}
