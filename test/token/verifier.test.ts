import { createHmac, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import { expect } from 'chai';
import { CompactEncrypt, type CryptoKey, exportSPKI, generateKeyPair, importJWK, type JWK } from 'jose';
import { createDeferred } from '../../src/deferred.ts';
import { toClaimPaths } from '../../src/token/claims.ts';
import { createVerifiedTokens, type VerifiedTokens } from '../../src/token/verified-tokens.ts';
import {
  createTokenVerifier,
  type IssuerKey,
  type IssuerKeys,
  normalizeTokenType,
  type Verification,
} from '../../src/token/verifier.ts';
import { secrets } from '../support/secrets.ts';
import { type SigningKey, signingKey } from '../support/signing-key.ts';
import { audience, base64url, issuer, now, type TokenParts, token, uid } from '../support/token.ts';

interface Lab {
  verify(token: string): Promise<Verification>;
  reasonOf(token: string): Promise<string>;
  readonly keys: Map<string, IssuerKey>;
  /** What `verify` of the verifier gives, promise or not. */
  verifyNow(text: string): unknown;
  clock: number;
  /** What `find` answers for a kid that is not there. */
  missing: 'unknown' | 'unavailable';
  /** In the place of the finder, once set. */
  find?: IssuerKeys['find'];
}

async function issuerKey({ publicJwk, alg, kid }: SigningKey): Promise<IssuerKey> {
  const cryptoKey = (await importJWK({ ...publicJwk }, alg)) as CryptoKey;
  return { kid, cryptoKeyFor: wanted => (wanted === alg ? cryptoKey : undefined) };
}

async function lab(
  changes: {
    keys?: readonly SigningKey[];
    algorithms?: readonly string[];
    tokenTypes?: readonly string[];
    allowIntegerClaims?: boolean;
    clockToleranceSeconds?: number;
    maxTokens?: number;
    verifiedTokens?: VerifiedTokens<IssuerKey>;
    maxSignatures?: number;
    maxBytes?: number;
    others?: Readonly<Record<string, IssuerKeys>>;
  } = {},
): Promise<Lab> {
  const signing = changes.keys ?? [await signingKey('k1'), await signingKey('r1', 'RS256')];
  const keys = new Map(await Promise.all(signing.map(async key => [key.kid, await issuerKey(key)] as const)));
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
    rules: {
      issuer: name,
      audiences: new Set([audience]),
      claims: toClaimPaths({ uid: 'uid', app: 'app', acc: 'acc', role: 'role' }),
      allowIntegerClaims: changes.allowIntegerClaims ?? false,
    },
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
    // Its detail and what is kept of the claims stand in the log, but for jti, which is compared with the revocation list alone.
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

/** Replaces a key by one that counts how often it is asked for. */
async function countingKey(at: Lab, kid: string): Promise<{ readonly uses: number }> {
  const key = at.keys.get(kid);
  const counted = { uses: 0 };
  at.keys.set(kid, {
    kid,
    cryptoKeyFor(alg) {
      counted.uses += 1;
      return key?.cryptoKeyFor(alg);
    },
  });
  return counted;
}

/** 64 bytes, different for each number. */
function signatureText(number: number): string {
  const bytes = Buffer.alloc(64, 1);
  bytes.writeUInt32BE(number);
  return bytes.toString('base64url');
}

describe('token verifier', () => {
  describe('accepts', () => {
    const good: readonly (readonly [name: string, parts: () => Promise<TokenParts>])[] = [
      ['J-001 an RS256 token', async () => ({ key: await signingKey('r1', 'RS256') })],
      ['J-002 an ES256 token', async () => ({})],
      [
        'J-042 x5c, x5t and unknown header members, which it ignores',
        async () => ({ header: { x5c: ['!'], x5t: 1, 'x5t#S256': {}, abc: null } }),
      ],
      ['J-075 typ in another case', async () => ({ header: { typ: 'AT+JWT' } })],
      ['J-075 typ with application/', async () => ({ header: { typ: 'application/at+jwt' } })],
      ['C-011 one that expired within the tolerance', async () => ({ claims: { exp: now - 30 } })],
      ['C-015 nbf long ago', async () => ({ claims: { nbf: -1e308 } })],
      ['C-029 an array of audiences with ours', async () => ({ claims: { aud: ['other', audience] } })],
      [
        'C-050 claims named like methods',
        async () => ({
          claims: Object.fromEntries(['then', 'toJSON', 'constructor', 'hasOwnProperty'].map(name => [name, 1])),
        }),
      ],
      ['C-067 escapes for plain letters', async () => ({ payloadText: escapedAcc() })],
      ['C-074 a sub that differs from uid', async () => ({ claims: { sub: 'other' } })],
      ['no iat', async () => ({ claims: { iat: undefined } })],
      ['times with fractions', async () => ({ claims: { exp: now + 0.5, iat: now - 0.5, nbf: now - 0.25 } })],
      ['nbf at the end of the tolerance', async () => ({ claims: { nbf: now + 60 } })],
      ['iat within the tolerance ahead', async () => ({ claims: { iat: now + 60 } })],
      ['the longest lifetime', async () => ({ claims: { iat: now, exp: now + 86_400 } })],
      [
        'O-018 identity fields at the border of the grammar',
        async () => ({ claims: { uid: '!'.repeat(128), app: "#$%&'()*+-./:<=>?@", role: '[\\]^_`{|}~' } }),
      ],
    ];
    for (const [name, parts] of good) {
      it(name, async () => {
        expect(await (await lab()).reasonOf(await token(await parts()))).to.equal('verified');
      });
    }

    it('an EdDSA token', async () => {
      const key = await signingKey('e1', 'EdDSA');
      expect(await (await lab({ keys: [key] })).reasonOf(await token({ key }))).to.equal('verified');
    });
    it('an absent typ where "" is listed', async () => {
      const { reasonOf } = await lab({ tokenTypes: ['JWT', ''] });
      expect(await reasonOf(await token({ header: { typ: undefined } }))).to.equal('verified');
      expect(await reasonOf(await token({ header: { typ: '' } }))).to.equal('token_invalid');
    });
    it('C-057 a typ in another case of ASCII only: the Kelvin sign is no k', async () => {
      const { reasonOf } = await lab({ tokenTypes: ['token+jwt'] });
      expect(await reasonOf(await token({ header: { typ: 'TOKEN+JWT' } }))).to.equal('verified');
      expect(await reasonOf(await token({ header: { typ: 'to\u212aen+jwt' } }))).to.equal('token_invalid');
    });
    it('C-041 integers where they are allowed, as their decimal digits', async () => {
      const { verify } = await lab({ allowIntegerClaims: true });
      const { outcome } = await verify(await token({ claims: { uid: 7, app: 0, acc: 9007199254740991, role: 1 } }));
      expect(outcome)
        .to.have.property('identity')
        .that.includes({ uid: '7', app: '0', acc: '9007199254740991', role: '1' });
    });
    it('what it read from the claims that are configured', async () => {
      const { outcome } = await (await lab()).verify(await token());
      expect(outcome).to.deep.include({
        identity: { uid, app: 'web', acc: 'acct1', role: 'owner', iss: issuer },
      });
    });
  });

  describe('refuses a header with', () => {
    const headers: readonly (readonly [name: string, header: Readonly<Record<string, unknown>>])[] = [
      ['J-003 alg none', { alg: 'none' }],
      ['J-005 alg nOnE', { alg: 'nOnE' }],
      ['J-005 alg NONE', { alg: 'NONE' }],
      ['J-006 alg none beside a good signature', { alg: 'none' }],
      ['J-007 no alg', { alg: undefined }],
      ['J-009 alg as an array', { alg: ['ES256'] }],
      ['J-010 alg null', { alg: null }],
      ['J-010 alg a number', { alg: 1 }],
      ['J-010 alg an object', { alg: { ES256: true } }],
      ['J-011 alg in another case', { alg: 'es256' }],
      ['J-013 alg __proto__', { alg: '__proto__' }],
      ['J-013 alg constructor', { alg: 'constructor' }],
      ['J-013 alg toString', { alg: 'toString' }],
      ['J-021 an alg that is not listed', { alg: 'ES384' }],
      ['J-022 an alg of another key type', { alg: 'RS256' }],
      ['J-037 zip', { zip: 'DEF' }],
      ['J-039 jwk', { jwk: {} }],
      ['J-041 jku', { jku: 'https://evil.test' }],
      ['J-042 x5u', { x5u: 'https://evil.test' }],
      ['J-043 no kid', { kid: undefined }],
      ['J-045 kid a number', { kid: 1 }],
      ['J-045 kid null', { kid: null }],
      ['J-045 kid an array', { kid: ['k1'] }],
      ['J-046 an empty kid', { kid: '' }],
      ['J-047 a kid that is a path', { kid: '../../dev/null' }],
      ['J-049 kid __proto__', { kid: '__proto__' }],
      ['J-049 kid toString', { kid: 'toString' }],
      ['J-051 kid in another case', { kid: 'K1' }],
      ['J-045 kid true', { kid: true }],
      ['J-045 kid an object', { kid: { k1: 1 } }],
      ['J-047 a kid that is SQL', { kid: "k1' OR '1'='1" }],
      ['J-047 a kid that is a command', { kid: 'k1;id' }],
      ['J-049 kid constructor', { kid: 'constructor' }],
      ['J-052 crit with a member that nobody knows', { crit: ['exp-policy'], 'exp-policy': 1 }],
      ['J-053 an empty crit', { crit: [] }],
      ['J-053 crit as text', { crit: 'b64' }],
      ['J-053 crit with a number', { crit: [1] }],
      ['J-053 crit null', { crit: null }],
      ['J-054 crit alg', { crit: ['alg'] }],
      ['J-054 crit with b64 twice', { b64: true, crit: ['b64', 'b64'] }],
      ['J-055 b64 false', { b64: false, crit: ['b64'] }],
      ['J-057 b64 true', { b64: true }],
      ['J-057 b64 true in crit', { b64: true, crit: ['b64'] }],
      ['J-074 no typ', { typ: undefined }],
      ['J-074 typ id+jwt', { typ: 'id+jwt' }],
      ['J-074 C-071 typ dpop+jwt', { typ: 'dpop+jwt' }],
      ['J-074 C-071 typ logout+jwt', { typ: 'logout+jwt' }],
      ['C-071 typ refresh+jwt', { typ: 'refresh+jwt' }],
      ['typ null', { typ: null }],
      ['typ an array', { typ: ['JWT'] }],
    ];
    for (const [name, header] of headers) {
      it(name, async () => {
        expect(await (await lab()).reasonOf(await token({ header }))).to.equal('token_invalid');
      });
    }
  });

  describe('refuses claims with', () => {
    const changes: readonly (readonly [name: string, claims: Readonly<Record<string, unknown>>, reason?: string])[] = [
      ['C-001 no exp', { exp: undefined }],
      ['C-002 exp as text', { exp: '9999999999' }],
      ['C-003 exp null', { exp: null }],
      ['C-003 exp true', { exp: true }],
      ['C-003 exp an array', { exp: [now + 60] }],
      ['C-003 exp an object', { exp: {} }],
      ['C-006 exp 0', { exp: 0, iat: undefined }, 'token_expired'],
      ['C-007 exp in a far future', { exp: 1e15 }],
      ['C-007 exp in a far future and no iat', { exp: 1e15, iat: undefined }],
      ['C-010 a longer lifetime than allowed', { iat: now, exp: now + 86_401 }],
      ['a longer lifetime than allowed counted from now', { iat: undefined, exp: now + 86_401 }],
      ['C-013 nbf beyond the tolerance', { nbf: now + 61 }],
      ['C-014 nbf as text', { nbf: '1' }],
      ['C-014 nbf null', { nbf: null }],
      ['C-017 iat beyond the tolerance', { iat: now + 61 }],
      ['C-018 iat negative', { iat: -1 }],
      ['C-019 iat as text', { iat: '1' }],
      ['C-019 a good iat as text', { iat: String(now - 60) }],
      ['C-019 iat null', { iat: null }],
      ['iat after exp', { iat: now + 30, exp: now + 20 }],
      ['C-021 iss with a slash more', { iss: `${issuer}/` }],
      ['C-022 iss in another case', { iss: 'https://IDP.test' }],
      ['C-023 iss as an array', { iss: [issuer] }],
      ['C-025 no iss', { iss: undefined }],
      ['C-025 iss null', { iss: null }],
      ['C-025 iss a number', { iss: 1 }],
      ['C-025 iss an object', { iss: { [issuer]: 1 } }],
      ['C-026 iss with a space', { iss: `${issuer} ` }],
      ['C-026 iss with a NUL', { iss: `${issuer}\0` }],
      ['C-026 iss with a homoglyph', { iss: issuer.replace('i', '\u0456') }],
      ['C-030 no audience in the array', { aud: [] }],
      ['C-031 no aud', { aud: undefined }],
      ['C-031 aud null', { aud: null }],
      ['C-031 aud an object', { aud: { [audience]: 1 } }],
      ['C-031 aud nested', { aud: [[audience]] }],
      ['C-031 aud a number', { aud: 1 }],
      ['aud with ours and a number', { aud: [audience, 1] }],
      ['C-033 another aud', { aud: `${audience}2` }],
      ['C-033 a part of aud', { aud: audience.slice(0, -1) }],
      ['C-033 aud in capitals', { aud: audience.toUpperCase() }],
      ['C-033 aud with a space', { aud: `${audience} ` }],
      ['C-034 aud __proto__', { aud: ['__proto__', 'constructor'] }],
      ['C-034 aud toString as text', { aud: 'toString' }],
      ['C-035 ten thousand audiences', { aud: [...Array(10_000).fill('x'), audience] }],
      ['C-039 acc null', { acc: null }],
      ['C-041 F-009 acc a number', { acc: 1 }],
      ['C-042 acc true', { acc: true }],
      ['C-042 acc an array of one', { acc: ['acct1'] }],
      ['C-042 acc an object', { acc: { toString: 'acct1' } }],
      ['C-043 acc an array of two', { acc: ['acct1', 'acct2'] }],
      ['C-051 acc in another case', { acc: undefined, ACC: 'acct1' }],
      ['C-053 a control character in uid', { uid: 'a\nb' }],
      ['C-053 a NUL in uid', { uid: 'a\0' }],
      ['C-053 a tab in uid', { uid: 'a\tb' }],
      ['C-053 a vertical tab in uid', { uid: 'a\vb' }],
      ['O-016 CR LF and a header in uid', { uid: 'a\r\nx-auth-acc:acct2' }],
      ['C-053 DEL in uid', { uid: 'a\x7f' }],
      ['C-053 a C1 control in uid', { uid: 'a\x85' }],
      ['C-054 a line separator in role', { role: 'owner\u2028' }],
      ['C-054 a byte order mark in app', { app: '\ufeffweb' }],
      ['C-054 a mark of direction in app', { app: '\u202eweb' }],
      ['C-054 a zero-width space in uid', { uid: 'u\u200b1' }],
      ['C-055 letters that are not ASCII', { acc: 'acct\u00fc' }],
      ['C-055 full-width letters', { acc: '\uff41cct1' }],
      ['C-055 an emoji', { uid: '\u{1f600}' }],
      ['C-057 the Kelvin sign', { acc: 'acc\u212a' }],
      ['C-057 a dotless i', { role: 'adm\u0131n' }],
      ['C-058 a lone surrogate', { uid: '\ud800' }],
      ['C-063 a uid of 129 characters', { uid: 'u'.repeat(129) }],
      ['C-063 a uid of 16 KB', { uid: 'u'.repeat(16_384) }],
      ['an acc of 129 characters', { acc: 'a'.repeat(129) }],
      ['F-009 an empty uid', { uid: '' }],
      ['an empty acc', { acc: '' }],
      ['C-065 acc with a slash', { acc: 'a/b' }],
      ['C-065 acc ..', { acc: '..' }],
      ['C-065 acc .', { acc: '.' }],
      ['C-065 acc with a percent sign', { acc: 'acct%31' }],
      ['C-065 acc with a question mark', { acc: 'acct1?' }],
      ['C-065 acc with a number sign', { acc: 'acct1#' }],
      ['C-066 acc *', { acc: '*' }],
      ['C-070 an ID token: nonce, at_hash, and the client for an audience', { aud: 'web', nonce: 'n', at_hash: 'h' }],
      ['acc with a colon', { acc: 'a:b' }],
      ['O-017 a comma in uid', { uid: 'a,b' }],
      ['O-017 a semicolon in uid', { uid: 'a;b' }],
      ['O-017 a semicolon in app', { app: 'a;b' }],
      ['a space in role', { role: 'own er' }],
      ['a quote in role', { role: 'own"er' }],
      ['cnf', { cnf: { jkt: 'x' } }],
      ['cnf null', { cnf: null }],
      ['expiry beyond the tolerance', { exp: now - 60 }, 'token_expired'],
      ['C-006 exp negative', { exp: -5, iat: undefined }, 'token_expired'],
      ['expiry and another audience', { exp: now - 60, aud: 'x' }, 'token_invalid'],
      ['expiry and no role', { exp: now - 60, role: undefined }, 'token_invalid'],
      ['expiry and a key in cnf', { exp: now - 60, cnf: {} }, 'token_invalid'],
    ];
    for (const [name, claims, reason = 'token_invalid'] of changes) {
      it(`${name} (${reason})`, async () => {
        expect(await (await lab()).reasonOf(await token({ claims }))).to.equal(reason);
      });
    }
    for (const name of ['uid', 'app', 'acc', 'role']) {
      it(`C-038 no ${name}`, async () => {
        expect(await (await lab()).reasonOf(await token({ claims: { [name]: undefined } }))).to.equal('token_invalid');
      });
    }
    for (const value of [-1, 1.5, 2 ** 53, '-0']) {
      it(`C-079 the number ${value} where integers are allowed`, async () => {
        const payloadText = (await payload()).replace('"acct1"', String(value));
        expect(await (await lab({ allowIntegerClaims: true })).reasonOf(await token({ payloadText }))).to.equal(
          'token_invalid',
        );
      });
    }
    it('C-005 exp now and no tolerance', async () => {
      expect(await (await lab({ clockToleranceSeconds: 0 })).reasonOf(await token({ claims: { exp: now } }))).to.equal(
        'token_expired',
      );
    });
    it('C-041 a number, with a detail that names the switch', async () => {
      const { outcome } = await (await lab()).verify(await token({ claims: { acc: 1 } }));
      expect(outcome).to.have.property('detail').that.contains('allowIntegerClaims');
    });
  });

  describe('refuses text with', () => {
    const texts: readonly (readonly [name: string, parts: () => Promise<TokenParts>])[] = [
      ['J-061 white space in the payload segment', async () => ({ payloadSegment: ` ${base64url(await payload())}` })],
      [
        'J-063 unused bits in the payload segment',
        async () => ({ payloadSegment: withUnusedBits(base64url(`${await payload()}${await padding()}`)) }),
      ],
      [
        'J-069 a byte order mark in the header',
        async () => ({ headerText: '\ufeff{"alg":"ES256","kid":"k1","typ":"JWT"}' }),
      ],
      ['J-070 alg twice', async () => ({ headerText: '{"alg":"none","kid":"k1","typ":"JWT","alg":"ES256"}' })],
      ['J-071 kid twice', async () => ({ headerText: '{"alg":"ES256","kid":"k2","typ":"JWT","kid":"k1"}' })],
      [
        'J-073 a header that is not UTF-8',
        async () => ({ headerText: Buffer.from('7b22616c67223a2245533235ff227d', 'hex') }),
      ],
      ['a header that is an array', async () => ({ headerText: '[]' })],
      ['C-009 NaN', async () => ({ payloadText: (await payload()).replace(/"exp":\d+/, '"exp":NaN') })],
      ['C-015 an infinite nbf', async () => ({ payloadText: (await payload()).replace('{', '{"nbf":1e400,') })],
      [
        'C-015 an nbf of minus infinity',
        async () => ({ payloadText: (await payload()).replace('{', '{"nbf":-1e400,') }),
      ],
      ['C-045 acc twice', async () => ({ payloadText: (await payload()).replace('{', '{"acc":"acct2",') })],
      ['C-046 exp twice', async () => ({ payloadText: (await payload()).replace('{', '{"exp":1,') })],
      [
        'C-047 acc twice in two spellings',
        async () => ({ payloadText: (await payload()).replace('{', '{"\\u0061cc":"acct2",') }),
      ],
      [
        'C-049 acc in __proto__ only',
        async () => ({ payloadText: (await payload()).replace('"acc":"acct1"', '"__proto__":{"acc":"acct1"}') }),
      ],
      [
        'C-059 a payload that is not UTF-8',
        async () => ({
          payloadText: Buffer.concat([Buffer.from(await payload()).subarray(0, -2), Buffer.from([0xff, 0x22, 0x7d])]),
        }),
      ],
      ['C-061 a comment', async () => ({ payloadText: `${await payload()}/* */` })],
      ['C-061 single quotes', async () => ({ payloadText: (await payload()).replaceAll('"', "'") })],
      ['C-061 a second value', async () => ({ payloadText: `${await payload()}{}` })],
      ['C-062 a payload that is an array', async () => ({ payloadText: '[]' })],
      ['C-062 a payload that is null', async () => ({ payloadText: 'null' })],
      ['C-062 a payload that is a number', async () => ({ payloadText: '1' })],
      ['C-062 a payload of nothing', async () => ({ payloadText: '' })],
      ['C-062 a payload that is text', async () => ({ payloadText: '"x"' })],
      ['J-077 a token for a payload', async () => ({ header: { cty: 'JWT' }, payloadText: await token() })],
    ];
    for (const [name, parts] of texts) {
      it(name, async () => {
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
      ['J-030 no signature', good => `${unsigned(good)}.`],
      ['J-031 two segments', good => unsigned(good)],
      ['J-033 five segments', good => `${good}.a.b`],
      ['J-058 padding', good => `${good}==`],
      ['J-059 a line feed behind', good => `${good}\n`],
      ['J-059 a tab behind', good => `${good}\t`],
      ['J-059 a space behind', good => `${good} `],
      ['J-061 white space in the header segment', good => ` ${good}`],
      [
        'J-064 characters of the other base64 alphabet',
        good => `${unsigned(good)}.+/${good.slice(good.lastIndexOf('.') + 3)}`,
      ],
      ['J-062 unused bits in the signature', good => withUnusedBits(good)],
      ['J-065 an impossible length', good => `${good}AAA`],
      ['J-066 a zero-width space', good => `${good}\u200b`],
      ['J-066 a full-width letter', good => `${good.slice(0, -1)}\uff21`],
      ['J-066 a byte order mark in front', good => `\ufeff${good}`],
      ['J-067 nothing', () => ''],
      ['J-067 two dots', () => '..'],
      ['J-067 a dot', () => '.'],
      ['J-067 dots', () => '...'],
      ['H-005 a space in front', good => ` ${good}`],
      ['H-015 a second word', good => `${good} b`],
      ['H-030 what Envoy puts for a bad byte', good => `${good.slice(0, 20)}!${good.slice(21)}`],
    ];
    for (const [name, edit] of edits) {
      it(name, async () => {
        expect(await (await lab()).reasonOf(edit(await token()))).to.equal('token_invalid');
      });
    }

    it('J-078 one byte more than maxBytes, and not with exactly as many', async () => {
      const good = await token();
      expect(await (await lab({ maxBytes: good.length - 1 })).reasonOf(good)).to.equal('token_invalid');
      expect(await (await lab({ maxBytes: good.length })).reasonOf(good)).to.equal('verified');
    });
    it('J-079 a token of 1 MB, without a look at its keys', async () => {
      const at = await lab();
      const counted = await countingKey(at, 'k1');
      expect(await at.reasonOf(`${await token()}${'A'.repeat(1_000_000)}`)).to.equal('token_invalid');
      expect(at.verifyNow(`${await token()}${'A'.repeat(1_000_000)}`)).to.not.be.a('promise');
      expect(counted.uses).to.equal(0);
    });
    it('J-034 a JWE in which an unsigned token is encrypted to our public key', async () => {
      const key = await signingKey('r1', 'RS256');
      const { n = '', e = '' } = key.publicJwk;
      const publicKey = await importJWK({ kty: 'RSA', n, e, alg: 'RSA-OAEP-256' }, 'RSA-OAEP-256');
      const plain = `${base64url('{"alg":"none"}')}.${base64url(await payload())}.`;
      const jwe = await new CompactEncrypt(Buffer.from(plain))
        .setProtectedHeader({ alg: 'RSA-OAEP-256', enc: 'A128GCM', kid: 'r1', cty: 'JWT' })
        .encrypt(publicKey);
      expect(await (await lab()).reasonOf(jwe)).to.equal('token_invalid');
    });

    const secrets: readonly (readonly [name: string, secretOf: (key: KeyObject, jwk: JWK) => string | Buffer])[] = [
      ['J-015 the PEM without its last line end', key => spki(key).trimEnd()],
      ['J-015 the PEM after a space', key => ` ${spki(key)}`],
      ['J-015 the PEM after a control byte', key => `\x01${spki(key)}`],
      ['J-015 the PEM after a zero-width space', key => `\u200b${spki(key)}`],
      ['J-015 the PEM with CR LF', key => spki(key).replaceAll('\n', '\r\n')],
      ['J-015 DER', key => key.export({ type: 'spki', format: 'der' })],
      ['J-015 PKCS#1', key => key.export({ type: 'pkcs1', format: 'pem' })],
      ['J-017 nothing', () => ''],
      ['J-018 the modulus as text', (_, { n = '' }) => n],
      ['J-018 the modulus as bytes', (_, { n = '' }) => Buffer.from(n, 'base64url')],
      ['J-019 the JWK', (_, jwk) => JSON.stringify(jwk)],
      ['J-019 the PEM', key => spki(key)],
    ];
    for (const [name, secretOf] of secrets) {
      it(`${name} for an HMAC secret, also where HS256 were listed`, async () => {
        const { publicJwk } = await signingKey('r1', 'RS256');
        const secret = secretOf(createPublicKey({ key: publicJwk as JsonWebKey, format: 'jwk' }), publicJwk);
        const header = { alg: 'HS256', kid: 'r1', typ: 'JWT' };
        const input = `${base64url(JSON.stringify(header))}.${base64url(await payload())}`;
        const forged = `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
        expect(await (await lab()).reasonOf(forged)).to.equal('token_invalid');
        expect(await (await lab({ algorithms: ['HS256', 'RS256'] })).reasonOf(forged)).to.equal('token_invalid');
      });
    }
    it('J-018 the x coordinate of an EC key for an HMAC secret', async () => {
      const { x = '' } = (await signingKey('k1')).publicJwk;
      const input = `${base64url('{"alg":"HS256","kid":"k1","typ":"JWT"}')}.${base64url(await payload())}`;
      for (const secret of [x, Buffer.from(x, 'base64url')]) {
        const forged = `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
        expect(await (await lab({ algorithms: ['HS256', 'ES256'] })).reasonOf(forged)).to.equal('token_invalid');
      }
    });
    it('J-085 an ES256 header over a key of another curve', async () => {
      const key = await signingKey('k384', 'ES384');
      const at = await lab({ keys: [key], algorithms: ['ES256', 'ES384'] });
      expect(await at.reasonOf(await token({ key, header: { alg: 'ES256' } }))).to.equal('token_invalid');
    });
    it('C-068 a payload nested as deeply as its length allows, at once', async () => {
      const nested = `${'['.repeat(2500)}${']'.repeat(2500)}`;
      const payloadText = (await payload()).replace('{', `{"deep":${nested},`);
      expect(await (await lab()).reasonOf(await token({ payloadText }))).to.equal('verified');
    });
    it('C-069 ten thousand further claims where they make it too long, and not where maxBytes has room', async () => {
      const further = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`c${i}`, i]));
      const long = await token({ claims: further });
      expect(await (await lab()).reasonOf(long)).to.equal('token_invalid');
      expect(await (await lab({ maxBytes: long.length })).reasonOf(long)).to.equal('verified');
    });
    it('J-014 the public key as HMAC secret', async () => {
      const key = await signingKey('r1', 'RS256');
      const imported = await importJWK(key.publicJwk, 'RS256');
      const pem = imported instanceof Uint8Array ? '' : await exportSPKI(imported);
      const input = `${base64url(JSON.stringify({ alg: 'HS256', kid: 'r1', typ: 'JWT' }))}.${base64url(await payload())}`;
      const forged = `${input}.${createHmac('sha256', pem).update(input).digest('base64url')}`;
      expect(await (await lab()).reasonOf(forged)).to.equal('token_invalid');
    });
    it('J-026 is not fooled into a second cache entry: the malleated twin is judged by its own signature', async () => {
      const { verify } = await lab();
      const good = await token();
      await verify(good);
      const twin = `${unsigned(good)}.${base64url(malleated(signatureOf(good)))}`;
      expect((await verify(twin)).cache).to.equal('miss');
    });
  });

  describe('with keys', () => {
    it('answers keys_unavailable while the key cannot be had', async () => {
      const at = await lab();
      at.keys.clear();
      at.missing = 'unavailable';
      expect(await at.reasonOf(await token())).to.equal('keys_unavailable');
    });
    it('refuses a token of an unknown issuer without asking for keys', async () => {
      const at = await lab();
      at.missing = 'unavailable';
      at.keys.clear();
      expect(await at.reasonOf(await token({ claims: { iss: 'https://evil.test' } }))).to.equal('token_invalid');
    });
    it('C-027 refuses a token of one issuer that the key of another signed', async () => {
      const others = { 'https://b.test': { current: () => undefined, find: () => ({ kind: 'unknown' as const }) } };
      expect(await (await lab({ others })).reasonOf(await token({ claims: { iss: 'https://b.test' } }))).to.equal(
        'token_invalid',
      );
    });
    it('waits for a key that has to be fetched', async () => {
      const key = await issuerKey(await signingKey('k1'));
      const fetched = { 'https://b.test': { current: () => key, find: async () => ({ kind: 'key' as const, key }) } };
      const at = await lab({ others: fetched });
      const { outcome, cache } = await at.verify(await token({ claims: { iss: 'https://b.test' } }));
      expect(outcome.kind).to.equal('claims');
      expect(cache).to.equal('miss');
    });
    it('F-014 rejects where a key fails in a way that no token can cause, and refuses nobody for it', async () => {
      const at = await lab();
      const good = await token();
      const { privateKey } = await generateKeyPair('ES256');
      at.keys.set('k1', { kid: 'k1', cryptoKeyFor: () => privateKey });
      const failure: unknown = await at.verify(good).catch((error: unknown) => error);
      expect(failure).to.be.an.instanceOf(TypeError);
    });
    it('refuses a forged token under a known kid', async () => {
      const other = await signingKey('other');
      expect(await (await lab()).reasonOf(await token({ key: { ...other, kid: 'k1' } }))).to.equal('token_invalid');
    });
    it('C-077 judges the times after the wait for its keys, not before', async () => {
      const at = await lab();
      const key = await issuerKey(await signingKey('k1'));
      let arrive: () => void = () => undefined;
      const arrived = new Promise<void>(resolve => {
        arrive = resolve;
      });
      at.find = () => arrived.then(() => ({ kind: 'key', key }));
      const verifying = at.reasonOf(await token());
      at.clock = now + 3600 + 60;
      arrive();
      expect(await verifying).to.equal('token_expired');
    });
    it('does not allow by a key that went while the signature was checked', async () => {
      const at = await lab();
      const verifying = at.reasonOf(await token());
      at.keys.clear();
      expect(await verifying).to.equal('keys_unavailable');
    });
  });

  describe('for the log', () => {
    const rows: readonly (readonly [detail: string, parts: () => Promise<TokenParts>])[] = [
      ['longer than maxBytes', async () => ({ claims: { uid: 'u'.repeat(9000) } })],
      ['iss is not a configured issuer', async () => ({ claims: { iss: 'https://evil.test' } })],
      ['alg is not one of algorithms', async () => ({ header: { alg: 'ES384' } })],
      ['typ is not one of tokenTypes', async () => ({ header: { typ: 'id+jwt' } })],
      ['kid is not a key of the issuer', async () => ({ header: { kid: 'k9' } })],
      ['the key is not for this algorithm', async () => ({ header: { alg: 'RS256' } })],
      ['the signature does not verify', async () => ({ signature: signatureText(1) })],
    ];
    for (const [detail, parts] of rows) {
      it(`says: ${detail}`, async () => {
        expect((await (await lab()).verify(await token(await parts()))).outcome).to.include({ detail });
      });
    }
    it('says why the keys cannot be had, or have just gone', async () => {
      const at = await lab();
      const verifying = at.verify(await token());
      at.keys.clear();
      expect((await verifying).outcome).to.include({ detail: 'the key was replaced meanwhile' });
      at.missing = 'unavailable';
      expect((await at.verify(await token())).outcome).to.include({ detail: 'no key set yet' });
    });
    it('says of what is no token that it was not known before, and of what is too long nothing', async () => {
      const { verify } = await lab();
      expect(await verify('h.p')).to.include({ cache: 'miss', kid: undefined });
      expect(await verify('a'.repeat(9000))).to.include({ cache: undefined, kid: undefined });
    });
  });

  describe('with known tokens', () => {
    it('L-014 verifies a token once', async () => {
      const { verify } = await lab();
      const good = await token();
      expect((await verify(good)).cache).to.equal('miss');
      expect(await verify(good)).to.deep.include({ cache: 'hit', kid: 'k1' });
    });
    it('L-015 refuses it once its key is gone', async () => {
      const at = await lab();
      const good = await token();
      await at.verify(good);
      at.keys.clear();
      expect(await at.reasonOf(good)).to.equal('token_invalid');
    });
    it('L-014 refuses it once another key has its kid', async () => {
      const at = await lab();
      const good = await token();
      await at.verify(good);
      at.keys.set('k1', await issuerKey(await signingKey('k1-next')));
      expect(await at.reasonOf(good)).to.equal('token_invalid');
    });
    it('L-014 judges its times anew each time', async () => {
      const at = await lab();
      const good = await token();
      await at.verify(good);
      at.clock = now + 3600 + 59;
      expect(await at.reasonOf(good)).to.equal('verified');
      at.clock = now + 3600 + 60;
      expect(await at.reasonOf(good)).to.equal('token_expired');
    });
    it('C-078 refuses it while the clock stands before its time, and accepts it afterwards', async () => {
      const at = await lab();
      const good = await token();
      await at.verify(good);
      at.clock = now - 3600;
      expect(await at.reasonOf(good)).to.equal('token_invalid');
      at.clock = now;
      expect(await at.reasonOf(good)).to.equal('verified');
    });
    it('forgets it once it has expired', async () => {
      const verifiedTokens = createVerifiedTokens<IssuerKey>(10);
      const at = await lab({ verifiedTokens });
      const text = await token();
      await at.verify(text);
      expect(verifiedTokens.size()).to.equal(1);
      at.clock = now + 7200;
      expect(await at.reasonOf(text)).to.equal('token_expired');
      expect(verifiedTokens.size()).to.equal(0);
    });
    it('keeps it while the clock stands before its time', async () => {
      const verifiedTokens = createVerifiedTokens<IssuerKey>(10);
      const at = await lab({ verifiedTokens });
      const text = await token();
      await at.verify(text);
      at.clock = now - 3600;
      expect(await at.reasonOf(text)).to.equal('token_invalid');
      expect(verifiedTokens.size()).to.equal(1);
    });
    it('does not look for a text without a dot among them', async () => {
      const lookedFor: string[] = [];
      const none = createVerifiedTokens<IssuerKey>(0);
      const { verify } = await lab({
        verifiedTokens: {
          ...none,
          get(text) {
            lookedFor.push(text);
            return none.get(text);
          },
        },
      });
      for (const text of ['', 'opaque', 'h.p.s']) await verify(text);
      expect(lookedFor).to.deep.equal(['h.p.s']);
    });
    it('refuses it where its issuer is not trusted any more', async () => {
      const verifiedTokens = createVerifiedTokens<IssuerKey>(10);
      const text = await token();
      await (await lab({ verifiedTokens })).verify(text);
      const without = createTokenVerifier({
        issuers: new Map(),
        times: { clockToleranceSeconds: 60, maxLifetimeSeconds: 86_400 },
        maxBytes: 8192,
        verifiedTokens,
        maxSignatures: 1,
        now: () => now,
      });
      expect((await without.verify(text)).outcome).to.include({ reason: 'token_invalid' });
      expect(verifiedTokens.size()).to.equal(0);
    });
    it('L-014 keeps no refusal', async () => {
      const at = await lab();
      const bad = await token({ claims: { role: undefined } });
      await at.verify(bad);
      expect((await at.verify(bad)).cache).to.equal('miss');
    });
    it('keeps none where maxTokens is 0', async () => {
      const at = await lab({ maxTokens: 0 });
      const good = await token();
      await at.verify(good);
      expect((await at.verify(good)).cache).to.equal('miss');
    });
    it('L-014 keeps the most recently used', async () => {
      const at = await lab({ maxTokens: 2 });
      const [a, b, c] = await Promise.all(['a', 'b', 'c'].map(uid => token({ claims: { uid } })));
      for (const each of [a, b, a, c]) await at.verify(each ?? '');
      expect((await at.verify(a ?? '')).cache).to.equal('hit');
      expect((await at.verify(b ?? '')).cache).to.equal('miss');
    });
  });

  describe('with many calls at once', () => {
    it('checks the signature of a token once for all that bring it meanwhile', async () => {
      const at = await lab();
      const counted = await countingKey(at, 'k1');
      const good = await token();
      const outcomes = await Promise.all([at.verify(good), at.verify(good), at.verify(good)]);
      expect(outcomes.map(({ outcome }) => outcome.kind)).to.deep.equal(['claims', 'claims', 'claims']);
      expect(counted.uses).to.equal(1);
      expect((await at.verify(good)).cache).to.equal('hit');
    });
    it('does so also while another that came before has its result', async () => {
      const { promise, resolve } = createDeferred<Awaited<ReturnType<IssuerKeys['find']>>>();
      const slow: IssuerKeys = { current: () => undefined, find: () => promise };
      const at = await lab({ others: { 'https://slow.test': slow } });
      const second = await token({ claims: { iss: 'https://slow.test' } });
      const ofFirst = at.verify(await token());
      const ofSecond = at.verifyNow(second);
      await ofFirst;
      expect(at.verifyNow(second)).to.equal(ofSecond).and.to.be.a('promise');
      resolve({ kind: 'unknown' });
      await ofSecond;
    });
    it('checks a refused token anew once its refusal is told', async () => {
      const at = await lab();
      const counted = await countingKey(at, 'k1');
      const bad = await token({ claims: { role: undefined } });
      await Promise.all([at.verify(bad), at.verify(bad)]);
      await at.verify(bad);
      expect(counted.uses).to.equal(2);
    });
    it('G-027 refuses with 503 what cannot even wait, and goes on with the others', async () => {
      const at = await lab({ maxSignatures: 3 });
      const good = await token();
      const forged = [1, 2, 3, 4].map(i => `${good.slice(0, good.lastIndexOf('.'))}.${signatureText(i)}`);
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
    it('answers at once what needs no signature', async () => {
      const at = await lab();
      const other = await token({ claims: { iss: 'https://other.test' } });
      expect(at.verifyNow(other)).to.not.be.a('promise');
      expect(at.verifyNow('a.b.c')).to.not.be.a('promise');
      expect(at.verifyNow(await token())).to.be.a('promise');
    });
  });

  it('J-021 refuses a good signature by an algorithm that the issuer does not list, though its key could', async () => {
    const key = await signingKey('k1');
    expect(await (await lab({ keys: [key], algorithms: ['RS256'] })).reasonOf(await token({ key }))).to.equal(
      'token_invalid',
    );
  });

  it('I4 tells no difference between two bad tokens but in the detail for the log', async () => {
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

// White space that makes the length of the payload leave unused bits in its last character.
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

// ECDSA-Sig-Value of RFC 3279 section 2.2.3.
function derOf(signature: Buffer): Buffer {
  const integer = (bytes: Buffer): Buffer => {
    const whole = Buffer.concat([Buffer.from([0]), bytes]);
    return Buffer.concat([Buffer.from([2, whole.length]), whole]);
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

// (r, n - s) verifies where (r, s) does: the order n of P-256 is public.
function malleated(signature: Buffer): Buffer {
  const s = BigInt(`0x${signature.subarray(32).toString('hex')}`);
  return Buffer.concat([signature.subarray(0, 32), Buffer.from((order - s).toString(16).padStart(64, '0'), 'hex')]);
}
