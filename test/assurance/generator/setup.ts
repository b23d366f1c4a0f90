// Generated configurations with issuers, their keys and the state of each key set.
import type { IssuerKeys, KeysState, PublishedKey } from '../oracle/issuer-keys.ts';
import { type Settings, settingsOf, type WrittenConfiguration, type WrittenIssuer } from '../oracle/settings.ts';
import { accounts } from './identities.ts';
import { type KeyPair, keyPairs, publishedKey } from './key-pairs.ts';
import { type Random, words } from './random.ts';
import { createRevocations } from './revocations.ts';

/** A published key and an algorithm to sign with it. */
export interface Signer {
  /** Undefined: the key is published without one. */
  readonly kid: string | undefined;
  readonly alg: string;
  readonly pair: KeyPair;
}

export interface Setup {
  readonly written: WrittenConfiguration;
  readonly settings: Settings;
  readonly keys: ReadonlyMap<string, IssuerKeys>;
  /** By issuer, one with key sets of its own by `iss`: keys whose signatures are valid, and published keys whose signatures are not. */
  readonly signers: ReadonlyMap<string, { readonly good: readonly Signer[]; readonly bad: readonly Signer[] }>;
}

/** `index`: the number of the configuration in a run; every key state and every set of claim sources occurs regularly. */
export function createSetup(random: Random, index: number): Setup {
  const roles = random.pick(roleTables);
  const scopes = random.chance(0.5) ? random.pick(scopeTables) : undefined;
  const account = createAccountSettings(random);
  const issuers = random
    .pick(issuerSets)
    .map((issuer, i) => createIssuer(random, issuer, claimNames[(index + 5 * i) % claimNames.length]));
  const written: WrittenConfiguration = {
    issuers,
    ...(random.chance(0.8) ? { token: createTokenSettings(random) } : {}),
    routes: createRoutes(random, roles, scopes, account.parameter ?? 'account_id'),
    ...(Object.keys(account).length > 0 ? { account } : {}),
    roles,
    ...(scopes === undefined ? {} : { scopes }),
    ...(random.chance(0.3) ? { public: [{ path: '/healthz' }, { path: '/public/*', methods: ['GET', 'POST'] }] } : {}),
    ...(random.chance(0.4) ? { protectedResource: createResource(random, scopes) } : {}),
    ...(random.chance(0.7) ? { apps: random.pick(appLists) } : {}),
    ...(random.chance(0.4) ? { forwardClaims: random.pick(forwarded) } : {}),
    ...(random.chance(0.5) ? { identityHeaders: random.pick(['x-auth-', 'idp-', 'x-our-own-']) } : {}),
    ...(random.chance(0.6)
      ? {
          revoked: createRevocations(
            random,
            issuers.map(({ issuer }) => issuer.replace('{acc}', random.pick(accounts))),
          ),
        }
      : {}),
    ...(random.chance(0.03) ? { isListMissing: true } : {}),
    ...(random.chance(0.5) ? { cache: { maxTokens: random.pick([0, 3, 10_000]) } } : {}),
  };
  const settings = settingsOf(written);
  const keys = new Map<string, IssuerKeys>();
  const signers = new Map<string, { good: Signer[]; bad: Signer[] }>();
  for (const { issuer, algorithms, accounts, hasOwnKeySets } of settings.issuers) {
    for (const name of hasOwnKeySets ? accounts.map(account => issuer.replace('{acc}', account)) : [issuer]) {
      const state = states[(index + 5 * keys.size) % states.length] ?? 'usable';
      const { published, ...own } = createKeys(random, algorithms, state);
      keys.set(name, { state, published });
      signers.set(name, own);
    }
  }
  return { written, settings, keys, signers };
}

const forwarded: readonly NonNullable<WrittenConfiguration['forwardClaims']>[] = [
  { email: 'email' },
  { plan: '/ext/plan', 'e-mail': 'email', app2: 'azp', 'a-': '/toString', n: 'iat' },
  Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`c${i}`, i % 2 === 0 ? `/forwarded/${i}` : 'email'])),
];

const tokenPlaces: readonly Pick<NonNullable<WrittenConfiguration['token']>, 'from' | 'origins'>[] = [
  { from: [{ header: 'x-id-token' }, 'authorization'] },
  { from: ['authorization', { cookie: 'token' }], origins: ['https://app.test', 'http://localhost:3000'] },
  { from: [{ cookie: 'token' }, { cookie: '__Host-t' }], origins: ['https://app.test'] },
  { from: [{ header: 'x-id-token' }, { cookie: 'token' }, 'authorization'], origins: ['https://app.test'] },
  { from: ['authorization', { subprotocol: 'bearer' }], origins: ['https://app.test', 'http://localhost:3000'] },
  {
    from: [{ subprotocol: 'v1.token' }, { cookie: 'token' }, { subprotocol: 'bearer' }],
    origins: ['https://app.test'],
  },
];

const states: readonly KeysState[] = [
  ...(['usable', 'usable', 'usable', 'outage', 'usable', 'usable', 'usable', 'loading'] as const),
  ...(['usable', 'usable', 'usable', 'outage', 'usable', 'usable', 'usable', 'stale'] as const),
];

// Names that differ by as little as possible.
const issuerSets: readonly (readonly string[])[] = [
  ['https://idp.test'],
  ['https://idp.test'],
  ['https://idp.test', 'https://idp.test/'],
  ['https://idp.test', 'https://IDP.test', 'https://other.test/realms/one'],
  ['https://idp.test/realms/{acc}'],
  ['https://idp.test/realms/{acc}', 'https://idp.test/realms', 'https://idp.test/realms/acct1/x'],
  ['https://{acc}.idp.test', 'https://idp.test/{acc}/v2.0', 'https://idp.test'],
];

type WrittenRoute = WrittenConfiguration['routes'][number];

const routeTables: readonly (readonly (string | WrittenRoute)[])[] = [
  ['/api/subscriptions/*', '/api/subscriptions/accounts/:account_id/*'],
  ['/api/subscriptions/*', '/api/subscriptions/accounts/:account_id/*'],
  ['/api/subscriptions/:account_id/*'],
  ['/api/subscriptions', '/api/subscriptions/:account_id', '/api/subscriptions/:account_id/items/:item'],
  ['/api/:region/accounts/:account_id/*', '/api/subscriptions/*'],
  [
    '/api/subscriptions/:account_id/shares/:account_id/*',
    { path: '/api/subscriptions/:owner/*', accountInPath: false },
  ],
  ['/v1/@me/a~b/:account_id', { path: '/v1/:x/a~b/:y/*', accountInPath: false }, '/API/Subscriptions/:account_id/*'],
  [{ path: '/api/subscriptions/:account_id/*', characters: 'rfc3986' }, '/api/subscriptions/:account_id/items/*'],
  [{ path: '/api/subscriptions/*', characters: 'rfc3986' }, '/api/subscriptions/accounts/:account_id/*'],
  [
    { path: '/api/subscriptions/*', characters: 'rfc3986' },
    { path: '/api/subscriptions/accounts/:account_id/*', characters: 'rfc3986' },
    { path: '/api/:region/items/:item', characters: 'rfc3986', accountInPath: false },
  ],
  ['/api/subscriptions/:account_id/*', '/api/subscriptions/:any/notes/:account_id', '/api/*'],
  [
    '/api/*',
    '/api/settings/*',
    '/api/settings.json',
    '/api/:kind/settings/*',
    '/api/v1.0/subscriptions/:account_id',
  ].map(path => ({ path, characters: 'rfc3986', ...(path.includes(':kind') ? { accountInPath: false } : {}) })),
  ['/api/*', '/api/settings/*', '/api/accounts/:account_id/*', '/api/settings:reset/x', '/API/files/archive/*'],
];

const roleTables: readonly WrittenConfiguration['roles'][] = [
  {
    owner: ['*'],
    manager: {
      methods: ['GET', 'POST /api/subscriptions/*', 'PUT /api/:x/accounts/:account_id/items'],
      names: ['Site Manager', 'admin'],
    },
    member: [
      'GET',
      'HEAD',
      'POST /api/subscriptions/:account_id/*',
      '* /api/subscriptions/accounts/:account_id/items/*',
    ],
  },
  {
    admin: { methods: ['* /api/*', 'PROPFIND /api/settings.json', 'GET'], names: ['8f2a0c11-\u00fc', '7', 'poster'] },
    poster: {
      methods: ['POST /api/settings/*', 'POST /api/subscriptions/:any/items', 'PATCH'],
      names: ['writer', ''.padEnd(256, 'p')],
    },
    owner: ['GET /api/accounts/:account_id/*', 'GET /api/subscriptions/*', 'DELETE'],
  },
  { owner: ['*'], admin: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'], member: ['GET', 'HEAD'] },
  { owner: ['*'], member: ['GET', 'HEAD'] },
  { owner: ['*', 'PROPFIND'], 'auditor:eu': ['GET', 'OPTIONS'], 7: ['GET'] },
  { reader: ['GET'], writer: ['POST', 'PUT'], cleaner: ['DELETE', 'GET'], owner: ['*'] },
];

const scopeTables: readonly NonNullable<WrittenConfiguration['scopes']>[] = [
  { 'orders:read': ['GET /api/*', 'HEAD'], 'orders:write': ['* /api/subscriptions/*', 'GET'] },
  { billing: ['*'], 'orders:read': ['GET', 'HEAD'] },
  { 'orders:read': ['GET'], 'orders:write': ['POST', 'PUT', 'DELETE', 'PATCH'], all: ['*', 'PROPFIND'] },
  Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`s${i}x`, i % 5 === 4 ? ['GET', 'POST'] : ['*']])),
];

const resources = words(
  'https://api.test/subscriptions https://api.test https://api.test/ https://api.test:8443/a?b=c https://api.test/api/subscriptions/ https://api.test/api?x=/y',
);

function createResource(
  random: Random,
  scopes: WrittenConfiguration['scopes'],
): NonNullable<WrittenConfiguration['protectedResource']> {
  const resource = random.pick(resources);
  if (scopes === undefined || random.chance(0.5)) return { resource };
  return { resource, scopes: random.some(Object.keys(scopes), 1) };
}

function createRoutes(
  random: Random,
  roles: WrittenConfiguration['roles'],
  scopes: WrittenConfiguration['scopes'],
  parameter: string,
): WrittenConfiguration['routes'] {
  return random.pick(routeTables).map(written => {
    const route = typeof written === 'string' ? { path: written } : written;
    return {
      ...route,
      path: route.path.replaceAll(':account_id', `:${parameter}`),
      ...(random.chance(0.2) ? { roles: random.some(Object.keys(roles), 1) } : {}),
      ...(scopes !== undefined && random.chance(0.25) ? { scopes: random.some(Object.keys(scopes), 1) } : {}),
    };
  });
}

function createAccountSettings(random: Random): NonNullable<WrittenConfiguration['account']> {
  const parameter = random.chance(0.25) ? 'tenant' : 'account_id';
  const hosts = words(
    `:${parameter}.api.test api.test API.other.test Kept.test acct2.api.test :${parameter}.Eu.api.test`,
  );
  return {
    ...(random.chance(0.7) ? random.pick(accountPlaces) : {}),
    ...(parameter === 'account_id' ? {} : { parameter }),
    ...(random.chance(0.4) ? { dots: random.chance(0.8) } : {}),
    ...(random.chance(0.25) ? { case: random.pick(['lower', 'lower', 'exact'] as const) } : {}),
    ...(random.chance(0.35) ? { hosts: random.pick([hosts, ['api.test'], hosts.slice(0, 2)]) } : {}),
  };
}

const accountPlaces: readonly { readonly headers?: readonly string[]; readonly query?: readonly string[] }[] = [
  { headers: ['x-account-id'], query: ['account_id'] },
  { headers: ['x-account-id', 'tenant'], query: ['account', 'Acc.Id'] },
  { query: ['account_id'] },
  { headers: ['X-Account-Id'] },
];

const appLists: readonly (readonly string[])[] = [['*'], ['web'], ['web', 'mobile/2']];

function createIssuer(random: Random, issuer: string, claimNames: WrittenIssuer['claims']): WrittenIssuer {
  const isOfOneAccount = issuer.includes('{acc}');
  const { acc, ...others } = claimNames ?? {};
  const claims = isOfOneAccount || acc === undefined ? others : { ...others, acc };
  return {
    issuer,
    ...(random.chance(0.4) ? { accounts: random.pick(issuerAccounts) } : {}),
    ...(isOfOneAccount && random.chance(0.5)
      ? { jwksUrl: 'https://idp.test/{acc}/keys', accounts: random.some(accounts.slice(0, 12), 2).slice(0, 4) }
      : {}),
    audiences: random.pick([['https://api.test/subscriptions'], ['api'], ['api', 'https://api.test/subscriptions']]),
    ...(random.chance(0.5)
      ? {
          algorithms: random.pick([
            ['ES256'],
            ['RS256', 'ES256'],
            ['EdDSA', 'ES384', 'ES512'],
            ['RS256', 'PS256', 'Ed25519'],
          ]),
        }
      : {}),
    ...(random.chance(0.6)
      ? { tokenTypes: random.pick([['at+jwt'], ['JWT', ''], ['application/token+jwt', 'text/jwt'], ['']]) }
      : {}),
    ...(random.chance(0.85)
      ? {
          claims: {
            ...claims,
            ...(random.chance(0.2) ? { aud: random.pick(['client_id', '/resource/aud', 'aud/x']) } : {}),
            ...(random.chance(0.2) ? { scope: random.pick(['scp', '/ext/{acc}/scopes', '/permissions/0']) } : {}),
            ...(random.chance(0.4) ? { actor: random.pick(['actor', '/act/sub', 'azp2']) } : {}),
          },
        }
      : {}),
    ...(random.chance(0.3) ? { allowIntegerClaims: true } : {}),
  };
}

const issuerAccounts: readonly (readonly string[])[] = [
  ['*'],
  ['acct*', '7', 'items'],
  ['acct1', 'acct2', 'n-*', 'a*'],
  ['*', '!acct2', '!n-*'],
  ['!acct10', 'acct*', '!x*', '0'],
];

const claimNames: readonly NonNullable<WrittenIssuer['claims']>[] = [
  { acc: 'account' },
  { uid: 'sub', acc: 'https://idp.test/acc' },
  { acc: { keysOf: '/organization' }, role: '/organization/{acc}/realm_access/roles' },
  { acc: { keysOf: '/tenants' }, role: '/tenants/{acc}/roles' },
  { acc: { keysOf: 'orgs' }, role: { wordsOf: 'permissions' } },
  { acc: 'urn:resourceowner:id', role: { keysOf: 'urn:project:roles', having: '{acc}' } },
  { acc: { keysOf: '/tenants' }, role: { keysOf: '/tenants/{acc}/roles' } },
  { acc: { keysOf: '/tenants' }, role: { keysOf: '/tenants/{acc}/grants', having: '{acc}' } },
  { acc: '/accounts', role: { wordsOf: '/grants/{acc}' } },
  { acc: { wordsOf: 'tenants', by: ',' }, role: { wordsOf: '/roles', by: ',' } },
  { acc: { wordsOf: '/ext/tenants' } },
  { acc: 'organization', role: { keysOf: '/roles' } },
  { role: '__proto__', app: 'azp' },
  { role: 'realm_access.role' },
  { role: '/realm_access/roles' },
  { uid: ['sub', '/ext/uid', 'client_id'], app: ['azp', '/aud/0'] },
  { uid: ['/ext/uid', 'uid'], app: ['client_id', 'app', 'cid', '/ext/app'], acc: 'account' },
  { uid: '/ext/uid', app: '/ext/app', acc: '/ext/acc', role: '/ext/role' },
  { acc: '/accounts/1', role: '/roles/0' },
  { acc: '/accounts/01', role: '/roles/-' },
  { uid: '/constructor/name', app: '/app/length', role: '/~01' },
  { app: '/azp', role: '/resource_access/api~1v1/m~0n/roles' },
  { uid: '/', app: '/constructor', acc: '/x/__proto__/length', role: '/~01/-' },
];

function createTokenSettings(random: Random): NonNullable<WrittenConfiguration['token']> {
  return {
    clockToleranceSeconds: random.pick([0, 30, 300]),
    maxLifetimeSeconds: random.pick([120, 3600, 86_400]),
    ...(random.chance(0.6) ? { maxBytes: random.pick([1024, 2048, 8192]) } : {}),
    forward: random.chance(0.3),
    ...(random.chance(0.35) ? random.pick(tokenPlaces) : {}),
  };
}

// The same kids at every issuer with different keys: an issuer never verifies with the key of another.
const kids = ['k1', 'k2', 'K1', '2026-11', '__proto__', 'a b'] as const;

/** As published; nobody computes them. */
const x5t = 'other';
const thumbprints = [{ x5t: 'own' }, { x5t }, { 'x5t#S256': 'own' }, { x5t, 'x5t#S256': 'own' }] as const;

interface CreatedKeys {
  readonly published: readonly PublishedKey[];
  readonly good: Signer[];
  readonly bad: Signer[];
}

function createKeys(random: Random, algorithms: readonly string[], state: KeysState): CreatedKeys {
  const published: PublishedKey[] = [];
  const good: Signer[] = [];
  const bad: Signer[] = [];
  const fitting = keyPairs().published.filter(pair => pair.algorithms.some(alg => algorithms.includes(alg)));
  const free = [...kids];
  const nextKid = (): string => free.splice(random.below(free.length), 1)[0] ?? 'k9';

  const strong = fitting.filter(({ isStrong }) => isStrong);
  for (let count = 1 + random.below(3); count > 0; count -= 1) {
    const pair = random.pick(strong);
    const kid = random.chance(0.15) ? undefined : nextKid();
    const alg = random.pick(pair.algorithms.filter(each => algorithms.includes(each)));
    published.push(
      publishedKey(pair, {
        ...(kid === undefined ? {} : { kid }),
        ...(random.chance(0.7) ? { alg } : {}),
        ...(random.chance(0.3) ? random.pick(thumbprints) : {}),
        ...(random.chance(0.7) ? { use: 'sig' } : {}),
      }),
    );
    good.push({ kid, alg, pair });
  }
  // Encryption keys, weak keys, two keys under one kid. While the issuer is down, only the kid tells
  // an unknown key from a published unusable one, hence none of those then.
  const extra = state === 'outage' ? [] : random.some(['enc', 'weak', 'twice', 'other alg'] as const);
  for (const kind of extra) {
    const kid = nextKid();
    const pair =
      kind === 'weak' ? random.pick(keyPairs().published.filter(({ isStrong }) => !isStrong)) : random.pick(strong);
    const alg = pair.algorithms.find(each => algorithms.includes(each)) ?? pair.algorithms[0];
    bad.push({ kid, alg, pair });
    if (kind === 'enc') published.push(publishedKey(pair, { kid, use: 'enc' }));
    if (kind === 'weak') published.push(publishedKey(pair, { kid }));
    if (kind === 'twice') {
      const other =
        keyPairs().published.find(each => each !== pair && each.isStrong && each.algorithms.includes(alg)) ?? pair;
      if (other === pair) published.push(publishedKey(pair, { kid, use: 'enc' }));
      else
        published.push(
          publishedKey(pair, { kid, ...random.pick(thumbprints) }),
          publishedKey(other, { kid, ...random.pick(thumbprints) }),
        );
    }
    if (kind === 'other alg') published.push(publishedKey(pair, { kid, alg: 'HS256' }));
  }
  return { published, good, bad };
}
