// The text of each problem of a configuration names the rule and the remedy.
import { expect } from 'chai';
import { changed, problemsOf } from '../../lab/config-file.ts';
import { type Changes, tenants, tls } from './changes.ts';

const hundredAndOne = Array.from({ length: 101 }, (_, i) => `name ${i}`);

describe('problems of a configuration', () => {
  const types: readonly (readonly [problem: string, changes: Changes])[] = [
    ['issuers: is required', { issuers: undefined }],
    ['routes: must be a list, but has no value', { routes: null }],
    ['roles: must be a mapping, not a list', { roles: [] }],
    ['token: must be a mapping, not text', { token: 'x' }],
    ['apps: must be a list, not a mapping', { apps: {} }],
    ['apps[0]: must be text: put it in quotes', { apps: [7] }],
    ['listenInsecure: must be true or false', { listenInsecure: 1 }],
    [
      'issuers[0].claims.sub: is not a known key: the keys here are aud, uid, app, acc, role, scope, actor',
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
    [`issuers[0].claims.acc: ${name}, or { keysOf: NAME } or { wordsOf: NAME }`, { 'issuers.0.claims.acc': 7 }],
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
      'issuers[0].accounts[0]: must be an account of A-Z a-z 0-9 . _ ~ -, or the start of one with "*" at its end; "!" before it excepts those accounts',
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
      'public[0].path: must not match a path that one of routes matches, case ignored',
      { routes: [{ path: '/a' }, { path: '/b' }], public: [{ path: '/b' }] },
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
    ['routes: must name at least one route', { routes: [] }],
    [
      'roles["a b"]: must be a role of 1 to 128 visible ASCII characters without space , ; and "',
      { 'roles.a b': ['GET'] },
    ],
    [
      'roles.owner[0]: must be a method in upper case such as GET, or "*"; for some paths alone, then a space and their template: "POST /a/*"',
      { 'roles.owner': ['get'] },
    ],
    ['roles.owner: must be a list of grants, or { methods, names }', { 'roles.owner': 'GET' }],
    ['roles.owner: must be a list of grants, or { methods, names }', { 'roles.owner': { methods: ['GET'] } }],
    ['roles.owner.names: must name at most 100 names', { 'roles.owner': { methods: ['*'], names: hundredAndOne } }],
    [
      'roles.owner.names[0]: must be 1 to 256 characters without control characters',
      { 'roles.owner': { methods: ['*'], names: [''] } },
    ],
    [
      'roles.admin.names[1]: must not be what another role is called by too',
      { roles: { owner: ['*'], admin: { methods: ['*'], names: ['a', 'owner'] } } },
    ],
    [
      'roles.owner[1]: has a template that must have "*" only as its whole last segment ("/*")',
      { 'roles.owner': ['GET', 'POST /a*'] },
    ],
    [
      'roles.owner.methods[0]: has a template that must write the account parameter as :account_id',
      { 'roles.owner': { methods: ['POST /:accountId'], names: ['o'] } },
    ],
    ['scopes.a: must be a list, not a mapping', { 'scopes.a': { methods: ['GET'], names: ['b'] } }],
    [
      'account.parameter: must be a name of letters, digits and _ that starts with a letter or _',
      { 'account.parameter': '1x' },
    ],
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
    'roles.owner': 'grant',
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
});
