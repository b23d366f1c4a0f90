// Which published keys become verification keys, and by what name the others are refused.
import { expect } from 'chai';
import { calculateJwkThumbprint, exportJWK, type JWK } from 'jose';
import { type KeySet, parseKeySet } from '../../src/keys/jwks.ts';
import { signingKey } from '../support/signing-key.ts';

const algorithms = ['RS256', 'ES256', 'EdDSA'];

const bytesOf = (value: unknown): Uint8Array => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));

const parse = (value: unknown, allowed = algorithms) => parseKeySet(bytesOf(value), allowed);

async function keySetOf(keys: readonly unknown[], allowed = algorithms, previous?: KeySet): Promise<KeySet> {
  const read = await parseKeySet(bytesOf({ keys }), allowed, previous?.keys);
  if (read.kind === 'problem') throw new Error(`${read.problem} ${JSON.stringify(read.skipped)}`);
  return read;
}

const jwk = async (kid: string, alg = 'ES256'): Promise<JWK> => (await signingKey(kid, alg)).publicJwk;

/** A base64url number with one change made to its bytes. */
function changed(value: string | undefined, change: (bytes: Buffer) => Buffer): string {
  return change(Buffer.from(value ?? '', 'base64url')).toString('base64url');
}

function withLastByte(value: string | undefined, change: (byte: number) => number): string {
  return changed(value, bytes => Buffer.from(bytes.map((byte, i) => (i === bytes.length - 1 ? change(byte) : byte))));
}

describe('key set document', () => {
  describe('as a whole', () => {
    const documents: readonly (readonly [string, unknown, string])[] = [
      ['K-021 an empty object', {}, 'not a key set'],
      ['K-021 an array', [], 'not a key set'],
      ['K-021 null', 'null', 'not a key set'],
      ['K-021 keys that are an object', { keys: {} }, 'not a key set'],
      ['K-021 keys that are numbers', { keys: [1] }, 'no usable key'],
      ['K-022 no keys', { keys: [] }, 'no usable key'],
      ['keys inherited by __proto__', '{"__proto__":{"keys":[]}}', 'not a key set'],
      ['K-023 a member twice', '{"keys":[],"keys":[]}', 'a member twice'],
      ['K-023 a member twice in a key', '{"keys":[{"kid":"a","\\u006bid":"b"}]}', 'a member twice'],
      ['K-055 a byte order mark', '\uFEFF{"keys":[]}', 'not JSON'],
      ['truncated JSON', '{"keys":[{"kid":"a"', 'not JSON'],
      ['HTML', '<!doctype html>', 'not JSON'],
      ['nothing', '', 'not JSON'],
      ['more than 512 KiB', ' '.repeat(512 * 1024 + 1), 'body too large'],
      ['K-035 20 000 keys', { keys: new Array(20_000).fill({}) }, 'too many values'],
      ['half a megabyte of brackets', '['.repeat(512 * 1024), 'nested too deep'],
      ['half a megabyte of objects in one another', '{"keys":'.repeat(64 * 1024), 'nested too deep'],
      ['a key that is 64 lists deep', `{"keys":[${'['.repeat(63)}${']'.repeat(63)}]}`, 'nested too deep'],
      ['a quarter of a million numbers', `{"keys":[${'0,'.repeat(250_000)}0]}`, 'too many values'],
      ['ten thousand members', `{${Array.from({ length: 10_000 }, (_, i) => `"${i}":0`).join()}}`, 'too many values'],
      ['K-035 101 keys', { keys: new Array(101).fill({}) }, 'too many keys'],
    ];
    for (const [name, document, problem] of documents) {
      it(`${name}: ${problem}`, async () => {
        expect(await parse(document)).to.include({ kind: 'problem', problem });
      });
    }

    it('no key is named where the document is refused', async () => {
      for (const document of [' '.repeat(512 * 1024 + 1), '{', {}, { keys: new Array(101).fill({}) }])
        expect(await parse(document)).to.have.deep.property('skipped', []);
    });

    it('bytes that are not UTF-8: not UTF-8', async () => {
      const read = await parseKeySet(Buffer.from([0x7b, 0xff, 0x7d]), algorithms);
      expect(read).to.include({ kind: 'problem', problem: 'not UTF-8' });
    });

    it('a set deeper than the call stack is refused and not fatal', async () => {
      const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
      expect((await parse(`{"keys":[${deep}]}`)).kind).to.equal('problem');
    });

    it('100 keys are read', async () => {
      const key = await jwk('k');
      const { keys } = await keySetOf(Array.from({ length: 100 }, (_, i) => ({ ...key, kid: `k${i}` })));
      expect(keys.size).to.equal(100);
    });
  });

  describe('a good key', () => {
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
        it(`serves ${alg} and no other algorithm`, async () => {
          const { keys } = await keySetOf([{ ...(await jwk('good', type)), alg }], all);
          const served = all.filter(name => keys.get('good')?.cryptoKeyFor(name) !== undefined);
          expect(served).to.deep.equal([alg]);
        });
      }
    }

    it('K-031 without an alg serves every algorithm of the issuer that fits', async () => {
      const { alg: _, ...key } = await jwk('rsa', 'RS256');
      const { keys } = await keySetOf([key], ['RS256', 'PS256', 'ES256']);
      const served = ['RS256', 'PS256', 'RS512', 'ES256'].filter(
        alg => keys.get('rsa')?.cryptoKeyFor(alg) !== undefined,
      );
      expect(served).to.deep.equal(['RS256', 'PS256']);
    });

    it('is published again with its public members, its kid and its use', async () => {
      const { alg: _, kty, crv, x, y } = await jwk('public');
      const read = await parse({ keys: [{ kty, crv, x, y, kid: 'public', extra: 1 }] });
      expect(read).to.deep.include({ kind: 'keySet', publicJwks: [{ kty, crv, x, y, kid: 'public', use: 'sig' }] });
    });

    it('has the thumbprint of RFC 7638', async () => {
      const published = await jwk('rsa', 'RS256');
      const { keys } = await keySetOf([published]);
      expect(keys.get('rsa')?.thumbprint).to.equal(await calculateJwkThumbprint(published, 'sha256'));
    });

    it('K-037 may be called __proto__, which is a name like any other', async () => {
      const published = await jwk('proto');
      const { keys } = await keySetOf([{ ...published, kid: '__proto__' }]);
      expect(keys.get('__proto__')?.kid).to.equal('__proto__');
      expect(Object.hasOwn(Object.prototype, 'kid')).to.equal(false);
    });

    it('K-037 may have a kid of 256 characters', async () => {
      const { keys } = await keySetOf([{ ...(await jwk('long')), kid: 'k'.repeat(256) }]);
      expect(keys.size).to.equal(1);
    });

    it('is read beside x5c, x5t, x5u and members that nobody knows', async () => {
      const extra = { x5c: ['AAAA'], x5t: 'x', x5u: 'http://169.254.169.254/', nbf: 1, exp: 2, extra: { d: 1 } };
      const { keys } = await keySetOf([{ ...(await jwk('plain')), ...extra }]);
      expect([...keys.keys()]).to.deep.equal(['plain']);
    });

    it('with leading zeros in its modulus is the same key as without', async () => {
      const plain = await jwk('rsa', 'RS256');
      const padded = { ...plain, n: changed(plain.n, bytes => Buffer.concat([Buffer.alloc(2), bytes])) };
      const { keys, skipped } = await keySetOf([plain, padded]);
      expect(keys.size).to.equal(1);
      expect(skipped).to.deep.equal([]);
    });

    it('may list key_ops that include verify', async () => {
      expect((await keySetOf([{ ...(await jwk('ops')), key_ops: ['verify'] }])).keys.size).to.equal(1);
    });

    for (const bits of [2048, 3072, 4096, 8192]) {
      it(`K-034 may be RSA of ${bits} bits`, async () => {
        const n = Buffer.alloc(bits / 8, 0xff).toString('base64url');
        expect((await keySetOf([{ kty: 'RSA', kid: 'rsa', n, e: 'AQAB' }])).keys.size).to.equal(1);
      });
    }

    it('may have the exponent 2^31 - 1', async () => {
      const { keys } = await keySetOf([
        { ...(await jwk('rsa', 'RS256')), e: Buffer.from('7fffffff', 'hex').toString('base64url') },
      ]);
      expect([...keys.keys()]).to.deep.equal(['rsa']);
    });

    it('is written down with its public members alone', async () => {
      const { publicJwks } = await keySetOf([{ ...(await jwk('down')), x5c: ['AAAA'], extra: 1 }]);
      const { kty, crv, x, y, kid, alg, use } = await jwk('down');
      expect(publicJwks).to.deep.equal([{ kty, crv, x, y, kid, alg, use }]);
    });
  });

  describe('a key that is not used', () => {
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
      ['a published private RSA key', withPrivate('RS256'), 'private key published'],
      ['a published private EC key', withPrivate('ES256'), 'private key published'],
      ['a published private Ed25519 key', withPrivate('EdDSA'), 'private key published'],
      ['an RSA key with a prime beside it', rsa(() => ({ p: 'AQAB' })), 'private key published'],
      ['K-029 use enc', ec(() => ({ use: 'enc' })), 'for another use'],
      ['use in another case', ec(() => ({ use: 'SIG' })), 'for another use'],
      ['use that is not a string', ec(() => ({ use: ['sig'] })), 'for another use'],
      ['K-029 key_ops encrypt', ec(() => ({ key_ops: ['encrypt'] })), 'for another use'],
      ['K-029 key_ops sign', ec(() => ({ key_ops: ['sign'] })), 'for another use'],
      ['key_ops that is a string', ec(() => ({ key_ops: 'verify' })), 'for another use'],
      ['use sig with key_ops encrypt', ec(() => ({ use: 'sig', key_ops: ['encrypt'] })), 'for another use'],
      ['K-030 an alg of another key type', ec(() => ({ alg: 'RS256' })), 'algorithm not allowed'],
      ['an alg that the issuer may not use', rsa(() => ({ alg: 'RS512' })), 'algorithm not allowed'],
      ['an alg for encryption', rsa(() => ({ alg: 'RSA-OAEP' })), 'algorithm not allowed'],
      ['alg none', ec(() => ({ alg: 'none' })), 'algorithm not allowed'],
      ['alg HS256 on a public key', rsa(() => ({ alg: 'HS256' })), 'algorithm not allowed'],
      ['an alg that is a number', ec(() => ({ alg: 256 })), 'malformed'],
      ['no kid', ec(() => ({ kid: undefined })), 'no kid'],
      ['an empty kid', ec(() => ({ kid: '' })), 'no kid'],
      ['K-037 a kid that is a number', ec(() => ({ kid: 1 })), 'no kid'],
      ['K-037 a kid of 10 KB', ec(() => ({ kid: 'k'.repeat(10_240) })), 'kid too long'],
      ['no kty', ec(() => ({ kty: undefined })), 'key type not supported'],
      ['a kty that nobody knows', ec(() => ({ kty: 'AKP', pub: 'AAAA' })), 'key type not supported'],
      ['K-038 an x5c chain alone', async () => ({ kty: 'RSA', kid: 'x5c', x5c: ['AAAA'] }), 'malformed'],
      ['K-034 J-081 RSA of 1024 bits', rsa(() => ({ n: modulus(1024) })), 'RSA modulus'],
      ['K-034 RSA of 2047 bits', rsa(() => ({ n: modulus(2047) })), 'RSA modulus'],
      ['K-034 RSA of 8193 bits', rsa(() => ({ n: modulus(8193) })), 'RSA modulus'],
      ['K-034 RSA of 16384 bits', rsa(() => ({ n: modulus(16_384) })), 'RSA modulus'],
      ['an even RSA modulus', rsa(({ n }) => ({ n: withLastByte(n, byte => byte & 0xfe) })), 'RSA modulus'],
      ['an RSA modulus of zeros', rsa(() => ({ n: Buffer.alloc(256).toString('base64url') })), 'RSA modulus'],
      ['K-034 RSA with exponent 0', rsa(() => ({ e: 'AA' })), 'RSA exponent'],
      ['K-034 J-082 RSA with exponent 1', rsa(() => ({ e: exponent(1) })), 'RSA exponent'],
      ['K-034 RSA with exponent 3', rsa(() => ({ e: exponent(3) })), 'RSA exponent'],
      ['K-034 RSA with exponent 65535', rsa(() => ({ e: exponent(65_535) })), 'RSA exponent'],
      ['K-034 RSA with exponent 65538', rsa(() => ({ e: exponent(65_538) })), 'RSA exponent'],
      [
        'RSA with a modulus beyond 4096 characters, nearly all of them zeros',
        rsa(({ n }) => ({ n: changed(n, bytes => Buffer.concat([Buffer.alloc(3072), bytes])) })),
        'malformed',
      ],
      ['RSA with exponent 2^31 + 1', rsa(() => ({ e: exponent(2n ** 31n + 1n) })), 'RSA exponent'],
      ['RSA with exponent 2^32 + 1', rsa(() => ({ e: exponent(2n ** 32n + 1n) })), 'RSA exponent'],
      ['RSA with an exponent as long as its modulus', rsa(({ n }) => ({ e: n })), 'RSA exponent'],
      ['K-033 RSA without an exponent', rsa(() => ({ e: undefined })), 'malformed'],
      ['K-033 base64 with padding', rsa(({ n }) => ({ n: `${n}==` })), 'malformed'],
      ['K-033 base64 of the other alphabet', rsa(() => ({ n: '+/+/' })), 'malformed'],
      ['K-033 base64url with bits left over', rsa(() => ({ e: 'AQAC_' })), 'malformed'],
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
      ['K-033 an EC coordinate cut short', ec(({ x }) => ({ x: changed(x, bytes => bytes.subarray(1)) })), 'malformed'],
      [
        'K-033 an EC coordinate with a zero too many',
        ec(({ x }) => ({ x: changed(x, bytes => Buffer.concat([Buffer.alloc(1), bytes])) })),
        'malformed',
      ],
      ['K-033 EC without x', ec(() => ({ x: undefined })), 'malformed'],
      ['K-033 EC without y', ec(() => ({ y: undefined })), 'malformed'],
      ['Ed25519 without x', okp(() => ({ x: undefined })), 'malformed'],
      ['a curve that is not for us', ec(() => ({ crv: 'secp256k1' })), 'curve not supported'],
      ['a curve by the name of __proto__', ec(() => ({ crv: '__proto__' })), 'curve not supported'],
      ['an EC key under the name of another curve', ec(() => ({ crv: 'P-384' })), 'malformed'],
      ['X25519', okp(() => ({ crv: 'X25519' })), 'curve not supported'],
      ['Ed448', okp(() => ({ crv: 'Ed448' })), 'curve not supported'],
      ['an Ed25519 key of 31 bytes', okp(({ x }) => ({ x: changed(x, bytes => bytes.subarray(1)) })), 'malformed'],
      ['something that is not an object', async () => ['kid'], 'not an object'],
    ];
    for (const [name, make, reason] of rows) {
      it(`${name}: ${reason}, and the others are`, async () => {
        const { keys, skipped } = await keySetOf([await make(), await jwk('good')]);
        expect([...keys.keys()]).to.deep.equal(['good']);
        expect(skipped.map(key => key.reason)).to.deep.equal([reason]);
      });
    }

    for (const member of ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv']) {
      it(`with the private member ${member} alone: private key published`, async () => {
        const { keys, skipped } = await keySetOf([{ ...(await jwk('leaked')), [member]: 'AQ' }, await jwk('good')]);
        expect([...keys.keys()]).to.deep.equal(['good']);
        expect(skipped).to.deep.equal([{ kid: 'leaked', reason: 'private key published' }]);
      });
    }

    it('K-022 leaves no set when it was the only one, and is named', async () => {
      const read = await parse({ keys: [{ kty: 'oct', k: 'AAAA', kid: 'only' }] });
      expect(read).to.deep.equal({
        kind: 'problem',
        problem: 'no usable key',
        skipped: [{ kid: 'only', reason: 'symmetric key' }],
      });
    });

    it('does not get a kid from a polluted prototype', async () => {
      Object.defineProperty(Object.prototype, 'kid', { value: 'inherited', configurable: true });
      try {
        const { kid: _, ...nameless } = await jwk('nameless');
        expect(await parse({ keys: [nameless] })).to.include({ kind: 'problem', problem: 'no usable key' });
      } finally {
        Reflect.deleteProperty(Object.prototype, 'kid');
      }
    });

    it('keeps no more than 256 characters of its kid', async () => {
      const { skipped } = await keySetOf([{ kty: 'oct', kid: 'k'.repeat(10_240) }, await jwk('good')]);
      expect(skipped[0]?.kid?.length).to.equal(256);
    });

    it('is a leaked one also where another entry shows its public half alone', async () => {
      const { privateKey, publicJwk } = await signingKey('leaked twice');
      const leaked = { ...(await exportJWK(privateKey)), kid: 'other name' };
      const { keys, skipped } = await keySetOf([publicJwk, leaked, await jwk('good')]);
      expect([...keys.keys()]).to.deep.equal(['good']);
      expect(skipped.map(key => key.reason)).to.deep.equal(['private key published', 'private key published']);
    });
  });

  describe('a skipped key', () => {
    it('that is not leaked does not take the same key under another kid with it', async () => {
      const good = await jwk('good');
      const { keys } = await keySetOf([{ ...good, kid: 'other', use: 'enc' }, good]);
      expect([...keys.keys()]).to.deep.equal(['good']);
    });

    it('that is leaked and malformed leaves the others', async () => {
      const { keys, skipped } = await keySetOf([
        { kty: 'EC', crv: 'P-256', d: 'AQ', kid: 'broken' },
        await jwk('good'),
      ]);
      expect([...keys.keys()]).to.deep.equal(['good']);
      expect(skipped).to.deep.equal([{ kid: 'broken', reason: 'private key published' }]);
    });
  });

  describe('one kid twice', () => {
    it('K-025 with the same key is one key', async () => {
      const key = await jwk('twice');
      const { keys, skipped } = await keySetOf([key, key]);
      expect(keys.size).to.equal(1);
      expect(skipped).to.deep.equal([]);
    });

    it('with the same key for two algorithms is one key for both', async () => {
      const key = await jwk('rsa', 'RS256');
      const { keys, publicJwks } = await keySetOf([key, { ...key, alg: 'PS256' }], ['RS256', 'PS256']);
      expect(keys.get('rsa')?.cryptoKeyFor('RS256')).to.not.equal(undefined);
      expect(keys.get('rsa')?.cryptoKeyFor('PS256')).to.not.equal(undefined);
      expect(publicJwks).to.have.length(2);
    });

    it('K-026 with an RSA and an EC key is neither', async () => {
      const { keys, skipped } = await keySetOf([await jwk('same', 'RS256'), await jwk('same'), await jwk('good')]);
      expect([...keys.keys()]).to.deep.equal(['good']);
      expect(skipped).to.deep.equal([{ kid: 'same', reason: 'two keys under one kid' }]);
    });

    it('with two keys of one type is neither', async () => {
      const { keys } = await keySetOf([await jwk('one'), { ...(await jwk('two')), kid: 'one' }, await jwk('good')]);
      expect([...keys.keys()]).to.deep.equal(['good']);
    });

    it('with a key for signatures and one for encryption is the one for signatures', async () => {
      const { keys } = await keySetOf([await jwk('mixed'), { ...(await jwk('mixed', 'RS256')), use: 'enc' }]);
      expect(keys.get('mixed')?.cryptoKeyFor('ES256')).to.not.equal(undefined);
    });
  });

  describe('read again', () => {
    it('carries an unchanged key over as the same object', async () => {
      const before = await keySetOf([await jwk('stay'), await jwk('go')]);
      const after = await keySetOf([await jwk('new'), await jwk('stay')], algorithms, before);
      expect(after.keys.get('stay')).to.equal(before.keys.get('stay'));
    });

    it('imports each new key in a turn of its own', async () => {
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

    it('does not take another key under the same kid for the same', async () => {
      const before = await keySetOf([await jwk('reused')]);
      const after = await keySetOf([{ ...(await jwk('replacement')), kid: 'reused' }], algorithms, before);
      expect(after.keys.get('reused')).to.not.equal(before.keys.get('reused'));
    });

    it('does not take a key for the same that serves other algorithms now', async () => {
      const allowed = ['RS256', 'PS256'];
      const { alg: _, ...open } = await jwk('rsa', 'RS256');
      const before = await keySetOf([open], allowed);
      const after = await keySetOf([{ ...open, alg: 'PS256' }], allowed, before);
      expect(after.keys.get('rsa')).to.not.equal(before.keys.get('rsa'));
      expect(after.keys.get('rsa')?.cryptoKeyFor('RS256')).to.equal(undefined);
    });
  });
});
