// Random pairs of configurations, and requests and tokens for them, from few names so that they meet.
import fc from 'fast-check';
import { grantTemplates } from '../../../src/authz/permission.ts';
import { type Config, configSchema } from '../../../src/config/schema.ts';
import type { Random } from '../../assurance/generator/random.ts';

const literals = ['v1', 'a', 'A', 'b', 'a.b', '7', 'users'];
const parameters = [':account_id', ':id'];
const roleNames = ['owner', 'member', 'guest'];
const scopeNames = ['read', 'write'];
const methods = ['GET', 'POST', '*', 'PURGE'];
const accounts = ['acme', 'globex', 'users', 'a'];

const segment = fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...literals) }, fc.constantFrom(...parameters));
const segments = fc
  .tuple(fc.constantFrom('v1', 'v1', 'v1', 'v1', 'a', ':account_id', ':id'), fc.array(segment, { maxLength: 2 }))
  .map(([first, others]) => [first, ...others]);
const template = fc
  .tuple(segments, fc.boolean())
  .map(([parts, isSubtree]) => `/${parts.join('/')}${isSubtree ? '/*' : ''}`);
const grant = fc
  .tuple(fc.constantFrom(...methods), template, fc.nat({ max: 2 }))
  .map(([method, path, kind]) => (kind > 0 ? method : `${method} ${path}`));
const some = <T>(items: readonly T[]) =>
  fc
    .tuple(fc.subarray([...items], { minLength: 1 }), fc.nat({ max: 2 }))
    .map(([chosen, kind]) => (kind > 0 ? undefined : chosen));
const table = (names: readonly string[]) =>
  fc
    .subarray([...names], { minLength: 1 })
    .chain(chosen =>
      fc.tuple(
        ...chosen.map(name => fc.tuple(fc.constant(name), fc.uniqueArray(grant, { minLength: 1, maxLength: 3 }))),
      ),
    )
    .map(entries => Object.fromEntries(entries));
const called = table(roleNames).chain(roles =>
  fc
    .boolean()
    .map(isCalled =>
      isCalled && roles.owner ? { ...roles, owner: { methods: roles.owner, names: ['Boss', 'guest-x'] } } : roles,
    ),
);

const route = fc.tuple(template, some(roleNames), some(scopeNames), fc.constantFrom('strict', 'strict', 'rfc3986'));

const written = fc.record({
  routes: fc.uniqueArray(route, { minLength: 1, maxLength: 4, selector: ([path]) => path }),
  roles: called,
  scopes: fc.oneof(fc.constant(undefined), fc.constant(undefined), table(scopeNames)),
  apps: fc.constantFrom(['*'], ['*'], ['*'], ['web'], ['web', 'cli']),
  headers: fc.subarray(['x-account-id', 'x-tenant']),
  query: fc.subarray(['account']),
  hosts: fc.constantFrom(
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
    ['api.test'],
    [':account_id.api.test', 'api.test'],
    [':account_id.api.test', 'acme.api.test'],
  ),
});
type Written = typeof written extends fc.Arbitrary<infer T> ? T : never;

/** Undefined where the parts do not fit together. */
export function toConfig({ routes, roles, scopes, apps, headers, query, hosts }: Written): Config | undefined {
  const known = (names: readonly string[] | undefined, entries: object | undefined): string[] | undefined => {
    const left = names?.filter(name => entries !== undefined && Object.hasOwn(entries, name));
    return left?.length ? left : undefined;
  };
  const parsed = configSchema.safeParse({
    issuers: [{ issuer: 'https://a.test', audiences: ['api'], jwksUrl: 'https://a.test/jwks', algorithms: ['ES256'] }],
    routes: routes.map(([path, own, ownScopes, characters]) => {
      const [left, leftScopes] = [known(own, roles), known(ownScopes, scopes)];
      const isOpen = path.includes(':') && !path.includes(':account_id');
      return {
        path,
        characters,
        ...(left && { roles: left }),
        ...(leftScopes && { scopes: leftScopes }),
        ...(isOpen && { accountInPath: false }),
      };
    }),
    roles,
    ...(scopes && { scopes }),
    apps,
    account: { headers, query, ...(hosts && { hosts }) },
  });
  return parsed.success ? parsed.data : undefined;
}

const configuration = written.map(toConfig).filter(config => config !== undefined);
/** Either two of them, or one and a change of a few of its parts. */
export const pairs = fc.oneof(
  fc.tuple(configuration, configuration),
  fc
    .tuple(
      written,
      written,
      fc.subarray(['routes', 'roles', 'scopes', 'apps', 'headers', 'query', 'hosts'] as const, {
        minLength: 1,
        maxLength: 2,
      }),
    )
    .map(
      ([one, other, changed]) =>
        [toConfig(one), toConfig({ ...one, ...Object.fromEntries(changed.map(key => [key, other[key]])) })] as const,
    )
    .filter((pair): pair is [Config, Config] => pair[0] !== undefined && pair[1] !== undefined),
);

const texts = [
  ...literals,
  ...accounts,
  ...accounts,
  'V1',
  'B',
  'a.x',
  'b.json',
  'A.b',
  'Users',
  'users.x',
  'zzz',
  'caf%C3%A9',
  '%61',
  '%37',
  'x+y',
];

export interface Asked {
  readonly method: string;
  readonly segments: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly query: string | undefined;
  readonly host: string;
  readonly accounts: readonly string[];
  readonly roles: readonly string[];
  readonly scopes: readonly string[];
  readonly app: string;
}

/** Draws a request near the routes of both, and a token. */
export function drawRequest(random: Random, configs: readonly [Config, Config]): Asked {
  const { routes, roles, scopes } = random.pick(configs);
  const grants = grantTemplates(roles, scopes);
  const path = grants.length > 0 && random.chance(0.15) ? random.pick(grants) : random.pick(routes).path;
  const some = (names: readonly string[], most: number): readonly string[] =>
    Array.from({ length: 1 + random.below(most) }, () => random.pick(names));
  const tokenAccounts = [...new Set(random.chance(0.6) ? ['acme'] : some(accounts, 3))];
  const segments = path
    .replace('/*', '')
    .split('/')
    .slice(1)
    .map(each => {
      if (each.startsWith(':')) return random.chance(0.75) ? (tokenAccounts[0] ?? '') : random.pick(texts);
      if (random.chance(0.85)) return each;
      return random.pick([each.toUpperCase(), `${each}.json`, `${each.toUpperCase()}.x`, random.pick(texts)]);
    });
  return {
    method: random.pick(['GET', 'GET', 'POST', 'PURGE', 'DELETE', 'LOCK']),
    segments: [...segments, ...(path.endsWith('/*') && random.chance(0.6) ? some(texts, 2) : [])],
    headers: random.pick([
      {},
      {},
      {},
      { 'x-account-id': 'acme' },
      { 'x-tenant': 'acme' },
      { 'x-account-id': 'globex' },
    ]),
    query: random.pick([undefined, undefined, undefined, undefined, 'acme', 'globex']),
    host: random.pick(['api.test', 'api.test', 'api.test', 'acme.api.test', 'globex.api.test', 'other.test']),
    accounts: tokenAccounts,
    roles: some([...roleNames, 'Boss', 'nobody'], 3),
    scopes: random.chance(0.1) ? [] : some([...scopeNames, 'else'], 2),
    app: random.pick(['web', 'web', 'web', 'cli', 'bot']),
  };
}
