// The rules of the configuration: accepted and refused values of each key, defaults, and the texts of problems.
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { toJsonSchema } from '../../src/config/schema.ts';
import { changed, configOf, placesOf, problemsOf, smallestConfig, writeFixture } from '../support/config-file.ts';
import { testCertificate } from '../support/test-certificate.ts';

const long = (length: number) => 'a'.repeat(length);
const socket = (bytes: number) => `unix:/${long(bytes - 1)}`;

type Changes = Readonly<Record<string, unknown>>;

const tenants = (name: string) => ({ path: `/a/:${name}/*`, accountInPath: false });

const own = testCertificate();
const tls = { certFile: writeFixture('tls.crt', own.cert), keyFile: writeFixture('tls.key', own.key) };

describe('configuration schema', () => {
  const good: readonly Changes[] = [
    {},
    { listen: '127.0.0.1:0' },
    { listen: '127.255.0.9:65535' },
    { listen: '[::1]:9191' },
    { listen: '[0:0:0:0:0:0:0:1]:9191' },
    { listen: 'localhost:9191' },
    { listen: 'LOCALHOST:9191' },
    { listen: 'unix:/run/a.sock' },
    { listen: 'unix:///run/a.sock' },
    { listen: socket(107) },
    { listen: '0.0.0.0:9191', listenInsecure: true },
    { listen: '[::]:9191', listenInsecure: true },
    { listen: 'authz.internal:9191', listenInsecure: true },
    { tls },
    { listen: 'unix:/run/a.sock', tls },
    { listen: '0.0.0.0:9191', tls },
    { listen: '[::]:9191', tls: { ...tls, clientCaFile: tls.certFile }, listenInsecure: true },
    { admin: '127.0.0.1:0' },
    { admin: '[::]:9192' },
    { listen: '127.0.0.1:0', admin: '127.0.0.1:0' },
    { listen: '127.0.0.1:9191', admin: '127.0.0.2:9191' },
    { listen: '[::1]:9191', admin: '0.0.0.0:9191' },
    { 'issuers.0.issuer': 'x' },
    { 'issuers.0.issuer': long(1024) },
    { 'issuers.0.audiences': ['a', 'A'] },
    { 'issuers.0.audiences': ['an audience with spaces, and ünicode'] },
    { 'issuers.0.audiences': [long(1024)] },
    { 'issuers.0.jwksUrl': undefined, 'issuers.0.discoveryUrl': 'https://a.test/.well-known/openid-configuration' },
    { 'issuers.0.algorithms': ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] },
    { 'issuers.0.algorithms': ['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'] },
    { 'issuers.0.tokenTypes': ['', 'JWT', 'application/x', long(127)] },
    { 'issuers.0.claims': { uid: 'sub' } },
    { 'issuers.0.claims': { uid: 'https://a.test/uid', app: 'azp', acc: 'kundennummer ü', role: '__proto__' } },
    { 'issuers.0.claims': { uid: '/', app: '/ext/~0app', acc: '/a~1b/0', role: '/realm_access/roles' } },
    { 'issuers.0.claims': { uid: 'a~b/c', app: `/${long(255)}`, acc: '/'.repeat(256), role: '/a b/ü' } },
    { 'issuers.0.claims': { acc: { keysOf: '/organization' }, role: '/organization/{acc}/realm_access/roles' } },
    { 'issuers.0.claims.acc': { keysOf: 'memberships' } },
    { 'issuers.0.claims.role': { keysOf: 'urn:zitadel:iam:org:project:roles', having: '{acc}' } },
    { 'issuers.0.claims.role': { keysOf: '/tenants/{acc}/{acc}' } },
    { 'issuers.0.claims.role': { wordsOf: '/{acc}' } },
    { 'issuers.0.claims.role': { wordsOf: 'scope' } },
    { 'issuers.0.claims': { scope: '/tenants/{acc}/permissions', actor: '/act/sub' } },
    { 'issuers.0.accounts': ['*'] },
    { 'issuers.0.clientCertFile': tls.certFile, 'issuers.0.clientKeyFile': tls.keyFile },
    {
      'account.hosts': [':account_id.b.test', 'a.test', 'b.test'],
      protectedResource: { resource: 'https://b.test' },
    },
    { 'routes.0.path': '/a/:account_id', public: [{ path: '/a' }, { path: '/a/b/c/*' }, { path: '/b/*' }] },
    { 'issuers.0.accounts': ['partner-*', 'acme', 'a.c*', '...'] },
    { 'issuers.0.allowIntegerClaims': true },
    { 'token.clockToleranceSeconds': 0 },
    { 'token.clockToleranceSeconds': 300 },
    { 'token.maxLifetimeSeconds': 1 },
    { 'token.maxLifetimeSeconds': 315_360_000 },
    { 'token.maxBytes': 256 },
    { 'token.maxBytes': 65_536 },
    { 'token.forward': true },
    { keys: { refreshSeconds: 1, maxAgeSeconds: 1, cooldownSeconds: 1, timeoutSeconds: 1 } },
    {
      keys: {
        refreshSeconds: 2_000_000,
        maxAgeSeconds: 2_000_000,
        cooldownSeconds: 2_000_000,
        timeoutSeconds: 2_000_000,
      },
    },
    { keys: { refreshSeconds: 300, maxAgeSeconds: 300, cooldownSeconds: 300 } },
    { 'keys.cacheDirectory': '/var/cache/account-authz' },
    { 'routes.0.path': '/a' },
    { 'routes.0.roles': ['owner'] },
    { 'routes.1': { path: '/api/Subscriptions/*' } },
    { 'routes.1': { path: '/api/subscriptions/:account_id' } },
    { 'routes.0.path': '/a/:other', 'routes.0.accountInPath': false },
    { 'routes.0.path': '/a/:account_id/:other' },
    { 'routes.0.characters': 'rfc3986' },
    { 'routes.0.path': '/a/:tenant/*', 'account.parameter': 'tenant' },
    { 'routes.0.path': '/a/:tenant/:account_id/*', 'account.parameter': 'tenant' },
    { 'routes.0.scopes': ['billing'], scopes: { billing: ['*'], 'orders:read': ['GET', 'HEAD'] } },
    { public: [{ path: '/healthz' }, { path: '/assets/*', methods: ['GET', 'OPTIONS'] }] },
    { public: [{ path: '/api' }, { path: '/api/subscriptions2/*' }, { path: '/api/subscription' }] },
    { 'routes.0.path': '/api', public: [{ path: '/api/health' }] },
    { 'account.hosts': [':account_id.api.example.com', 'api.example.com', 'API2.Example.com', ':account_id.com'] },
    { 'account.hosts': [':tenant.example.com', 'localhost'], 'account.parameter': 'tenant' },
    { 'account.hosts': [':tenantId.Example.com'], 'account.parameter': 'tenantId' },
    { 'account.dots': true },
    { protectedResource: { resource: 'https://api.example.com/subscriptions' } },
    {
      'routes.0.path': '/.well-known/oauth-protected-resource/a',
      protectedResource: { resource: 'https://a.test/%zz%61' },
    },
    { protectedResource: { resource: 'https://api.example.com:8443/' }, 'account.hosts': ['API.example.com'] },
    { 'account.headers': ['x-account-id', 'X-Tenant'] },
    { 'account.headers': [long(128)] },
    { 'account.headers': ['x-authority'] },
    { 'account.query': ['account_id', 'account-id', 'A', long(128)] },
    { 'roles.admin': ['GET', 'PROPFIND', '*'] },
    { 'roles.read-only': ['GET'] },
    { [`roles.${long(128)}`]: ['GET'] },
    { 'roles.constructor': ['GET'], 'routes.0.roles': ['constructor'] },
    { apps: ['*'] },
    { apps: ['web'] },
    { apps: ['web', 'Web', '!#$%&()+-:<=>?@[]^_`{|}~'] },
    { identityHeaders: 'x-id-' },
    { identityHeaders: 'abc-' },
    { identityHeaders: 'a-b-c-d-e-' },
    { identityHeaders: `${long(63)}-` },
    { identityHeaders: 'x-account-', 'account.headers': ['x-auth-acc'] },
    { 'cache.maxTokens': 0 },
    { 'cache.maxTokens': 200_000 },
    ...['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'].map(level => ({ 'log.level': level })),
    { 'log.allowed': false },
    { 'shutdown.graceSeconds': 0 },
    { 'shutdown.graceSeconds': 300 },
  ];
  for (const changes of good) {
    it(`accepts ${JSON.stringify(changes).slice(0, 160)}`, async () => {
      expect(await problemsOf(changed(changes))).to.deep.equal([]);
    });
  }

  const numbers = {
    'token.clockToleranceSeconds': [-1, 301],
    'token.maxLifetimeSeconds': [0, -1, 9_007_199_254_740_992],
    'token.maxBytes': [255, 65_537],
    'keys.refreshSeconds': [0, 2_000_001],
    'keys.maxAgeSeconds': [0],
    'keys.cooldownSeconds': [0, 2_000_001],
    'keys.timeoutSeconds': [0, 2_000_001],
    'cache.maxTokens': [-1, 200_001],
    'shutdown.graceSeconds': [-1, 301],
  };
  for (const [place, values] of Object.entries(numbers)) {
    for (const value of [...values, 1.5, '10', true, null, [1]]) {
      it(`refuses ${JSON.stringify(value)} for ${place}`, async () => {
        const problems = await problemsOf(changed({ [place]: value }));
        expect(problems.filter(each => each.startsWith(`${place}: must be a whole number`))).to.have.lengthOf(1);
      });
    }
  }

  const flags = ['listenInsecure', 'issuers.0.allowIntegerClaims', 'token.forward', 'log.allowed'];
  for (const path of flags) {
    for (const value of ['true', 1, null]) {
      it(`refuses ${JSON.stringify(value)} for ${path}`, async () => {
        const place = path.replace('.0', '[0]');
        expect(await placesOf(changed({ [path]: value }))).to.deep.equal([place]);
      });
    }
  }

  const bad: readonly (readonly [place: string, changes: Changes])[] = [
    ...[
      '',
      ':9191',
      '127.0.0.1',
      '127.0.0.1:',
      '127.0.0.1:65536',
      '127.0.0.1:-1',
      '127.0.0.1:09191',
      '127.0.0.1:x',
    ].map(listen => ['listen', { listen }] as const),
    ...['::1:9191', '[::1]', '[::1%eth0]:9191', '[127.0.0.1]:9191', '127.1:9191', '0x7f.1:9191', '0:9191', 'a b:1'].map(
      listen => ['listen', { listen, listenInsecure: true }] as const,
    ),
    ...['unix:', 'unix:run/a', 'unix://host/a', 'unix:/run/', 'unix:/a\0b', 'unix:@abstract', socket(108)].map(
      listen => ['listen', { listen }] as const,
    ),
    ['listen', { listen: '[::]:9191' }],
    ['listen', { listen: '[::ffff:127.0.0.1]:9191' }],
    ['listen', { listen: '10.0.0.1:9191', listenInsecure: false }],
    ['listen', { listen: 'localhost.example.com:9191' }],
    ['listen', { listen: 9191 }],
    ['admin', { admin: 'unix:/run/a.sock' }],
    ['admin', { admin: ':9192' }],
    ['admin', { admin: '127.0.0.1:9191' }],
    ['admin', { admin: '0.0.0.0:9191' }],
    ['admin', { admin: '[::]:9191' }],
    ['admin', { admin: 'localhost:9191' }],
    ['admin', { listen: '[::1]:9191', admin: '[0::1]:9191' }],
    ['tls', { tls: null }],
    ['tls', { listen: '0.0.0.0:9191', tls: null }],
    ['tls.keyFile', { tls: { certFile: tls.certFile } }],
    ['tls.certFile', { tls: { ...tls, certFile: '' } }],
    ['tls.clientCaFile', { tls: { ...tls, clientCaFile: null } }],
    ['tls.minVersion', { tls: { ...tls, minVersion: 'TLSv1.3' } }],
    ['issuers', { issuers: [] }],
    ['issuers', { issuers: undefined }],
    ['issuers', { issuers: {} }],
    ['issuers[1].issuer', { 'issuers.1': smallestConfig().issuers[0] }],
    ...['https://a.test ', 'a b', 'https://ä.test', 'a\nb', long(1025)].map(
      issuer => ['issuers[0].issuer', { 'issuers.0.issuer': issuer }] as const,
    ),
    ['issuers[0].audiences', { 'issuers.0.audiences': [] }],
    ['issuers[0].audiences', { 'issuers.0.audiences': 'a' }],
    ['issuers[0].audiences[1]', { 'issuers.0.audiences': ['a', 'a'] }],
    ...[' a', 'a\n', 'a\u0001b', long(1025)].map(
      audience => ['issuers[0].audiences[0]', { 'issuers.0.audiences': [audience] }] as const,
    ),
    ['issuers[0]', { 'issuers.0.jwksUrl': undefined }],
    ['issuers[0]', { 'issuers.0.discoveryUrl': 'https://a.test/' }],
    ['issuers[0].jwksUrl', { 'issuers.0.jwksUrl': 'http://a.test/' }],
    ['issuers[0].discoveryUrl', { 'issuers.0.jwksUrl': undefined, 'issuers.0.discoveryUrl': 'http://a.test/' }],
    ['issuers[0].jwksUrl', { 'issuers.0.jwksUrl': null }],
    ['issuers[0].jwksFile', { 'issuers.0.jwksUrl': undefined, 'issuers.0.jwksFile': '' }],
    ['issuers[0].caFile', { 'issuers.0.caFile': '' }],
    ['issuers[0].caFile', { 'issuers.0.caFile': 'a\0b' }],
    ['issuers[0].clientCertFile', { 'issuers.0.clientCertFile': 'a' }],
    ['issuers[0].clientKeyFile', { 'issuers.0.clientKeyFile': 'a' }],
    ['issuers[0].clientCertFile', { 'issuers.0.clientCertFile': '', 'issuers.0.clientKeyFile': 'a' }],
    ...['none', 'NONE', 'HS512', 'rs256', '', 'RSA-OAEP', 'ES256K', 'Ed448', 256].map(
      algorithm => ['issuers[0].algorithms[1]', { 'issuers.0.algorithms': ['RS256', algorithm] }] as const,
    ),
    ['issuers[0].algorithms[1]', { 'issuers.0.algorithms': ['RS256', 'RS256'] }],
    ['issuers[0].tokenTypes', { 'issuers.0.tokenTypes': [] }],
    ...['jwt', 'application/jwt', 'APPLICATION/JWT'].map(
      type => ['issuers[0].tokenTypes[1]', { 'issuers.0.tokenTypes': ['JWT', type] }] as const,
    ),
    ['issuers[0].tokenTypes[1]', { 'issuers.0.tokenTypes': ['', ''] }],
    ...['a b', 'a/b/c', '/jwt', 'a/', 'jwt;v=1', 'ü', long(128)].map(
      type => ['issuers[0].tokenTypes[0]', { 'issuers.0.tokenTypes': [type] }] as const,
    ),
    ...['uid', 'app', 'acc', 'role'].map(
      field => [`issuers[0].claims.${field}`, { [`issuers.0.claims.${field}`]: '' }] as const,
    ),
    ['issuers[0].claims.uid', { 'issuers.0.claims.uid': long(257) }],
    ...['/~', '/a~', '/~2', '/a/~b', '/~~0', '/a\u0000', `/${long(256)}`].map(
      name => ['issuers[0].claims.role', { 'issuers.0.claims.role': name }] as const,
    ),
    ['issuers[0].claims.iss', { 'issuers.0.claims.iss': 'iss' }],
    ['issuers[0].claims.uid', { 'issuers.0.claims.uid': ['a', 'b'] }],
    ...['/organization/{acc}', '{acc}', 'a{acc}'].flatMap(name =>
      ['uid', 'app', 'acc', 'actor'].map(
        field => [`issuers[0].claims.${field}`, { [`issuers.0.claims.${field}`]: name }] as const,
      ),
    ),
    ...['{acc}', 'a{acc}', '/a{acc}', '/{acc}b/c', '/a/{acc}{acc}'].flatMap(name => [
      ['issuers[0].claims.scope', { 'issuers.0.claims.scope': name }] as const,
      ['issuers[0].claims.role', { 'issuers.0.claims.role': name }] as const,
      ['issuers[0].claims.role.keysOf', { 'issuers.0.claims.role': { keysOf: name } }] as const,
    ]),
    ['issuers[0].claims.acc.keysOf', { 'issuers.0.claims.acc': { keysOf: '/{acc}' } }],
    ...[{}, { wordsOf: 'a' }, { keysOf: ['a'] }, ['a'], null, 7].map(
      source => ['issuers[0].claims.acc', { 'issuers.0.claims.acc': source }] as const,
    ),
    ...[{ having: '{acc}' }, { keysOf: 'a', having: 'a' }, { keysOf: 'a', wordsOf: 'a' }, { wordsOf: null }].map(
      source => ['issuers[0].claims.role', { 'issuers.0.claims.role': source }] as const,
    ),
    ['issuers[0].claims.acc.having', { 'issuers.0.claims.acc': { keysOf: 'a', having: '{acc}' } }],
    ['issuers[0].claims.role.having', { 'issuers.0.claims.role': { wordsOf: 'a', having: '{acc}' } }],
    ['issuers[0].claims.scope', { 'issuers.0.claims.scope': { wordsOf: 'scope' } }],
    ['issuers[0].claims.uid', { 'issuers.0.claims.uid': { keysOf: 'uid' } }],
    ['issuers[0].accounts', { 'issuers.0.accounts': [] }],
    ['issuers[0].accounts[1]', { 'issuers.0.accounts': ['a*', 'a*'] }],
    ...['', '.', '..', 'a b', '*a', 'a**', 'a*b', 'a/*', long(129)].map(
      name => ['issuers[0].accounts[0]', { 'issuers.0.accounts': [name] }] as const,
    ),
    ['keys.maxAgeSeconds', { 'keys.refreshSeconds': 3601 }],
    ['keys.refreshSeconds', { 'keys.cooldownSeconds': 301 }],
    ['keys.cacheDirectory', { 'keys.cacheDirectory': '' }],
    ['keys.cacheDirectory', { 'keys.cacheDirectory': 'var/cache' }],
    ['routes', { routes: [] }],
    ['routes', { routes: undefined }],
    ['routes[0].path', { 'routes.0.path': '/*' }],
    ['routes[0].path', { 'routes.0.path': undefined }],
    ['routes[1].path', { 'routes.1': { path: '/api/subscriptions/*' } }],
    ['routes[2].path', { 'routes.1': tenants('x'), 'routes.2': tenants('y') }],
    ['routes[0].path', { 'routes.0.path': '/api/tenants/:tenant/*' }],
    ['routes[0].path', { 'routes.0.path': '/a/:account_id', 'routes.0.accountInPath': false }],
    ['routes[0].path', { 'routes.0.path': '/a', 'routes.0.accountInPath': false }],
    ['routes[0].accountInPath', { 'routes.0.accountInPath': true }],
    ...['/a/:accountId', '/a/:AccountID', '/a/:account__id', '/a/:accountid/:account_id'].flatMap(path => [
      ['routes[0].path', { 'routes.0.path': path }] as const,
      ['routes[0].path', { 'routes.0': { path, accountInPath: false } }] as const,
    ]),
    ...['/a/:Tenant', '/a/:_tenant', '/a/:accountId/:tenant'].map(
      path => ['routes[0].path', { 'routes.0': { path }, 'account.parameter': 'tenant' }] as const,
    ),
    ['routes[0].path', { 'routes.0.path': '/a/:account_id', 'account.parameter': 'tenant' }],
    ['routes[0].characters', { 'routes.0.characters': 'RFC3986' }],
    ['routes[0].scopes[0]', { 'routes.0.scopes': ['billing'] }],
    ['routes[0].scopes[0]', { 'routes.0.scopes': ['billing'], scopes: { other: ['*'] } }],
    ['routes[0].scopes', { 'routes.0.scopes': [], scopes: { other: ['*'] } }],
    ['scopes', { scopes: {} }],
    ['scopes["*"]', { scopes: { '*': ['*'] } }],
    ...['a b', 'a"b', 'a\\b', 'ü', ''].map(
      scope => [`scopes[${JSON.stringify(scope)}]`, { scopes: { [scope]: ['*'] } }] as const,
    ),
    ['scopes.billing[0]', { scopes: { billing: ['get'] } }],
    ['public', { public: [] }],
    ['public[1].path', { public: [{ path: '/a' }, { path: '/a', methods: ['POST'] }] }],
    ...['/', '/*', '/a/:account_id', '/a/:x', 'a', '/a//b', '/a%20b', '/a*'].map(
      path => ['public[0].path', { public: [{ path }] }] as const,
    ),
    ...['/api/subscriptions', '/API/Subscriptions', '/api/subscriptions/health', '/api/*'].map(
      path => ['public[0].path', { public: [{ path }] }] as const,
    ),
    ['public[0].path', { 'routes.0.path': '/a/:account_id/b', public: [{ path: '/a/x/B' }] }],
    ...[[], ['get'], ['*'], ['GET', 'GET'], ['']].map(
      methods =>
        [
          `public[0].methods${methods.length === 0 ? '' : `[${methods.length - 1}]`}`,
          { public: [{ path: '/a', methods }] },
        ] as const,
    ),
    ['account.hosts', { 'account.hosts': [] }],
    ['account.hosts[1]', { 'account.hosts': ['a.test', 'A.test'] }],
    ...[
      '',
      'a.test.',
      'a.test:443',
      '*.a.test',
      ':account_id',
      ':account_id.',
      ':other.a.test',
      ':ACCOUNT_ID.a.test',
      'a.:account_id.test',
      'a..test',
      'a_b.test',
      '-a.test',
      '[::1]',
      `${long(64)}.test`,
    ].map(host => ['account.hosts[0]', { 'account.hosts': [host] }] as const),
    ['account.hosts[0]', { 'account.hosts': [':account_id.a.test'], 'account.parameter': 'tenant' }],
    ...['', '1a', 'a-b', ':tenant'].map(name => ['account.parameter', { 'account.parameter': name }] as const),
    ['account.dots', { 'account.dots': 'true' }],
    ['account.headers[0]', { 'account.headers': ['x-host'] }],
    ...['_method', '_METHOD', 'x-http-method-override', 'X_HTTP_Method_Override', '_', '-.'].map(
      name => ['account.query[0]', { 'account.query': [name] }] as const,
    ),
    ['protectedResource.resource', { protectedResource: {} }],
    ...[
      '',
      'http://a.test',
      'https://',
      'https:///a',
      'https://u@a.test',
      'https://u:p@a.test/',
      'https://a.test/#a',
      'https://a.test/"',
      'https://a.test:x/',
    ].map(resource => ['protectedResource.resource', { protectedResource: { resource } }] as const),
    [
      'protectedResource.resource',
      { 'routes.0.path': '/.Well-Known/*', protectedResource: { resource: 'https://a.test/b' } },
    ],
    [
      'protectedResource.resource',
      {
        public: [{ path: '/.well-known/oauth-protected-resource/b' }],
        protectedResource: { resource: 'https://a.test/b' },
      },
    ],
    ...['B%62', 'b%2Fb', 'b/%E2%84%AA'].map(
      path =>
        [
          'protectedResource.resource',
          {
            protectedResource: { resource: `https://a.test/${path}` },
            routes: ['bb', 'b/b', 'b/k'].map(end => ({ path: `/.well-known/oauth-protected-resource/${end}` })),
          },
        ] as const,
    ),
    [
      'protectedResource.resource',
      { 'account.hosts': [':account_id.a.test'], protectedResource: { resource: 'https://b.a.test' } },
    ],
    ['routes[0].roles', { 'routes.0.roles': [] }],
    ['routes[0].roles[1]', { 'routes.0.roles': ['owner', 'owner'] }],
    ['routes[0].roles[0]', { 'routes.0.roles': ['Owner'] }],
    ['routes[0].roles[0]', { 'routes.0.roles': ['toString'] }],
    ['routes[0].roles[0]', { 'routes.0.roles': ['*'] }],
    ['routes[0].roles[0]', { 'routes.0.roles': ['a b'] }],
    ['account.headers', { 'account.headers': [] }],
    ['account.query', { 'account.query': [] }],
    ['account.headers[1]', { 'account.headers': ['x-a', 'X-A'] }],
    ['account.headers[0]', { 'account.headers': ['host'] }],
    ['account.headers[0]', { 'account.headers': ['X-Auth-Account'] }],
    ['account.headers[0]', { identityHeaders: 'x-account-', 'account.headers': ['x-account-id'] }],
    ...['', 'a b', 'a&b', 'a=b', 'a[]', 'a%62', 'a+b', 'ü', long(129), '_-.~', '_method', 'X_http-method_override'].map(
      name => ['account.query[0]', { 'account.query': [name] }] as const,
    ),
    ...['account.id', 'Account_Id', 'account_id'].map(
      name => ['account.query[1]', { 'account.query': ['account_id', name] }] as const,
    ),
    ['roles', { roles: {} }],
    ['roles', { roles: undefined }],
    ['roles', { roles: ['owner'] }],
    ['roles.owner', { 'roles.owner': [] }],
    ['roles.owner', { 'roles.owner': '*' }],
    ['roles.owner', { 'roles.owner': null }],
    ['roles.owner[1]', { 'roles.owner': ['GET', 'GET'] }],
    ...['', 'get', 'GET ', 'GET,POST', '**', 'M-SEARCH'].map(
      method => ['roles.owner[0]', { 'roles.owner': [method] }] as const,
    ),
    ...['a b', 'a,b', 'a;b', 'a"b', 'ü', '*', ''].map(
      role => [`roles[${JSON.stringify(role)}]`, { [`roles.${role}`]: ['GET'] }] as const,
    ),
    [`roles["${long(64)}…"]`, { [`roles.${long(129)}`]: ['GET'] }],
    ['apps', { apps: [] }],
    ['apps', { apps: ['*', 'web'] }],
    ['apps[1]', { apps: ['web', 'web'] }],
    ...['', 'a b', 'a,b', 'a;b', 'a"b', 'ü', long(129)].map(app => ['apps[0]', { apps: [app] }] as const),
    ['identityHeaders', { identityHeaders: 'x-' }],
    ['cache.maxtokens', { 'cache.maxtokens': 1 }],
    ...['Info', 'warning', '', 30, null].map(level => ['log.level', { 'log.level': level }] as const),
    ...['token', 'keys', 'account', 'cache', 'log', 'shutdown'].flatMap(section => [
      [section, { [section]: null }] as const,
      [section, { [section]: [] }] as const,
      [`${section}.nope`, { [`${section}.nope`]: 1 }] as const,
    ]),
    ['nope', { nope: 1 }],
    ['issuers[0].nope', { 'issuers.0.nope': 1 }],
    ['routes[0].nope', { 'routes.0.nope': 1 }],
    ['issuers[0].claims.nope', { 'issuers.0.claims.nope': 'a' }],
  ];
  for (const [place, changes] of bad) {
    it(`refuses ${JSON.stringify(changes).slice(0, 160)} at ${place}`, async () => {
      expect(await placesOf(changed(changes))).to.include(place);
    });
  }

  // Refused in the same way; each of these would weaken a guarantee.
  const weakening: readonly (readonly [name: string, place: string, changes: Changes])[] = [
    ['C-037 no issuer', 'issuers[0].issuer', { 'issuers.0.issuer': undefined }],
    ['C-037 an empty issuer', 'issuers[0].issuer', { 'issuers.0.issuer': '' }],
    ['C-037 no audiences', 'issuers[0].audiences', { 'issuers.0.audiences': undefined }],
    ['C-037 an empty audience', 'issuers[0].audiences[0]', { 'issuers.0.audiences': [''] }],
    ['G-033 plaintext calls from other machines', 'listen', { listen: '0.0.0.0:9191' }],
    ['K-039 keys over plain http', 'issuers[0].jwksUrl', { 'issuers.0.jwksUrl': 'http://auth.example.com/jwks' }],
    ['L-017 the algorithm none', 'issuers[0].algorithms[0]', { 'issuers.0.algorithms': ['none'] }],
    ['L-017 an HMAC algorithm', 'issuers[0].algorithms[1]', { 'issuers.0.algorithms': ['RS256', 'HS256'] }],
    ['L-017 an unknown algorithm', 'issuers[0].algorithms[0]', { 'issuers.0.algorithms': ['RS1'] }],
    ['L-017 no algorithm', 'issuers[0].algorithms', { 'issuers.0.algorithms': [] }],
    ['L-018 a tolerance above 300 s', 'token.clockToleranceSeconds', { 'token.clockToleranceSeconds': 301 }],
    ['L-018 a tolerance below 0', 'token.clockToleranceSeconds', { 'token.clockToleranceSeconds': -1 }],
    ['L-018 a tolerance with a fraction', 'token.clockToleranceSeconds', { 'token.clockToleranceSeconds': 0.5 }],
    ['L-018 a maximum key age below the refresh interval', 'keys.maxAgeSeconds', { 'keys.maxAgeSeconds': 299 }],
    ['L-018 a cooldown above the refresh interval', 'keys.refreshSeconds', { 'keys.refreshSeconds': 4 }],
    ['L-018 a timeout of 0', 'keys.timeoutSeconds', { 'keys.timeoutSeconds': 0 }],
    ['O-019 an upper-case identity prefix', 'identityHeaders', { identityHeaders: 'X-Auth-' }],
    ["O-019 an identity prefix in Envoy's namespace", 'identityHeaders', { identityHeaders: 'x-envoy-' }],
    ['O-019 an account header under the prefix', 'account.headers[0]', { 'account.headers': ['x-auth-acc'] }],
    ['P-054 a regex as a route', 'routes[0].path', { 'routes.0.path': '/(a+)+$' }],
  ];
  for (const [name, place, changes] of weakening) {
    it(`refuses ${name}`, async () => {
      expect(await placesOf(changed(changes))).to.include(place);
    });
  }

  const withOneProblem: readonly Changes[] = [
    { 'token.maxBytes': 1.5 },
    { listen: '0.0.0.0:1' },
    { apps: [''] },
    { 'roles.*': ['GET'] },
    { 'account.headers': ['x_y'] },
    { identityHeaders: 'X' },
    { 'routes.0.path': '' },
    { issuers: undefined },
    { issuers: [null] },
    { issuers: ['x'] },
    { apps: 'a*' },
    { 'issuers.0.tokenTypes': [7] },
    { 'keys.refreshSeconds': '1', 'keys.cooldownSeconds': 5 },
    { 'keys.refreshSeconds': 5, 'keys.cooldownSeconds': '9' },
    { 'routes.0.path': '/a/:account_id', 'account.parameter': '1x' },
    { 'routes.0.path': '/a/:account_id', 'account.parameter': true },
    ...['x', 'http://b.test', ['https://b.test']].map(resource => ({
      'account.hosts': ['a.test'],
      protectedResource: { resource },
    })),
    { identityHeaders: 'x', 'account.headers': ['x-account-id'] },
    { identityHeaders: 7, 'account.headers': ['7-account'] },
  ];
  for (const changes of withOneProblem) {
    it(`reports one problem for ${JSON.stringify(changes)}`, async () => {
      expect(await problemsOf(changed(changes))).to.have.lengthOf(1);
    });
  }

  const withSeveralProblems: readonly (readonly [places: readonly string[], changes: Changes])[] = [
    [['keys.timeoutSeconds', 'keys.maxAgeSeconds'], { keys: { timeoutSeconds: 'x', refreshSeconds: 7200 } }],
    [['tls.certFile', 'tls.keyFile', 'tls.x'], { tls: { x: 1 } }],
    [['listen', 'token.maxBytes'], { listen: '0.0.0.0:1', 'token.maxBytes': 'x' }],
    [['listen', 'admin'], { listen: 'x', admin: 'x' }],
    [['apps[1]', 'apps'], { apps: ['*', 1] }],
    [['issuers[0].audiences', 'issuers[0]'], { issuers: [{ issuer: 'a' }] }],
    [['roles["a b"]', 'routes[0].roles[0]'], { 'roles.a b': ['GET'], 'routes.0.roles': ['boss'] }],
    [['account.headers[0]', 'account.headers[1]'], { 'account.headers': ['x-auth-a', 1] }],
  ];
  for (const [places, changes] of withSeveralProblems) {
    it(`reports problems at ${places.join(' and ')} for ${JSON.stringify(changes)}`, async () => {
      expect(await placesOf(changed(changes))).to.have.members(places);
    });
  }

  const types: readonly (readonly [problem: string, changes: Changes])[] = [
    ['issuers: is required', { issuers: undefined }],
    ['routes: must be a list, but has no value', { routes: null }],
    ['roles: must be a mapping, not a list', { roles: [] }],
    ['token: must be a mapping, not text', { token: 'x' }],
    ['apps: must be a list, not a mapping', { apps: {} }],
    ['apps[0]: must be text: put it in quotes', { apps: [7] }],
    ['listenInsecure: must be true or false', { listenInsecure: 1 }],
    [
      'issuers[0].claims.sub: is not a known key: the keys here are uid, app, acc, role, scope, actor',
      { 'issuers.0.claims.sub': 'uid' },
    ],
    [
      'issuers[0].claims.role: must be a valid JSON Pointer (RFC 6901) because it starts with /: write ~0 for ~ and ~1 for / within a name',
      { 'issuers.0.claims.role': '/a~b' },
    ],
    ['log.level: must be one of trace, debug, info, warn, error, fatal, silent', { 'log.level': 1 }],
  ];
  const name = 'must be the name of a claim, or a JSON Pointer that starts with /';
  const keys = 'must set exactly one of jwksUrl, discoveryUrl, jwksFile';
  const metadata = '/.well-known/oauth-protected-resource/b';
  const rules: readonly (readonly [problem: string, changes: Changes])[] = [
    [`issuers[0].claims.uid: ${name}`, { 'issuers.0.claims.uid': '' }],
    [`issuers[0].claims.acc: ${name}, or { keysOf: NAME }`, { 'issuers.0.claims.acc': 7 }],
    [
      `issuers[0].claims.role: ${name}, or { keysOf: NAME }, { keysOf: NAME, having: '{acc}' } or { wordsOf: NAME }`,
      { 'issuers.0.claims.role': 7 },
    ],
    [
      'issuers[0].claims.acc: must not contain {acc}: only the JSON Pointers of role and scope may',
      { 'issuers.0.claims.acc': '/{acc}' },
    ],
    [
      'issuers[0].claims.scope: must have {acc} only as a whole segment of a JSON Pointer, such as /organization/{acc}/roles',
      { 'issuers.0.claims.scope': '{acc}' },
    ],
    [
      'issuers[0].accounts[0]: must be an account of A-Z a-z 0-9 . _ ~ -, or the start of one with "*" at its end',
      { 'issuers.0.accounts': ['a*b'] },
    ],
    [`issuers[0]: ${keys} (it sets none)`, { 'issuers.0.jwksUrl': undefined }],
    [`issuers[0]: ${keys} (it sets jwksUrl and jwksFile)`, { 'issuers.0.jwksFile': 'a.json' }],
    [
      'issuers[0].clientCertFile: must be set together with clientKeyFile',
      { 'issuers.0.clientCertFile': tls.certFile },
    ],
    ['issuers[0].clientKeyFile: must be set together with clientCertFile', { 'issuers.0.clientKeyFile': tls.keyFile }],
    [
      'issuers[0].clientKeyFile: must not be set together with jwksFile: a file is read without a connection',
      { 'issuers.0.clientKeyFile': tls.keyFile, 'issuers.0.jwksFile': 'a.json' },
    ],
    ['apps: must be either "*" alone or app ids without "*"', { apps: ['web', '*'] }],
    ['admin: must not overlap with listen: use another port', { listen: '127.0.0.1:9192' }],
    ['keys.maxAgeSeconds: must be at least refreshSeconds (300)', { 'keys.maxAgeSeconds': 299 }],
    [
      'account.headers[0]: must not start with the prefix of identityHeaders: such headers are removed from requests',
      { 'account.headers': ['x-auth-acc'] },
    ],
    [
      'account.hosts[0]: must be a host name without port and without a dot at the end, whose first label may be :tenant',
      { 'account.hosts': [':account_id.a.test'], 'account.parameter': 'tenant' },
    ],
    ...[['c.test'], [':account_id.b.test'], [7]].map(
      hosts =>
        [
          'protectedResource.resource: must have a host that account.hosts has without the account: clients fetch its metadata from there',
          { 'account.hosts': hosts, protectedResource: { resource: 'https://b.test' } },
        ] as const,
    ),
    [
      'routes[0].scopes[0]: must be a scope that scopes defines: add it to scopes, or remove it here',
      { 'routes.0.scopes': ['billing'] },
    ],
    [
      'routes[0].roles[0]: must be a role that roles defines: add it to roles, or remove it here',
      { 'routes.0.roles': ['toString'] },
    ],
    [
      'routes[0].path: must say which parameter is the account: name it :account_id, or set accountInPath: false if none is the account',
      { 'routes.0.path': '/a/:tenant' },
    ],
    ...['/a/:account_id/:tenant', '/a'].map(
      path =>
        [
          'routes[0].path: must have parameters, none of them :account_id, where accountInPath is false: remove accountInPath',
          { routes: [{ path, accountInPath: false }] },
        ] as const,
    ),
    ['routes[1].path: must not name the same route twice', { routes: [tenants('a'), tenants('b')] }],
    [
      'public[0].path: must not match a path that one of routes matches, case ignored',
      { 'routes.0.path': '/a/:account_id', public: [{ path: '/A/*' }] },
    ],
    [
      'public[0].path: must not have parameters: a public route is a literal path',
      { public: [{ path: '/a/:account_id' }] },
    ],
    [
      'protectedResource.resource: must have a metadata document whose path no route and no public route matches',
      { public: [{ path: metadata }], protectedResource: { resource: 'https://b.test/b' } },
    ],
    [
      'issuers[0].tokenTypes[0]: must be a media type such as JWT or at+jwt, or "" for an absent typ',
      { 'issuers.0.tokenTypes': ['a b'] },
    ],
    [
      'issuers[0].audiences[0]: must be 1 to 1024 characters without control characters and without white space at the start or end',
      { 'issuers.0.audiences': [' a'] },
    ],
    [
      'issuers[0].claims.acc: must be a valid JSON Pointer (RFC 6901) because it starts with /: write ~0 for ~ and ~1 for / within a name',
      { 'issuers.0.claims.acc': '/{acc}~' },
    ],
    ['public[0].methods: must name at least one method', { public: [{ path: '/a', methods: [] }] }],
    [
      'public[0].methods[0]: must be a method in upper case such as GET',
      { public: [{ path: '/a', methods: ['get'] }] },
    ],
    [
      'routes[0].roles[0]: must be a role of 1 to 128 visible ASCII characters without space , ; and "',
      { 'routes.0.roles': ['a b'] },
    ],
    ['apps[0]: must be an app id of 1 to 128 visible ASCII characters without space , ; and "', { apps: ['a b'] }],
    ['scopes: must name at least one scope', { scopes: {} }],
    ['roles: must name at least one role', { roles: {} }],
    ['scopes["*"]: must be the name of one scope ("*" does not stand for all scopes)', { 'scopes.*': ['GET'] }],
    [
      'account.query[0]: must be 1 to 128 of the characters A-Z a-z 0-9 . _ ~ -, with a letter or digit among them',
      { 'account.query': ['_'] },
    ],
    [
      'account.query[0]: must not be a parameter by which servers let a client change the method: requests with it are refused',
      { 'account.query': ['_method'] },
    ],
  ];
  for (const [problem, changes] of rules) {
    it(`names the rule for ${JSON.stringify(changes).slice(0, 100)}: ${problem}`, async () => {
      expect(await problemsOf(changed(changes))).to.include(problem);
    });
  }
  const nouns = {
    'issuers.0.audiences': 'audience',
    'issuers.0.algorithms': 'algorithm',
    'issuers.0.tokenTypes': 'token type',
    'issuers.0.accounts': 'account',
    'routes.0.roles': 'role',
    'routes.0.scopes': 'scope',
    public: 'public route',
    'account.headers': 'header',
    'account.query': 'parameter',
    'account.hosts': 'host',
    'roles.owner': 'method',
    apps: 'app',
  };
  for (const [path, noun] of Object.entries(nouns)) {
    it(`needs an item in ${path}`, async () => {
      const problem = `${path.replace('.0', '[0]')}: must name at least one ${noun}`;
      expect(await problemsOf(changed({ [path]: [] }))).to.include(problem);
    });
  }
  for (const [problem, changes] of types) {
    it(`reports "${problem}"`, async () => {
      expect(await problemsOf(changed(changes))).to.deep.equal([problem]);
    });
  }

  it('names the ways to listen on other addresses than loopback', async () => {
    expect(await problemsOf(changed({ listen: '0.0.0.0:9191' }))).to.deep.equal([
      'listen: must not accept calls from other machines without TLS: set tls, listen on loopback or a Unix socket, or set listenInsecure: true',
    ]);
  });

  it('fills in the defaults', async () => {
    expect(await configOf(smallestConfig())).to.deep.equal({
      listen: '127.0.0.1:9191',
      listenInsecure: false,
      admin: '0.0.0.0:9192',
      issuers: [
        {
          issuer: 'https://auth.example.com',
          audiences: ['https://api.example.com/subscriptions'],
          jwksUrl: 'https://auth.example.com/.well-known/jwks.json',
          algorithms: ['RS256', 'ES256', 'EdDSA'],
          tokenTypes: ['JWT', 'at+jwt'],
          claims: { uid: 'uid', app: 'app', acc: 'acc', role: 'role', scope: 'scope' },
          accounts: ['*'],
          allowIntegerClaims: false,
        },
      ],
      token: { clockToleranceSeconds: 30, maxLifetimeSeconds: 86_400, maxBytes: 8192, forward: false },
      keys: { refreshSeconds: 300, maxAgeSeconds: 3600, cooldownSeconds: 5, timeoutSeconds: 3 },
      routes: [{ path: '/api/subscriptions/*', characters: 'strict' }],
      account: { headers: [], query: [], parameter: 'account_id', dots: false },
      roles: new Map([['owner', ['*']]]),
      apps: ['*'],
      identityHeaders: 'x-auth-',
      cache: { maxTokens: 10_000 },
      log: { level: 'info', allowed: true },
      shutdown: { graceSeconds: 10 },
    });
  });

  it('keeps the other defaults of a section that sets one key', async () => {
    const config = await configOf(changed({ 'keys.refreshSeconds': 60, 'issuers.0.claims.uid': 'sub' }));
    expect(config.keys).to.deep.equal({
      refreshSeconds: 60,
      maxAgeSeconds: 3600,
      cooldownSeconds: 5,
      timeoutSeconds: 3,
    });
    expect(config.issuers[0]?.claims).to.deep.equal({
      uid: 'sub',
      app: 'app',
      acc: 'acc',
      role: 'role',
      scope: 'scope',
    });
  });

  it('gives config.schema.json', () => {
    const file = readFileSync(new URL('../../config.schema.json', import.meta.url), 'utf8');
    expect(`${JSON.stringify(toJsonSchema(), null, 2)}\n`).to.equal(file);
  });

  it('reads account headers in lower case', async () => {
    const config = await configOf(changed({ 'account.headers': ['X-Account-ID'] }));
    expect(config.account.headers).to.deep.equal(['x-account-id']);
  });
});
