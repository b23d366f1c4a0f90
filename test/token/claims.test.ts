// The claims of a verified token: the identity fields, the times, and the detail for each refusal.
import { expect } from 'chai';
import { claimRules, claims, issuer, now, uid } from '../../lab/token.ts';
import { checkTimes, parseClaims } from '../../src/token/claims.ts';
import { identity } from '../support/facts.ts';

const rules = claimRules({ allowIntegerClaims: true });

describe('parseClaims', () => {
  it('returns the identity fields and the times', () => {
    expect(parseClaims(claims({ nbf: now }), rules)).to.deep.equal({
      kind: 'claims',
      identity: identity({ uid, iss: issuer }),
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

  it('refuses a number unless allowIntegerClaims is on', () => {
    expect(parseClaims(claims({ uid: 1 }), { ...rules, allowIntegerClaims: false })).to.include({
      detail: 'uid is a number and allowIntegerClaims is off',
    });
  });
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
