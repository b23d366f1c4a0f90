// The claims of a verified token: the identity fields, the times, and the detail for each refusal.
import { expect } from 'chai';
import { audience, claimRules, claims, issuer, now, uid } from '../../lab/token.ts';
import { checkTimes, parseClaims } from '../../src/token/claims.ts';
import { identity } from '../support/facts.ts';

const rules = claimRules();

const thumbprint = 'A'.repeat(43);

describe('parseClaims', () => {
  it('returns the identity fields and the times', () => {
    expect(parseClaims(claims({ nbf: now }), rules)).to.deep.equal({
      kind: 'claims',
      identity: identity({ uid, iss: issuer }),
      certificate: undefined,
      exp: now + 3600,
      nbf: now,
      iat: now - 60,
    });
  });

  it('returns the certificate that the token is bound to', () => {
    expect(parseClaims(claims({ cnf: { 'x5t#S256': thumbprint } }), rules)).to.include({ certificate: thumbprint });
  });

  const refused: readonly (readonly [detail: string, changes: Readonly<Record<string, unknown>>, found?: string])[] = [
    ['iss is not the issuer', { iss: 'https://other.test' }],
    ['aud names none of audiences', { aud: 'other' }, 'aud is other'],
    ['aud names none of audiences', { aud: ['https://a.test/', 'account'] }, 'aud is https://a.test/, account'],
    ['aud names none of audiences', { aud: [audience, 1] }, `aud is ${audience}, 1`],
    ['aud names none of audiences', { aud: undefined }, 'there is no aud'],
    ...[{}, null, 'x', [], { jkt: 'x' }, { 'x5t#S256': 'x' }, { 'x5t#S256': thumbprint, jkt: 'x' }].map(
      cnf => ['cnf has not x5t#S256 alone', { cnf }] as const,
    ),
    ['there is no exp', { exp: undefined }],
    ['exp is not a time', { exp: '1' }, 'exp is a string'],
    ['exp is not a time', { exp: Number.POSITIVE_INFINITY }, 'exp is a number'],
    ['nbf is not a time', { nbf: null }, 'nbf is null'],
    ['iat is not a time', { iat: [] }, 'iat is a list'],
    ['uid is missing or not a string', { uid: undefined }, 'there is no uid'],
    ['acc is outside the grammar', { acc: 'a:b' }, 'acc is a:b'],
  ];
  for (const [detail, changes, found] of refused) {
    it(`refuses ${JSON.stringify(changes)} with the detail "${detail}"`, () => {
      expect(parseClaims(claims(changes), rules)).to.deep.equal({
        kind: 'refusal',
        reason: 'token_invalid',
        detail,
        ...(found === undefined ? {} : { found }),
      });
    });
  }

  it('reads the audience from the claim that claims.aud names', () => {
    const cognito = claimRules({ claims: { aud: 'client_id' } });
    expect(parseClaims(claims({ aud: undefined, client_id: audience }), cognito)).to.include({ kind: 'claims' });
    expect(parseClaims(claims({ client_id: 'other' }), cognito)).to.include({ found: 'client_id is other' });
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

  it('says that a token has no iat, and in how many seconds it expires', () => {
    const { found } = checkTimes({ ...good, iat: undefined, exp: now + 2_592_000 }, limits, now) ?? {};
    expect(found).to.equal('it has no iat and expires in 2,592,000 s');
  });

  it('says how far the clocks are apart', () => {
    const found = (changes: object) => checkTimes({ ...good, ...changes }, limits, now)?.found;
    const clock = 'check this clock if every token fails';
    expect(found({ iat: now - 360, exp: now - 60 })).to.equal(`expired 60 s ago, issued 360 s ago: ${clock}`);
    expect(found({ iat: undefined, exp: now - 60 })).to.equal(`expired 60 s ago: ${clock}`);
    expect(found({ iat: now + 61 })).to.equal(`issued 61 s from now: ${clock}`);
    expect(found({ nbf: now + 61.4 })).to.equal(`valid 61 s from now: ${clock}`);
    expect(found({ exp: now + 3601 })).to.equal('it lives 3601 s');
  });
});
