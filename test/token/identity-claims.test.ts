// The accounts of a token and its other claims, in each form that a source can have.
import { expect } from 'chai';
import { claimRules, claims, issuer, uid } from '../../lab/token.ts';
import { compileClaimSources, parseIdentity, parseSignedIdentity } from '../../src/token/identity-claims.ts';
import { type Changes, keysOf, many, objectOf, type Rules, read } from './parsed-identity.ts';

const noneSound = 'the token has no account inside the grammar';
const noneClaimed = 'the token has no account that its issuer may speak for';
const byCommas: Rules = { claims: { acc: { wordsOf: 'orgs', by: ',' } } };
const rest = { scope: [], actor: undefined, jti: undefined, sid: undefined };

describe('accounts of a token', () => {
  const rows: readonly (readonly [name: string, changes: Changes, accounts: unknown, rules?: Rules])[] = [
    ['C-043 a string is one account', { acc: 'acct1' }, 'acct1'],
    ['C-043 a list of two is both', { acc: ['acct1', 'acct2'] }, ['acct1', 'acct2']],
    ['C-043 a list of one is one account', { acc: ['acct1', 'acct1'] }, 'acct1'],
    ['C-043 an empty list is none', { acc: [] }, noneSound],
    ['a list of names outside the grammar is none', { acc: ['/acme', ''] }, noneSound],
    ['members outside the grammar are ignored', { acc: ['a b', 'acct1', '', 'a.b', 'é'] }, 'acct1'],
    ['1,000 names are accepted', { acc: many(1000) }, many(1000)],
    ['names are counted once each', { acc: [...many(1000), ...many(1000)] }, many(1000)],
    ['names of an object are accounts', { orgs: { acct2: null, acct1: 7 } }, ['acct2', 'acct1'], keysOf],
    ['inherited names are none', { orgs: {} }, noneSound, keysOf],
    ['words are accounts', { orgs: 'acct2 acct1' }, ['acct2', 'acct1'], { claims: { acc: { wordsOf: 'orgs' } } }],
    ['words between commas are accounts', { orgs: 'acct2,acct1' }, ['acct2', 'acct1'], byCommas],
    ['an empty text has no words', { orgs: '' }, noneSound, byCommas],
    ['__proto__ is a name like another', { acc: ['__proto__'] }, '__proto__'],
    ['an integer is its digits', { acc: 7 }, '7', { allowIntegerClaims: true }],
    ['an integer in a list is its digits', { acc: [7, 'a', 0] }, ['7', 'a', '0'], { allowIntegerClaims: true }],
    ['upper case is ignored with account.case: lower', { acc: ['ACME', 'acme'] }, 'acme', { lower: true }],
    ['dots are accepted with account.dots', { acc: 'acme.com' }, 'acme.com', { dots: true }],
    ['dots are accepted in a list with account.dots', { acc: ['a.b', '..'] }, 'a.b', { dots: true }],
    ['C-080 a string of another issuer is none', { acc: 'acct1' }, noneClaimed, { accounts: ['partner-*'] }],
    ['C-080 neither is one that accounts except', { acc: ['p-1'] }, noneClaimed, { accounts: ['*', '!p-*'] }],
    ['C-080 others are ignored', { acc: ['acct1', 'p-1', 'x'] }, ['p-1', 'x'], { accounts: ['p-*', 'x'] }],
    ['a prefix covers itself', { acc: ['p-', 'p'] }, 'p-', { accounts: ['p-*'] }],
  ];
  for (const [name, changes, accounts, rules] of rows) {
    it(name, () => {
      expect(read(changes, rules)).to.deep.equal({ ...rest, role: ['owner'], accounts });
    });
  }

  const refused: readonly (readonly [detail: string, changes: Changes, rules?: Rules])[] = [
    ['acc is missing', { acc: undefined }],
    ['acc has another type than its source reads', { acc: null }],
    ['acc has another type than its source reads', { acc: { acct1: {} } }],
    ['acc has another type than its source reads', { acc: true }],
    ['acc has a number and allowIntegerClaims is off', { acc: ['acct1', 1] }],
    ['acc has a number that is no integer from 0 to 2^53 - 1', { acc: [2 ** 53] }, { allowIntegerClaims: true }],
    ['acc has a member that is not a string', { acc: ['acct1', null] }, { allowIntegerClaims: true }],
    ['acc has words that single commas do not separate', { orgs: 'a,,b' }, byCommas],
    ['acc has an upper-case letter, and account.case is lower', { acc: 'Acme' }, { lower: true }],
    ['acc has a member that is not a string', { acc: [['acct1']] }],
    ['acc names more than 1000 accounts', { acc: many(1001) }],
    ['acc names more than 1000 accounts', { acc: many(1001).map(name => `${name} `) }],
    ['acc names more than 1000 accounts', { orgs: objectOf(many(1001)) }, { ...keysOf, accounts: ['a1'] }],
    ['acc has a dot, and account.dots is off', { acc: 'acme.com' }],
    ['acc is outside the grammar', { acc: 'a:b' }],
    ['acc is outside the grammar', { acc: '..' }],
    ['acc is outside the grammar', { acc: '' }],
    ['acc is a number and allowIntegerClaims is off', { acc: 7 }],
    ...[2 ** 53, -1, -0, 1.5].map(
      acc => ['acc is a number that is no integer from 0 to 2^53 - 1', { acc }, { allowIntegerClaims: true }] as const,
    ),
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

describe('what a refused claim says, for the log', () => {
  const rows: readonly (readonly [found: string, changes: Changes, rules?: Rules])[] = [
    ['there is no uid', { uid: undefined }],
    ['uid is a b\\u{1b}[2J', { uid: 'a b\u001b[2J' }],
    ['app is an object', { app: {} }],
    ['/ext/app is 7', { ext: { app: 7 } }, { claims: { app: '/ext/app' } }],
    [`uid is ${'x'.repeat(95)}…`, { uid: 'x'.repeat(1000) }],
    ['acc is /acme', { acc: ['/acme'] }],
    ['acc is a list: ["a", an object, a list, 7]', { acc: ['a', {}, ['b'], 7] }],
    ['uid is a list: ["u"]; /uid/0 reads its first member', { uid: ['u'] }],
    ['a/b is a list: [7]; /a~1b/0 reads its first member', { 'a/b': [7] }, { claims: { app: 'a/b' } }],
    ['uid is a list: [an object]', { uid: [{}] }],
    ['acc is an empty list', { acc: [] }],
    ['o is a list: [an object]', { o: [{}] }, { claims: { acc: { keysOf: 'o' } } }],
    ['acc is a0, a1, a2, a3, a4, a5, a6, a7 and 992 more', { acc: many(1000) }, { accounts: ['b'] }],
    ['role is a list: [an object]', { role: [{}] }],
  ];
  for (const [found, changes, rules] of rows) {
    it(`is ${JSON.stringify(found.slice(0, 60))}`, () => {
      const parsed = parseIdentity(claims(changes), claimRules(rules));
      const refused = 'kind' in parsed ? parsed : parsed.accounts;
      expect(typeof refused === 'object' && 'kind' in refused ? refused.found : '').to.equal(found);
    });
  }
});

describe('scopes that the configuration does not have', () => {
  it('are kept as text for the log, bounded, where the token has no other', () => {
    const of = (scope: unknown, rules: Rules = { scopes: ['read'] }) => {
      const parsed = parseIdentity(claims({ scope }), claimRules(rules));
      return 'kind' in parsed ? parsed.detail : parsed.otherScopes;
    };
    expect(of('openid profile')).to.equal('scope is openid profile');
    expect(of(['a', 'b\n'])).to.equal('scope is a, b\\u{a}');
    expect(of(undefined)).to.equal('there is no scope');
    expect(of('openid read')).to.equal(undefined);
    expect(of('openid', {})).to.equal(undefined);
  });
});

describe('other claims of the identity', () => {
  it('read actor only if it is configured and present', () => {
    const actor: Rules = { claims: { actor: '/act/sub' } };
    expect(read({ act: { sub: 'support-1' } })).to.include({ actor: undefined });
    expect(read({ act: { sub: 'support-1' } }, actor)).to.include({ actor: 'support-1' });
    expect(read({}, actor)).to.include({ actor: undefined });
    expect(read({ act: { sub: 7 } }, { ...actor, allowIntegerClaims: true })).to.include({ actor: '7' });
    for (const sub of [7, null, ['x'], 'a b', '']) expect(read({ act: { sub } }, actor)).to.match(/^actor (?:is|has) /);
  });

  it('keep jti and sid as a revocation list names them: a string of at most 1024 characters; of a jti, the digits of a safe integer', () => {
    expect(read({ jti: 'a b' })).to.include({ jti: 'a b' });
    expect(read({ jti: 'a'.repeat(1024) })).to.include({ jti: 'a'.repeat(1024) });
    expect(read({ jti: 42 })).to.include({ jti: '42' });
    for (const jti of ['a'.repeat(1025), 1.5, 2 ** 53, ['a'], null])
      expect(read({ jti })).to.include({ jti: undefined });
    expect(read({ sid: 'a b' })).to.include({ sid: 'a b' });
    for (const sid of ['a'.repeat(1025), 42, ['a'], null]) expect(read({ sid })).to.include({ sid: undefined });
  });

  it('forward text, safe integers and booleans that a header can have, in the order of forwardClaims, and nothing else', () => {
    const sent = ['a@b.test', 'Zo "x", y; z', '!', 'x'.repeat(256), 7, -7, 2 ** 53 - 1, true, false];
    const kept = [
      '',
      ' ',
      ' a',
      'a ',
      'a  b',
      'a\tb',
      'a\nb',
      'é',
      'x'.repeat(257),
      1.5,
      2 ** 53,
      null,
      {},
      ['a'],
      undefined,
    ];
    const names = [...sent, ...kept].map((_, i) => `n${i}`);
    const payload = { meta: Object.fromEntries([...sent, ...kept].map((value, i) => [`n${i}`, value])) };
    const forwardClaims = Object.fromEntries(names.toReversed().map(name => [name, `/meta/${name}`]));
    const parsed = parseIdentity(claims(payload), claimRules({ forwardClaims }));
    const expected = [...sent.map(String), ...kept.map(() => undefined)].toReversed();
    expect('kind' in parsed ? parsed : parsed.forwarded).to.deep.equal(expected);
  });

  it('require a valid JSON Pointer', () => {
    const names = { aud: 'aud', uid: 'uid', app: 'app', acc: 'acc', role: 'role', scope: 'scope' };
    for (const changes of [{ uid: '/a~b' }, { acc: '/a~b' }, { role: { keysOf: '/a~b' } }])
      expect(() => compileClaimSources({ ...names, ...changes }, false)).to.throw(
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
    const parsed = parseIdentity(payload, claimRules({ claims: pointers }));
    expect(parsed).to.deep.include({ uid: 'u-1', accounts: 'acct2', role: ['owner'] });
    const dotted = claimRules({ claims: { ...pointers, role: 'realm_access.role' } });
    expect(parseIdentity(payload, dotted)).to.deep.include({ role: ['member'] });
  });

  const sources: Rules = { claims: { uid: ['sub', '/ext/id', 'client_id'] }, allowIntegerClaims: true };
  const several: readonly (readonly [result: string, changes: Changes, found?: string])[] = [
    ['s', { sub: 's', client_id: 'c' }],
    ['c', { client_id: 'c' }],
    ['e', { sub: null, ext: { id: 'e' }, client_id: 'c' }],
    ['c', { sub: '', ext: { id: '' }, client_id: 'c' }],
    ['0', { sub: 0, client_id: 'c' }],
    ['uid is outside the grammar', { sub: ' ', client_id: 'c' }, 'sub is " "'],
    ['uid has another type than its source reads', { sub: false, client_id: 'c' }, 'sub is false'],
    ['uid is a list', { sub: [7], client_id: 'c' }, 'sub is a list: [7]; /sub/0 reads its first member'],
    ['uid has another type than its source reads', { sub: {}, client_id: 'c' }, 'sub is an object'],
    ['uid is missing or not a string', { sub: '' }, 'sub is "", there is no /ext/id, there is no client_id'],
  ];
  for (const [result, changes, found] of several) {
    it(`take the first of several sources that ${JSON.stringify(changes)} has: ${result}`, () => {
      const parsed = parseIdentity(claims(changes), claimRules(sources));
      expect('kind' in parsed ? parsed.detail : parsed.uid).to.equal(result);
      expect('kind' in parsed ? parsed.found : undefined).to.equal(found);
    });
  }

  const unresolved: readonly (readonly [field: keyof typeof pointers, pointer: string, detail: string])[] = [
    ['uid', '/ext/user', 'uid is missing or not a string'],
    ['uid', '/ext', 'uid has another type than its source reads'],
    ['uid', '/ext/accounts', 'uid is a list'],
    ['uid', '/ext/constructor/name', 'uid is missing or not a string'],
    ['app', '/app/0', 'app is missing or not a string'],
    ['acc', '/ext', 'acc has another type than its source reads'],
    ['acc', '/ext/accounts/2', 'acc is missing'],
    ['acc', '/ext/accounts/01', 'acc is missing'],
    ['acc', '/ext/accounts/-', 'acc is missing'],
    ['acc', '/ext/accounts/length', 'acc is missing'],
    ['role', '/ext/m~0n', 'role has another type than its source reads'],
  ];
  for (const [field, pointer, detail] of unresolved) {
    it(`C-048 are refused if ${pointer} names no value for ${field}`, () => {
      const rules = claimRules({ claims: { ...pointers, [field]: pointer } });
      expect(parseIdentity(payload, rules)).to.include({ kind: 'refusal', reason: 'token_invalid', detail });
    });
  }
});

describe('parseSignedIdentity', () => {
  it('has the claims that are right although another one is wrong', () => {
    const rules = claimRules({ claims: { actor: 'act' } });
    expect(parseSignedIdentity(claims({ app: 7, jti: 9, sid: 's', act: 'bot' }), rules)).to.deep.equal({
      uid,
      app: undefined,
      acc: 'acct1',
      actor: 'bot',
      iss: issuer,
      jti: '9',
      sid: 's',
    });
    expect(parseSignedIdentity(claims({ acc: ['a', 'b'], act: [] }), rules)).to.include({
      app: 'web',
      acc: undefined,
      actor: undefined,
    });
  });
});
