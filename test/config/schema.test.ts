// The rules of the configuration: accepted and refused values of each key, and defaults.
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { changed, configOf, placesOf, problemsOf, smallestConfig } from '../../lab/config-file.ts';
import { toJsonSchema } from '../../src/config/schema.ts';
import { isSupportedAlgorithm } from '../../src/keys/jwks.ts';
import { acceptedChanges } from './accepted-changes.ts';
import type { Changes } from './changes.ts';
import { refusedChanges } from './refused-changes.ts';

describe('configuration schema', () => {
  for (const changes of acceptedChanges) {
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

  for (const [place, changes] of refusedChanges) {
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
    ...(isSupportedAlgorithm('ML-DSA-44')
      ? []
      : ([['ML-DSA on this Node', 'issuers[0].algorithms[0]', { 'issuers.0.algorithms': ['ML-DSA-44'] }]] as const)),
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
    { 'routes.0.path': 'x', public: [{ path: '/a' }] },
    { public: [{ path: 7 }] },
    { roles: 'x', 'routes.0.roles': ['owner'] },
    { roles: undefined, 'routes.0.roles': ['owner'] },
    { 'routes.0.roles': [7] },
    { protectedResource: { resource: 'x' } },
    { protectedResource: { resource: 7 } },
    { 'account.query': [7] },
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
    ...['x', 7, ['https://b.test']].map(resource => ({
      'routes.0.path': '/.well-known/*',
      protectedResource: { resource },
    })),
    { public: [{ path: 'x' }], protectedResource: { resource: 'https://api.example.com/subscriptions' } },
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
          algorithms: ['RS256', 'ES256', 'EdDSA', 'Ed25519'],
          tokenTypes: ['JWT', 'at+jwt'],
          claims: { aud: 'aud', uid: 'uid', app: 'app', acc: 'acc', role: 'role', scope: 'scope' },
          accounts: ['*'],
          allowHttp: false,
          allowIntegerClaims: false,
        },
      ],
      token: {
        clockToleranceSeconds: 30,
        maxLifetimeSeconds: 86_400,
        maxBytes: 8192,
        forward: false,
        from: ['authorization'],
      },
      keys: { refreshSeconds: 300, maxAgeSeconds: 3600, cooldownSeconds: 5, timeoutSeconds: 3 },
      routes: [{ path: '/api/subscriptions/*', characters: 'strict' }],
      account: { headers: [], query: [], parameter: 'account_id', dots: false, case: 'exact' },
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
    const { keys } = config;
    expect(keys).to.deep.equal({ refreshSeconds: 60, maxAgeSeconds: 3600, cooldownSeconds: 5, timeoutSeconds: 3 });
    expect(config.issuers[0]?.claims).to.deep.equal({
      aud: 'aud',
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
