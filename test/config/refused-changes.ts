// Changes of the smallest configuration that are refused, each with the place of its problem.
import { smallestConfig } from '../../lab/config-file.ts';
import { type Changes, long, socket, tenants, tls, valuesOf } from './changes.ts';

const realms = 'https://a.test/realms/{acc}';
const list = { url: 'https://a.test/revoked.jsonl' };
const ownKeys = { 'issuers.0.issuer': realms, 'issuers.0.jwksUrl': 'https://a.test/{acc}/keys' };
const second = { ...smallestConfig().issuers[0], accounts: ['x'] };
const role = (names: readonly unknown[], more: object = {}) => ({ methods: ['*'], names, ...more });
const noRouteRoles = { 'routes.0.roles': undefined };
const withoutAccount = [':AccountID', ':account__id', ':accountid/:account_id'].map(end => `/a/${end}`);
const pairs = ['{acc}', 'a{acc}', '/a{acc}', '/{acc}b/c', '/a/{acc}{acc}'];

/** By the place, which has this value. The list of an item has that item alone. */
const refusedValues: readonly (readonly [place: string, values: readonly unknown[]])[] = [
  ['listen', ['', ':9191', '127.0.0.1', ...[':', ':65536', ':-1', ':09191', ':x'].map(port => `127.0.0.1${port}`)]],
  ['listen', ['unix:', 'unix:run/a', 'unix://host/a', 'unix:/run/', 'unix:/a\0b', 'unix:@abstract', socket(108)]],
  ['listen', ['[::]:9191', '[::ffff:127.0.0.1]:9191', 'localhost.example.com:9191', 9191]],
  ['admin', ['unix:/run/a.sock', ':9192', '127.0.0.1:9191', '0.0.0.0:9191', '[::]:9191', 'localhost:9191']],
  ['tls', [null]],
  ['issuers', [[], undefined, {}]],
  ['issuers[0].issuer', ['https://a.test ', 'a b', 'https://ä.test', 'a\nb', long(1025)]],
  ['issuers[0].issuer', ['https://a.test/x{acc}', 'https://{acc}', 'https://{acc}.b.test/{acc}']],
  ['issuers[0].audiences', [[], 'a']],
  ['issuers[0].audiences[0]', [' a', 'a\n', 'a\u0001b', long(1025)]],
  ['issuers[0].jwksUrl', ['http://a.test/', 'https://a b.test/', null, 'https://a.test/{acc}']],
  ['issuers[0].allowHttp', ['true']],
  ['issuers[0].bearerTokenFile', ['']],
  ['issuers[0].caFile', ['', 'a\0b']],
  ['issuers[0].clientCertFile', ['a']],
  ['issuers[0].clientKeyFile', ['a']],
  ['issuers[0].tokenTypes', [[]]],
  ['issuers[0].tokenTypes[0]', ['a b', 'a/b/c', '/jwt', 'a/', 'jwt;v=1', 'ü', long(128)]],
  ['issuers[0].claims.uid', ['', long(257), [], ['a'], [...'abcde'], { keysOf: 'uid' }]],
  ['issuers[0].claims.app', ['', null]],
  ['issuers[0].claims.acc', ['', {}, ['a'], null, 7]],
  ['issuers[0].claims.role', ['', '/~', '/a~', '/~2', '/a/~b', '/~~0', '/a\u0000', `/${long(256)}`, ...pairs]],
  ['issuers[0].claims.role', [{ keysOf: 'a', wordsOf: 'a' }]],
  ['issuers[0].claims.scope', [...pairs, { wordsOf: 'scope' }]],
  ['issuers[0].claims.aud', [{ wordsOf: 'aud' }]],
  ['issuers[0].claims.iss', ['iss']],
  ['issuers[0].claims.role.keysOf', pairs],
  ['issuers[0].claims.acc.keysOf', ['/{acc}']],
  ['issuers[0].claims.nope', ['a']],
  ['issuers[0].accounts', [[], ['!a', '!b*']]],
  ['issuers[0].accounts[0]', ['', '!', '!!a', '.', '..', 'a b', '*a', 'a**', 'a*b', 'a/*', long(129)]],
  ['issuers[0].nope', [1]],
  ['token.origins', [['https://a.test']]],
  ['forwardClaims', [{}, [], null, Object.fromEntries([...'abcdefghijk'].map(name => [name, name]))]],
  ['forwardClaims.email', ['', 7, null, { keysOf: 'a' }, ['a', 'b'], '/{acc}', '/~']],
  ['account.case', ['upper']],
  ['account.parameter', ['', '1a', 'a-b', ':tenant']],
  ['account.dots', ['true']],
  ['account.hosts', [[]]],
  [
    'account.hosts[0]',
    ['', 'a.test.', 'a.test:443', '*.a.test', ':account_id', ':account_id.', ':other.a.test', ':ACCOUNT_ID.a.test'],
  ],
  ['account.hosts[0]', ['a.:account_id.test', 'a..test', 'a_b.test', '-a.test', '[::1]', `${long(64)}.test`]],
  ['account.headers', [[]]],
  ['account.headers[0]', ['x-host', 'host', 'X-Auth-Account']],
  ['account.query', [[]]],
  [
    'account.query[0]',
    ['', 'a b', 'a&b', 'a=b', 'a[]', 'a%62', 'a+b', 'ü', long(129), '_-.~', '_method', 'X_http-method_override'],
  ],
  ['account.query[0]', ['_METHOD', 'x-http-method-override', 'X_HTTP_Method_Override', '_', '-.']],
  ['keys.cacheDirectory', ['', 'var/cache']],
  ['routes', [[], undefined]],
  ['routes[0].path', ['/*', undefined, '/api/tenants/:tenant/*', '/a/:accountId', ...withoutAccount]],
  ['routes[0].accountInPath', [true]],
  ['routes[0].characters', ['RFC3986']],
  ['routes[0].scopes[0]', ['billing']],
  ['routes[0].roles', [[]]],
  ['routes[0].roles[0]', ['Owner', 'toString', '*', 'a b']],
  ['routes[0].nope', [1]],
  ['public', [[]]],
  ['scopes', [{}]],
  [
    'protectedResource.resource',
    [undefined, '', 'http://a.test', 'https://', 'https:///a', 'https://u@a.test', 'https://u:p@a.test/'],
  ],
  ['protectedResource.resource', ['https://a.test/#a', 'https://a.test/"', 'https://a.test:x/']],
  ['roles', [{}, undefined, ['owner']]],
  ['roles.owner', [[], '*', null]],
  [
    'roles.owner[0]',
    ['', 'get', 'GET ', 'GET,POST', '**', 'M-SEARCH', 'GET  /a', 'GET a', 'GET /', 'GET /*', ' /a', '/a', 'get /a'],
  ],
  ['roles.owner[0]', ['GET /a/../b', 'GET /a?b', 'GET /%61', 'GET /a ']],
  ['scopes.read[0]', ['GET /a/']],
  ['scopes.billing[0]', ['get']],
  ['apps', [[], ['*', 'web']]],
  ['apps[0]', ['', 'a b', 'a,b', 'a;b', 'a"b', 'ü', long(129)]],
  ['identityHeaders', ['x-']],
  ['cache.maxtokens', [1]],
  ['log.level', ['Info', 'warning', '', 30, null]],
  ['nope', [1]],
];

export const refusedChanges: readonly (readonly [place: string, changes: Changes])[] = [
  ...valuesOf(refusedValues),
  ...['::1:9191', '[::1]', '[::1%eth0]:9191', '[127.0.0.1]:9191', '127.1:9191', '0x7f.1:9191', '0:9191', 'a b:1'].map(
    listen => ['listen', { listen, listenInsecure: true }] as const,
  ),
  ['listen', { listen: '10.0.0.1:9191', listenInsecure: false }],
  ['admin', { listen: '[::1]:9191', admin: '[0::1]:9191' }],
  ['tls', { listen: '0.0.0.0:9191', tls: null }],
  ...['', 'a b', 'a,b', long(129), 'eyJhbGciOiJFUzI1NiJ9.e30.x', 7].map(
    subprotocol =>
      ['token.from[0].subprotocol', { token: { from: [{ subprotocol }], origins: ['https://a.test'] } }] as const,
  ),
  ['token.origins', { token: { from: ['authorization', { subprotocol: 'bearer' }] } }],
  ['tls.keyFile', { tls: { certFile: tls.certFile } }],
  ['tls.certFile', { tls: { ...tls, certFile: '' } }],
  ['tls.clientCaFile', { tls: { ...tls, clientCaFile: null } }],
  ['tls.minVersion', { tls: { ...tls, minVersion: 'TLSv1.3' } }],
  ['issuers[1].issuer', { 'issuers.1': smallestConfig().issuers[0] }],
  ['issuers[0].audiences[1]', { 'issuers.0.audiences': ['a', 'a'] }],
  ['issuers[0]', { 'issuers.0.jwksUrl': undefined }],
  ['issuers[0]', { 'issuers.0.discoveryUrl': 'https://a.test/' }],
  ['issuers[0].jwksUrl', { 'issuers.0.jwksUrl': 'http://a.test/', 'issuers.0.allowHttp': false }],
  ['issuers[0].jwksUrl', { 'issuers.0.jwksUrl': 'ftp://a.test/', 'issuers.0.allowHttp': true }],
  ['issuers[0].discoveryUrl', { 'issuers.0.jwksUrl': undefined, 'issuers.0.discoveryUrl': 'http://a.test/' }],
  ['issuers[0].jwksFile', { 'issuers.0.jwksUrl': undefined, 'issuers.0.jwksFile': '' }],
  ['issuers[0].clientCertFile', { 'issuers.0.clientCertFile': '', 'issuers.0.clientKeyFile': 'a' }],
  ['revocation', { revocation: {} }],
  ['revocation', { revocation: { refreshSeconds: 5 } }],
  ['revocation', { revocation: { ...list, file: 'a' } }],
  ...['refreshSeconds', 'maxAgeSeconds', 'caFile', 'bearerTokenFile', 'allowHttp'].map(key => {
    const value = key.endsWith('Seconds') ? 5 : key === 'allowHttp' ? true : 'a';
    return [`revocation.${key}`, { revocation: { file: 'a', [key]: value } }] as const;
  }),
  ...['http://a.test/', 'https://a:b@a.test/', 'https://a.test/#a', 'a'].map(
    url => ['revocation.url', { revocation: { url } }] as const,
  ),
  ['revocation.refreshSeconds', { revocation: { ...list, refreshSeconds: 0 } }],
  ['revocation.refreshSeconds', { revocation: { ...list, refreshSeconds: 3601 } }],
  ['revocation.maxAgeSeconds', { revocation: { ...list, maxAgeSeconds: 4 } }],
  ['revocation.clientKeyFile', { revocation: { ...list, clientKeyFile: 'a' } }],
  ...['none', 'NONE', 'HS512', 'rs256', '', 'RSA-OAEP', 'ES256K', 'Ed448', 256, 'RS256'].map(
    algorithm => ['issuers[0].algorithms[1]', { 'issuers.0.algorithms': ['RS256', algorithm] }] as const,
  ),
  ...['jwt', 'application/jwt', 'APPLICATION/JWT'].map(
    type => ['issuers[0].tokenTypes[1]', { 'issuers.0.tokenTypes': ['JWT', type] }] as const,
  ),
  ['issuers[0].tokenTypes[1]', { 'issuers.0.tokenTypes': ['', ''] }],
  ...['/organization/{acc}', '{acc}', 'a{acc}'].flatMap(name =>
    ['aud', 'uid', 'app', 'acc', 'actor'].map(
      field => [`issuers[0].claims.${field}`, { [`issuers.0.claims.${field}`]: name }] as const,
    ),
  ),
  ...['uid', 'app', 'acc', 'role', 'iss', 'actor', 'Email', 'a_b', long(33), 'a-b-c-d-e'].map(
    name => [`forwardClaims.${name}`, { forwardClaims: { [name]: 'email' } }] as const,
  ),
  ...['', '1a', '-a', 'a.b'].map(name => [`forwardClaims["${name}"]`, { forwardClaims: { [name]: 'email' } }] as const),
  ...['a', '/a', '', '/{acc}', 7].map(
    second => ['issuers[0].claims.app[1]', { 'issuers.0.claims.app': ['a', second] }] as const,
  ),
  ['issuers[0].claims.acc.by', { 'issuers.0.claims.acc': { keysOf: 'a', by: ',' } }],
  ['issuers[0].claims.acc.by', { 'issuers.0.claims.acc': { wordsOf: 'a', by: ';' } }],
  ['issuers[0].claims.acc.keysOf', { 'issuers.0.claims.acc': { keysOf: ['a'] } }],
  ['issuers[0].claims.role.keysOf', { 'issuers.0.claims.role': { having: '{acc}' } }],
  ['issuers[0].claims.role.having', { 'issuers.0.claims.role': { keysOf: 'a', having: 'a' } }],
  ['issuers[0].claims.role.wordsOf', { 'issuers.0.claims.role': { wordsOf: null } }],
  ['issuers[0].claims.acc.having', { 'issuers.0.claims.acc': { keysOf: 'a', having: '{acc}' } }],
  ['issuers[0].claims.role.having', { 'issuers.0.claims.role': { wordsOf: 'a', having: '{acc}' } }],
  ['issuers[0].jwksUrl', { 'issuers.0.issuer': realms, 'issuers.0.jwksUrl': 'https://a.test/?x={acc}' }],
  ['issuers[0].claims.acc', { 'issuers.0.issuer': realms, 'issuers.0.claims.acc': 'acc' }],
  [
    'issuers[0].discoveryUrl',
    { 'issuers.0.issuer': realms, 'issuers.0.jwksUrl': undefined, 'issuers.0.discoveryUrl': 'https://a.test/d' },
  ],
  ...[undefined, ['*'], ['acme', '!globex'], Array.from({ length: 201 }, (_, i) => `a${i}`)].map(
    accounts => ['issuers[0].accounts', { ...ownKeys, 'issuers.0.accounts': accounts }] as const,
  ),
  ...['https://a.test/realms/acme', 'https://a.test/{acc}/x'].map(
    issuer => ['issuers[1].issuer', { 'issuers.0.issuer': realms, 'issuers.1': { ...second, issuer } }] as const,
  ),
  ['issuers[0].issuer', { 'issuers.0.issuer': 'https://a.test/realms/a', 'issuers.1': { ...second, issuer: realms } }],
  ['issuers[0].accounts[1]', { 'issuers.0.accounts': ['a*', 'a*'] }],
  ['keys.maxAgeSeconds', { 'keys.refreshSeconds': 3601 }],
  ['keys.refreshSeconds', { 'keys.cooldownSeconds': 301 }],
  ['routes[1].path', { 'routes.1': { path: '/api/subscriptions/*' } }],
  ['routes[2].path', { 'routes.1': tenants('x'), 'routes.2': tenants('y') }],
  ...['/a/:account_id', '/a', '/a/:accountId', ...withoutAccount].map(
    path => ['routes[0].path', { 'routes.0': { path, accountInPath: false } }] as const,
  ),
  ...['/a/:Tenant', '/a/:_tenant', '/a/:accountId/:tenant', '/a/:account_id'].map(
    path => ['routes[0].path', { 'routes.0': { path }, 'account.parameter': 'tenant' }] as const,
  ),
  ['routes[0].scopes[0]', { 'routes.0.scopes': ['billing'], scopes: { other: ['*'] } }],
  ['routes[0].scopes', { 'routes.0.scopes': [], scopes: { other: ['*'] } }],
  ...['*', 'a b', 'a"b', 'a\\b', 'ü', ''].map(
    scope => [`scopes[${JSON.stringify(scope)}]`, { scopes: { [scope]: ['*'] } }] as const,
  ),
  ['public[1].path', { public: [{ path: '/a' }, { path: '/a', methods: ['POST'] }] }],
  ...'/ /* /a/:account_id /a/:x a /a//b /a%20b /a* /api/subscriptions /API/Subscriptions /api/subscriptions/health /api/*'
    .split(' ')
    .map(path => ['public[0].path', { public: [{ path }] }] as const),
  ['public[0].path', { 'routes.0.path': '/a/:account_id/b', public: [{ path: '/a/x/B' }] }],
  ['public[0].methods', { public: [{ path: '/a', methods: [] }] }],
  ['public[0].methods[1]', { public: [{ path: '/a', methods: ['GET', 'GET'] }] }],
  ...['get', '*', ''].map(method => ['public[0].methods[0]', { public: [{ path: '/a', methods: [method] }] }] as const),
  ['account.hosts[1]', { 'account.hosts': ['a.test', 'A.test'] }],
  ['account.hosts[0]', { 'account.hosts': [':account_id.a.test'], 'account.parameter': 'tenant' }],
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
  ...['B%62', 'b%2Fb', 'b/%E2%84%AA'].map(path => {
    const routes = ['bb', 'b/b', 'b/k'].map(end => ({ path: `/.well-known/oauth-protected-resource/${end}` }));
    return [
      'protectedResource.resource',
      { protectedResource: { resource: `https://a.test/${path}` }, routes },
    ] as const;
  }),
  [
    'protectedResource.resource',
    { 'account.hosts': [':account_id.a.test'], protectedResource: { resource: 'https://b.a.test' } },
  ],
  ['routes[0].roles[1]', { 'routes.0.roles': ['owner', 'owner'] }],
  ['account.headers[1]', { 'account.headers': ['x-a', 'X-A'] }],
  ['account.headers[0]', { identityHeaders: 'x-account-', 'account.headers': ['x-account-id'] }],
  ...['account.id', 'Account_Id', 'account_id'].map(
    name => ['account.query[1]', { 'account.query': ['account_id', name] }] as const,
  ),
  ['roles.owner[1]', { 'roles.owner': ['GET', 'GET'] }],
  ['roles.owner[1]', { 'roles.owner': ['GET /a', 'GET /a'] }],
  ['roles.owner.names[1]', { 'roles.owner': role(['a', 'a']) }],
  ['roles.owner.names[0]', { 'roles.owner': role(['a\u0085']) }],
  ['roles.owner.names[0]', { 'roles.owner': role(['x'.repeat(257)]) }],
  ['roles.owner.names', { 'roles.owner': role([]) }],
  ['roles.owner.methods', { 'roles.owner': role(['a'], { methods: [] }) }],
  ['roles.owner.name', { 'roles.owner': role(['a'], { name: 'b' }) }],
  ['roles.b.names[0]', { roles: { a: role(['x']), b: role(['x']) }, ...noRouteRoles }],
  ['roles.x', { roles: { a: role(['x']), x: ['*'] }, ...noRouteRoles }],
  ...['a b', 'a,b', 'a;b', 'a"b', 'ü', '*', ''].map(
    role => [`roles[${JSON.stringify(role)}]`, { [`roles.${role}`]: ['GET'] }] as const,
  ),
  [`roles["${long(64)}…"]`, { [`roles.${long(129)}`]: ['GET'] }],
  ['apps[1]', { apps: ['web', 'web'] }],
  ...['token', 'keys', 'account', 'cache', 'log', 'shutdown'].flatMap(section => [
    [section, { [section]: null }] as const,
    [section, { [section]: [] }] as const,
    [`${section}.nope`, { [`${section}.nope`]: 1 }] as const,
  ]),
];
