// The token verifier: which tokens are accepted and refused, the reason and detail of a refusal, its keys and its cache.
import { createHmac, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import { expect } from 'chai';
import { CompactEncrypt, type CryptoKey, generateKeyPair, importJWK, type JWK } from 'jose';
import { createDeferred } from '../../src/deferred.ts';
import type { VerificationKey } from '../../src/keys/jwks.ts';
import type { Claims } from '../../src/token/claims.ts';
import { createVerifiedTokens, type VerifiedTokens } from '../../src/token/verified-tokens.ts';
import {
  createTokenVerifier,
  type IssuerKeys,
  normalizeTokenType,
  type Verification,
} from '../../src/token/verifier.ts';
import { secrets } from '../support/secrets.ts';
import { type SigningKey, signingKey } from '../support/signing-key.ts';
import { audience, base64url, claimRules, issuer, now, type TokenParts, token, uid } from '../support/token.ts';

interface Lab {
  verify(token: string): Promise<Verification>;
  reasonOf(token: string): Promise<string>;
  readonly keys: Map<string, VerificationKey>;
  /** The result of the verifier as it is: a promise only if it has to wait. */
  verifyNow(text: string): unknown;
  clock: number;
  /** The result of `find` for an absent kid. */
  missing: 'unknown' | 'unavailable';
  /** Replaces the finder once it is set. */
  find?: IssuerKeys['find'];
}

async function verificationKey({ publicJwk, alg, kid }: SigningKey): Promise<VerificationKey> {
  const cryptoKey = (await importJWK({ ...publicJwk }, alg)) as CryptoKey;
  return { kid, thumbprint: kid, cryptoKeyFor: requested => (requested === alg ? cryptoKey : undefined) };
}

async function lab(
  changes: {
    keys?: readonly SigningKey[];
    algorithms?: readonly string[];
    tokenTypes?: readonly string[];
    allowIntegerClaims?: boolean;
    clockToleranceSeconds?: number;
    maxTokens?: number;
    verifiedTokens?: VerifiedTokens<VerificationKey>;
    maxSignatures?: number;
    maxBytes?: number;
    others?: Readonly<Record<string, IssuerKeys>>;
  } = {},
): Promise<Lab> {
  const signing = changes.keys ?? [await signingKey('k1'), await signingKey('r1', 'RS256')];
  const keys = new Map(await Promise.all(signing.map(async key => [key.kid, await verificationKey(key)] as const)));
  const finder: IssuerKeys = {
    current: kid => keys.get(kid),
    find(kid) {
      if (result.find !== undefined) return result.find(kid);
      const key = keys.get(kid);
      if (key !== undefined) return { kind: 'key', key };
      return result.missing === 'unknown' ? { kind: 'unknown' } : { kind: 'unavailable', detail: 'no key set yet' };
    },
  };
  const trusted = (name: string, found: IssuerKeys) => ({
    rules: claimRules({ issuer: name, allowIntegerClaims: changes.allowIntegerClaims ?? false }),
    algorithms: new Set(changes.algorithms ?? ['RS256', 'ES256', 'EdDSA']),
    tokenTypes: new Set(
      (changes.tokenTypes ?? ['JWT', 'at+jwt']).map(type => (type === '' ? '' : normalizeTokenType(type))),
    ),
    keys: found,
  });
  const issuers = new Map(
    Object.entries({ [issuer]: finder, ...changes.others }).map(([name, found]) => [name, trusted(name, found)]),
  );
  const verifier = createTokenVerifier({
    issuers,
    times: { clockToleranceSeconds: changes.clockToleranceSeconds ?? 60, maxLifetimeSeconds: 86_400 },
    maxBytes: changes.maxBytes ?? 8192,
    verifiedTokens: changes.verifiedTokens ?? createVerifiedTokens(changes.maxTokens ?? 100),
    maxSignatures: changes.maxSignatures ?? 2000,
    now: () => result.clock,
  });
  const verify = async (text: string): Promise<Verification> => {
    const verification = await verifier.verify(text);
    // The log may show the detail and the identity, but never jti, which is only compared with the revocation list.
    secrets.show(
      'log',
      JSON.stringify(verification, (name, value) => (name === 'jti' ? undefined : value)),
    );
    return verification;
  };
  const verifyNow = (text: string): unknown => verifier.verify(text);
  const result: Lab = {
    keys,
    verify,
    verifyNow,
    async reasonOf(text) {
      const { outcome } = await verify(text);
      return outcome.kind === 'claims' ? 'verified' : outcome.reason;
    },
    clock: now,
    missing: 'unknown',
  };
  return result;
}

/** Replaces a key by one that counts its uses. */
async function countingKey(at: Lab, kid: string): Promise<{ readonly uses: number }> {
  const key = at.keys.get(kid);
  const counter = { uses: 0 };
  at.keys.set(kid, {
    kid,
    thumbprint: kid,
    cryptoKeyFor(alg) {
      counter.uses += 1;
      return key?.cryptoKeyFor(alg);
    },
  });
  return counter;
}

/** A forged signature of 64 bytes, different for each number. */
function forgedSignature(number: number): string {
  const bytes = Buffer.alloc(64, 1);
  bytes.writeUInt32BE(number);
  return bytes.toString('base64url');
}

describe('token verifier', () => {
  describe('valid token', () => {
    const valid: readonly (readonly [name: string, parts: () => Promise<TokenParts>])[] = [
      ['J-001 an RS256 token', async () => ({ key: await signingKey('r1', 'RS256') })],
      ['J-002 an ES256 token', async () => ({})],
      [
        'J-042 a header with x5c, x5t and unknown members, which are ignored,',
        async () => ({ header: { x5c: ['!'], x5t: 1, 'x5t#S256': {}, abc: null } }),
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
      const { outcome } = await verify(await token({ claims: { uid: 7, app: 0, acc: 9007199254740991, role: 1 } }));
      expect(outcome)
        .to.have.property('identity')
        .that.includes({ uid: '7', app: '0', accounts: '9007199254740991', role: '1' });
    });
    it('C-068 a payload nested as deeply as maxBytes allows is accepted', async () => {
      const nested = `${'['.repeat(2500)}${']'.repeat(2500)}`;
      const payloadText = (await payload()).replace('{', `{"deep":${nested},`);
      expect(await (await lab()).reasonOf(await token({ payloadText }))).to.equal('verified');
    });
    it('the identity is read from the configured claims', async () => {
      const { outcome } = await (await lab()).verify(await token());
      const { identity } = outcome as Claims;
      expect(identity).to.include({ uid, app: 'web', accounts: 'acct1', role: 'owner', iss: issuer });
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
      ['J-041 a header with jku', { jku: 'https://evil.test' }],
      ['J-042 a header with x5u', { x5u: 'https://evil.test' }],
      ['J-043 a missing kid', { kid: undefined }],
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
      ['C-054 a line separator in role', { role: 'owner\u2028' }],
      ['C-054 a byte order mark in app', { app: '\ufeffweb' }],
      ['C-054 a direction mark in app', { app: '\u202eweb' }],
      ['C-054 a zero-width space in uid', { uid: 'u\u200b1' }],
      ['C-055 a letter in acc that is not ASCII', { acc: 'acct\u00fc' }],
      ['C-055 a full-width letter in acc', { acc: '\uff41cct1' }],
      ['C-055 an emoji in uid', { uid: '\u{1f600}' }],
      ['C-057 the Kelvin sign in acc', { acc: 'acc\u212a' }],
      ['C-057 a dotless i in role', { role: 'adm\u0131n' }],
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
      ['a space in role', { role: 'own er' }],
      ['a quote in role', { role: 'own"er' }],
      ['a token bound by cnf', { cnf: { jkt: 'x' } }],
      ['a cnf that is null', { cnf: null }],
      ['a token that expired beyond the tolerance', { exp: now - 60 }, 'token_expired'],
      ['C-006 a negative exp', { exp: -5, iat: undefined }, 'token_expired'],
      ['an expired token for another audience', { exp: now - 60, aud: 'x' }, 'token_invalid'],
      ['an expired token without a role', { exp: now - 60, role: undefined }, 'token_invalid'],
      ['an expired token bound by cnf', { exp: now - 60, cnf: {} }, 'token_invalid'],
    ];
    for (const [name, claims, reason = 'token_invalid'] of changes) {
      it(`${name} is refused as ${reason}`, async () => {
        expect(await (await lab()).reasonOf(await token({ claims }))).to.equal(reason);
      });
    }
    for (const name of ['uid', 'app', 'acc', 'role']) {
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

  describe('invalid text', () => {
    const texts: readonly (readonly [name: string, parts: () => Promise<TokenParts>])[] = [
      ['J-061 white space in the payload segment', async () => ({ payloadSegment: ` ${base64url(await payload())}` })],
      [
        'J-063 a payload segment whose unused bits are set',
        async () => ({ payloadSegment: withUnusedBits(base64url(`${await payload()}${await padding()}`)) }),
      ],
      [
        'J-069 a byte order mark in the header',
        async () => ({ headerText: '\ufeff{"alg":"ES256","kid":"k1","typ":"JWT"}' }),
      ],
      ['J-070 a duplicate alg', async () => ({ headerText: '{"alg":"none","kid":"k1","typ":"JWT","alg":"ES256"}' })],
      ['J-071 a duplicate kid', async () => ({ headerText: '{"alg":"ES256","kid":"k2","typ":"JWT","kid":"k1"}' })],
      [
        'J-073 a header that is not UTF-8',
        async () => ({ headerText: Buffer.from('7b22616c67223a2245533235ff227d', 'hex') }),
      ],
      ['a header that is an array', async () => ({ headerText: '[]' })],
      ['C-009 an exp of NaN', async () => ({ payloadText: (await payload()).replace(/"exp":\d+/, '"exp":NaN') })],
      ['C-015 an infinite nbf', async () => ({ payloadText: (await payload()).replace('{', '{"nbf":1e400,') })],
      [
        'C-015 an nbf of minus infinity',
        async () => ({ payloadText: (await payload()).replace('{', '{"nbf":-1e400,') }),
      ],
      ['C-045 a duplicate acc', async () => ({ payloadText: (await payload()).replace('{', '{"acc":"acct2",') })],
      ['C-046 a duplicate exp', async () => ({ payloadText: (await payload()).replace('{', '{"exp":1,') })],
      [
        'C-047 a duplicate acc spelled with an escape',
        async () => ({ payloadText: (await payload()).replace('{', '{"\\u0061cc":"acct2",') }),
      ],
      [
        'C-049 an acc that is only inherited from __proto__',
        async () => ({ payloadText: (await payload()).replace('"acc":"acct1"', '"__proto__":{"acc":"acct1"}') }),
      ],
      [
        'C-059 a payload that is not UTF-8',
        async () => ({
          payloadText: Buffer.concat([Buffer.from(await payload()).subarray(0, -2), Buffer.from([0xff, 0x22, 0x7d])]),
        }),
      ],
      ['C-061 a comment in the payload', async () => ({ payloadText: `${await payload()}/* */` })],
      ['C-061 a payload with single quotes', async () => ({ payloadText: (await payload()).replaceAll('"', "'") })],
      ['C-061 a second value in the payload', async () => ({ payloadText: `${await payload()}{}` })],
      ['C-062 a payload that is an array', async () => ({ payloadText: '[]' })],
      ['C-062 a payload that is null', async () => ({ payloadText: 'null' })],
      ['C-062 a payload that is a number', async () => ({ payloadText: '1' })],
      ['C-062 an empty payload', async () => ({ payloadText: '' })],
      ['C-062 a payload that is a string', async () => ({ payloadText: '"x"' })],
      ['J-077 a payload that is itself a token', async () => ({ header: { cty: 'JWT' }, payloadText: await token() })],
    ];
    for (const [name, parts] of texts) {
      it(`${name} is refused`, async () => {
        expect(await (await lab()).reasonOf(await token(await parts()))).to.equal('token_invalid');
      });
    }

    const edits: readonly (readonly [name: string, edit: (good: string) => string])[] = [
      ['J-023 a signature of zeros', good => `${unsigned(good)}.${base64url(Buffer.alloc(64))}`],
      ['J-025 a signature in DER', good => `${unsigned(good)}.${base64url(derOf(signatureOf(good)))}`],
      [
        'J-027 a signature of 96 bytes',
        good => `${unsigned(good)}.${base64url(Buffer.concat([signatureOf(good), Buffer.alloc(32)]))}`,
      ],
      ['J-027 a signature of 63 bytes', good => `${unsigned(good)}.${base64url(signatureOf(good).subarray(1))}`],
      [
        'J-027 a signature of 65 bytes',
        good => `${unsigned(good)}.${base64url(Buffer.concat([signatureOf(good), Buffer.alloc(1)]))}`,
      ],
      ['J-029 a flipped bit in the signature', good => `${unsigned(good)}.${base64url(flipped(signatureOf(good)))}`],
      ['J-029 another payload', good => good.replace(/\.[^.]+\./, `.${base64url('{}')}.`)],
      [
        'J-029 a flipped bit in the header',
        good => `${good.slice(0, 8)}${good[8] === 'A' ? 'B' : 'A'}${good.slice(9)}`,
      ],
      ['J-030 an empty signature', good => `${unsigned(good)}.`],
      ['J-031 a text of two segments', good => unsigned(good)],
      ['J-033 a text of five segments', good => `${good}.a.b`],
      ['J-058 a token with padding', good => `${good}==`],
      ['J-059 a line feed after the token', good => `${good}\n`],
      ['J-059 a tab after the token', good => `${good}\t`],
      ['J-059 a space after the token', good => `${good} `],
      ['J-061 H-005 a space before the token', good => ` ${good}`],
      [
        'J-064 a signature in the standard base64 alphabet',
        good => `${unsigned(good)}.+/${good.slice(good.lastIndexOf('.') + 3)}`,
      ],
      ['J-062 a signature whose unused bits are set', good => withUnusedBits(good)],
      ['J-065 a signature of an impossible length', good => `${good}AAA`],
      ['J-066 a zero-width space', good => `${good}\u200b`],
      ['J-066 a full-width letter', good => `${good.slice(0, -1)}\uff21`],
      ['J-066 a byte order mark before the token', good => `\ufeff${good}`],
      ['J-067 an empty text', () => ''],
      ['J-067 a text of two dots', () => '..'],
      ['J-067 a text of one dot', () => '.'],
      ['J-067 a text of three dots', () => '...'],
      ['H-015 a second word after the token', good => `${good} b`],
      [
        'H-030 the character with which Envoy replaces an invalid byte',
        good => `${good.slice(0, 20)}!${good.slice(21)}`,
      ],
    ];
    for (const [name, edit] of edits) {
      it(`${name} is refused`, async () => {
        expect(await (await lab()).reasonOf(edit(await token()))).to.equal('token_invalid');
      });
    }

    it('J-078 a token longer than maxBytes is refused, one of exactly maxBytes accepted', async () => {
      const good = await token();
      expect(await (await lab({ maxBytes: good.length - 1 })).reasonOf(good)).to.equal('token_invalid');
      expect(await (await lab({ maxBytes: good.length })).reasonOf(good)).to.equal('verified');
    });
    it('J-079 a token of 1 MB is refused synchronously, before any key is used', async () => {
      const at = await lab();
      const counter = await countingKey(at, 'k1');
      expect(await at.reasonOf(`${await token()}${'A'.repeat(1_000_000)}`)).to.equal('token_invalid');
      expect(at.verifyNow(`${await token()}${'A'.repeat(1_000_000)}`)).to.not.be.a('promise');
      expect(counter.uses).to.equal(0);
    });
    it('J-034 a JWE with an unsigned token, encrypted to the public key of the issuer, is refused', async () => {
      const key = await signingKey('r1', 'RS256');
      const { n = '', e = '' } = key.publicJwk;
      const publicKey = await importJWK({ kty: 'RSA', n, e, alg: 'RSA-OAEP-256' }, 'RSA-OAEP-256');
      const plain = `${base64url('{"alg":"none"}')}.${base64url(await payload())}.`;
      const jwe = await new CompactEncrypt(Buffer.from(plain))
        .setProtectedHeader({ alg: 'RSA-OAEP-256', enc: 'A128GCM', kid: 'r1', cty: 'JWT' })
        .encrypt(publicKey);
      expect(await (await lab()).reasonOf(jwe)).to.equal('token_invalid');
    });

    const hmacSecrets: readonly (readonly [name: string, secretOf: (key: KeyObject, jwk: JWK) => string | Buffer])[] = [
      ['J-015 the PEM without its last line break', key => spki(key).trimEnd()],
      ['J-015 the PEM after a space', key => ` ${spki(key)}`],
      ['J-015 the PEM after a control byte', key => `\x01${spki(key)}`],
      ['J-015 the PEM after a zero-width space', key => `\u200b${spki(key)}`],
      ['J-015 the PEM with CR LF', key => spki(key).replaceAll('\n', '\r\n')],
      ['J-015 the DER form', key => key.export({ type: 'spki', format: 'der' })],
      ['J-015 the PKCS#1 form', key => key.export({ type: 'pkcs1', format: 'pem' })],
      ['J-017 an empty text', () => ''],
      ['J-018 the base64url modulus', (_, { n = '' }) => n],
      ['J-018 the modulus in bytes', (_, { n = '' }) => Buffer.from(n, 'base64url')],
      ['J-019 the JWK', (_, jwk) => JSON.stringify(jwk)],
      ['J-014 J-019 the PEM', key => spki(key)],
    ];
    for (const [name, secretOf] of hmacSecrets) {
      it(`${name} used as HMAC secret is refused, even if algorithms listed HS256`, async () => {
        const { publicJwk } = await signingKey('r1', 'RS256');
        const secret = secretOf(createPublicKey({ key: publicJwk as JsonWebKey, format: 'jwk' }), publicJwk);
        const header = { alg: 'HS256', kid: 'r1', typ: 'JWT' };
        const input = `${base64url(JSON.stringify(header))}.${base64url(await payload())}`;
        const forged = `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
        expect(await (await lab()).reasonOf(forged)).to.equal('token_invalid');
        expect(await (await lab({ algorithms: ['HS256', 'RS256'] })).reasonOf(forged)).to.equal('token_invalid');
      });
    }
    it('J-018 the x coordinate of an EC key used as HMAC secret is refused', async () => {
      const { x = '' } = (await signingKey('k1')).publicJwk;
      const input = `${base64url('{"alg":"HS256","kid":"k1","typ":"JWT"}')}.${base64url(await payload())}`;
      for (const secret of [x, Buffer.from(x, 'base64url')]) {
        const forged = `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
        expect(await (await lab({ algorithms: ['HS256', 'ES256'] })).reasonOf(forged)).to.equal('token_invalid');
      }
    });
    it('J-085 an ES256 token signed by a key on another curve is refused', async () => {
      const key = await signingKey('k384', 'ES384');
      const at = await lab({ keys: [key], algorithms: ['ES256', 'ES384'] });
      expect(await at.reasonOf(await token({ key, header: { alg: 'ES256' } }))).to.equal('token_invalid');
    });
    it('C-069 ten thousand further claims are refused only if the token exceeds maxBytes', async () => {
      const furtherClaims = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`c${i}`, i]));
      const long = await token({ claims: furtherClaims });
      expect(await (await lab()).reasonOf(long)).to.equal('token_invalid');
      expect(await (await lab({ maxBytes: long.length })).reasonOf(long)).to.equal('verified');
    });
    it('J-026 the malleated twin of a cached token is verified by its own signature', async () => {
      const { verify } = await lab();
      const good = await token();
      await verify(good);
      const twin = `${unsigned(good)}.${base64url(malleated(signatureOf(good)))}`;
      const { outcome, cache } = await verify(twin);
      expect(outcome.kind).to.equal('claims');
      expect(cache).to.equal('miss');
    });
  });

  describe('signing keys', () => {
    it('keys_unavailable is the answer while the signing key is unavailable', async () => {
      const at = await lab();
      at.keys.clear();
      at.missing = 'unavailable';
      expect(await at.reasonOf(await token())).to.equal('keys_unavailable');
    });
    it('a token of an unknown issuer is refused even while keys are unavailable', async () => {
      const at = await lab();
      at.missing = 'unavailable';
      at.keys.clear();
      expect(await at.reasonOf(await token({ claims: { iss: 'https://evil.test' } }))).to.equal('token_invalid');
    });
    it('C-027 a token signed by the key of another issuer is refused', async () => {
      const others = { 'https://b.test': { current: () => undefined, find: () => ({ kind: 'unknown' as const }) } };
      expect(await (await lab({ others })).reasonOf(await token({ claims: { iss: 'https://b.test' } }))).to.equal(
        'token_invalid',
      );
    });
    it('a token waits until its key is fetched', async () => {
      const key = await verificationKey(await signingKey('k1'));
      const fetched = { 'https://b.test': { current: () => key, find: async () => ({ kind: 'key' as const, key }) } };
      const at = await lab({ others: fetched });
      const { outcome, cache } = await at.verify(await token({ claims: { iss: 'https://b.test' } }));
      expect(outcome.kind).to.equal('claims');
      expect(cache).to.equal('miss');
    });
    it('F-014 a fault of a key rejects the verification and refuses no token', async () => {
      const at = await lab();
      const good = await token();
      const { privateKey } = await generateKeyPair('ES256');
      at.keys.set('k1', { kid: 'k1', thumbprint: 'k1', cryptoKeyFor: () => privateKey });
      const failure: unknown = await at.verify(good).catch((error: unknown) => error);
      expect(failure).to.be.an.instanceOf(TypeError);
    });
    it('a token signed by another key under a known kid is refused', async () => {
      const other = await signingKey('other');
      expect(await (await lab()).reasonOf(await token({ key: { ...other, kid: 'k1' } }))).to.equal('token_invalid');
    });
    it('C-077 the times are checked after the wait for the key', async () => {
      const at = await lab();
      const key = await verificationKey(await signingKey('k1'));
      const fetched = createDeferred<Awaited<ReturnType<IssuerKeys['find']>>>();
      at.find = () => fetched.promise;
      const verifying = at.reasonOf(await token());
      at.clock = now + 3600 + 60;
      fetched.resolve({ kind: 'key', key });
      expect(await verifying).to.equal('token_expired');
    });
    it('a key that is removed during the verification allows no token', async () => {
      const at = await lab();
      const verifying = at.reasonOf(await token());
      at.keys.clear();
      expect(await verifying).to.equal('keys_unavailable');
    });
  });

  describe('detail for the log', () => {
    const rows: readonly (readonly [detail: string, parts: () => Promise<TokenParts>])[] = [
      ['longer than maxBytes', async () => ({ claims: { uid: 'u'.repeat(9000) } })],
      ['iss is not a configured issuer', async () => ({ claims: { iss: 'https://evil.test' } })],
      ['alg is not one of algorithms', async () => ({ header: { alg: 'ES384' } })],
      ['typ is not one of tokenTypes', async () => ({ header: { typ: 'id+jwt' } })],
      ['kid is not a key of the issuer', async () => ({ header: { kid: 'k9' } })],
      ['the key is not for this algorithm', async () => ({ header: { alg: 'RS256' } })],
      ['the signature does not verify', async () => ({ signature: forgedSignature(1) })],
    ];
    for (const [detail, parts] of rows) {
      it(`is "${detail}"`, async () => {
        expect((await (await lab()).verify(await token(await parts()))).outcome).to.include({ detail });
      });
    }
    it('is that of the compact form for text that is no token', async () => {
      const { outcome } = await (await lab()).verify('a.b');
      expect(outcome).to.include({ detail: 'not three base64url segments' });
    });
    it('names why the keys are unavailable, or that the key was replaced', async () => {
      const at = await lab();
      const verifying = at.verify(await token());
      at.keys.clear();
      expect((await verifying).outcome).to.include({ detail: 'the key was replaced meanwhile' });
      at.missing = 'unavailable';
      expect((await at.verify(await token())).outcome).to.include({ detail: 'no key set yet' });
    });
    it('has cache "miss" for a malformed token and no cache result for one over maxBytes', async () => {
      const { verify } = await lab();
      expect(await verify('h.p')).to.include({ cache: 'miss', kid: undefined });
      expect(await verify('a'.repeat(9000))).to.include({ cache: undefined, kid: undefined });
    });
  });

  describe('verified token cache', () => {
    it('L-014 a second verification of a token is a cache hit', async () => {
      const { verify } = await lab();
      const good = await token();
      expect((await verify(good)).cache).to.equal('miss');
      expect(await verify(good)).to.deep.include({ cache: 'hit', kid: 'k1' });
    });
    it('L-015 a cached token is refused once its key is removed', async () => {
      const at = await lab();
      const good = await token();
      await at.verify(good);
      at.keys.clear();
      expect(await at.reasonOf(good)).to.equal('token_invalid');
    });
    it('L-014 a cached token is refused once another key has its kid', async () => {
      const at = await lab();
      const good = await token();
      await at.verify(good);
      at.keys.set('k1', await verificationKey(await signingKey('k1-next')));
      expect(await at.reasonOf(good)).to.equal('token_invalid');
    });
    it('L-014 the times of a cached token are checked again on each request', async () => {
      const at = await lab();
      const good = await token();
      await at.verify(good);
      at.clock = now + 3600 + 59;
      expect(await at.reasonOf(good)).to.equal('verified');
      at.clock = now + 3600 + 60;
      expect(await at.reasonOf(good)).to.equal('token_expired');
    });
    it('C-078 a cached token is refused while the clock is behind its iat, and accepted afterwards', async () => {
      const at = await lab();
      const good = await token();
      await at.verify(good);
      at.clock = now - 3600;
      expect(await at.reasonOf(good)).to.equal('token_invalid');
      at.clock = now;
      expect(await at.reasonOf(good)).to.equal('verified');
    });
    it('an expired token is removed from the cache', async () => {
      const verifiedTokens = createVerifiedTokens<VerificationKey>(10);
      const at = await lab({ verifiedTokens });
      const text = await token();
      await at.verify(text);
      expect(verifiedTokens.size()).to.equal(1);
      at.clock = now + 7200;
      expect(await at.reasonOf(text)).to.equal('token_expired');
      expect(verifiedTokens.size()).to.equal(0);
    });
    it('a token whose iat is in the future stays in the cache', async () => {
      const verifiedTokens = createVerifiedTokens<VerificationKey>(10);
      const at = await lab({ verifiedTokens });
      const text = await token();
      await at.verify(text);
      at.clock = now - 3600;
      expect(await at.reasonOf(text)).to.equal('token_invalid');
      expect(verifiedTokens.size()).to.equal(1);
    });
    it('an opaque token is not looked up in the cache', async () => {
      const lookups: string[] = [];
      const none = createVerifiedTokens<VerificationKey>(0);
      const { verify } = await lab({
        verifiedTokens: {
          ...none,
          get(text) {
            lookups.push(text);
            return none.get(text);
          },
        },
      });
      for (const text of ['', 'opaque', 'h.p.s']) await verify(text);
      expect(lookups).to.deep.equal(['h.p.s']);
    });
    it('a cached token is refused and removed once its issuer is no longer configured', async () => {
      const verifiedTokens = createVerifiedTokens<VerificationKey>(10);
      const text = await token();
      await (await lab({ verifiedTokens })).verify(text);
      const withoutIssuers = createTokenVerifier({
        issuers: new Map(),
        times: { clockToleranceSeconds: 60, maxLifetimeSeconds: 86_400 },
        maxBytes: 8192,
        verifiedTokens,
        maxSignatures: 1,
        now: () => now,
      });
      expect((await withoutIssuers.verify(text)).outcome).to.include({ reason: 'token_invalid' });
      expect(verifiedTokens.size()).to.equal(0);
    });
    it('L-014 a refusal is not cached', async () => {
      const at = await lab();
      const bad = await token({ claims: { role: undefined } });
      await at.verify(bad);
      expect((await at.verify(bad)).cache).to.equal('miss');
    });
    it('nothing is cached if maxTokens is 0', async () => {
      const at = await lab({ maxTokens: 0 });
      const good = await token();
      await at.verify(good);
      expect((await at.verify(good)).cache).to.equal('miss');
    });
    it('L-014 a recently used token stays in a full cache', async () => {
      const at = await lab({ maxTokens: 2 });
      const [a, b, c] = await Promise.all(['a', 'b', 'c'].map(uid => token({ claims: { uid } })));
      for (const each of [a, b, a, c]) await at.verify(each ?? '');
      expect((await at.verify(a ?? '')).cache).to.equal('hit');
      expect((await at.verify(b ?? '')).cache).to.equal('miss');
    });
  });

  describe('concurrent verifications', () => {
    it('of one token share a single signature check (singleflight)', async () => {
      const at = await lab();
      const counter = await countingKey(at, 'k1');
      const good = await token();
      const outcomes = await Promise.all([at.verify(good), at.verify(good), at.verify(good)]);
      expect(outcomes.map(({ outcome }) => outcome.kind)).to.deep.equal(['claims', 'claims', 'claims']);
      expect(counter.uses).to.equal(1);
      expect((await at.verify(good)).cache).to.equal('hit');
    });
    it('of one token stay shared after another token has its result', async () => {
      const { promise, resolve } = createDeferred<Awaited<ReturnType<IssuerKeys['find']>>>();
      const slow: IssuerKeys = { current: () => undefined, find: () => promise };
      const at = await lab({ others: { 'https://slow.test': slow } });
      const second = await token({ claims: { iss: 'https://slow.test' } });
      const firstVerification = at.verify(await token());
      const secondVerification = at.verifyNow(second);
      await firstVerification;
      expect(at.verifyNow(second)).to.equal(secondVerification).and.to.be.a('promise');
      resolve({ kind: 'unknown' });
      await secondVerification;
    });
    it('of a refused token share one check, a later one checks again', async () => {
      const at = await lab();
      const counter = await countingKey(at, 'k1');
      const bad = await token({ claims: { role: undefined } });
      await Promise.all([at.verify(bad), at.verify(bad)]);
      await at.verify(bad);
      expect(counter.uses).to.equal(2);
    });
    it('G-027 beyond maxSignatures in flight are refused as internal, the others proceed', async () => {
      const at = await lab({ maxSignatures: 3 });
      const good = await token();
      const forged = [1, 2, 3, 4].map(i => `${good.slice(0, good.lastIndexOf('.'))}.${forgedSignature(i)}`);
      const outcomes = await Promise.all(forged.map(async text => (await at.verify(text)).outcome));
      expect(outcomes).to.deep.equal([
        ...Array.from({ length: 3 }, () => ({
          kind: 'refusal',
          reason: 'token_invalid',
          detail: 'the signature does not verify',
        })),
        { kind: 'refusal', reason: 'internal', detail: 'too many tokens wait for their verification' },
      ]);
      expect(await at.reasonOf(good)).to.equal('verified');
    });
    it('are synchronous for a token refused before its signature', async () => {
      const at = await lab();
      const other = await token({ claims: { iss: 'https://other.test' } });
      expect(at.verifyNow(other)).to.not.be.a('promise');
      expect(at.verifyNow('a.b.c')).to.not.be.a('promise');
      expect(at.verifyNow(await token())).to.be.a('promise');
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

async function payload(): Promise<string> {
  const [, segment = ''] = (await token()).split('.');
  return Buffer.from(segment, 'base64url').toString();
}

function escapedAcc(): string {
  const times = `"iat":${now - 60},"exp":${now + 60}`;
  return `{"iss":"${issuer}","aud":"${audience}",${times},"uid":"u","app":"web","\\u0061cc":"\\u0061cct1","role":"owner"}`;
}

// White space for a payload length that leaves unused bits in the last base64url character.
async function padding(): Promise<string> {
  return ' '.repeat((4 - ((await payload()).length % 3)) % 3);
}

function unsigned(text: string): string {
  return text.slice(0, text.lastIndexOf('.'));
}

function signatureOf(text: string): Buffer {
  return Buffer.from(text.slice(text.lastIndexOf('.') + 1), 'base64url');
}

function spki(key: KeyObject): string {
  return key.export({ type: 'spki', format: 'pem' }).toString();
}

// ECDSA-Sig-Value (RFC 3279 section 2.2.3).
function derOf(signature: Buffer): Buffer {
  const integer = (bytes: Buffer): Buffer => {
    const content = Buffer.concat([Buffer.from([0]), bytes]);
    return Buffer.concat([Buffer.from([2, content.length]), content]);
  };
  const both = Buffer.concat([integer(signature.subarray(0, 32)), integer(signature.subarray(32))]);
  return Buffer.concat([Buffer.from([0x30, both.length]), both]);
}

function flipped(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy[10] = (copy[10] ?? 0) ^ 1;
  return copy;
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

function withUnusedBits(text: string): string {
  const last = alphabet.indexOf(text.at(-1) ?? '');
  return text.slice(0, -1) + alphabet[last | 1];
}

const order = BigInt('0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551');

// ECDSA is malleable: (r, n - s) verifies as (r, s) does, and the order n of P-256 is public.
function malleated(signature: Buffer): Buffer {
  const s = BigInt(`0x${signature.subarray(32).toString('hex')}`);
  return Buffer.concat([signature.subarray(0, 32), Buffer.from((order - s).toString(16).padStart(64, '0'), 'hex')]);
}
