// Keycloak in development mode on loopback, its database in a file, set up by the commands of docs/providers/keycloak.md.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../../lab/free-ports.ts';
import { providerPage } from '../../lab/provider-page.ts';
import { keycloakHome, keycloakVersion } from './distributions.ts';
import { authorizationCode, clientCredentials, type Endpoints, type Tokens } from './oauth.ts';
import { createProvider, type Provider, refusals } from './provider.ts';

const adminPassword = 'admin-password';
const redirectUri = 'https://app.example.com/callback';

export async function createKeycloak(): Promise<Provider> {
  const home = await keycloakHome();
  const [port, logoutPort] = await freePorts(2);
  const url = `http://127.0.0.1:${port}`;
  const directory = await mkdtemp(join(tmpdir(), 'account-authz-keycloak-'));
  const page = providerPage('keycloak');
  const endpoints: Endpoints = {
    authorization: `${url}/realms/shop/protocol/openid-connect/auth`,
    token: `${url}/realms/shop/protocol/openid-connect/token`,
  };
  const logIn = (username: string, clientId = 'web', scope = 'openid'): Promise<Tokens> =>
    authorizationCode(endpoints, {
      clientId,
      redirectUri,
      scope,
      fields: { username, password: `${username}-password` },
    });
  const globex = { path: '/api/subscriptions/accounts/globex' };
  const initech = { path: '/api/subscriptions/accounts/initech' };
  const inOrganizations = async (): Promise<{ readonly all: string; readonly one: string }> => ({
    all: (await logIn('alice', 'web', 'openid organization:*')).access_token,
    one: (await logIn('alice', 'web', 'openid organization:acme')).access_token,
  });
  const ofRealm = async (realm: string): Promise<string> => {
    const token = `${url}/realms/${realm}/protocol/openid-connect/token`;
    return (await clientCredentials({ ...endpoints, token }, { id: 'billing', secret: 'billing-secret' })).access_token;
  };
  const serve = (id: string, parameters: Readonly<Record<string, string>> = {}): Promise<Tokens> =>
    clientCredentials(endpoints, { id, secret: `${id}-secret` }, parameters);

  return createProvider({
    id: 'keycloak',
    name: `Keycloak ${keycloakVersion}`,
    page,
    addresses: new Map([
      ['https://id.example.com', url],
      ['http://logout.internal:8090', `http://127.0.0.1:${logoutPort}`],
    ]),
    logout: {
      heading: 'Log out everywhere',
      listUrl: `http://127.0.0.1:${logoutPort}/revoked.jsonl`,
      env: {
        ISSUER: `${url}/realms/shop`,
        JWKS_URL: `${url}/realms/shop/protocol/openid-connect/certs`,
        CLIENT_IDS: 'web',
        PORT: String(logoutPort),
        LIST: join(directory, 'revoked.jsonl'),
      },
      async signOut({ id_token: hint = '' }) {
        const end = `${url}/realms/shop/protocol/openid-connect/logout?${new URLSearchParams({ id_token_hint: hint })}`;
        const { ok, status } = await fetch(end);
        if (!ok) throw new Error(`${status} from the logout endpoint`);
      },
    },
    server: {
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
    },
    shellEnv: { KEYCLOAK_ADMIN_PASSWORD: adminPassword },
    trialClients,
    cleanUp: () => rm(directory, { recursive: true, force: true }),
    variants: [
      {
        heading: 'Organizations',
        async cases() {
          const { all, one } = await inOrganizations();
          const other = { token: all, ...globex };
          const none = { token: all, path: '/api/subscriptions' };
          const named = { headers: { 'x-account-id': 'globex' }, expected: '200 member of globex, app web' };
          return [
            { name: 'its organization of two', token: all, method: 'DELETE', expected: '200 owner of acme, app web' },
            { name: 'the other one', ...other, expected: '200 member of globex, app web' },
            { name: 'DELETE in the other one', ...other, method: 'DELETE', expected: '403 role_forbidden' },
            { name: 'none of two named', ...none, expected: '400 account_required' },
            { name: 'named in a header', ...none, ...named },
            { name: 'a third one', token: all, ...initech, expected: '403 account_mismatch' },
            { name: 'organization:acme, none named', ...none, token: one, expected: '200 owner of acme, app web' },
            { name: 'organization:acme, the other one', ...globex, token: one, expected: '403 account_mismatch' },
            { name: 'scope not requested', token: (await logIn('alice')).access_token, expected: refusals.account },
            {
              grant: 'client credentials',
              name: 'a machine that joined',
              token: (await serve('billing', { scope: 'organization:acme' })).access_token,
              expected: '200 owner of acme, app billing',
            },
          ].map(each => ({ grant: 'authorization code', ...each }));
        },
      },
      {
        heading: 'Organizations as a list',
        async cases() {
          const { all } = await inOrganizations();
          return [
            { name: 'its organization of two', token: all, expected: '200 member of acme, app web' },
            { name: 'the other one', token: all, ...globex, expected: '200 member of globex, app web' },
            { name: 'none of two named', token: all, path: '/api/subscriptions', expected: '400 account_required' },
            { name: 'a third one', token: all, ...initech, expected: '403 account_mismatch' },
          ].map(each => ({ grant: 'authorization code', ...each }));
        },
      },
      {
        heading: 'A realm for each account',
        async cases() {
          const [token, globexToken] = [await ofRealm('acme'), await ofRealm('globex')];
          const own = '200 owner of acme, app billing';
          const none = { token, path: '/api/subscriptions' };
          const other = { token, expected: '403 account_mismatch' };
          return [
            { name: 'its account in the path', token, expected: own },
            { name: 'in the host', ...none, host: 'acme.api.example.com', expected: own },
            { name: 'none named', ...none, expected: own },
            { name: 'another one in the path', ...other, ...globex },
            { name: 'in a header', ...none, ...other, headers: { 'x-account-id': 'globex' } },
            { name: 'in the query', ...other, path: '/api/subscriptions?account_id=globex' },
            { name: 'in the host', ...none, ...other, host: 'globex.api.example.com' },
            { name: 'of the other realm', token: globexToken, ...globex, expected: '200 owner of globex, app billing' },
          ].map(each => ({ grant: 'client credentials', host: 'api.example.com', ...each }));
        },
        later: {
          heading: 'Add a realm',
          async cases() {
            const token = await ofRealm('initech');
            return [
              { name: 'its account', token, ...initech, expected: '200 owner of initech, app billing' },
              { name: 'another one', token, ...globex, expected: '403 account_mismatch' },
            ].map(each => ({ grant: 'client credentials', host: 'api.example.com', ...each }));
          },
        },
      },
    ],
    userTokens: logIn,
    serviceTokens: id => serve(id),
    async cases() {
      const alice = await logIn('alice');
      const { access_token: undeclared } = await logIn('homeless', 'undeclared');
      const [plain, ps256] = [await serve('plain'), await serve('ps256')];
      return [
        ...[
          { name: 'the ID token', token: alice.id_token, expected: refusals.audience },
          { name: 'the refresh token', token: alice.refresh_token, expected: refusals.secret },
          { name: 'an attribute that the user profile lacks', token: undeclared, expected: refusals.account },
        ].map(each => ({ grant: 'authorization code', ...each })),
        ...[
          { name: 'a client without the scope', token: plain.access_token, expected: refusals.audience },
          { name: 'signed with PS256', token: ps256.access_token, expected: refusals.algorithm },
        ].map(each => ({ grant: 'client credentials', ...each })),
      ];
    },
  });
}

// `service` adds a client of account acme with the role owner.
const trialClients = `
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
