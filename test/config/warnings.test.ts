// What is valid and rarely meant, what an operator should know, and how check-config prints both.
import { expect } from 'chai';
import { runCommand } from '../../lab/command.ts';
import { changed, smallestConfig, writeFixture } from '../../lab/config-file.ts';
import { nghttp2Warning } from '../../src/service/nghttp2.ts';

const [issuer] = smallestConfig().issuers;
const partner = {
  ...issuer,
  issuer: 'https://partner.example.com',
  accounts: ['partner-*'],
  jwksUrl: 'https://partner.example.com/jwks',
};
const routes = (...paths: string[]) => ({ routes: paths.map(path => ({ path })) });
const exactUnderSubtree =
  /^routes\[1\]\.path: leaves what lies under it to "\/v1\/\*", which compares no account there: end it with \/\*$/;

const narrowed = (open: object, path: string, rules: object, subtree = '/v1/*') => ({
  roles: { owner: ['*'], member: ['GET'] },
  routes: [
    { path: subtree, ...open },
    { path, ...rules },
  ],
});

const variable = (name: string): string => `$\{${name}}`;
const escaped = (text: string): string => text.replace(/[[\]${}().]/g, '\\$&');

type Case = readonly [changes: Readonly<Record<string, unknown>>, ...warnings: readonly RegExp[]];

const cases: readonly Case[] = [
  [{}],
  [{ 'issuers.0.jwksUrl': 'http://127.0.0.1:8080/' }],
  [
    { 'issuers.0.allowHttp': true, 'issuers.0.jwksUrl': 'http://keycloak.iam.svc:8080/' },
    /^issuers\[0\]\.allowHttp: lets the keys be fetched over http: whoever is on the way can replace them/,
  ],
  [
    { 'issuers.0.claims': { acc: { keysOf: '/organization' } } },
    /^issuers\[0\]\.claims\.role: gives the same roles in every account of a token: /,
  ],
  [
    { 'issuers.0.claims': { acc: { keysOf: '/organization' }, role: { wordsOf: 'scope' } } },
    /^issuers\[0\]\.claims\.role: gives the same roles/,
  ],
  [{ 'issuers.0.claims': { acc: { keysOf: '/organization' }, role: '/organization/{acc}/roles' } }],
  [{ 'issuers.0.claims': { acc: { keysOf: '/o' }, role: { keysOf: '/roles', having: '{acc}' } } }],
  ...[
    '/{tenantid}/v2.0',
    '/{tenant}',
    '/common/v2.0',
    '/organizations',
    '/consumers/v2.0',
    '/*',
    '.*',
    '/<tenant>',
  ].map(
    (rest): Case => [
      { 'issuers.0.issuer': `https://login.test${rest}` },
      /^issuers\[0\]\.issuer: has ".+", which stands for itself: \{acc\} stands for the account/,
    ],
  ),
  [{ 'issuers.0.issuer': 'https://login.test/{acc}/v2.0' }],
  [{ 'issuers.0.issuer': 'https://login.test/common-tenant' }],
  [{ 'issuers.0.claims': { acc: { wordsOf: 'tenants' } } }],
  [{ 'issuers.0.claims': { acc: 'organization', role: '/roles' } }],
  [
    { 'account.parameter': 'tenant', routes: [{ path: '/v1/:account_id/*', accountInPath: false }] },
    /^routes\[0\]\.path: has :account_id, which is not the account: account\.parameter is tenant$/,
  ],
  [{ 'account.parameter': 'tenant', ...routes('/v1/:tenant/:account_id') }, /^routes\[0\]\.path: has :account_id/],
  [{ 'account.parameter': 'tenant', ...routes('/v1/:tenant/:region/*') }],
  [{ 'account.parameter': 'tenant', ...routes('/v1/:tenant/*') }],
  [
    { protectedResource: { resource: 'https://api.example.com' } },
    /^protectedResource\.resource: is not among the audiences of an issuer: /,
  ],
  [{ protectedResource: { resource: 'https://api.example.com/subscriptions' } }],
  [
    { protectedResource: { resource: issuer?.audiences[0] }, 'issuers.0.issuer': 'https://kc.test/realms/{acc}' },
    /^protectedResource\.resource: has a metadata document without the authorization server "https:\/\/kc\.test\/realms\/\{acc\}"/,
  ],
  [
    {
      issuers: [
        { ...issuer, accounts: ['a*'] },
        { ...partner, audiences: ['https://b.test'] },
      ],
      protectedResource: { resource: 'https://b.test' },
    },
  ],
  [
    {
      issuers: [
        issuer,
        { ...issuer, issuer: 'https://auth.example.com/', jwksUrl: issuer?.jwksUrl?.replace('auth', 'AUTH') },
      ],
    },
  ],
  [{ issuers: [issuer, partner] }, /^issuers\[0\]\.accounts: lets this issuer speak for every account/],
  [{ issuers: [issuer, { ...partner, accounts: ['*'] }] }, /^issuers\[0\]\.accounts: /, /^issuers\[1\]\.accounts: /],
  [
    { issuers: [{ ...issuer, accounts: ['acme', '*'] }, partner] },
    /^issuers\[0\]\.accounts: lets this issuer speak for every account/,
  ],
  [{ issuers: [{ ...issuer, accounts: ['*', '!partner-*'] }, partner] }],
  [{ issuers: [{ ...issuer, accounts: ['acme', 'a*'] }, partner] }],
  [routes('/v1/*', '/v1/accounts/:account_id'), exactUnderSubtree],
  [
    { routes: [{ path: '/v1/:region/*', accountInPath: false }, { path: '/v1/eu/:account_id' }] },
    /^routes\[1\]\.path: leaves what lies under it to "\/v1\/:region\/\*"/,
  ],
  [{ 'account.parameter': 'tenant', ...routes('/v1/*', '/v1/accounts/:tenant') }, exactUnderSubtree],
  [routes('/v1/*', '/v1/accounts/:account_id', '/v1/accounts/:account_id/*')],
  [routes('/v1/*', '/v1/:account_id/*', '/v1/:account_id/users')],
  [routes('/v2/*', '/v1/accounts/:account_id')],
  [routes('/v1/*', '/v1/accounts')],
  [
    narrowed({}, '/v1/settings', { roles: ['owner'] }),
    /^routes\[1\]\.path: leaves what lies under it to "\/v1\/\*", which permits other roles there: end it with \/\*$/,
  ],
  [
    { scopes: { billing: ['*'], read: ['GET'] }, ...narrowed({}, '/v1/settings', { scopes: ['billing'] }) },
    /^routes\[1\]\.path: leaves what lies under it to "\/v1\/\*", which permits other scopes there/,
  ],
  [
    narrowed({ roles: ['owner', 'member'] }, '/v1/settings', { roles: ['owner'] }),
    /^routes\[1\]\.path: leaves what lies under it to "\/v1\/\*", which permits other roles there/,
  ],
  [
    narrowed({}, '/v1/:account_id/settings', { roles: ['owner'] }, '/v1/:account_id/*'),
    /^routes\[1\]\.path: leaves what lies under it to "\/v1\/:account_id\/\*", which permits other roles there/,
  ],
  [narrowed({ roles: ['owner'] }, '/v1/settings', { roles: ['owner', 'member'] })],
  [
    {
      routes: [
        ...narrowed({}, '/v1/settings', { roles: ['owner'] }).routes,
        { path: '/v1/settings/:name', accountInPath: false },
      ],
    },
  ],
  [narrowed({ roles: ['owner', 'member'] }, '/v2/settings', { roles: ['owner'] })],
  ...[
    ['/v1/settings.json', '/v1/settings'],
    ['/v1/a.b.c/*', '/v1/a.b/:account_id'],
    ['/v1/settings:read', '/v1/SETTINGS/*'],
  ].map(
    ([open, ...paths]): Case => [
      { public: [{ path: open }], ...routes(...paths) },
      /^public\[0\]\.path: is a path of routes for a server that cuts a segment at a sign/,
    ],
  ),
  [
    {
      public: [{ path: '/v1/settings-x' }, { path: '/v1/b.json/a' }],
      ...routes('/v1/settings', '/v1/b', '/v1/b.json/c'),
    },
  ],
  ...['*', 'api-{acc}', 'api://<client-id>', '{AUDIENCE}'].map(
    (audience): Case => [
      { 'issuers.0.audiences': ['a*', audience] },
      /^issuers\[0\]\.audiences: has ".+", which stands for itself: only tokens with this very text /,
    ],
  ),
  [
    { 'issuers.0.claims': { role: '/o/{account_id}/roles' } },
    /^issuers\[0\]\.claims\.role: has "\{account_id\}", which stands for itself: \{acc\} stands for /,
  ],
  [
    { 'account.case': 'lower', 'issuers.0.accounts': ['*', '!Partner-*', '!a.test', 'acme'] },
    /^issuers\[0\]\.accounts: has "!Partner-\*", which no account fits with account\.case, account\.dots and issuer as they are$/,
    /^issuers\[0\]\.accounts: has "!a\.test", which no account fits/,
  ],
  [
    { 'issuers.0.issuer': 'https://{acc}.login.test/', 'issuers.0.accounts': ['a_b', 'a-*', 'A*', 'acme'] },
    /^issuers\[0\]\.accounts: has "a_b", which no account fits/,
    /^issuers\[0\]\.accounts: has "A\*", which no account fits/,
  ],
  ...(
    [
      [{ 'issuers.0.jwksUrl': `https://${variable('IDP_HOST')}/jwks` }, 'issuers[0].jwksUrl', variable('IDP_HOST')],
      [{ 'issuers.0.jwksUrl': 'https://a.test/$REALM/jwks' }, 'issuers[0].jwksUrl', '$REALM'],
      [
        { 'issuers.0.jwksUrl': undefined, 'issuers.0.discoveryUrl': 'https://a.test/{{realm}}' },
        'issuers[0].discoveryUrl',
        '{realm}',
      ],
      [{ apps: ['web', variable('APP')] }, 'apps[1]', variable('APP')],
      [{ roles: { owner: { methods: ['*'], names: ['<group>'] } } }, 'roles.owner.names[0]', '<group>'],
      [{ 'issuers.0.issuer': 'https://a.test/$REALM' }, 'issuers[0].issuer', '$REALM'],
      [{ 'issuers.0.audiences': ['$AUDIENCE'] }, 'issuers[0].audiences', '$AUDIENCE'],
      [{ 'issuers.0.issuer': 'https://a.test/%REALM%' }, 'issuers[0].issuer', '%REALM%'],
      [{ 'issuers.0.claims': { acc: '@CLAIM@' } }, 'issuers[0].claims.acc', '@CLAIM@'],
      [{ roles: { __ROLE__: ['*'] } }, 'roles.__ROLE__', '__ROLE__'],
      ...'$realm ((realm)) :realm [realm] %(realm)s %s ... xxxx-xxxx'
        .split(' ')
        .map(text => [{ 'issuers.0.jwksUrl': `https://a.test/${text}/k` }, 'issuers[0].jwksUrl', text] as const),
      ...'YOUR_DOMAIN YOUR-APP your-tenant YourRealm changeme CHANGE_ME REPLACE_WITH_ID INSERT_ID ID_HERE TODO 00000000-0000-0000-0000-000000000000'
        .split(' ')
        .map(text => [{ apps: [text] }, 'apps[0]', text] as const),
      [{ 'issuers.0.issuer': 'https://YOUR_DOMAIN/' }, 'issuers[0].issuer', 'YOUR_DOMAIN'],
      [{ 'account.hosts': ['api.yourdomain.com'] }, 'account.hosts[0]', 'yourdomain'],
      [
        { 'issuers.0.accounts': ['acme'], 'issuers.0.bearerTokenFile': '/run/%NAME%' },
        'issuers[0].bearerTokenFile',
        '%NAME%',
      ],
    ] as const
  ).map(
    ([changes, place, found]): Case => [
      changes,
      new RegExp(`^${escaped(place)}: has "${escaped(found)}", which stands for itself: `),
    ],
  ),
  [
    {
      'issuers.0.issuer': 'https://a.test/{acc}',
      'issuers.0.jwksUrl': 'https://a.test/{acc}/$1',
      'issuers.0.accounts': ['acme'],
    },
  ],
  [
    {
      'issuers.0.claims': { role: '/roles/$values' },
      'issuers.0.audiences': ['https://[::1]/a:b/00000003-0000-0000-c000-000000000000', 'https://yourself.example.com'],
      apps: ['todo', 'a$b', 'replacement', 'xxx', 'insert-coin', 'C:x'],
      roles: { owner: { methods: ['*', 'GET /v1/your-account/changeme'], names: ['[Prod] Admins', 'svc$', '50%'] } },
      ...routes('/v1/your-account/changeme'),
    },
  ],
  ...['sub,client_id', 'sub || client_id', 'sub ?? azp'].map(
    (uid): Case => [
      { 'issuers.0.claims': { uid } },
      /^issuers\[0\]\.claims\.uid: has ".{1,2}", which stands for itself: several sources are a list, such as \[sub, /,
    ],
  ),
  [
    { forwardClaims: { 'x-auth-email': 'email', plan: 'plan' } },
    /^forwardClaims\.x-auth-email: has the prefix of identityHeaders, which stands before each name: write what follows it$/,
  ],
  [
    { apps: ['web', 'web-*'] },
    /^apps\[1\]: has "\*", which stands for itself: "\*" alone stands for all applications$/,
  ],
];

async function warningsOf(content: unknown, ...args: readonly string[]) {
  const file = writeFixture('warned.yaml', content);
  const { code, stdout, stderr } = await runCommand('check-config', ['--config', file, ...args]);
  return { file, code, stdout, lines: stderr.split('\n').slice(0, -1) };
}

describe('warnings of a configuration', () => {
  for (const [changes, ...expected] of cases) {
    it(`are ${expected.length} of ${JSON.stringify(changes)}`, async () => {
      const { file, code, lines } = await warningsOf(changed(changes));
      expect(code).to.equal(0);
      expect(lines).to.have.lengthOf(expected.length);
      for (const [i, line] of lines.entries()) {
        const [start, rest = ''] = line.split(/:\d+:\d+: (.*)/);
        expect(start).to.equal(`warning: ${file}`);
        expect(rest).to.match(expected[i] ?? /never/);
      }
    });
  }

  it('name each iss of the revocation list that is no issuer, and an account that no token can have', async () => {
    const realms = { ...issuer, issuer: 'https://realms.test/{acc}' };
    const entries = [
      { iss: issuer?.issuer, uid: 'a' },
      { iss: 'https://realms.test/acme' },
      { iss: 'https://old.example.com' },
      { iss: 'https://old.example.com', jti: '1' },
      { iss: realms.issuer, acc: 'ACME' },
      { acc: 'GLOBEX' },
    ];
    writeFixture('revoked.jsonl', entries.map(entry => `${JSON.stringify(entry)}\n`).join(''));
    const issuers = [issuer, realms].map(each => ({ ...each, accounts: ['a*'] }));
    const changes = { issuers, 'account.case': 'lower', 'revocation.file': 'revoked.jsonl' };
    const { code, lines } = await warningsOf(changed(changes));
    expect(code).to.equal(0);
    expect(lines.map(line => line.replace(/^.*:1:\d+: /, ''))).to.deep.equal([
      ...['https://old.example.com', realms.issuer].map(
        iss => `revocation.file: has an entry whose iss "${iss}" is no issuer of the configuration: it revokes nothing`,
      ),
      'revocation.file: has entries whose acc no token can have with account.case and account.dots as they are, such as "ACME": they revoke nothing',
    ]);
  });

  it('stand at the place of the setting, and leave the settings on standard output', async () => {
    const text = `issuers: [{ issuer: 'https://a.example.com', audiences: [a], jwksUrl: 'https://a.example.com/k' }]
roles: { owner: ['*'] }
routes:
  - path: /v1/*
  - path: /v1/accounts/:account_id
`;
    const { file, stdout, lines } = await warningsOf(text);
    expect(lines[0])
      .to.match(/^warning: /)
      .and.contain(`${file}:5:11: routes[1].path: `);
    expect(stdout).to.contain('listen: 127.0.0.1:9191');
  });

  it('are problems with --strict', async () => {
    const { file, code, stdout, lines } = await warningsOf(
      changed(routes('/v1/*', '/v1/accounts/:account_id')),
      '--strict',
    );
    expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
    expect(lines).to.have.lengthOf(1);
    expect(lines[0])
      .to.match(/^\S+:1:\d+: routes\[1\]\.path: leaves what /)
      .and.match(new RegExp(`^${file}:`));
  });

  it('are no information: a comment names each route that compares no account, and a resource above no route', async () => {
    const protectedResource = { resource: issuer?.audiences[0] };
    const changes = {
      identityHeaders: 'idp-',
      protectedResource,
      ...routes('/v1/*', '/v2/accounts/:account_id/*', '/v3'),
    };
    const { code, stdout, lines } = await warningsOf(changed(changes), '--strict');
    expect({ code, lines }).to.deep.equal({ code: 0, lines: [] });
    const named = stdout.split('\n').filter(line => line.startsWith('# information: '));
    expect(named.map(line => /(?:routes|protected).*/.exec(line)?.[0])).to.deep.equal([
      ...[0, 2].map(
        i =>
          `routes[${i}].path: compares no account: all accounts' data under it rests on the API, which must compare the account that it serves with idp-acc`,
      ),
      'protectedResource.resource: lies above no path of routes: no refusal names its metadata document',
    ]);
  });

  it('leave a configuration without any valid with --strict', async () => {
    expect(await warningsOf(smallestConfig(), '--strict')).to.deep.include({ code: 0, lines: [] });
  });
});

describe('nghttp2Warning', () => {
  const versionsWith = (nghttp2?: string) => ({ ...process.versions, node: '20.20.2', ...(nghttp2 && { nghttp2 }) });

  for (const old of ['1.61.0', '1.68.0', '1.9.9', '0.99.1']) {
    it(`warns of nghttp2 ${old}`, () => {
      expect(nghttp2Warning(versionsWith(old))).to.match(
        new RegExp(`^Node 20\\.20\\.2 has nghttp2 ${old.replaceAll('.', '\\.')}, older than 1\\.68\\.1: `),
      );
    });
  }

  for (const fixed of ['1.68.1', '1.68.10', '1.69.0', '2.0.0']) {
    it(`accepts nghttp2 ${fixed}`, () => {
      expect(nghttp2Warning(versionsWith(fixed))).to.equal(undefined);
    });
  }

  it('warns of a Node that names no nghttp2', () => {
    const { nghttp2: _, ...others } = versionsWith('1');
    expect(nghttp2Warning(others as NodeJS.ProcessVersions)).to.contain('older than 1.68.1');
  });
});
