// The claims of a verified token: the identity fields, the times, and the detail for each refusal.
import { expect } from 'chai';
import { checkTimes, parseClaims, toClaimPaths } from '../../src/token/claims.ts';
import { audience, claims, issuer, now, uid } from '../support/token.ts';

const names = { uid: 'uid', app: 'app', acc: 'acc', role: 'role' };
const rules = {
  issuer,
  audiences: new Set([audience]),
  claims: toClaimPaths(names),
  allowIntegerClaims: true,
};

describe('parseClaims', () => {
  it('returns the identity fields and the times', () => {
    expect(parseClaims(claims({ nbf: now }), rules)).to.deep.equal({
      kind: 'claims',
      identity: { uid, app: 'web', acc: 'acct1', role: 'owner', iss: issuer },
      jti: undefined,
      exp: now + 3600,
      nbf: now,
      iat: now - 60,
    });
  });

  const refused: readonly (readonly [detail: string, changes: Readonly<Record<string, unknown>>])[] = [
    ['iss is not the issuer', { iss: 'https://other.test' }],
    ['aud names none of audiences', { aud: 'other' }],
    ['cnf: bound to a key, not a plain bearer token', { cnf: {} }],
    ['exp is not a time', { exp: '1' }],
    ['exp is not a time', { exp: Number.POSITIVE_INFINITY }],
    ['nbf is not a time', { nbf: null }],
    ['iat is not a time', { iat: Number.NaN }],
    ['uid is missing or not a string', { uid: undefined }],
    ['app is not a safe integer', { app: 1.5 }],
    ['acc is not a safe integer', { acc: 2 ** 53 }],
    ['uid is not a safe integer', { uid: -1 }],
    ['role is not a safe integer', { role: -0 }],
    ['role is outside the grammar', { role: 'own er' }],
    ['acc is outside the grammar', { acc: 'a:b' }],
  ];
  for (const [detail, changes] of refused) {
    it(`refuses ${JSON.stringify(changes)} with the detail "${detail}"`, () => {
      expect(parseClaims(claims(changes), rules)).to.deep.equal({ kind: 'refusal', reason: 'token_invalid', detail });
    });
  }

  it('keeps jti if it is a string of at most 1024 characters or a safe integer, as in the revocation list', () => {
    const jtiOf = (jti: unknown): unknown => parseClaims(claims({ jti }), rules);
    expect(jtiOf('a b')).to.include({ jti: 'a b' });
    expect(jtiOf('a'.repeat(1024))).to.include({ jti: 'a'.repeat(1024) });
    expect(jtiOf(7)).to.include({ jti: '7' });
    expect(jtiOf(Number.MAX_SAFE_INTEGER)).to.include({ jti: '9007199254740991' });
    for (const other of ['a'.repeat(1025), 2 ** 53, 7.5, ['a'], null])
      expect(jtiOf(other)).to.include({ kind: 'claims', jti: undefined });
  });

  it('refuses a number unless allowIntegerClaims is on', () => {
    expect(parseClaims(claims({ uid: 1 }), { ...rules, allowIntegerClaims: false })).to.include({
      detail: 'uid is a number and allowIntegerClaims is off',
    });
  });
});

describe('parseClaims with a list of roles', () => {
  const roleOf = (role: unknown): unknown => {
    const parsed = parseClaims(claims({ role }), rules);
    return parsed.kind === 'claims' ? parsed.identity.role : parsed.detail;
  };

  const lists: readonly (readonly [role: unknown, kept: readonly string[]])[] = [
    [['owner'], ['owner']],
    [
      ['b', 'a', 'b'],
      ['b', 'a', 'b'],
    ],
    [
      ['a b', '', 'é', 'x'.repeat(129), 'owner', '__proto__'],
      ['owner', '__proto__'],
    ],
    [['a b'], []],
    [Array.from({ length: 100 }, (_, i) => `r${i}`), Array.from({ length: 100 }, (_, i) => `r${i}`)],
  ];
  for (const [role, kept] of lists) {
    it(`C-044 keeps the roles of ${JSON.stringify(role).slice(0, 40)} that are within the grammar`, () => {
      expect(roleOf(role)).to.deep.equal(kept);
    });
  }

  const invalid: readonly unknown[] = [
    [],
    [1],
    ['owner', 1],
    ['owner', null],
    [['owner']],
    [{ role: 'owner' }],
    Array.from({ length: 101 }, () => 'owner'),
  ];
  for (const role of invalid) {
    it(`C-044 refuses the list ${JSON.stringify(role).slice(0, 40)}`, () => {
      expect(roleOf(role)).to.equal('role is not a list of 1 to 100 strings');
    });
  }

  it('C-043 refuses a list in any other claim', () => {
    const details = ['uid', 'app', 'acc'].map(field => parseClaims(claims({ [field]: ['acct1'] }), rules));
    expect(details.map(each => 'detail' in each && each.detail)).to.deep.equal([
      'uid is missing or not a string',
      'app is missing or not a string',
      'acc is missing or not a string',
    ]);
  });
});

describe('claims named by a JSON Pointer', () => {
  it('require a valid pointer', () => {
    expect(() => toClaimPaths({ ...names, acc: '/a~b' })).to.throw('the configuration has an invalid JSON Pointer');
  });

  const payload = claims({
    uid: undefined,
    ext: { 'user/id': 'u-1', accounts: ['acct1', 'acct2'], 'm~n': { role: 'owner' } },
    '/app': 'not the app',
    'realm_access.role': 'member',
  });
  const pointers = { uid: '/ext/user~1id', app: '/app', acc: '/ext/accounts/1', role: '/ext/m~0n/role' };

  it('are read from nested objects and arrays', () => {
    expect(parseClaims(payload, { ...rules, claims: toClaimPaths(pointers) })).to.deep.include({
      identity: { uid: 'u-1', app: 'web', acc: 'acct2', role: 'owner', iss: issuer },
    });
  });

  it('are top-level members, byte for byte, if the name does not start with /', () => {
    const dotted = toClaimPaths({ ...pointers, role: 'realm_access.role' });
    expect(parseClaims(payload, { ...rules, claims: dotted })).to.have.nested.include({ 'identity.role': 'member' });
  });

  const unresolved: readonly (readonly [field: keyof typeof names, pointer: string, detail: string])[] = [
    ['uid', '/ext/user', 'uid is missing or not a string'],
    ['uid', '/ext', 'uid is missing or not a string'],
    ['uid', '/ext/constructor/name', 'uid is missing or not a string'],
    ['app', '/app/0', 'app is missing or not a string'],
    ['acc', '/ext/accounts', 'acc is missing or not a string'],
    ['acc', '/ext/accounts/2', 'acc is missing or not a string'],
    ['acc', '/ext/accounts/01', 'acc is missing or not a string'],
    ['acc', '/ext/accounts/-', 'acc is missing or not a string'],
    ['acc', '/ext/accounts/length', 'acc is missing or not a string'],
    ['role', '/__proto__/role', 'role is missing or not a string'],
    ['role', '/ext/m~0n', 'role is missing or not a string'],
  ];
  for (const [field, pointer, detail] of unresolved) {
    it(`C-048 are refused if ${pointer} names no value for ${field}`, () => {
      const paths = toClaimPaths({ ...pointers, [field]: pointer });
      const refusal = { kind: 'refusal', reason: 'token_invalid', detail };
      expect(parseClaims(payload, { ...rules, claims: paths })).to.deep.equal(refusal);
    });
  }
});

describe('checkTimes', () => {
  const limits = { clockToleranceSeconds: 60, maxLifetimeSeconds: 3600 };
  const good = { exp: now + 600, nbf: undefined, iat: now };
  const rows: readonly (readonly [detail: string | undefined, times: Partial<Parameters<typeof checkTimes>[0]>])[] = [
    [undefined, {}],
    [undefined, { iat: now + 60 }],
    ['iat is in the future', { iat: now + 61 }],
    [undefined, { iat: now + 30, exp: now + 30 }],
    ['iat is after exp', { iat: now + 30, exp: now + 29 }],
    [undefined, { exp: now + 3600 }],
    ['lives longer than maxLifetimeSeconds', { exp: now + 3601 }],
    [undefined, { iat: undefined, exp: now + 3600 }],
    ['lives longer than maxLifetimeSeconds', { iat: undefined, exp: now + 3601 }],
    [undefined, { nbf: now + 60 }],
    ['nbf is in the future', { nbf: now + 61 }],
    [undefined, { iat: now - 100, exp: now - 59 }],
    ['exp has passed', { iat: now - 100, exp: now - 60 }],
  ];
  for (const [detail, changes] of rows) {
    const given = Object.entries(changes).map(([name, value]) =>
      value === undefined ? `no ${name}` : `${name} = now ${value < now ? '-' : '+'} ${Math.abs(value - now)}`,
    );
    it(`${detail === undefined ? 'accepts' : `reports "${detail}" for`} ${given.join(', ') || 'valid times'}`, () => {
      expect(checkTimes({ ...good, ...changes }, limits, now)?.detail).to.equal(detail);
    });
  }
});
