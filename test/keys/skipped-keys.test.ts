// Keys of a key set that are skipped, each with its reason.
import { expect } from 'chai';
import { exportJWK, type JWK } from 'jose';
import { signingKey } from '../../lab/signing-key.ts';
import { changed, jwk, keySetOf, parse } from './parsed-keys.ts';

const isPrivate = 'it shows its private half';

function withLastByte(value: string | undefined, change: (byte: number) => number): string {
  return changed(value, bytes => Buffer.from(bytes.map((byte, i) => (i === bytes.length - 1 ? change(byte) : byte))));
}

describe('skipped key', () => {
  const of = (alg: string) => (change: (key: JWK) => object) => async () => {
    const key = await jwk('k', alg);
    return { ...key, ...change(key) };
  };
  const [rsa, ec, okp] = [of('RS256'), of('ES256'), of('EdDSA')];
  const modulus = (bits: number) => {
    const bytes = Buffer.alloc(Math.ceil(bits / 8), 0xff);
    bytes[0] = 0xff >> (bytes.length * 8 - bits);
    return bytes.toString('base64url');
  };
  const exponent = (value: number | bigint) => {
    const hex = value.toString(16);
    return Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex').toString('base64url');
  };
  const mlDsa = (bytes: number) => async () => {
    return { kty: 'AKP', kid: 'k', alg: 'ML-DSA-44', pub: Buffer.alloc(bytes).toString('base64url') };
  };
  const weakExponent = 'e is not an odd number from 65537 to 2147483647';

  const notOnCurve = 'the point is not on P-256';
  const rows: readonly (readonly [string, () => Promise<unknown>, string])[] = [
    ['K-027 a symmetric key', async () => ({ kty: 'oct', k: 'c2VjcmV0', kid: 'k' }), 'kty oct: a shared secret'],
    ['K-029 use enc', ec(() => ({ use: 'enc' })), 'use: enc'],
    ['a use of SPIFFE', ec(() => ({ use: 'jwt-svid' })), 'use: jwt-svid'],
    ['a use in another case', ec(() => ({ use: 'SIG' })), 'use: SIG'],
    ['an empty use', ec(() => ({ use: '' })), 'use: ""'],
    ['a use that is a list', ec(() => ({ use: ['sig'] })), 'use: a list'],
    ['a long use with controls', ec(() => ({ use: `\n${'u'.repeat(99)}` })), `use: \\u{a}${'u'.repeat(58)}…`],
    ['K-029 key_ops encrypt', ec(() => ({ key_ops: ['encrypt'] })), 'key_ops without verify'],
    ['K-029 key_ops sign', ec(() => ({ key_ops: ['sign'] })), 'key_ops without verify'],
    ['key_ops that is a string', ec(() => ({ key_ops: 'verify' })), 'key_ops without verify'],
    ['use sig and key_ops encrypt', ec(() => ({ use: 'sig', key_ops: ['encrypt'] })), 'key_ops without verify'],
    ['K-030 an alg of another key type', ec(() => ({ alg: 'RS256' })), 'alg RS256 does not fit P-256'],
    ['an alg that the issuer does not list', rsa(() => ({ alg: 'RS512' })), 'alg RS512 is not one of algorithms'],
    [
      'another type without alg',
      async () => ({ ...(await jwk('k', 'ES384')), alg: undefined }),
      'algorithms has none for P-384',
    ],
    ['an alg for encryption', rsa(() => ({ alg: 'RSA-OAEP' })), 'alg RSA-OAEP'],
    ['an alg of Java', rsa(() => ({ alg: 'SHA256withRSA' })), 'alg SHA256withRSA'],
    ['an alg none', ec(() => ({ alg: 'none' })), 'alg none'],
    ['an alg HS256 on a public key', rsa(() => ({ alg: 'HS256' })), 'alg HS256'],
    ['an alg that is a number', ec(() => ({ alg: 256 })), 'the alg is a number'],
    ['K-037 a kid that is a number', ec(() => ({ kid: 1 })), 'the kid is a number'],
    ['an empty kid', ec(() => ({ kid: '' })), 'the kid is empty'],
    ['K-037 a kid of 257 characters', ec(() => ({ kid: 'k'.repeat(257) })), 'the kid is longer than 256 characters'],
    ['a key without kty', ec(() => ({ kty: undefined })), 'kty missing'],
    ['a key of unknown kty', ec(() => ({ kty: 'LMS', pub: 'AAAA' })), 'kty LMS'],
    ['ML-DSA without alg', async () => ({ kty: 'AKP', kid: 'k', pub: 'AAAA' }), 'alg missing'],
    ['ML-DSA of an unknown alg', async () => ({ kty: 'AKP', kid: 'k', alg: '__proto__' }), 'alg __proto__'],
    ['ML-DSA of 3 bytes', mlDsa(3), 'pub has not the 1312 bytes of ML-DSA-44'],
    ['ML-DSA where it is not listed', mlDsa(1312), 'alg ML-DSA-44 is not one of algorithms'],
    ['K-038 an x5c chain only', async () => ({ kty: 'RSA', kid: 'k', x5c: ['AAAA'] }), 'n is missing'],
    ['K-034 J-081 RSA of 1024 bits', rsa(() => ({ n: modulus(1024) })), 'RSA of 1024 bits, not 2048 to 8192'],
    ['K-034 RSA of 2047 bits', rsa(() => ({ n: modulus(2047) })), 'RSA of 2047 bits, not 2048 to 8192'],
    ['K-034 RSA of 8193 bits', rsa(() => ({ n: modulus(8193) })), 'RSA of 8193 bits, not 2048 to 8192'],
    ['an even modulus', rsa(({ n }) => ({ n: withLastByte(n, byte => byte & 0xfe) })), 'n is even'],
    ['K-034 exponent 0', rsa(() => ({ e: 'AA' })), weakExponent],
    ['K-034 J-082 exponent 1', rsa(() => ({ e: exponent(1) })), weakExponent],
    ['K-034 exponent 3', rsa(() => ({ e: exponent(3) })), weakExponent],
    ['K-034 exponent 65535', rsa(() => ({ e: exponent(65_535) })), weakExponent],
    ['K-034 exponent 65538', rsa(() => ({ e: exponent(65_538) })), weakExponent],
    ['exponent 2^31 + 1', rsa(() => ({ e: exponent(2n ** 31n + 1n) })), weakExponent],
    ['an exponent as long as its modulus', rsa(({ n }) => ({ e: n })), weakExponent],
    ['K-033 no exponent', rsa(() => ({ e: undefined })), 'e is missing'],
    ['K-033 n of 0s', rsa(() => ({ n: Buffer.alloc(256).toString('base64url') })), 'RSA of 0 bits, not 2048 to 8192'],
    ['K-033 a modulus in standard base64', rsa(() => ({ n: '+/+/' })), 'n is not base64url'],
    ['K-033 three characters of padding', rsa(({ n }) => ({ n: `${n}===` })), 'n is not base64url'],
    ['K-033 an exponent that is not canonical', rsa(() => ({ e: 'AQAC_' })), 'e is not base64url'],
    ['K-033 a modulus that is a number', rsa(() => ({ n: 3 })), 'n is a number'],
    ['K-033 a point off the curve', ec(({ y }) => ({ y: withLastByte(y, byte => byte ^ 1) })), notOnCurve],
    ['K-033 an EC point at 0, 0', ec(() => ({ x: 'A'.repeat(43), y: 'A'.repeat(43) })), notOnCurve],
    ['K-033 a coordinate beyond the field', ec(() => ({ x: Buffer.alloc(32, 255).toString('base64url') })), notOnCurve],
    ['K-033 a short EC coordinate', ec(({ x }) => ({ x: changed(x, bytes => bytes.subarray(0, -1)) })), notOnCurve],
    [
      'K-033 an EC coordinate with an extra zero',
      ec(({ x }) => ({ x: changed(x, bytes => Buffer.concat([Buffer.alloc(1), bytes])) })),
      'x or y is longer than the 32 bytes of P-256',
    ],
    ['K-033 an EC key without x', ec(() => ({ x: undefined })), 'x is missing'],
    ['K-033 an EC key without y', ec(() => ({ y: '' })), 'y is not base64url'],
    ['an unsupported curve', ec(() => ({ crv: 'secp256k1' })), 'crv secp256k1'],
    ['a curve named __proto__', ec(() => ({ crv: '__proto__' })), 'crv __proto__'],
    ['an EC key of another curve', ec(() => ({ crv: 'P-384', alg: undefined })), 'algorithms has none for P-384'],
    ['an X25519 key', okp(() => ({ crv: 'X25519' })), 'crv X25519'],
    ['an Ed448 key', okp(() => ({ crv: 'Ed448' })), 'crv Ed448'],
    [
      'a short Ed25519 key',
      okp(({ x }) => ({ x: changed(x, bytes => bytes.subarray(1)) })),
      'x has not the 32 bytes of Ed25519',
    ],
    ['an entry that is a list', async () => ['kid'], 'it is a list'],
  ];
  for (const [name, make, reason] of rows) {
    it(`for ${name} says: ${reason}`, async () => {
      const { kids, skipped } = await keySetOf([await make(), await jwk('good')]);
      expect([...kids]).to.deep.equal(['good']);
      expect(skipped.map(key => key.reason)).to.deep.equal([reason]);
    });
  }

  for (const member of ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv']) {
    it(`for the private member ${member} says: ${isPrivate}`, async () => {
      const { kids, skipped } = await keySetOf([{ ...(await jwk('leaked')), [member]: 'AQ' }, await jwk('good')]);
      expect([...kids]).to.deep.equal(['good']);
      expect(skipped).to.deep.equal([{ key: 'leaked', reason: isPrivate }]);
    });
  }

  it('is also the public half of a leaked key, under any kid', async () => {
    const { privateKey, publicJwk } = await signingKey('leaked twice');
    const leaked = { ...(await exportJWK(privateKey)), kid: 'other name' };
    const broken = { kty: 'EC', crv: 'P-256', d: 'AQ', kid: 'broken' };
    const { kids, skipped } = await keySetOf([publicJwk, leaked, broken, await jwk('good')]);
    expect([...kids]).to.deep.equal(['good']);
    expect(skipped).to.deep.equal(['leaked twice', 'other name', 'broken'].map(key => ({ key, reason: isPrivate })));
  });

  it('is named by its kid, bounded and printable, or by its place', async () => {
    const keys = [{ kty: 'oct', kid: `\u202e${'k'.repeat(10_240)}` }, { kty: 'oct' }, { kty: 'oct', kid: 7 }, {}];
    const { skipped } = await keySetOf([...keys, await jwk('good')]);
    const names = [`\\u{202e}${'k'.repeat(55)}…`, 'keys[1]', 'keys[2]', 'keys[3]'];
    expect(skipped.map(({ key }) => key)).to.deep.equal(names);
  });

  it('K-022 is named in the problem of a set without another, up to twenty', async () => {
    const keys = Array.from({ length: 22 }, (_, i) => ({ kty: 'oct', kid: `k${i}` }));
    const reason = 'kty oct: a shared secret';
    const parsed = await parse({ keys });
    expect(parsed).to.have.property('skipped').with.length(22);
    const named = Array.from({ length: 20 }, (_, i) => `k${i} (${reason})`).join(', ');
    expect(parsed).to.include({ problem: `no usable key: ${named} and 2 more` });
  });

  it('leaves the same key under another kid in use', async () => {
    const good = await jwk('good');
    expect([...(await keySetOf([{ ...good, kid: 'other', use: 'enc' }, good])).kids]).to.deep.equal(['good']);
  });
});
