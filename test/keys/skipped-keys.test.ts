// Keys of a key set that are skipped, each with its reason.
import { expect } from 'chai';
import { exportJWK, type JWK } from 'jose';
import { signingKey } from '../../lab/signing-key.ts';
import { changed, jwk, keySetOf, parse } from './parsed-keys.ts';

function withLastByte(value: string | undefined, change: (byte: number) => number): string {
  return changed(value, bytes => Buffer.from(bytes.map((byte, i) => (i === bytes.length - 1 ? change(byte) : byte))));
}

describe('key that is not used', () => {
  describe('skipped key', () => {
    const rsa = (change: (key: JWK) => object) => async () => ({
      ...(await jwk('rsa', 'RS256')),
      ...change(await jwk('rsa', 'RS256')),
    });
    const ec = (change: (key: JWK) => object) => async () => ({ ...(await jwk('ec')), ...change(await jwk('ec')) });
    const okp = (change: (key: JWK) => object) => async () => ({
      ...(await jwk('okp', 'EdDSA')),
      ...change(await jwk('okp', 'EdDSA')),
    });
    const withPrivate = (alg: string) => async () => ({
      ...(await exportJWK((await signingKey(`leak ${alg}`, alg)).privateKey)),
      kid: 'leak',
    });
    const modulus = (bits: number) => {
      const bytes = Buffer.alloc(Math.ceil(bits / 8), 0xff);
      bytes[0] = 0xff >> (bytes.length * 8 - bits);
      return bytes.toString('base64url');
    };
    const exponent = (value: number | bigint) => {
      const hex = value.toString(16);
      return Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex').toString('base64url');
    };

    const rows: readonly (readonly [string, () => Promise<unknown>, string])[] = [
      ['K-027 a symmetric key', async () => ({ kty: 'oct', k: 'c2VjcmV0', kid: 'oct' }), 'symmetric key'],
      ['a private RSA key', withPrivate('RS256'), 'private key published'],
      ['a private EC key', withPrivate('ES256'), 'private key published'],
      ['a private Ed25519 key', withPrivate('EdDSA'), 'private key published'],
      ['an RSA key with one of its primes', rsa(() => ({ p: 'AQAB' })), 'private key published'],
      ['K-029 a key with use enc', ec(() => ({ use: 'enc' })), 'for another use'],
      ['a use in another case', ec(() => ({ use: 'SIG' })), 'for another use'],
      ['a use that is not a string', ec(() => ({ use: ['sig'] })), 'for another use'],
      ['K-029 a key with key_ops encrypt', ec(() => ({ key_ops: ['encrypt'] })), 'for another use'],
      ['K-029 a key with key_ops sign', ec(() => ({ key_ops: ['sign'] })), 'for another use'],
      ['a key_ops that is a string', ec(() => ({ key_ops: 'verify' })), 'for another use'],
      ['a key with use sig and key_ops encrypt', ec(() => ({ use: 'sig', key_ops: ['encrypt'] })), 'for another use'],
      ['K-030 an alg of another key type', ec(() => ({ alg: 'RS256' })), 'algorithm not allowed'],
      ['an alg that the issuer does not list', rsa(() => ({ alg: 'RS512' })), 'algorithm not allowed'],
      ['an alg for encryption', rsa(() => ({ alg: 'RSA-OAEP' })), 'algorithm not allowed'],
      ['an alg none', ec(() => ({ alg: 'none' })), 'algorithm not allowed'],
      ['an alg HS256 on a public key', rsa(() => ({ alg: 'HS256' })), 'algorithm not allowed'],
      ['an alg that is a number', ec(() => ({ alg: 256 })), 'malformed'],
      ['a key without kid', ec(() => ({ kid: undefined })), 'no kid'],
      ['an empty kid', ec(() => ({ kid: '' })), 'no kid'],
      ['K-037 a kid that is a number', ec(() => ({ kid: 1 })), 'no kid'],
      ['K-037 a kid of 10 KB', ec(() => ({ kid: 'k'.repeat(10_240) })), 'kid too long'],
      ['a key without kty', ec(() => ({ kty: undefined })), 'key type not supported'],
      ['a key of unknown kty', ec(() => ({ kty: 'AKP', pub: 'AAAA' })), 'key type not supported'],
      ['K-038 a key with an x5c chain only', async () => ({ kty: 'RSA', kid: 'x5c', x5c: ['AAAA'] }), 'malformed'],
      ['K-034 J-081 an RSA key of 1024 bits', rsa(() => ({ n: modulus(1024) })), 'RSA modulus'],
      ['K-034 an RSA key of 2047 bits', rsa(() => ({ n: modulus(2047) })), 'RSA modulus'],
      ['K-034 an RSA key of 8193 bits', rsa(() => ({ n: modulus(8193) })), 'RSA modulus'],
      ['K-034 an RSA key of 16384 bits', rsa(() => ({ n: modulus(16_384) })), 'RSA modulus'],
      ['an even RSA modulus', rsa(({ n }) => ({ n: withLastByte(n, byte => byte & 0xfe) })), 'RSA modulus'],
      ['an RSA modulus of zeros', rsa(() => ({ n: Buffer.alloc(256).toString('base64url') })), 'RSA modulus'],
      ['K-034 an RSA key with exponent 0', rsa(() => ({ e: 'AA' })), 'RSA exponent'],
      ['K-034 J-082 an RSA key with exponent 1', rsa(() => ({ e: exponent(1) })), 'RSA exponent'],
      ['K-034 an RSA key with exponent 3', rsa(() => ({ e: exponent(3) })), 'RSA exponent'],
      ['K-034 an RSA key with exponent 65535', rsa(() => ({ e: exponent(65_535) })), 'RSA exponent'],
      ['K-034 an RSA key with exponent 65538', rsa(() => ({ e: exponent(65_538) })), 'RSA exponent'],
      [
        'an RSA modulus of more than 4096 characters, mostly leading zeros,',
        rsa(({ n }) => ({ n: changed(n, bytes => Buffer.concat([Buffer.alloc(3072), bytes])) })),
        'malformed',
      ],
      ['an RSA key with exponent 2^31 + 1', rsa(() => ({ e: exponent(2n ** 31n + 1n) })), 'RSA exponent'],
      ['an RSA key with exponent 2^32 + 1', rsa(() => ({ e: exponent(2n ** 32n + 1n) })), 'RSA exponent'],
      ['an RSA key with an exponent as long as its modulus', rsa(({ n }) => ({ e: n })), 'RSA exponent'],
      ['K-033 an RSA key without an exponent', rsa(() => ({ e: undefined })), 'malformed'],
      ['K-033 a modulus with padding', rsa(({ n }) => ({ n: `${n}==` })), 'malformed'],
      ['K-033 a modulus in the standard base64 alphabet', rsa(() => ({ n: '+/+/' })), 'malformed'],
      ['K-033 an exponent that is not canonical base64url', rsa(() => ({ e: 'AQAC_' })), 'malformed'],
      ['K-033 a modulus that is a number', rsa(() => ({ n: 3 })), 'malformed'],
      [
        'K-033 an EC point off the curve',
        ec(({ y }) => ({ y: withLastByte(y, byte => byte ^ 1) })),
        'point off the curve',
      ],
      ['K-033 an EC point at 0, 0', ec(() => ({ x: 'A'.repeat(43), y: 'A'.repeat(43) })), 'point off the curve'],
      [
        'K-033 an EC coordinate beyond the field',
        ec(() => ({ x: Buffer.alloc(32, 0xff).toString('base64url') })),
        'point off the curve',
      ],
      [
        'K-033 an EC coordinate that is one byte short',
        ec(({ x }) => ({ x: changed(x, bytes => bytes.subarray(1)) })),
        'malformed',
      ],
      [
        'K-033 an EC coordinate with an extra leading zero',
        ec(({ x }) => ({ x: changed(x, bytes => Buffer.concat([Buffer.alloc(1), bytes])) })),
        'malformed',
      ],
      ['K-033 an EC key without x', ec(() => ({ x: undefined })), 'malformed'],
      ['K-033 an EC key without y', ec(() => ({ y: undefined })), 'malformed'],
      ['an Ed25519 key without x', okp(() => ({ x: undefined })), 'malformed'],
      ['an unsupported curve', ec(() => ({ crv: 'secp256k1' })), 'curve not supported'],
      ['a curve named __proto__', ec(() => ({ crv: '__proto__' })), 'curve not supported'],
      ['an EC key that names another curve', ec(() => ({ crv: 'P-384' })), 'malformed'],
      ['an X25519 key', okp(() => ({ crv: 'X25519' })), 'curve not supported'],
      ['an Ed448 key', okp(() => ({ crv: 'Ed448' })), 'curve not supported'],
      ['an Ed25519 key of 31 bytes', okp(({ x }) => ({ x: changed(x, bytes => bytes.subarray(1)) })), 'malformed'],
      ['an entry that is not an object', async () => ['kid'], 'not an object'],
    ];
    for (const [name, make, reason] of rows) {
      it(`${name} is skipped: ${reason}`, async () => {
        const { keys, skipped } = await keySetOf([await make(), await jwk('good')]);
        expect([...keys.keys()]).to.deep.equal(['good']);
        expect(skipped.map(key => key.reason)).to.deep.equal([reason]);
      });
    }

    for (const member of ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv']) {
      it(`a key with the private member ${member} is skipped: private key published`, async () => {
        const { keys, skipped } = await keySetOf([{ ...(await jwk('leaked')), [member]: 'AQ' }, await jwk('good')]);
        expect([...keys.keys()]).to.deep.equal(['good']);
        expect(skipped).to.deep.equal([{ kid: 'leaked', reason: 'private key published' }]);
      });
    }

    it('K-022 a document whose only key is skipped is refused and names the key', async () => {
      const parsed = await parse({ keys: [{ kty: 'oct', k: 'AAAA', kid: 'only' }] });
      expect(parsed).to.deep.equal({
        kind: 'problem',
        problem: 'no usable key',
        skipped: [{ kid: 'only', reason: 'symmetric key' }],
      });
    });

    it('a key without kid is skipped even if Object.prototype has a kid', async () => {
      Object.defineProperty(Object.prototype, 'kid', { value: 'inherited', configurable: true });
      try {
        const { kid: _, ...nameless } = await jwk('nameless');
        expect(await parse({ keys: [nameless] })).to.include({ kind: 'problem', problem: 'no usable key' });
      } finally {
        Reflect.deleteProperty(Object.prototype, 'kid');
      }
    });

    it('a kid of 10 KB is reported with its first 256 characters', async () => {
      const { skipped } = await keySetOf([{ kty: 'oct', kid: 'k'.repeat(10_240) }, await jwk('good')]);
      expect(skipped[0]?.kid?.length).to.equal(256);
    });

    it('the public half of a leaked key is skipped under any kid', async () => {
      const { privateKey, publicJwk } = await signingKey('leaked twice');
      const leaked = { ...(await exportJWK(privateKey)), kid: 'other name' };
      const { keys, skipped } = await keySetOf([publicJwk, leaked, await jwk('good')]);
      expect([...keys.keys()]).to.deep.equal(['good']);
      expect(skipped.map(key => key.reason)).to.deep.equal(['private key published', 'private key published']);
    });

    it('a key that is skipped for its use leaves the same key under another kid in use', async () => {
      const good = await jwk('good');
      const { keys } = await keySetOf([{ ...good, kid: 'other', use: 'enc' }, good]);
      expect([...keys.keys()]).to.deep.equal(['good']);
    });

    it('a leaked malformed key leaves the other keys in use', async () => {
      const { keys, skipped } = await keySetOf([
        { kty: 'EC', crv: 'P-256', d: 'AQ', kid: 'broken' },
        await jwk('good'),
      ]);
      expect([...keys.keys()]).to.deep.equal(['good']);
      expect(skipped).to.deep.equal([{ kid: 'broken', reason: 'private key published' }]);
    });
  });
});
