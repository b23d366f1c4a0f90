#!/usr/bin/env bash
# The OpenID metadata of cognito-local names http://localhost:9229 as issuer and place of the keys, whatever it listens on or is told to write
# into tokens: in a compose network, or on another port, no client that starts from `/.well-known/openid-configuration` accepts its tokens.
# For users of account-authz: `jwksUrl` in the place of `discoveryUrl`, and the `iss` of a token as issuer (docs/providers/others.md).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts cognito-local@5.3.0
cat >token.mjs <<'M'
import { once } from 'node:events';
import { spawn } from 'node:child_process';
const port = 20000 + (process.pid % 20000);
const url = `http://127.0.0.1:${port}`;
const server = spawn('node_modules/.bin/cognito-local', { env: { ...process.env, HOST: '127.0.0.1', PORT: port } });
process.once('exit', () => server.kill());
for (let up = ''; !up.includes('running on'); ) up += (await once(server.stdout, 'data'))[0];
const call = async (operation, input) => {
  const headers = { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': `AWSCognitoIdentityProviderService.${operation}` };
  return (await fetch(url, { method: 'POST', headers, body: JSON.stringify(input) })).json();
};
const { UserPool: { Id: UserPoolId } } = await call('CreateUserPool', { PoolName: 'trial' });
const { UserPoolClient: { ClientId } } = await call('CreateUserPoolClient', { UserPoolId, ClientName: 'web' });
const [Username, Password] = ['alice@example.com', 'A password of 1 trial'];
await call('AdminCreateUser', { UserPoolId, Username, MessageAction: 'SUPPRESS' });
await call('AdminSetUserPassword', { UserPoolId, Username, Password, Permanent: true });
const AuthParameters = { USERNAME: Username, PASSWORD: Password };
const { AuthenticationResult } = await call('InitiateAuth', { ClientId, AuthFlow: 'USER_PASSWORD_AUTH', AuthParameters });
const { iss } = JSON.parse(Buffer.from(AuthenticationResult.AccessToken.split('.')[1], 'base64url').toString());
const { issuer, jwks_uri } = await (await fetch(`${url}/${UserPoolId}/.well-known/openid-configuration`)).json();
const { keys } = await (await fetch(`${url}/${UserPoolId}/.well-known/jwks.json`)).json();
console.log(`cognito-local 5.3.0 on ${url}: iss ${iss}; metadata issuer ${issuer}, jwks_uri ${jwks_uri}; its own key set has ${keys.length} key`);
const metadata = `http://localhost:9229/${UserPoolId}`;
const isSo = iss === `${url}/${UserPoolId}` && issuer === metadata && jwks_uri === `${metadata}/.well-known/jwks.json` && keys.length === 1;
process.exit(isSo ? 0 : 1);
M
node token.mjs
