// Keycloak in development mode on loopback, its database in a file, set up by the commands of docs/providers/keycloak.md.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../support/envoy.ts';
import { keycloakHome, keycloakVersion } from './distributions.ts';
import { authorizationCode, clientCredentials, type Endpoints, type Tokens } from './oauth.ts';
import { providerPage, startPageShell } from './page.ts';
import { headings, type Provider, refusals } from './provider.ts';
import { type ServerProcess, startServer } from './server-process.ts';

const adminPassword = 'admin-password';
const redirectUri = 'https://app.example.com/callback';

export async function createKeycloak(say: (text: string) => void): Promise<Provider> {
  const home = await keycloakHome(say);
  const [port] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const directory = await mkdtemp(join(tmpdir(), 'account-authz-keycloak-'));
  const page = providerPage('keycloak');
  const addresses = new Map([['https://id.example.com', url]]);
  const shell = await startPageShell(page, addresses, { KEYCLOAK_ADMIN_PASSWORD: adminPassword });
  const endpoints: Endpoints = {
    authorization: `${url}/realms/shop/protocol/openid-connect/auth`,
    token: `${url}/realms/shop/protocol/openid-connect/token`,
  };
  let server: ServerProcess | undefined;

  const start = async (): Promise<void> => {
    server = await startServer({
      name: 'Keycloak',
      command: 'bash',
      args: [join(home, 'bin', 'kc.sh'), 'start-dev'],
      env: {
        KC_BOOTSTRAP_ADMIN_USERNAME: 'admin',
        KC_BOOTSTRAP_ADMIN_PASSWORD: adminPassword,
        KC_DB_URL: `jdbc:h2:file:${join(directory, 'keycloak')};NON_KEYWORDS=VALUE;DB_CLOSE_ON_EXIT=FALSE`,
        KC_HOSTNAME: url,
        KC_HTTP_HOST: '127.0.0.1',
        KC_HTTP_PORT: String(port),
      },
      healthUrl: `${url}/realms/master`,
    });
  };
  const stop = async (): Promise<void> => {
    await server?.stop();
    server = undefined;
  };

  const logIn = (username: string, clientId = 'web'): Promise<Tokens> =>
    authorizationCode(endpoints, {
      clientId,
      redirectUri,
      scope: 'openid',
      fields: { username, password: `${username}-password` },
    });
  const serve = (id: string): Promise<Tokens> => clientCredentials(endpoints, { id, secret: `${id}-secret` });

  return {
    id: 'keycloak',
    name: `Keycloak ${keycloakVersion}`,
    page,
    addresses,
    start,
    stop,
    async setUp() {
      await start();
      for (const heading of page.sections.slice(0, page.sections.indexOf(headings.publish))) await shell.run(heading);
      await shell.runScript('the clients and users of the trial', others);
    },
    async close() {
      await stop();
      await shell.stop();
      await rm(directory, { recursive: true, force: true });
    },
    userToken: async () => (await logIn('alice')).access_token,
    serviceToken: async () => (await serve('billing')).access_token,
    shortToken: async () => (await serve('short')).access_token,
    runSection: heading => shell.run(heading),
    async cases() {
      const alice = await logIn('alice');
      const both = await logIn('both');
      return [
        ...[
          { name: 'roles member and admin', token: both.access_token, expected: '200 admin of acme, app web' },
          {
            name: 'roles member and admin, DELETE',
            token: both.access_token,
            method: 'DELETE',
            expected: '200 admin of acme, app web',
          },
          { name: 'the ID token', token: alice.id_token, expected: refusals.audience },
          { name: 'the refresh token', token: alice.refresh_token, expected: refusals.algorithm },
          {
            name: 'a user without an account',
            token: (await logIn('homeless')).access_token,
            expected: refusals.account,
          },
          {
            name: 'an attribute that the user profile lacks',
            token: (await logIn('homeless', 'undeclared')).access_token,
            expected: refusals.account,
          },
          {
            name: 'a user without a role',
            token: (await logIn('roleless')).access_token,
            expected: '403 role_forbidden',
          },
        ].map(each => ({ grant: 'authorization code', ...each })),
        ...[
          {
            name: 'a client without the scope',
            token: (await serve('plain')).access_token,
            expected: refusals.audience,
          },
          { name: 'signed with PS256', token: (await serve('ps256')).access_token, expected: refusals.algorithm },
        ].map(each => ({ grant: 'client credentials', ...each })),
      ];
    },
  };
}

// A service client of account acme with the role owner, and what the trial wants beside those of the page.
const others = `
service() {   # service NAME ATTRIBUTES [SCOPE]
  keycloak POST "/$REALM/clients" '{"clientId": "'"$1"'", "publicClient": false, "standardFlowEnabled": false, "serviceAccountsEnabled": true,
    "secret": "'"$1"'-secret", "attributes": '"$2"'}'
  local id user
  id=$(keycloak GET "/$REALM/clients?clientId=$1" | jq -r '.[0].id')
  [ -z "\${3:-}" ] || keycloak PUT "/$REALM/clients/$id/default-client-scopes/$3"
  user=$(keycloak GET "/$REALM/clients/$id/service-account-user")
  keycloak PUT "/$REALM/users/$(jq -r .id <<< "$user")" "$(jq '.attributes = {account: ["acme"]}' <<< "$user")"
  keycloak POST "/$REALM/users/$(jq -r .id <<< "$user")/role-mappings/realm" "[$(keycloak GET "/$REALM/roles/owner")]"
}
service short '{"access.token.lifespan": "2"}' "$scope"
service plain '{}'
service ps256 '{"access.token.signed.response.alg": "PS256"}' "$scope"
keycloak POST "/$REALM/client-scopes" "$(keycloak GET "/$REALM/client-scopes/$scope" |
  jq '.name = "undeclared" | del(.id, .protocolMappers[].id) |
    (.protocolMappers[] | select(.name == "account").config["user.attribute"]) = "company"')"
keycloak POST "/$REALM/clients" '{"clientId": "undeclared", "publicClient": true, "standardFlowEnabled": true,
  "redirectUris": ["https://app.example.com/callback"]}'
keycloak PUT "/$REALM/clients/$(keycloak GET "/$REALM/clients?clientId=undeclared" | jq -r '.[0].id')/default-client-scopes/$(
  keycloak GET "/$REALM/client-scopes" | jq -r '.[] | select(.name == "undeclared").id')"

user() {   # user NAME ATTRIBUTES ROLE...
  keycloak POST "/$REALM/users" '{"username": "'"$1"'", "enabled": true, "attributes": '"$2"',
    "email": "'"$1"'@example.com", "emailVerified": true, "firstName": "A", "lastName": "User",
    "credentials": [{"type": "password", "value": "'"$1"'-password", "temporary": false}]}'
  local id role
  id=$(keycloak GET "/$REALM/users?username=$1&exact=true" | jq -r '.[0].id')
  for role in "\${@:3}"; do keycloak POST "/$REALM/users/$id/role-mappings/realm" "[$(keycloak GET "/$REALM/roles/$role")]"; done
}
user both '{"account": ["acme"]}' member admin
user homeless '{"company": ["acme"]}' member
user roleless '{"account": ["acme"]}'
`;
