// Roles and scopes of a token, in each form that a source can have.
import { expect } from 'chai';
import { claimRules, claims } from '../../lab/token.ts';
import { isAccount } from '../../src/authz/principal.ts';
import { parseIdentity } from '../../src/token/identity-claims.ts';
import { type Changes, many, objectOf, type Rules, read } from './parsed-identity.ts';

describe('roles of a token', () => {
  const two = { acc: ['a', 'b'] };
  const inOrg: Rules = { claims: { role: '/orgs/{acc}/roles' } };
  const names: Rules = { claims: { role: { keysOf: 'r' } } };
  const having: Rules = { claims: { role: { keysOf: 'grants', having: '{acc}' } } };
  const rows: readonly (readonly [name: string, changes: Changes, role: unknown, rules?: Rules])[] = [
    ['C-044 a string is one role', { role: 'member' }, ['member']],
    ['C-044 a string that roles does not name is none, whatever its characters', { role: 'Site Manager' }, []],
    ['C-044 of a list those of roles, in its order', { role: ['x', 'member', 'owner', 'member'] }, ['owner', 'member']],
    ['C-044 an empty list is none', { role: [] }, []],
    ['C-044 a list of 250 is accepted', { role: [...many(249), 'owner'] }, ['owner']],
    ['C-044 a missing claim is an empty list', { role: undefined }, []],
    ['integers in a list', { role: [7, 'owner'] }, ['owner', '7'], { allowIntegerClaims: true, roles: ['owner', '7'] }],
    ['names of an object', { r: { member: 1, owner: null } }, ['owner', 'member'], names],
    ['the words of a string', { scope: 'x owner' }, ['owner'], { claims: { role: { wordsOf: 'scope' } } }],
    ['an empty string has no words', { scope: '' }, [], { claims: { role: { wordsOf: 'scope' } } }],
    ['an integer is its digits', { role: 7 }, ['7'], { allowIntegerClaims: true, roles: ['7'] }],
    [
      'of each account',
      { ...two, orgs: { a: { roles: ['owner'] }, b: { roles: 'member' }, c: { roles: ['owner'] } } },
      { a: ['owner'], b: ['member'] },
      inOrg,
    ],
    ['none where the pointer leads nowhere for an account', { ...two, orgs: { a: {} } }, { a: [], b: [] }, inOrg],
    ['none where the pointer leads to no object', { ...two, orgs: 'x' }, { a: [], b: [] }, inOrg],
    ['never of an array', { acc: ['0', '1'], orgs: [{ roles: 'owner' }] }, { 0: [], 1: [] }, inOrg],
    ['own', { acc: ['constructor', 'b'], orgs: {} }, { constructor: [], b: [] }, { claims: { role: '/orgs/{acc}' } }],
    ['of one account too', { orgs: { acct1: { roles: ['member'] } } }, { acct1: ['member'] }, inOrg],
    [
      'of names whose object has the account',
      { ...two, grants: { owner: { a: 'x' }, member: { a: 1, b: 2 }, x: { b: 1 }, y: ['a'], z: null } },
      { a: ['owner', 'member'], b: ['member'] },
      having,
    ],
    [
      'of names whose object has the account, however many others there are',
      { r: { ...objectOf(many(251)), owner: { acct1: 1 } } },
      { acct1: ['owner'] },
      { claims: { role: { keysOf: 'r', having: '{acc}' } } },
    ],
    [
      'of names below the account whose object has it',
      { ...two, g: { a: { owner: { a: 1 }, member: { b: 1 } }, b: { owner: 'b' } } },
      { a: ['owner'], b: [] },
      { claims: { role: { keysOf: '/g/{acc}', having: '{acc}' } } },
    ],
    [
      'wrong where names below the account are no object',
      { acc: ['a', 'b', 'c', 'd'], g: { a: ['owner'], b: 'owner', c: null } },
      {
        a: 'role has another type than its source reads, for the addressed account',
        b: 'role has another type than its source reads, for the addressed account',
        c: 'role has another type than its source reads, for the addressed account',
        d: [],
      },
      { claims: { role: { keysOf: '/g/{acc}', having: '{acc}' } } },
    ],
    [
      'wrong for one account alone',
      {
        acc: ['a', 'b', 'c', 'd', 'e'],
        orgs: {
          a: { roles: [null] },
          b: { roles: null },
          c: { roles: many(251) },
          d: { roles: 'a b' },
          e: { roles: 'owner' },
        },
      },
      {
        a: 'role has a member that is not a string, for the addressed account',
        b: 'role has another type than its source reads, for the addressed account',
        c: 'role has more than 250 members, for the addressed account',
        d: [],
        e: ['owner'],
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
    ['role has another type than its source reads', { grants: ['owner'] }, having],
    ['role has another type than its source reads', { role: {} }],
    ['role has another type than its source reads', { role: ['owner'] }, words],
    ['role has another type than its source reads', { role: 'owner' }, { claims: { role: { keysOf: 'role' } } }],
    ['role has a number and allowIntegerClaims is off', { role: ['owner', 1] }],
    ['role has a member that is not a string', { role: ['owner', null] }],
    ['role has more than 250 members', { role: Array.from({ length: 251 }, () => 'owner') }],
    ['role has more than 250 members', { role: many(251).join(' ') }, words],
    ['role has words that single spaces do not separate', { role: 'owner  x' }, words],
    ['role has words that single spaces do not separate', { role: ' owner' }, words],
    ['role has words that single spaces do not separate', { role: 'owner ' }, words],
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
    if ('kind' in parsed || !('kind' in parsed.role)) throw new Error('no map');
    const claimed = new Map(parsed.role.claimed);
    expect(claimed.size).to.equal(1000);
    expect(new Set(claimed.values()).size).to.equal(1);
    expect([...claimed.keys()].every(name => isAccount(name, { dots: false, lower: false }))).to.equal(true);
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

  for (const scope of [7, null, {}, ['read', 7], 'read  write', many(251)]) {
    it(`are refused as ${JSON.stringify(scope).slice(0, 30)}`, () => {
      expect(read({ scope }, rules)).to.match(/^scope has /);
    });
  }
});
