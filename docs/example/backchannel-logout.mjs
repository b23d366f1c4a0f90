// Takes the logout tokens of OpenID Connect Back-Channel Logout 1.0 and publishes the sessions and users that they end as a revocation list.
// Needs jose 6 (npm install jose). POST / is for the authentication service, GET /revoked.jsonl for account-authz.
//
//   ISSUER=https://id.example.com/realms/shop JWKS_URL=… CLIENT_IDS=web LIST=/var/lib/logout/revoked.jsonl node backchannel-logout.mjs
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRemoteJWKSet, jwtVerify } from 'jose';

const { ISSUER, JWKS_URL, CLIENT_IDS, LIST = 'revoked.jsonl', HOST = '127.0.0.1', PORT = '8090' } = process.env;
// The longest life of an access token: an entry is of no use after it.
const tokenSeconds = Number(process.env.TOKEN_SECONDS ?? 86_400);
const logout = 'http://schemas.openid.net/event/backchannel-logout';
const keys = createRemoteJWKSet(new URL(JWKS_URL));

let list = existsSync(LIST) ? readFileSync(LIST, 'utf8') : '';
let entries = list.split('\n').flatMap(line => (line.startsWith('{') ? [JSON.parse(line)] : []));
publish([]);

// On disk before it is answered: a restart must not lift a revocation.
function publish(added) {
  entries = [...entries, ...added].filter(({ expires }) => Date.parse(expires) > Date.now());
  list = `# sessions and users that have logged out\n${entries.map(entry => `${JSON.stringify(entry)}\n`).join('')}`;
  writeFileSync(`${LIST}.new`, list, { flush: true });
  renameSync(`${LIST}.new`, LIST);
}

// Sections 2.4 and 2.6 of the specification.
async function toEntry(token) {
  const { payload } = await jwtVerify(token, keys, {
    issuer: ISSUER,
    audience: CLIENT_IDS.split(','),
    maxTokenAge: 300,
    clockTolerance: 30,
    requiredClaims: ['iat', 'jti'],
  });
  const { iss, sub, sid, iat, events } = payload;
  if (typeof events?.[logout] !== 'object' || 'nonce' in payload) throw new Error('no logout token');
  const at = seconds => new Date(seconds * 1000).toISOString();
  if (typeof sid === 'string') return { iss, sid, expires: at(iat + tokenSeconds) };
  // Without a session: every token of the user from before. A token of the same second is one of them.
  if (typeof sub === 'string') return { iss, uid: sub, issuedBefore: at(iat + 1), expires: at(iat + tokenSeconds) };
  throw new Error('a logout token without sid and sub');
}

async function answer(request, response) {
  if (request.method === 'GET') {
    const etag = `"${createHash('sha256').update(list).digest('base64url')}"`;
    if (request.headers['if-none-match'] === etag) return response.writeHead(304, { etag }).end();
    return response.writeHead(200, { etag, 'content-type': 'application/jsonl' }).end(list);
  }
  let body = '';
  for await (const chunk of request) {
    body += chunk;
    if (body.length > 65_536) return request.destroy();
  }
  publish([await toEntry(new URLSearchParams(body).get('logout_token') ?? '')]);
  return response.writeHead(200, { 'cache-control': 'no-store' }).end();
}

createServer((request, response) => {
  answer(request, response).catch(error => {
    console.error(error.code ?? error.message);
    response.writeHead(400, { 'cache-control': 'no-store' }).end();
  });
}).listen(Number(PORT), HOST);
