// The identity of a token: accounts, roles and scopes in each form of a claim source, and what is refused, early or for one account.
import { expect } from 'chai';
import { isAccount } from '../../src/authz/principal.ts';
import { compileClaimSources, parseIdentity, parseSignedIdentity } from '../../src/token/identity-claims.ts';
import { claimRules, claims, issuer, uid } from '../support/token.ts';

type Rules = Parameters<typeof claimRules>[0];
type Changes = Readonly<Record<string, unknown>>;

/** What the token says for each account, with sets and maps as plain values; the detail of a refusal. */
function read(changes: Changes, rules?: Rules): unknown {
  const parsed = parseIdentity(claims(changes), claimRules(rules));
  if ('kind' in parsed) return parsed.detail;
  const { accounts, role, scope, actor, jti } = parsed;
  return {
    accounts: typeof accounts === 'string' ? accounts : [...accounts],
    role: plain(role),
    scope: plain(scope),
    actor,
    jti,
  };
}

function plain(claimed: unknown): unknown {
  if (typeof claimed !== 'object' || claimed === null || !('claimed' in claimed)) return claimed;
  const entries = [...(claimed.claimed as ReadonlyMap<string, unknown>)];
  return Object.fromEntries(
    entries.map(([account, each]) => [
      account,
      typeof each === 'object' && each !== null && 'detail' in each ? each.detail : each,
    ]),
  );
}

const rest = { scope: [], actor: undefined, jti: undefined };
const many = (count: number) => Array.from({ length: count }, (_, i) => `a${i}`);
const objectOf = (names: readonly string[], value: unknown = {}) =>
  Object.fromEntries(names.map(name => [name, value]));
const keysOf: Rules = { claims: { acc: { keysOf: '/orgs' } } };

describe('accounts of a token', () => {
  const rows: readonly (readonly [name: string, changes: Changes, accounts: unknown, rules?: Rules])[] = [
    ['C-043 a string is one account', { acc: 'acct1' }, 'acct1'],
    ['C-043 a list of two is both', { acc: ['acct1', 'acct2'] }, ['acct1', 'acct2']],
    ['C-043 a list of one is one account', { acc: ['acct1', 'acct1'] }, 'acct1'],
    ['C-043 an empty list is none', { acc: [] }, []],
    ['members outside the grammar are ignored', { acc: ['a b', 'acct1', '', 'a.b', 'é'] }, 'acct1'],
    ['1,000 names are accepted', { acc: many(1000) }, many(1000)],
    ['names are counted once each', { acc: [...many(1000), ...many(1000)] }, many(1000)],
    ['names of an object are accounts', { orgs: { acct2: null, acct1: 7 } }, ['acct2', 'acct1'], keysOf],
    ['inherited names are none', { orgs: {} }, [], keysOf],
    ['__proto__ is a name like another', { acc: ['__proto__'] }, '__proto__'],
    ['an integer is its digits', { acc: 7 }, '7', { allowIntegerClaims: true }],
    ['dots are accepted with account.dots', { acc: 'acme.com' }, 'acme.com', { dots: true }],
    ['dots are accepted in a list with account.dots', { acc: ['a.b', '..'] }, 'a.b', { dots: true }],
    ['C-080 a string that the issuer may not speak for is none', { acc: 'acct1' }, [], { accounts: ['partner-*'] }],
    [
      'C-080 members that the issuer may not speak for are ignored',
      { acc: ['acct1', 'p-1', 'x'] },
      ['p-1', 'x'],
      { accounts: ['p-*', 'x'] },
    ],
    ['a prefix covers itself', { acc: ['p-', 'p'] }, 'p-', { accounts: ['p-*'] }],
  ];
  for (const [name, changes, accounts, rules] of rows) {
    it(name, () => {
      expect(read(changes, rules)).to.deep.equal({ ...rest, role: 'owner', accounts });
    });
  }

  const refused: readonly (readonly [detail: string, changes: Changes, rules?: Rules])[] = [
    ['acc is missing', { acc: undefined }],
    ['acc has another type than its source reads', { acc: null }],
    ['acc has another type than its source reads', { acc: { acct1: {} } }],
    ['acc has another type than its source reads', { acc: true }],
    ['acc has a member that is not a string', { acc: ['acct1', 1] }],
    ['acc has a member that is not a string', { acc: ['acct1', 1] }, { allowIntegerClaims: true }],
    ['acc has a member that is not a string', { acc: [['acct1']] }],
    ['acc names more than 1000 accounts', { acc: many(1001) }],
    ['acc names more than 1000 accounts', { acc: many(1001).map(name => `${name} `) }],
    ['acc names more than 1000 accounts', { orgs: objectOf(many(1001)) }, { ...keysOf, accounts: ['a1'] }],
    ['acc has a dot, and account.dots is off', { acc: 'acme.com' }],
    ['acc is outside the grammar', { acc: 'a:b' }],
    ['acc is outside the grammar', { acc: '..' }],
    ['acc is outside the grammar', { acc: '' }],
    ['acc is a number and allowIntegerClaims is off', { acc: 7 }],
    ['acc is not a safe integer', { acc: 2 ** 53 }, { allowIntegerClaims: true }],
    ['acc is missing', {}, keysOf],
    ['acc has another type than its source reads', { orgs: ['acct1'] }, keysOf],
    ['acc has another type than its source reads', { orgs: 'acct1' }, keysOf],
  ];
  for (const [detail, changes, rules] of refused) {
    it(`is refused with "${detail}" for ${JSON.stringify(changes).slice(0, 50)} ${JSON.stringify(rules ?? {})}`, () => {
      expect(read(changes, rules)).to.equal(detail);
    });
  }
});

describe('roles of a token', () => {
  const two = { acc: ['a', 'b'] };
  const inOrg: Rules = { claims: { role: '/orgs/{acc}/roles' } };
  const having: Rules = { claims: { role: { keysOf: 'grants', having: '{acc}' } } };
  const rows: readonly (readonly [name: string, changes: Changes, role: unknown, rules?: Rules])[] = [
    ['C-044 a string is one role, also one that roles does not name', { role: 'guest' }, 'guest'],
    [
      'C-044 of a list those that roles names are kept, in its order',
      { role: ['x', 'member', 'owner', 'member'] },
      ['owner', 'member'],
    ],
    ['C-044 an empty list is none', { role: [] }, []],
    ['C-044 a list of 100 is accepted', { role: [...many(99), 'owner'] }, ['owner']],
    [
      'the names of an object',
      { r: { member: 1, owner: null } },
      ['owner', 'member'],
      { claims: { role: { keysOf: 'r' } } },
    ],
    ['the words of a string', { scope: 'x owner' }, ['owner'], { claims: { role: { wordsOf: 'scope' } } }],
    ['an empty string has no words', { scope: '' }, [], { claims: { role: { wordsOf: 'scope' } } }],
    ['an integer is its digits', { role: 7 }, '7', { allowIntegerClaims: true }],
    [
      'of each account',
      { ...two, orgs: { a: { roles: ['owner'] }, b: { roles: 'member' }, c: { roles: ['owner'] } } },
      { a: ['owner'], b: 'member' },
      inOrg,
    ],
    ['none where the pointer leads nowhere for an account', { ...two, orgs: { a: {} } }, { a: [], b: [] }, inOrg],
    ['none where the pointer leads to no object', { ...two, orgs: 'x' }, { a: [], b: [] }, inOrg],
    ['never of an array', { acc: ['0', '1'], orgs: [{ roles: 'owner' }] }, { 0: [], 1: [] }, inOrg],
    [
      'never inherited',
      { acc: ['constructor', 'b'], orgs: {} },
      { constructor: [], b: [] },
      { claims: { role: '/orgs/{acc}' } },
    ],
    ['of one account too', { orgs: { acct1: { roles: ['member'] } } }, { acct1: ['member'] }, inOrg],
    [
      'of names whose object has the account',
      { ...two, grants: { owner: { a: 'x' }, member: { a: 1, b: 2 }, x: { b: 1 }, y: ['a'], z: null } },
      { a: ['owner', 'member'], b: ['member'] },
      having,
    ],
    [
      'of names below the account whose object has it',
      { ...two, g: { a: { owner: { a: 1 }, member: { b: 1 } }, b: { owner: 'b' } } },
      { a: ['owner'], b: [] },
      { claims: { role: { keysOf: '/g/{acc}', having: '{acc}' } } },
    ],
    [
      'wrong for one account alone',
      {
        acc: ['a', 'b', 'c', 'd', 'e'],
        orgs: {
          a: { roles: [1] },
          b: { roles: null },
          c: { roles: many(101) },
          d: { roles: 'a b' },
          e: { roles: 'owner' },
        },
      },
      {
        a: 'role has a member that is not a string, for the addressed account',
        b: 'role has another type than its source reads, for the addressed account',
        c: 'role has more than 100 members, for the addressed account',
        d: 'role is outside the grammar, for the addressed account',
        e: 'owner',
      },
      inOrg,
    ],
  ];
  for (const [name, changes, role, rules] of rows) {
    it(name, () => {
      expect(read(changes, rules)).to.deep.include({ role });
    });
  }

  const words: Rules = { claims: { role: { wordsOf: 'role' } } };
  const refused: readonly (readonly [detail: string, changes: Changes, rules?: Rules])[] = [
    ['role is missing', { role: undefined }],
    ['role is missing', { role: undefined }, words],
    ['role is missing', {}, having],
    ['role has another type than its source reads', { grants: ['owner'] }, having],
    ['role has another type than its source reads', { role: {} }],
    ['role has another type than its source reads', { role: ['owner'] }, words],
    ['role has another type than its source reads', { role: 'owner' }, { claims: { role: { keysOf: 'role' } } }],
    ['role has a member that is not a string', { role: ['owner', 1] }],
    ['role has a member that is not a string', { role: ['owner', null] }],
    ['role has more than 100 members', { role: Array.from({ length: 101 }, () => 'owner') }],
    ['role has more than 100 members', { role: many(101).join(' ') }, words],
    ['role has words that single spaces do not separate', { role: 'owner  x' }, words],
    ['role has words that single spaces do not separate', { role: ' owner' }, words],
    ['role has words that single spaces do not separate', { role: 'owner ' }, words],
    ['role is outside the grammar', { role: '' }],
    ['role is outside the grammar', { role: 'own er' }],
    ['role is a number and allowIntegerClaims is off', { role: 7 }],
  ];
  for (const [detail, changes, rules] of refused) {
    it(`C-044 are refused with "${detail}" for ${JSON.stringify(changes).slice(0, 50)} ${JSON.stringify(rules ?? {})}`, () => {
      expect(read(changes, rules)).to.equal(detail);
    });
  }

  it('keep a list that many accounts share once', () => {
    const orgs = objectOf(many(1000), { roles: ['owner'] });
    const parsed = parseIdentity(claims({ acc: many(1000), orgs }), claimRules(inOrg));
    if ('kind' in parsed || typeof parsed.role === 'string' || !('kind' in parsed.role)) throw new Error('no map');
    expect(parsed.role.claimed.size).to.equal(1000);
    expect(new Set(parsed.role.claimed.values()).size).to.equal(1);
    expect([...parsed.role.claimed.keys()].every(name => isAccount(name, false))).to.equal(true);
  });
});

describe('scopes of a token', () => {
  const rules: Rules = { scopes: ['read', 'write'] };
  const rows: readonly (readonly [name: string, changes: Changes, scope: unknown, rules?: Rules])[] = [
    ['are not read without scopes', { scope: 7 }, [], {}],
    ['are none if the claim is missing', {}, [], rules],
    ['are the words of a string', { scope: 'openid write read' }, ['read', 'write'], rules],
    ['are the strings of a list', { scope: ['write', 'write'] }, ['write'], rules],
    ['are none in an empty string', { scope: '' }, [], rules],
    ['are of each account', { t: { acct1: 'read' } }, { acct1: ['read'] }, { ...rules, claims: { scope: '/t/{acc}' } }],
    [
      'are refused for one account',
      { t: { acct1: 7 } },
      { acct1: 'scope has another type than its source reads, for the addressed account' },
      { ...rules, claims: { scope: '/t/{acc}' } },
    ],
  ];
  for (const [name, changes, scope, changed] of rows) {
    it(name, () => {
      expect(read(changes, changed)).to.deep.include({ scope });
    });
  }

  for (const scope of [7, null, {}, ['read', 7], 'read  write', many(101)]) {
    it(`are refused as ${JSON.stringify(scope).slice(0, 30)}`, () => {
      expect(read({ scope }, rules)).to.match(/^scope has /);
    });
  }
});

describe('other claims of the identity', () => {
  it('read actor only if it is configured and present', () => {
    const actor: Rules = { claims: { actor: '/act/sub' } };
    expect(read({ act: { sub: 'support-1' } })).to.include({ actor: undefined });
    expect(read({ act: { sub: 'support-1' } }, actor)).to.include({ actor: 'support-1' });
    expect(read({}, actor)).to.include({ actor: undefined });
    expect(read({ act: { sub: 7 } }, { ...actor, allowIntegerClaims: true })).to.include({ actor: '7' });
    for (const sub of [7, null, ['x'], 'a b', '']) expect(read({ act: { sub } }, actor)).to.match(/^actor is /);
  });

  it('keep jti as a revocation list names it: a string of at most 1024 characters, or the digits of a safe integer', () => {
    expect(read({ jti: 'a b' })).to.include({ jti: 'a b' });
    expect(read({ jti: 'a'.repeat(1024) })).to.include({ jti: 'a'.repeat(1024) });
    expect(read({ jti: 42 })).to.include({ jti: '42' });
    for (const jti of ['a'.repeat(1025), 1.5, 2 ** 53, ['a'], null])
      expect(read({ jti })).to.include({ jti: undefined });
  });

  it('require a valid JSON Pointer', () => {
    const names = { uid: 'uid', app: 'app', acc: 'acc', role: 'role', scope: 'scope' };
    for (const changes of [{ uid: '/a~b' }, { acc: '/a~b' }, { role: { keysOf: '/a~b' } }])
      expect(() => compileClaimSources({ ...names, ...changes })).to.throw(
        'the configuration has an invalid JSON Pointer',
      );
  });

  const payload = claims({
    uid: undefined,
    ext: { 'user/id': 'u-1', accounts: ['acct1', 'acct2'], 'm~n': { role: 'owner' } },
    '/app': 'not the app',
    'realm_access.role': 'member',
  });
  const pointers = { uid: '/ext/user~1id', app: '/app', acc: '/ext/accounts/1', role: '/ext/m~0n/role' };

  it('are read from nested objects and arrays, and by name from the top', () => {
    expect(parseIdentity(payload, claimRules({ claims: pointers }))).to.include({
      uid: 'u-1',
      accounts: 'acct2',
      role: 'owner',
    });
    const dotted = claimRules({ claims: { ...pointers, role: 'realm_access.role' } });
    expect(parseIdentity(payload, dotted)).to.include({ role: 'member' });
  });

  const unresolved: readonly (readonly [field: keyof typeof pointers, pointer: string, detail: string])[] = [
    ['uid', '/ext/user', 'uid is missing or not a string'],
    ['uid', '/ext', 'uid is missing or not a string'],
    ['uid', '/ext/constructor/name', 'uid is missing or not a string'],
    ['app', '/app/0', 'app is missing or not a string'],
    ['acc', '/ext', 'acc has another type than its source reads'],
    ['acc', '/ext/accounts/2', 'acc is missing'],
    ['acc', '/ext/accounts/01', 'acc is missing'],
    ['acc', '/ext/accounts/-', 'acc is missing'],
    ['acc', '/ext/accounts/length', 'acc is missing'],
    ['role', '/__proto__/role', 'role is missing'],
    ['role', '/ext/m~0n', 'role has another type than its source reads'],
  ];
  for (const [field, pointer, detail] of unresolved) {
    it(`C-048 are refused if ${pointer} names no value for ${field}`, () => {
      const rules = claimRules({ claims: { ...pointers, [field]: pointer } });
      expect(parseIdentity(payload, rules)).to.deep.equal({ kind: 'refusal', reason: 'token_invalid', detail });
    });
  }
});

describe('parseSignedIdentity', () => {
  it('has the claims that are right although another one is wrong', () => {
    const rules = claimRules({ claims: { actor: 'act' } });
    expect(parseSignedIdentity(claims({ app: 7, jti: 9, act: 'bot' }), rules)).to.deep.equal({
      uid,
      app: undefined,
      acc: 'acct1',
      actor: 'bot',
      iss: issuer,
      jti: '9',
    });
    expect(parseSignedIdentity(claims({ acc: ['a', 'b'], act: [] }), rules)).to.include({
      acc: undefined,
      actor: undefined,
    });
  });
});
