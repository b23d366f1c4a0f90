#!/usr/bin/env bash
# `expirationTime` of better-auth's jwt plugin takes a duration as text ('15m'), and a number as the time itself, in seconds since 1970: 3600 is one
# o'clock of 1 January 1970, so the plugin issues tokens that have expired, without an error. (jose's setExpirationTime reads both so.)
# For users of account-authz: `token_expired` for every new token; write '1h' (docs/providers/better-auth.md).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts better-auth@1.7.25
cat >token.mjs <<'M'
import { betterAuth } from 'better-auth';
import { memoryAdapter } from 'better-auth/adapters/memory';
import { jwt } from 'better-auth/plugins';
const baseURL = 'http://127.0.0.1:3000';
async function expiry(expirationTime) {
  const tables = ['user', 'session', 'account', 'verification', 'jwks'];
  const auth = betterAuth({
    baseURL,
    secret: 'of a trial, and longer than 32 characters',
    database: memoryAdapter(Object.fromEntries(tables.map(name => [name, []]))),
    emailAndPassword: { enabled: true },
    plugins: [jwt({ jwt: { expirationTime } })],
  });
  const body = JSON.stringify({ name: 'Alice', email: 'alice@example.com', password: 'a password of a trial' });
  const headers = { 'content-type': 'application/json', origin: baseURL };
  const signUp = await auth.handler(new Request(`${baseURL}/api/auth/sign-up/email`, { method: 'POST', headers, body }));
  const cookie = signUp.headers.getSetCookie().map(each => each.split(';')[0]).join('; ');
  const answer = await auth.handler(new Request(`${baseURL}/api/auth/token`, { headers: { cookie } }));
  const { token } = await answer.json();
  return JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString()).exp;
}
const now = Math.floor(Date.now() / 1000);
const [text, number] = [await expiry('1h'), await expiry(3600)];
console.log(`better-auth 1.7.25: '1h' expires in ${text - now} s; 3600 has exp ${number}`);
process.exit(Math.abs(text - now - 3600) < 60 && number === 3600 ? 0 : 1);
M
node token.mjs
