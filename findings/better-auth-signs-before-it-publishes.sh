#!/usr/bin/env bash
# With `rotationInterval`, better-auth's jwt plugin makes its next key at the first token after the interval, and signs that token with it: no new
# key is ever in the key set before it signs. `gracePeriod`, which sounds like that overlap, keeps the old key alone.
# For users of account-authz: each rotation is one without overlap (docs/keys.md), which an early refresh for the unknown `kid` makes good.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts better-auth@1.7.25
cat >token.mjs <<'M'
import { setTimeout as delay } from 'node:timers/promises';
import { betterAuth } from 'better-auth';
import { memoryAdapter } from 'better-auth/adapters/memory';
import { jwt } from 'better-auth/plugins';
const baseURL = 'http://127.0.0.1:3000';
const tables = ['user', 'session', 'account', 'verification', 'jwks'];
const auth = betterAuth({
  baseURL,
  secret: 'of a trial, and longer than 32 characters',
  database: memoryAdapter(Object.fromEntries(tables.map(name => [name, []]))),
  emailAndPassword: { enabled: true },
  plugins: [jwt({ jwks: { rotationInterval: 2, gracePeriod: 3600 } })],
});
const body = JSON.stringify({ name: 'Alice', email: 'alice@example.com', password: 'a password of a trial' });
const headers = { 'content-type': 'application/json', origin: baseURL };
const signUp = await auth.handler(new Request(`${baseURL}/api/auth/sign-up/email`, { method: 'POST', headers, body }));
const cookie = signUp.headers.getSetCookie().map(each => each.split(';')[0]).join('; ');
const ask = async path => (await auth.handler(new Request(`${baseURL}/api/auth/${path}`, { headers: { cookie } }))).json();
const published = async () => (await ask('jwks')).keys.map(({ kid }) => kid);
const signing = async () => JSON.parse(Buffer.from((await ask('token')).token.split('.')[0], 'base64url').toString()).kid;
const old = await signing();
await delay(3000);
const before = await published();
const next = await signing();
const after = await published();
const counts = `${before.length} key published just before a token of the next key, ${after.length} after it`;
console.log(`better-auth 1.7.25, rotationInterval 2 s: ${counts}; the new one was ${before.includes(next) ? '' : 'not '}among the former`);
process.exit(next !== old && before.join() === old && after.includes(old) && after.includes(next) ? 0 : 1);
M
node token.mjs
