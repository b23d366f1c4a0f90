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
    const headers: readonly (readonly [name: string, header: Readonly<Record<string, unknown>>])[] = [
      ['J-003 alg none', { alg: 'none' }],
      ['J-005 alg nOnE', { alg: 'nOnE' }],
      ['J-005 alg NONE', { alg: 'NONE' }],
      ['J-006 alg none with a valid signature', { alg: 'none' }],
      ['J-007 a missing alg', { alg: undefined }],
      ['J-009 an alg that is an array', { alg: ['ES256'] }],
      ['J-010 an alg that is null', { alg: null }],
      ['J-010 an alg that is a number', { alg: 1 }],
      ['J-010 an alg that is an object', { alg: { ES256: true } }],
      ['J-011 an alg in another case', { alg: 'es256' }],
      ['J-013 alg __proto__', { alg: '__proto__' }],
      ['J-013 alg constructor', { alg: 'constructor' }],
      ['J-013 alg toString', { alg: 'toString' }],
      ['J-021 an alg that is not listed', { alg: 'ES384' }],
      ['J-022 an alg of another key type', { alg: 'RS256' }],
      ['J-037 a header with zip', { zip: 'DEF' }],
      ['J-039 a header with jwk', { jwk: {} }],
      ['J-045 a kid that is a number', { kid: 1 }],
      ['J-045 a kid that is null', { kid: null }],
      ['J-045 a kid that is an array', { kid: ['k1'] }],
      ['J-046 an empty kid', { kid: '' }],
      ['J-047 a kid that is a path', { kid: '../../dev/null' }],
      ['J-049 kid __proto__', { kid: '__proto__' }],
      ['J-049 kid toString', { kid: 'toString' }],
      ['J-051 a kid in another case', { kid: 'K1' }],
      ['J-045 a kid that is true', { kid: true }],
      ['J-045 a kid that is an object', { kid: { k1: 1 } }],
      ['J-047 a kid that is SQL', { kid: "k1' OR '1'='1" }],
      ['J-047 a kid that is a command', { kid: 'k1;id' }],
      ['J-049 kid constructor', { kid: 'constructor' }],
      ['J-052 crit with an unknown member', { crit: ['exp-policy'], 'exp-policy': 1 }],
      ['J-053 an empty crit', { crit: [] }],
      ['J-053 crit that is a string', { crit: 'b64' }],
      ['J-053 crit with a number', { crit: [1] }],
      ['J-053 crit that is null', { crit: null }],
      ['J-054 crit with alg', { crit: ['alg'] }],
      ['J-054 crit with b64 twice', { b64: true, crit: ['b64', 'b64'] }],
      ['J-055 b64 false', { b64: false, crit: ['b64'] }],
      ['J-057 b64 true', { b64: true }],
      ['J-057 b64 true in crit', { b64: true, crit: ['b64'] }],
      ['J-074 a missing typ', { typ: undefined }],
      ['J-074 typ id+jwt', { typ: 'id+jwt' }],
      ['J-074 C-071 typ dpop+jwt', { typ: 'dpop+jwt' }],
      ['J-074 C-071 typ logout+jwt', { typ: 'logout+jwt' }],
      ['C-071 typ refresh+jwt', { typ: 'refresh+jwt' }],
      ['a typ that is null', { typ: null }],
      ['a typ that is an array', { typ: ['JWT'] }],
    ];
    for (const [name, header] of headers) {
      it(`${name} is refused`, async () => {
        expect(await (await lab()).reasonOf(await token({ header }))).to.equal('token_invalid');
      });
    }
  });

  describe('invalid claims', () => {
    const changes: readonly (readonly [name: string, claims: Readonly<Record<string, unknown>>, reason?: string])[] = [
      ['C-001 a missing exp', { exp: undefined }],
      ['C-002 an exp that is a string', { exp: '9999999999' }],
      ['C-003 an exp that is null', { exp: null }],
      ['C-003 an exp that is true', { exp: true }],
      ['C-003 an exp that is an array', { exp: [now + 60] }],
      ['C-003 an exp that is an object', { exp: {} }],
      ['C-006 an exp of 0', { exp: 0, iat: undefined }, 'token_expired'],
      ['C-007 an exp in the distant future', { exp: 1e15 }],
      ['C-007 an exp in the distant future without iat', { exp: 1e15, iat: undefined }],
      ['C-010 a longer lifetime than allowed', { iat: now, exp: now + 86_401 }],
      ['a longer lifetime than allowed, counted from now without iat,', { iat: undefined, exp: now + 86_401 }],
      ['C-013 an nbf beyond the tolerance', { nbf: now + 61 }],
      ['C-014 an nbf that is a string', { nbf: '1' }],
      ['C-014 an nbf that is null', { nbf: null }],
      ['C-017 an iat beyond the tolerance', { iat: now + 61 }],
      ['C-018 a negative iat', { iat: -1 }],
      ['C-019 an iat that is a string', { iat: '1' }],
      ['C-019 a valid iat in a string', { iat: String(now - 60) }],
      ['C-019 an iat that is null', { iat: null }],
      ['an iat after exp', { iat: now + 30, exp: now + 20 }],
      ['C-021 an iss with a trailing slash', { iss: `${issuer}/` }],
      ['C-022 an iss in another case', { iss: 'https://IDP.test' }],
      ['C-023 an iss that is an array', { iss: [issuer] }],
      ['C-025 a missing iss', { iss: undefined }],
      ['C-025 an iss that is null', { iss: null }],
      ['C-025 an iss that is a number', { iss: 1 }],
      ['C-025 an iss that is an object', { iss: { [issuer]: 1 } }],
      ['C-026 an iss with a space', { iss: `${issuer} ` }],
      ['C-026 an iss with a NUL', { iss: `${issuer}\0` }],
      ['C-026 an iss with a homoglyph', { iss: issuer.replace('i', '\u0456') }],
      ['C-030 an empty array of audiences', { aud: [] }],
      ['C-031 a missing aud', { aud: undefined }],
      ['C-031 an aud that is null', { aud: null }],
      ['C-031 an aud that is an object', { aud: { [audience]: 1 } }],
      ['C-031 a nested array of audiences', { aud: [[audience]] }],
      ['C-031 an aud that is a number', { aud: 1 }],
      ['an array of the audience and a number', { aud: [audience, 1] }],
      ['C-033 an aud that begins with the audience', { aud: `${audience}2` }],
      ['C-033 a prefix of the audience', { aud: audience.slice(0, -1) }],
      ['C-033 an aud in upper case', { aud: audience.toUpperCase() }],
      ['C-033 an aud with a trailing space', { aud: `${audience} ` }],
      ['C-034 an aud of __proto__ and constructor', { aud: ['__proto__', 'constructor'] }],
      ['C-034 an aud of toString', { aud: 'toString' }],
      ['C-035 a list of ten thousand audiences', { aud: [...Array(10_000).fill('x'), audience] }],
      ['C-039 an acc that is null', { acc: null }],
      ['C-041 F-009 an acc that is a number', { acc: 1 }],
      ['C-042 an acc that is true', { acc: true }],
      ['C-042 an acc that is an object', { acc: { toString: 'acct1' } }],
      ['C-051 a claim ACC in place of acc', { acc: undefined, ACC: 'acct1' }],
      ['C-053 a control character in uid', { uid: 'a\nb' }],
      ['C-053 a NUL in uid', { uid: 'a\0' }],
      ['C-053 a tab in uid', { uid: 'a\tb' }],
      ['C-053 a vertical tab in uid', { uid: 'a\vb' }],
      ['O-016 a header after CR LF in uid', { uid: 'a\r\nx-auth-acc:acct2' }],
      ['C-053 DEL in uid', { uid: 'a\x7f' }],
      ['C-053 a C1 control in uid', { uid: 'a\x85' }],
      ['C-054 a byte order mark in app', { app: '\ufeffweb' }],
      ['C-054 a direction mark in app', { app: '\u202eweb' }],
      ['C-054 a zero-width space in uid', { uid: 'u\u200b1' }],
      ['C-055 a letter in acc that is not ASCII', { acc: 'acct\u00fc' }],
      ['C-055 a full-width letter in acc', { acc: '\uff41cct1' }],
      ['C-055 an emoji in uid', { uid: '\u{1f600}' }],
      ['C-057 the Kelvin sign in acc', { acc: 'acc\u212a' }],
      ['C-058 a lone surrogate in uid', { uid: '\ud800' }],
      ['C-063 a uid of 129 characters', { uid: 'u'.repeat(129) }],
      ['C-063 a uid of 16 KB', { uid: 'u'.repeat(16_384) }],
      ['an acc of 129 characters', { acc: 'a'.repeat(129) }],
      ['F-009 an empty uid', { uid: '' }],
      ['an empty acc', { acc: '' }],
      ['C-065 an acc with a slash', { acc: 'a/b' }],
      ['C-065 the acc ".."', { acc: '..' }],
      ['C-065 the acc "."', { acc: '.' }],
      ['C-065 an acc with a percent sign', { acc: 'acct%31' }],
      ['C-065 an acc with a question mark', { acc: 'acct1?' }],
      ['C-065 an acc with a number sign', { acc: 'acct1#' }],
      ['C-066 the acc "*"', { acc: '*' }],
      ['C-070 an ID token with nonce, at_hash and the client as audience', { aud: 'web', nonce: 'n', at_hash: 'h' }],
      ['an acc with a colon', { acc: 'a:b' }],
      ['O-017 a comma in uid', { uid: 'a,b' }],
      ['O-017 a semicolon in uid', { uid: 'a;b' }],
      ['O-017 a semicolon in app', { app: 'a;b' }],
      ['a token bound by cnf', { cnf: { jkt: 'x' } }],
      ['a cnf that is null', { cnf: null }],
      ['a token that expired beyond the tolerance', { exp: now - 60 }, 'token_expired'],
      ['C-006 a negative exp', { exp: -5, iat: undefined }, 'token_expired'],
      ['an expired token for another audience', { exp: now - 60, aud: 'x' }, 'token_invalid'],
      ['an expired token without a uid', { exp: now - 60, uid: undefined }, 'token_invalid'],
      ['an expired token bound by cnf', { exp: now - 60, cnf: {} }, 'token_invalid'],
    ];
    for (const [name, claims, reason = 'token_invalid'] of changes) {
      it(`${name} is refused as ${reason}`, async () => {
        expect(await (await lab()).reasonOf(await token({ claims }))).to.equal(reason);
      });
    }
    for (const name of ['uid', 'app', 'acc']) {
      it(`C-038 a missing ${name} is refused`, async () => {
        expect(await (await lab()).reasonOf(await token({ claims: { [name]: undefined } }))).to.equal('token_invalid');
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
