// A server with better-auth's oauth-provider; /token asks it for the token of a client that was registered at the start.
import { createServer } from 'node:http';
import { oauthProvider } from '@better-auth/oauth-provider';
import { betterAuth } from 'better-auth';
import { memoryAdapter } from 'better-auth/adapters/memory';
import { toNodeHandler } from 'better-auth/node';
import { jwt } from 'better-auth/plugins';

const { URL: url, PORT } = process.env;
const identifier = 'https://api.example.com';
const ofProvider = ['Client', 'Resource', 'ClientResource', 'AccessToken', 'RefreshToken', 'Consent'];
const tables = ['user', 'session', 'account', 'verification', 'jwks', ...ofProvider.map(name => `oauth${name}`)];
const { api, handler } = betterAuth({
  baseURL: url,
  secret: 'of a trial, and longer than 32 characters',
  database: memoryAdapter(Object.fromEntries(tables.map(name => [name, []]))),
  emailAndPassword: { enabled: true },
  plugins: [
    jwt(),
    oauthProvider({
      loginPage: '/login',
      consentPage: '/consent',
      scopes: ['openid', 'orders:read'],
      resources: [identifier],
      clientPrivileges: () => true,
      customAccessTokenClaims: () => ({ orgs: { acme: 'owner,admin' } }),
    }),
  ],
});
const alice = { name: 'Alice', email: 'alice@example.com', password: 'a password of a trial' };
const signedUp = await api.signUpEmail({ body: alice, returnHeaders: true });
const cookie = signedUp.headers.getSetCookie().map(each => each.split(';')[0]);
const headers = new Headers({ cookie: cookie.join('; ') });
const client = {
  redirect_uris: ['https://app.example.com/callback'],
  grant_types: ['client_credentials'],
  client_credentials_scopes: ['orders:read'],
  scope: 'orders:read',
  token_endpoint_auth_method: 'client_secret_post',
};
const { client_id, client_secret } = await api.adminCreateOAuthClient({ headers, body: client });
const link = { identifier: encodeURIComponent(identifier), client_id };
await api.adminLinkClientResource({ headers, params: link });
createServer(async (request, response) => {
  if (request.url !== '/token') return toNodeHandler(handler)(request, response);
  const form = new URLSearchParams(Buffer.concat(await request.toArray()).toString());
  for (const [name, value] of Object.entries({ client_id, client_secret })) form.set(name, value);
  const answer = await fetch(`${url}/api/auth/oauth2/token`, { method: 'POST', body: form });
  response.end(await answer.text());
}).listen(PORT, '127.0.0.1');
