// Key sets: documents that are refused, keys that are used, keys that change.
import { expect } from 'chai';
import { calculateJwkThumbprint } from 'jose';
import { parseKeySet } from '../../src/keys/jwks.ts';
import { algorithms, changed, jwk, keySetOf, parse } from './parsed-keys.ts';

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
