// Hydra in development mode on loopback, its database in a file, beside a login app, set up by the commands of docs/providers/hydra.md.
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePorts } from '../../lab/free-ports.ts';
import { providerPage } from '../../lab/provider-page.ts';
import { hydraBinary, hydraVersion } from './distributions.ts';
import { startLoginApp } from './login-app.ts';
import { authorizationCode, clientCredentials, type Endpoints, type Tokens } from './oauth.ts';
import { replaceAll } from './page.ts';
import { createProvider, type Provider, refusals } from './provider.ts';

const audience = 'https://api.example.com/subscriptions';
const redirectUri = 'https://app.example.com/callback';

export async function createHydra(): Promise<Provider> {
  const binary = await hydraBinary();
  const [port, adminPort] = await freePorts(2);
  const url = `http://127.0.0.1:${port}`;
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  const directory = await mkdtemp(join(tmpdir(), 'account-authz-hydra-'));
  const page = providerPage('hydra');
  const document = (heading: string) => JSON.parse(page.blocks(heading, 'json')[0] ?? '');
  const app = await startLoginApp({
    adminUrl,
    users: new Map([
      ['alice', { acc: 'acme', roles: ['member'] }],
      ['both', { acc: 'acme', roles: ['guest', 'member', 'admin'] }],
      ['roleless', { acc: 'acme', roles: ['guest'] }],
    ]),
    services: new Map(['billing', 'short', 'opaque'].map(name => [name, { acc: 'acme', roles: ['owner'] }])),
    consent: document('4. The account and the roles of a user'),
    hook: document('5. The account and the roles of a service'),
  });
  const addresses = new Map([
    ['https://id.example.com', url],
    ['https://login.example.com', app.url],
    ['http://127.0.0.1:4445', adminUrl],
  ]);
  const configFile = join(directory, 'hydra.yml');
  await writeFile(configFile, replaceAll(page.blocks('1. The configuration of Hydra', 'yaml')[0] ?? '', addresses));
  const env = {
    DSN: `sqlite://${join(directory, 'hydra.sqlite')}?_fk=true`,
    SECRETS_SYSTEM: 'a-secret-of-the-trial',
    SERVE_PUBLIC_HOST: '127.0.0.1',
    SERVE_PUBLIC_PORT: String(port),
    SERVE_ADMIN_HOST: '127.0.0.1',
    SERVE_ADMIN_PORT: String(adminPort),
    SQA_OPT_OUT: 'true',
    LOG_LEVEL: 'error',
  };
  const endpoints: Endpoints = { authorization: `${url}/oauth2/auth`, token: `${url}/oauth2/token` };
  const logIn = (
    username: string,
    parameters: Readonly<Record<string, string>> = { audience },
    scope = 'openid offline_access',
  ): Promise<Tokens> => {
    return authorizationCode(endpoints, { clientId: 'web', redirectUri, scope, fields: { username }, parameters });
  };
  const serve = (id: string, parameters: Readonly<Record<string, string>> = { audience }): Promise<Tokens> =>
    clientCredentials(endpoints, { id, secret: `${id}-secret` }, parameters);

  return createProvider({
    id: 'hydra',
    name: `Hydra ${hydraVersion}`,
    page,
    addresses,
    server: {
      name: 'Hydra',
      command: binary,
      args: ['serve', 'all', '--dev', '--config', configFile],
      env,
      healthUrl: `${url}/health/ready`,
    },
    trialClients,
    prepare: () => promisify(execFile)(binary, ['migrate', 'sql', '-e', '--yes'], { env: { ...process.env, ...env } }),
    async cleanUp() {
      await app.stop();
      await rm(directory, { recursive: true, force: true });
    },
    variants: [
      {
        heading: 'Scopes',
        async cases() {
          const reader = (await logIn('alice', { audience }, 'openid orders:read')).access_token;
          const plain = (await logIn('alice')).access_token;
          const reading = await serve('billing', { audience, scope: 'orders:read' });
          const writing = await serve('billing', { audience, scope: 'orders:write' });
          const written = '200 owner of acme, app billing';
          return [
            ...[
              { name: 'GET with orders:read', token: reader, expected: '200 member of acme, app web' },
              { name: 'GET without a scope of scopes', token: plain, expected: '403 scope_forbidden' },
            ].map(each => ({ grant: 'authorization code', ...each })),
            ...[
              { name: 'DELETE with orders:read', token: reading.access_token, expected: '403 scope_forbidden' },
              { name: 'DELETE with orders:write', token: writing.access_token, expected: written },
            ].map(each => ({ grant: 'client credentials', method: 'DELETE', ...each })),
          ];
        },
      },
    ],
    userTokens: username => logIn(username),
    serviceTokens: serve,
    async cases() {
      const alice = await logIn('alice');
      const { access_token: plain } = await logIn('alice', {});
      const [unheard, stranger] = [await serve('billing', {}), await serve('stranger')];
      return [
        ...[
          { name: 'the ID token', token: alice.id_token, expected: refusals.audience },
          { name: 'the refresh token', token: alice.refresh_token, expected: refusals.opaque },
          { name: 'no audience requested', token: plain, expected: refusals.audience },
        ].map(each => ({ grant: 'authorization code', ...each })),
        ...[
          { name: 'no audience requested', token: unheard.access_token, expected: refusals.audience },
          { name: 'a service that the hook does not know', token: stranger.access_token, expected: refusals.account },
          { name: 'an opaque token', token: (await serve('opaque')).access_token, expected: refusals.opaque },
        ].map(each => ({ grant: 'client credentials', ...each })),
      ];
    },
  });
}

const trialClients = `
service() {   # service NAME MEMBERS
  hydra POST /clients "$(jq '. + {client_id: "'"$1"'", client_secret: "'"$1"'-secret", grant_types: ["client_credentials"],
    audience: ["https://api.example.com/subscriptions"]}' <<< "$2")"
}
service short '{"client_credentials_grant_access_token_lifespan": "2s"}'
service stranger '{}'
service opaque '{"access_token_strategy": "opaque"}'
`;
