// Which published keys become verification keys, and the reason why each other one is skipped.
import { expect } from 'chai';
import { calculateJwkThumbprint, exportJWK, type JWK } from 'jose';
import { type KeySet, parseKeySet } from '../../src/keys/jwks.ts';
import { signingKey } from '../support/signing-key.ts';

const algorithms = ['RS256', 'ES256', 'EdDSA'];

const bytesOf = (value: unknown): Uint8Array => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));

const parse = (value: unknown, allowed = algorithms) => parseKeySet(bytesOf(value), allowed);

async function keySetOf(keys: readonly unknown[], allowed = algorithms, previous?: KeySet): Promise<KeySet> {
  const parsed = await parseKeySet(bytesOf({ keys }), allowed, previous?.keys);
  if (parsed.kind === 'problem') throw new Error(`${parsed.problem} ${JSON.stringify(parsed.skipped)}`);
  return parsed;
}

const jwk = async (kid: string, alg = 'ES256'): Promise<JWK> => (await signingKey(kid, alg)).publicJwk;

/** A base64url number whose bytes are changed. */
function changed(value: string | undefined, change: (bytes: Buffer) => Buffer): string {
  return change(Buffer.from(value ?? '', 'base64url')).toString('base64url');
}

function withLastByte(value: string | undefined, change: (byte: number) => number): string {
  return changed(value, bytes => Buffer.from(bytes.map((byte, i) => (i === bytes.length - 1 ? change(byte) : byte))));
}

describe('parseKeySet', () => {
  describe('key set document', () => {
    const documents: readonly (readonly [string, unknown, string])[] = [
      ['K-021 an empty object', {}, 'not a key set'],
      ['K-021 an array', [], 'not a key set'],
      ['K-021 null', 'null', 'not a key set'],
      ['K-021 a keys member that is an object', { keys: {} }, 'not a key set'],
      ['K-021 a list of numbers as keys', { keys: [1] }, 'no usable key'],
      ['K-022 an empty list of keys', { keys: [] }, 'no usable key'],
      ['a keys member that is only inherited from __proto__', '{"__proto__":{"keys":[]}}', 'not a key set'],
      ['K-023 a duplicate member', '{"keys":[],"keys":[]}', 'a member twice'],
      ['K-023 a duplicate member in a key', '{"keys":[{"kid":"a","\\u006bid":"b"}]}', 'a member twice'],
      ['K-055 a byte order mark', '\uFEFF{"keys":[]}', 'not JSON'],
      ['a truncated document', '{"keys":[{"kid":"a"', 'not JSON'],
      ['an HTML page', '<!doctype html>', 'not JSON'],
      ['an empty body', '', 'not JSON'],
      ['a document of more than 512 KiB', ' '.repeat(512 * 1024 + 1), 'body too large'],
      ['K-035 a list of 20,000 keys', { keys: new Array(20_000).fill({}) }, 'too many values'],
      ['half a megabyte of brackets', '['.repeat(512 * 1024), 'nested too deep'],
      [
        'an array nested deeper than the call stack',
        `{"keys":[${'['.repeat(100_000)}${']'.repeat(100_000)}]}`,
        'nested too deep',
      ],
      ['half a megabyte of nested objects', '{"keys":'.repeat(64 * 1024), 'nested too deep'],
      ['a key of 64 nested lists', `{"keys":[${'['.repeat(63)}${']'.repeat(63)}]}`, 'nested too deep'],
      ['a list of 250,000 numbers', `{"keys":[${'0,'.repeat(250_000)}0]}`, 'too many values'],
      [
        'an object of 10,000 members',
        `{${Array.from({ length: 10_000 }, (_, i) => `"${i}":0`).join()}}`,
        'too many values',
      ],
      ['K-035 a list of 101 keys', { keys: new Array(101).fill({}) }, 'too many keys'],
    ];
    for (const [name, document, problem] of documents) {
      it(`${name} is refused: ${problem}`, async () => {
        expect(await parse(document)).to.include({ kind: 'problem', problem });
      });
    }

    it('a refused document lists no skipped keys', async () => {
      for (const document of [' '.repeat(512 * 1024 + 1), '{', {}, { keys: new Array(101).fill({}) }])
        expect(await parse(document)).to.have.deep.property('skipped', []);
    });

    it('invalid UTF-8 is refused: not UTF-8', async () => {
      const parsed = await parseKeySet(Buffer.from([0x7b, 0xff, 0x7d]), algorithms);
      expect(parsed).to.include({ kind: 'problem', problem: 'not UTF-8' });
    });

    it('a list of 100 keys is accepted', async () => {
      const key = await jwk('k');
      const { keys } = await keySetOf(Array.from({ length: 100 }, (_, i) => ({ ...key, kid: `k${i}` })));
      expect(keys.size).to.equal(100);
    });
  });

  describe('valid key', () => {
    const types = [
      ['RS256', ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']],
      ['ES256', ['ES256']],
      ['ES384', ['ES384']],
      ['ES512', ['ES512']],
      ['EdDSA', ['EdDSA', 'Ed25519']],
    ] as const;
    const all = types.flatMap(([, names]) => names);
    for (const [type, names] of types) {
      for (const alg of names) {
        it(`with alg ${alg} verifies ${alg} and no other algorithm`, async () => {
          const { keys } = await keySetOf([{ ...(await jwk('good', type)), alg }], all);
          const served = all.filter(name => keys.get('good')?.cryptoKeyFor(name) !== undefined);
          expect(served).to.deep.equal([alg]);
        });
      }
    }

    it('K-031 without alg verifies every algorithm of the issuer that fits its type', async () => {
      const { alg: _, ...key } = await jwk('rsa', 'RS256');
      const { keys } = await keySetOf([key], ['RS256', 'PS256', 'ES256']);
      const served = ['RS256', 'PS256', 'RS512', 'ES256'].filter(
        alg => keys.get('rsa')?.cryptoKeyFor(alg) !== undefined,
      );
      expect(served).to.deep.equal(['RS256', 'PS256']);
    });

    it('without alg is returned as JWK with its public members, kid and use only', async () => {
      const { alg: _, kty, crv, x, y } = await jwk('public');
      const parsed = await parse({ keys: [{ kty, crv, x, y, kid: 'public', extra: 1 }] });
      expect(parsed).to.deep.include({ kind: 'keySet', publicJwks: [{ kty, crv, x, y, kid: 'public', use: 'sig' }] });
    });

    it('has the thumbprint of RFC 7638', async () => {
      const published = await jwk('rsa', 'RS256');
      const { keys } = await keySetOf([published]);
      expect(keys.get('rsa')?.thumbprint).to.equal(await calculateJwkThumbprint(published, 'sha256'));
    });

    it('K-037 can have the kid __proto__', async () => {
      const published = await jwk('proto');
      const { keys } = await keySetOf([{ ...published, kid: '__proto__' }]);
      expect(keys.get('__proto__')?.kid).to.equal('__proto__');
      expect(Object.hasOwn(Object.prototype, 'kid')).to.equal(false);
    });

    it('K-037 can have a kid of 256 characters', async () => {
      const { keys } = await keySetOf([{ ...(await jwk('long')), kid: 'k'.repeat(256) }]);
      expect(keys.size).to.equal(1);
    });

    it('can have x5c, x5t, x5u and unknown members, which are ignored', async () => {
      const extra = { x5c: ['AAAA'], x5t: 'x', x5u: 'http://169.254.169.254/', nbf: 1, exp: 2, extra: { d: 1 } };
      const { keys } = await keySetOf([{ ...(await jwk('plain')), ...extra }]);
      expect([...keys.keys()]).to.deep.equal(['plain']);
    });

    it('equals the key without the leading zeros of its modulus', async () => {
      const plain = await jwk('rsa', 'RS256');
      const padded = { ...plain, n: changed(plain.n, bytes => Buffer.concat([Buffer.alloc(2), bytes])) };
      const { keys, skipped } = await keySetOf([plain, padded]);
      expect(keys.size).to.equal(1);
      expect(skipped).to.deep.equal([]);
    });

    it('can have key_ops that include verify', async () => {
      expect((await keySetOf([{ ...(await jwk('ops')), key_ops: ['verify'] }])).keys.size).to.equal(1);
    });

    for (const bits of [2048, 3072, 4096, 8192]) {
      it(`K-034 can be an RSA key of ${bits} bits`, async () => {
        const n = Buffer.alloc(bits / 8, 0xff).toString('base64url');
        expect((await keySetOf([{ kty: 'RSA', kid: 'rsa', n, e: 'AQAB' }])).keys.size).to.equal(1);
      });
    }

    it('can have the RSA exponent 2^31 - 1', async () => {
      const { keys } = await keySetOf([
        { ...(await jwk('rsa', 'RS256')), e: Buffer.from('7fffffff', 'hex').toString('base64url') },
      ]);
      expect([...keys.keys()]).to.deep.equal(['rsa']);
    });

    it('is returned as JWK with its public members, kid, alg and use only', async () => {
      const { publicJwks } = await keySetOf([{ ...(await jwk('public')), x5c: ['AAAA'], extra: 1 }]);
      const { kty, crv, x, y, kid, alg, use } = await jwk('public');
      expect(publicJwks).to.deep.equal([{ kty, crv, x, y, kid, alg, use }]);
    });
  });

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

  describe('duplicate kid', () => {
    it('K-025 of the same key yields one key', async () => {
      const key = await jwk('twice');
      const { keys, skipped } = await keySetOf([key, key]);
      expect(keys.size).to.equal(1);
      expect(skipped).to.deep.equal([]);
    });

    it('of the same key for two algorithms yields one key for both', async () => {
      const key = await jwk('rsa', 'RS256');
      const { keys, publicJwks } = await keySetOf([key, { ...key, alg: 'PS256' }], ['RS256', 'PS256']);
      expect(keys.get('rsa')?.cryptoKeyFor('RS256')).to.not.equal(undefined);
      expect(keys.get('rsa')?.cryptoKeyFor('PS256')).to.not.equal(undefined);
      expect(publicJwks).to.have.length(2);
    });

    it('K-026 of an RSA and an EC key skips both', async () => {
      const { keys, skipped } = await keySetOf([await jwk('same', 'RS256'), await jwk('same'), await jwk('good')]);
      expect([...keys.keys()]).to.deep.equal(['good']);
      expect(skipped).to.deep.equal([{ kid: 'same', reason: 'two keys under one kid' }]);
    });

    it('of two different keys of one type skips both', async () => {
      const { keys } = await keySetOf([await jwk('one'), { ...(await jwk('two')), kid: 'one' }, await jwk('good')]);
      expect([...keys.keys()]).to.deep.equal(['good']);
    });

    it('of a signature key and an encryption key yields the signature key', async () => {
      const { keys } = await keySetOf([await jwk('mixed'), { ...(await jwk('mixed', 'RS256')), use: 'enc' }]);
      expect(keys.get('mixed')?.cryptoKeyFor('ES256')).to.not.equal(undefined);
    });
  });

  describe('refreshed key set', () => {
    it('keeps the object of an unchanged key', async () => {
      const before = await keySetOf([await jwk('stay'), await jwk('go')]);
      const after = await keySetOf([await jwk('new'), await jwk('stay')], algorithms, before);
      expect(after.keys.get('stay')).to.equal(before.keys.get('stay'));
    });

    it('imports each new key in its own turn of the event loop', async () => {
      const published = await Promise.all(Array.from({ length: 20 }, (_, i) => jwk(`key ${i}`)));
      let turns = 0;
      let counting = setImmediate(function next() {
        turns += 1;
        counting = setImmediate(next);
      });
      await keySetOf(published, algorithms);
      clearImmediate(counting);
      expect(turns).to.be.at.least(19);
    });

    it('replaces the object when another key has the same kid', async () => {
      const before = await keySetOf([await jwk('reused')]);
      const after = await keySetOf([{ ...(await jwk('replacement')), kid: 'reused' }], algorithms, before);
      expect(after.keys.get('reused')).to.not.equal(before.keys.get('reused'));
    });

    it('replaces the object when the key is for other algorithms', async () => {
      const allowed = ['RS256', 'PS256'];
      const { alg: _, ...open } = await jwk('rsa', 'RS256');
      const before = await keySetOf([open], allowed);
      const after = await keySetOf([{ ...open, alg: 'PS256' }], allowed, before);
      expect(after.keys.get('rsa')).to.not.equal(before.keys.get('rsa'));
      expect(after.keys.get('rsa')?.cryptoKeyFor('RS256')).to.equal(undefined);
    });
  });
});
