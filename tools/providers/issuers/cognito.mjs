// A user pool of an emulator of Amazon Cognito, whose command is in the arguments; /token signs its user in.
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

const { URL: url, PORT, OTHER_PORT, DATA, PATH } = process.env;
const [command, ...args] = process.argv.slice(2);
const bin = `${process.cwd()}/node_modules/.bin`;
const env = { ...process.env, PATH: `${bin}:${PATH}`, HOST: '127.0.0.1', PORT: OTHER_PORT, MOTO_PORT: OTHER_PORT };
// Of cognito-local, whose tokens would name the address that it listens on.
mkdirSync(`${DATA}/.cognito`);
writeFileSync(`${DATA}/.cognito/config.json`, JSON.stringify({ TokenConfig: { IssuerDomain: url } }));
spawn(command, args, { cwd: DATA, env, stdio: 'inherit' });
const emulator = `http://127.0.0.1:${OTHER_PORT}`;
while (!(await fetch(emulator).catch(() => undefined))) await delay(100);

async function call(operation, input) {
  const type = { 'content-type': 'application/x-amz-json-1.1' };
  const headers = { ...type, 'x-amz-target': `AWSCognitoIdentityProviderService.${operation}` };
  const answer = await fetch(emulator, { method: 'POST', headers, body: JSON.stringify(input) });
  if (!answer.ok) throw new Error(`${operation}: ${await answer.text()}`);
  return answer.json();
}
const {
  UserPool: { Id: UserPoolId },
} = await call('CreateUserPool', { PoolName: 'trial' });
const client = { UserPoolId, ClientName: 'web', ExplicitAuthFlows: ['ALLOW_USER_PASSWORD_AUTH'] };
const {
  UserPoolClient: { ClientId },
} = await call('CreateUserPoolClient', client);
const [Username, Password, GroupName] = ['alice@example.com', 'A password of 1 trial', 'acme'];
await call('AdminCreateUser', { UserPoolId, Username, MessageAction: 'SUPPRESS' });
await call('AdminSetUserPassword', { UserPoolId, Username, Password, Permanent: true });
await call('CreateGroup', { UserPoolId, GroupName });
await call('AdminAddUserToGroup', { UserPoolId, Username, GroupName });
createServer(async (request, response) => {
  if (request.url !== '/token') return response.end(await (await fetch(emulator + request.url)).text());
  const AuthParameters = { USERNAME: Username, PASSWORD: Password };
  const { AuthenticationResult } = await call('InitiateAuth', {
    ClientId,
    AuthFlow: 'USER_PASSWORD_AUTH',
    AuthParameters,
  });
  response.end(JSON.stringify({ access_token: AuthenticationResult.AccessToken }));
}).listen(PORT, '127.0.0.1');
