#!/usr/bin/env bash
# The access tokens of OpenAuth have neither `iat` nor `scope`, live 30 days by default, and name the client alone in `aud`; the properties of
# the subject are one level down. A verifier that bounds `exp - iat`, or asks for an API in `aud`, refuses every one.
# For users of account-authz: `token.maxLifetimeSeconds: 2592000`, `app: aud`, pointers under /properties (docs/providers/others.md).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @openauthjs/openauth@0.4.3 hono@4.13.19
cat >token.mjs <<'M'
import { issuer } from '@openauthjs/openauth';
import { MemoryStorage } from '@openauthjs/openauth/storage/memory';
const app = issuer({
  subjects: { user: { '~standard': { version: 1, vendor: 'trial', validate: value => ({ value }) } } },
  storage: MemoryStorage(),
  providers: { service: { type: 'custom', init() {}, client: async ({ clientID }) => ({ clientID }) } },
  success: (answer, { clientID }) => answer.subject('user', { userID: clientID }),
});
const form = { grant_type: 'client_credentials', provider: 'service', client_id: 'billing', client_secret: 'secret' };
const answer = await app.fetch(new Request('http://127.0.0.1/token', { method: 'POST', body: new URLSearchParams(form) }));
const { access_token } = await answer.json();
const claims = JSON.parse(Buffer.from(access_token.split('.')[1], 'base64url').toString());
const days = Math.round((claims.exp - Date.now() / 1000) / 86400);
console.log(`OpenAuth 0.4.3: members ${Object.keys(claims).sort().join(' ')}; aud ${claims.aud}; expires in ${days} days`);
const isSo = !('iat' in claims) && !('scope' in claims) && claims.aud === 'billing' && days === 30 && claims.properties.userID === 'billing';
process.exit(isSo ? 0 : 1);
M
node token.mjs
