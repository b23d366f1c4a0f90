// The token verifier: which headers and claims are accepted and refused.
import { expect } from 'chai';
import { signingKey } from '../../lab/signing-key.ts';
import { audience, issuer, now, type TokenParts, token, uid } from '../../lab/token.ts';
import type { Claims } from '../../src/token/claims.ts';
import { lab, payload } from './verifier-lab.ts';

describe('token verifier', () => {
  describe('valid token', () => {
    const valid: readonly (readonly [name: string, parts: () => Promise<TokenParts>])[] = [
      ['J-001 an RS256 token', async () => ({ key: await signingKey('r1', 'RS256') })],
      ['J-002 an ES256 token', async () => ({})],
      [
        'J-041 J-042 a header with jku, x5u, x5c, x5t and unknown members, which are ignored,',
        async () => ({ header: { jku: 'https://evil.test', x5u: 7, x5c: ['!'], x5t: 1, 'x5t#S256': {}, abc: null } }),
      ],
      ['J-075 a typ in another case', async () => ({ header: { typ: 'AT+JWT' } })],
      ['J-075 a typ with the prefix application/', async () => ({ header: { typ: 'application/at+jwt' } })],
      ['C-011 a token that expired within the tolerance', async () => ({ claims: { exp: now - 30 } })],
      ['C-015 an nbf in the distant past', async () => ({ claims: { nbf: -1e308 } })],
      ['C-029 an array that contains the audience', async () => ({ claims: { aud: ['other', audience] } })],
      [
        'C-050 a token with claims named like methods',
        async () => ({
          claims: Object.fromEntries(['then', 'toJSON', 'constructor', 'hasOwnProperty'].map(name => [name, 1])),
        }),
      ],
      ['C-067 a payload that escapes plain letters', async () => ({ payloadText: escapedAcc() })],
      ['C-074 a sub that differs from uid', async () => ({ claims: { sub: 'other' } })],
      ['a token without iat', async () => ({ claims: { iat: undefined } })],
      ['a token with fractional times', async () => ({ claims: { exp: now + 0.5, iat: now - 0.5, nbf: now - 0.25 } })],
      ['an nbf at the end of the tolerance', async () => ({ claims: { nbf: now + 60 } })],
      ['an iat in the future within the tolerance', async () => ({ claims: { iat: now + 60 } })],
      ['a token with the longest allowed lifetime', async () => ({ claims: { iat: now, exp: now + 86_400 } })],
      [
        'O-018 a token with identity fields at the limits of the grammar',
        async () => ({ claims: { uid: '!'.repeat(128), app: "#$%&'()*+-./:<=>?@", role: '[\\]^_`{|}~' } }),
      ],
    ];
    for (const [name, parts] of valid) {
      it(`${name} is accepted`, async () => {
        expect(await (await lab()).reasonOf(await token(await parts()))).to.equal('verified');
      });
    }

    it('an EdDSA token is accepted', async () => {
      const key = await signingKey('e1', 'EdDSA');
      expect(await (await lab({ keys: [key] })).reasonOf(await token({ key }))).to.equal('verified');
    });
    it('an absent typ is accepted if tokenTypes lists "", an empty one is not', async () => {
      const { reasonOf } = await lab({ tokenTypes: ['JWT', ''] });
      expect(await reasonOf(await token({ header: { typ: undefined } }))).to.equal('verified');
      expect(await reasonOf(await token({ header: { typ: '' } }))).to.equal('token_invalid');
    });
    it('C-057 the case of typ is ignored for ASCII only: the Kelvin sign is not a k', async () => {
      const { reasonOf } = await lab({ tokenTypes: ['token+jwt'] });
      expect(await reasonOf(await token({ header: { typ: 'TOKEN+JWT' } }))).to.equal('verified');
      expect(await reasonOf(await token({ header: { typ: 'to\u212aen+jwt' } }))).to.equal('token_invalid');
    });
    it('C-041 integer claims are read as decimal digits if allowIntegerClaims is on', async () => {
      const { verify } = await lab({ allowIntegerClaims: true });
      const { outcome } = await verify(await token({ claims: { uid: 7, app: 0, acc: 9007199254740991 } }));
      expect(outcome).to.have.property('identity').that.includes({ uid: '7', app: '0', accounts: '9007199254740991' });
    });
    it('C-068 a payload nested as deeply as maxBytes allows is accepted', async () => {
      const nested = `${'['.repeat(2500)}${']'.repeat(2500)}`;
      const payloadText = (await payload()).replace('{', `{"deep":${nested},`);
      expect(await (await lab()).reasonOf(await token({ payloadText }))).to.equal('verified');
    });
    it('the identity is read from the configured claims', async () => {
      const { outcome } = await (await lab()).verify(await token());
      const { identity } = outcome as Claims;
      expect(identity).to.include({ uid, app: 'web', accounts: 'acct1', iss: issuer });
      expect(identity.role).to.deep.equal(['owner']);
    });
  });

  describe('invalid header', () => {
    const headers: readonly (readonly [ids: string, member: string, values: readonly unknown[]])[] = [
      ['J-003 J-005 J-006', 'alg', ['none', 'nOnE', 'NONE']],
      ['J-007 J-009 J-010', 'alg', [undefined, ['ES256'], null, 1, { ES256: true }]],
      ['J-011 J-021 J-022', 'alg', ['es256', 'ES384', 'RS256']],
      ['J-013', 'alg', ['__proto__', 'constructor', 'toString']],
      ['J-037', 'zip', ['DEF']],
      ['J-039', 'jwk', [{}]],
      ['J-045 J-046', 'kid', [1, null, ['k1'], true, { k1: 1 }, '']],
      ['J-047', 'kid', ['../../dev/null', "k1' OR '1'='1", 'k1;id']],
      ['J-049 J-051', 'kid', ['__proto__', 'toString', 'constructor', 'K1']],
      ['J-052 J-053 J-054', 'crit', [['exp-policy'], [], 'b64', [1], null, ['alg'], ['b64', 'b64'], ['b64']]],
      ['J-055 J-057', 'b64', [false, true]],
      ['J-074 C-071', 'typ', [undefined, 'id+jwt', 'dpop+jwt', 'logout+jwt', 'refresh+jwt', null, ['JWT']]],
    ];
    for (const [ids, member, values] of headers) {
      for (const value of values) {
        it(`${ids} ${member} ${JSON.stringify(value)} is refused`, async () => {
          expect(await (await lab()).reasonOf(await token({ header: { [member]: value } }))).to.equal('token_invalid');
        });
      }
    }
  });

  describe('invalid claims', () => {
    const many = [...Array(10_000).fill('x'), audience];
    const claims: readonly (readonly [ids: string, claim: string, values: readonly unknown[]])[] = [
      ['C-001 C-002 C-003', 'exp', [undefined, '9999999999', null, true, [now + 60], {}]],
      ['C-007 C-010', 'exp', [1e15, now + 86_401]],
      ['C-013 C-014', 'nbf', [now + 61, '1', null]],
      ['C-017 C-018 C-019', 'iat', [now + 61, -1, '1', String(now - 60), null]],
      ['C-021 C-022 C-023', 'iss', [`${issuer}/`, 'https://IDP.test', [issuer]]],
      ['C-025', 'iss', [undefined, null, 1, { [issuer]: 1 }]],
      ['C-026', 'iss', [`${issuer} `, `${issuer}\0`, issuer.replace('i', '\u0456')]],
      ['C-030 C-031', 'aud', [[], undefined, null, { [audience]: 1 }, [[audience]], 1, [audience, 1]]],
      ['C-033', 'aud', [`${audience}2`, audience.slice(0, -1), audience.toUpperCase(), `${audience} `]],
      ['C-034 C-035', 'aud', [['__proto__', 'constructor'], 'toString', many]],
      ['C-038 C-039 C-041 C-042 F-009', 'acc', [undefined, null, 1, true, { toString: 'acct1' }, '']],
      ['C-055 C-057', 'acc', ['acct\u00fc', '\uff41cct1', 'acc\u212a', 'a'.repeat(129)]],
      ['C-065 C-066', 'acc', ['a/b', '..', '.', 'acct%31', 'acct1?', 'acct1#', '*', 'a:b']],
      ['C-038 F-009', 'uid', [undefined, '']],
      ['C-053 C-054 O-016', 'uid', ['a\nb', 'a\0', 'a\tb', 'a\vb', 'a\r\nx-auth-acc:acct2', 'a\x7f', 'a\x85']],
      ['C-054 C-055 C-058', 'uid', ['u\u200b1', '\u{1f600}', '\ud800']],
      ['C-063 O-017', 'uid', ['u'.repeat(129), 'u'.repeat(16_384), 'a,b', 'a;b']],
      ['C-038 C-054 O-017', 'app', [undefined, '\ufeffweb', '\u202eweb', 'a;b']],
      ['a token bound by', 'cnf', [{ jkt: 'x' }, null]],
    ];
    for (const [ids, claim, values] of claims) {
      for (const value of values) {
        it(`${ids} ${claim} ${String(JSON.stringify(value)).slice(0, 60)} is refused`, async () => {
          expect(await (await lab()).reasonOf(await token({ claims: { [claim]: value } }))).to.equal('token_invalid');
        });
      }
    }

    const changes: readonly (readonly [name: string, claims: Readonly<Record<string, unknown>>, reason?: string])[] = [
      ['C-006 an exp of 0', { exp: 0, iat: undefined }, 'token_expired'],
      ['C-006 a negative exp', { exp: -5, iat: undefined }, 'token_expired'],
      ['C-007 an exp in the distant future without iat', { exp: 1e15, iat: undefined }],
      ['C-010 a longer lifetime than allowed', { iat: now, exp: now + 86_401 }],
      ['a longer lifetime than allowed, counted from now without iat,', { iat: undefined, exp: now + 86_401 }],
      ['an iat after exp', { iat: now + 30, exp: now + 20 }],
      ['C-051 a claim ACC in place of acc', { acc: undefined, ACC: 'acct1' }],
      ['C-070 an ID token with nonce, at_hash and the client as audience', { aud: 'web', nonce: 'n', at_hash: 'h' }],
      ['a token that expired beyond the tolerance', { exp: now - 60 }, 'token_expired'],
      ['an expired token for another audience', { exp: now - 60, aud: 'x' }],
      ['an expired token without a uid', { exp: now - 60, uid: undefined }],
      ['an expired token bound by cnf', { exp: now - 60, cnf: {} }],
    ];
    for (const [name, claims, reason = 'token_invalid'] of changes) {
      it(`${name} is refused as ${reason}`, async () => {
        expect(await (await lab()).reasonOf(await token({ claims }))).to.equal(reason);
      });
    }
    for (const value of [-1, 1.5, 2 ** 53, '-0']) {
      it(`C-079 the number ${value} in acc is refused although allowIntegerClaims is on`, async () => {
        const payloadText = (await payload()).replace('"acct1"', String(value));
        expect(await (await lab({ allowIntegerClaims: true })).reasonOf(await token({ payloadText }))).to.equal(
          'token_invalid',
        );
      });
    }
    it('C-005 a token that expires now is refused without tolerance', async () => {
      expect(await (await lab({ clockToleranceSeconds: 0 })).reasonOf(await token({ claims: { exp: now } }))).to.equal(
        'token_expired',
      );
    });
    it('C-041 a number is refused with a detail that names allowIntegerClaims', async () => {
      const { outcome } = await (await lab()).verify(await token({ claims: { acc: 1 } }));
      expect(outcome).to.have.property('detail').that.contains('allowIntegerClaims');
    });
  });

  it('J-021 refuses a valid signature by an algorithm that the issuer does not list', async () => {
    const key = await signingKey('k1');
    expect(await (await lab({ keys: [key], algorithms: ['RS256'] })).reasonOf(await token({ key }))).to.equal(
      'token_invalid',
    );
  });

  it('I4 refuses different invalid tokens alike, except for the detail in the log', async () => {
    const { verify } = await lab();
    const outcomes = await Promise.all(
      [token({ claims: { aud: 'x' } }), token({ header: { kid: 'no' } }), Promise.resolve('a.b.c')].map(
        async each => (await verify(await each)).outcome,
      ),
    );
    expect(
      new Set(
        outcomes.map(({ kind, ...rest }) => JSON.stringify({ kind, reason: 'reason' in rest ? rest.reason : '' })),
      ).size,
    ).to.equal(1);
  });
});

function escapedAcc(): string {
  const times = `"iat":${now - 60},"exp":${now + 60}`;
  return `{"iss":"${issuer}","aud":"${audience}",${times},"uid":"u","app":"web","\\u0061cc":"\\u0061cct1","role":"owner"}`;
}
