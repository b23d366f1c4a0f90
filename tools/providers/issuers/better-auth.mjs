// A server with better-auth's jwt plugin; /token signs a user up and answers with the token of the session.
import { createServer } from 'node:http';
import { betterAuth } from 'better-auth';
import { memoryAdapter } from 'better-auth/adapters/memory';
import { toNodeHandler } from 'better-auth/node';
import { jwt } from 'better-auth/plugins';

const { URL: url, PORT } = process.env;
const tables = ['user', 'session', 'account', 'verification', 'jwks'];
const claims = { audience: 'https://api.example.com', definePayload: () => ({ orgs: { acme: 'owner,admin' } }) };
const auth = toNodeHandler(
  betterAuth({
    baseURL: url,
    secret: 'of a trial, and longer than 32 characters',
    database: memoryAdapter(Object.fromEntries(tables.map(name => [name, []]))),
    emailAndPassword: { enabled: true },
    plugins: [jwt({ jwt: claims })],
  }),
);
createServer(async (request, response) => {
  if (request.url !== '/token') return auth(request, response);
  const signUp = await fetch(`${url}/api/auth/sign-up/email`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: url },
    body: JSON.stringify({ name: 'Alice', email: 'alice@example.com', password: 'a password of a trial' }),
  });
  const cookie = signUp.headers.getSetCookie().map(each => each.split(';')[0]);
  const answer = await fetch(`${url}/api/auth/token`, { headers: { cookie: cookie.join('; ') } });
  response.end(JSON.stringify({ access_token: (await answer.json()).token }));
}).listen(PORT, '127.0.0.1');
