// Key sets: documents that are refused, keys that are used, keys that change.
import { expect } from 'chai';
import { calculateJwkThumbprint } from 'jose';
import { parseKeySet } from '../../src/keys/jwks.ts';
import { algorithms, bytesOf, changed, jwk, keyIn, keySetOf, parse, postQuantum } from './parsed-keys.ts';

describe('parseKeySet', () => {
  describe('key set document', () => {
    const noList = 'not a key set: an object without the list "keys"';
    const documents: readonly (readonly [string, unknown, string])[] = [
      ['K-021 an empty object', {}, noList],
      ['K-021 an array', [], 'not a key set: a list'],
      ['K-021 null', 'null', 'not a key set: null'],
      ['K-021 a keys member that is an object', { keys: {} }, noList],
      ['metadata in its place', { issuer: 'a', jwks_uri: 'b' }, 'not a key set: metadata, which discoveryUrl reads'],
      ['K-021 a list of numbers as keys', { keys: [1] }, 'no usable key: keys[0] (it is a number)'],
      ['K-022 an empty list of keys', { keys: [] }, 'no usable key: the list is empty'],
      ['a keys member that is only inherited', '{"__proto__":{"keys":[]}}', noList],
      ['K-023 a duplicate member', '{"keys":[],"keys":[]}', 'a member twice'],
      ['K-023 a duplicate member in a key', '{"keys":[{"kid":"a","\\u006bid":"b"}]}', 'a member twice'],
      ['a truncated document', '{"keys":[{"kid":"a"', 'not JSON'],
      ['an empty body', '', 'not JSON'],
      ['a document of more than 512 KiB', ' '.repeat(512 * 1024 + 1), 'body too large'],
      ['K-035 a list of 20,000 keys', { keys: new Array(20_000).fill({}) }, 'too many values'],
      ['K-035 a list of 101 keys', { keys: new Array(101).fill({}) }, 'too many keys'],
      ['half a megabyte of brackets', '['.repeat(512 * 1024), 'nested too deep'],
      ['half a megabyte of nested objects', '{"keys":'.repeat(64 * 1024), 'nested too deep'],
      ['a key of 64 nested lists', `{"keys":[${'['.repeat(63)}${']'.repeat(63)}]}`, 'nested too deep'],
      ['a list of 250,000 numbers', `{"keys":[${'0,'.repeat(250_000)}0]}`, 'too many values'],
    ];
    for (const [name, document, problem] of documents) {
      it(`${name} is refused: ${problem}`, async () => {
        expect(await parse(document)).to.include({ kind: 'problem', problem });
      });
    }

    it('that is none names what came, bounded and printable', async () => {
      const problemOf = async (body: Uint8Array | string, mediaType: string | undefined) => {
        const parsed = await parseKeySet(Buffer.from(body), algorithms, { mediaType });
        return parsed.kind === 'problem' ? parsed.problem : parsed.kind;
      };
      expect(await problemOf('<!doctype html>', 'text/html')).to.equal('text/html, not JSON');
      expect(await problemOf('<!doctype html>', undefined)).to.equal('not JSON');
      expect(await problemOf(Buffer.from([0x7b, 0xff, 0x7d]), 'text/plain')).to.equal('text/plain, not UTF-8');
      expect(await problemOf('', `a\u001b${'b'.repeat(100)}`)).to.equal(`a\\u{1b}${'b'.repeat(56)}…, not JSON`);
    });

    it('has at most 100 keys', async () => {
      const key = await jwk('k');
      const { keys } = await keySetOf(Array.from({ length: 100 }, (_, i) => ({ ...key, kid: `k${i}` })));
      expect(keys.size).to.equal(100);
    });

    it('K-055 may begin with one byte order mark', async () => {
      const text = JSON.stringify({ keys: [await jwk('marked')] });
      expect(await parse(`\uFEFF${text}`)).to.have.property('kind', 'keySet');
      expect(await parse(`\uFEFF\uFEFF${text}`)).to.include({ problem: 'not JSON' });
    });
  });

  describe('valid key', () => {
    const types = [
      ['RS256', ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']],
      ['ES256', ['ES256']],
      ['ES384', ['ES384']],
      ['ES512', ['ES512']],
      ['EdDSA', ['EdDSA', 'Ed25519']],
      ...postQuantum.map(alg => [alg, [alg]] as const),
    ] as const;
    const all = types.flatMap(([, names]) => names);
    for (const [type, names] of types) {
      for (const alg of names) {
        it(`with alg ${alg} verifies ${alg} and no other algorithm`, async () => {
          const key = keyIn(await keySetOf([{ ...(await jwk('good', type)), alg }], all), 'good');
          expect(all.filter(name => key?.cryptoKeyFor(name) !== undefined)).to.deep.equal([alg]);
        });
      }
    }

    it('K-031 without alg verifies every algorithm of the issuer that fits its type', async () => {
      const { alg: _, ...published } = await jwk('rsa', 'RS256');
      const key = keyIn(await keySetOf([published], ['RS256', 'PS256', 'ES256']), 'rsa');
      const served = ['RS256', 'PS256', 'RS512', 'ES256'].filter(alg => key?.cryptoKeyFor(alg) !== undefined);
      expect(served).to.deep.equal(['RS256', 'PS256']);
    });

    it('has the thumbprint of RFC 7638', async () => {
      for (const alg of ['RS256', 'ES256', 'EdDSA', ...postQuantum]) {
        const published = await jwk('any', alg);
        const { thumbprint } = keyIn(await keySetOf([published], [alg]), 'any') ?? {};
        expect(thumbprint, alg).to.equal(await calculateJwkThumbprint(published, 'sha256'));
      }
    });

    it('K-037 can have the kid __proto__, one of 256 characters, or none', async () => {
      for (const kid of ['__proto__', 'k'.repeat(256), undefined]) {
        const set = await keySetOf([{ ...(await jwk('any')), kid }]);
        expect(keyIn(set, kid)).to.not.equal(undefined);
        expect([...set.kids]).to.deep.equal(kid === undefined ? [] : [kid]);
      }
      expect(Object.hasOwn(Object.prototype, 'kid')).to.equal(false);
    });

    it('can have x5c, x5u, key_ops with verify and unknown members, which are ignored', async () => {
      const extra = { x5c: ['AAAA'], x5u: 'http://169.254.169.254/', nbf: 1, exp: 2, extra: { d: 1 } };
      expect([...(await keySetOf([{ ...(await jwk('plain')), ...extra, key_ops: ['verify'] }])).kids]).to.deep.equal([
        'plain',
      ]);
    });

    it('has the thumbprints of its certificate as the set has them, without padding', async () => {
      const { keys } = await keySetOf([{ ...(await jwk('certified')), x5t: 'AAECAw==', 'x5t#S256': 'BBUGBw' }]);
      expect([...keys.values()]).to.deep.equal([new Set(['x5t AAECAw', 'x5t#S256 BBUGBw'])]);
    });

    for (const bits of [2048, 3072, 4096, 8192]) {
      it(`K-034 can be an RSA key of ${bits} bits`, async () => {
        const n = Buffer.alloc(bits / 8, 0xff).toString('base64url');
        expect((await keySetOf([{ kty: 'RSA', kid: 'rsa', n, e: 'AQAB' }])).keys.size).to.equal(1);
      });
    }

    it('can have the RSA exponent 2^31 - 1', async () => {
      const e = Buffer.from('7fffffff', 'hex').toString('base64url');
      expect((await keySetOf([{ ...(await jwk('rsa', 'RS256')), e }])).keys.size).to.equal(1);
    });

    it('is returned as JWK with what the seed needs only', async () => {
      const named = { ...(await jwk('public')), x5t: 'AAEC', x5c: ['AAAA'], extra: 1 };
      const { kty, crv, x, y, kid, alg, use, x5t } = named;
      expect((await keySetOf([named])).publicJwks).to.deep.equal([{ kty, crv, x, y, kid, alg, use, x5t }]);
      const bare = await parse({ keys: [{ kty, crv, x, y }] });
      expect(bare).to.deep.include({ kind: 'keySet', publicJwks: [{ kty, crv, x, y, use: 'sig' }] });
    });
  });

  describe('several keys under one kid', () => {
    it('K-025 are one if they are the same key', async () => {
      const key = await jwk('rsa', 'RS256');
      const padded = { ...key, n: changed(key.n, bytes => Buffer.concat([Buffer.alloc(2), bytes])) };
      const { keys, skipped } = await keySetOf([key, key, padded]);
      expect(keys.size).to.equal(1);
      expect(skipped).to.deep.equal([]);
    });

    it('are one for both algorithms if they are the same key for two', async () => {
      const key = await jwk('rsa', 'RS256');
      const set = await keySetOf([key, { ...key, alg: 'PS256', x5t: 'AAEC' }], ['RS256', 'PS256']);
      expect(set.keys.size).to.equal(1);
      for (const alg of ['RS256', 'PS256']) expect(keyIn(set, 'rsa')?.cryptoKeyFor(alg), alg).to.not.equal(undefined);
      expect([...set.keys.values()]).to.deep.equal([new Set(['x5t AAEC'])]);
      const again = await parseKeySet(bytesOf({ keys: set.publicJwks }), ['RS256', 'PS256']);
      expect(again).to.deep.include({ publicJwks: set.publicJwks, kids: set.kids });
    });

    it('K-026 are all kept otherwise', async () => {
      const { keys, kids, skipped } = await keySetOf([
        await jwk('same', 'RS256'),
        await jwk('same'),
        { ...(await jwk('other')), kid: 'same' },
      ]);
      expect(keys.size).to.equal(3);
      expect([...kids]).to.deep.equal(['same']);
      expect(skipped).to.deep.equal([]);
    });
  });

  describe('refreshed key set', () => {
    it('keeps the object of an unchanged key, whatever the thumbprints of its certificate', async () => {
      const before = await keySetOf([await jwk('stay'), await jwk('go')]);
      const after = await keySetOf([await jwk('new'), { ...(await jwk('stay')), x5t: 'AAEC' }], algorithms, before);
      expect(keyIn(after, 'stay')).to.equal(keyIn(before, 'stay'));
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

    it('replaces the object when another key has the same kid, or the key another kid', async () => {
      const before = await keySetOf([await jwk('one')]);
      for (const changes of [
        { ...(await jwk('other')), kid: 'one' },
        { ...(await jwk('one')), kid: 'two' },
      ]) {
        const after = await keySetOf([changes], algorithms, before);
        expect([...after.keys.keys()])
          .to.have.length(1)
          .and.to.not.include(keyIn(before, 'one'));
      }
    });

    it('replaces the object when the key is for other algorithms', async () => {
      const allowed = ['RS256', 'PS256'];
      const { alg: _, ...open } = await jwk('rsa', 'RS256');
      const before = await keySetOf([open], allowed);
      const after = await keySetOf([{ ...open, alg: 'PS256' }], allowed, before);
      expect(keyIn(after, 'rsa')).to.not.equal(keyIn(before, 'rsa'));
      expect(keyIn(after, 'rsa')?.cryptoKeyFor('RS256')).to.equal(undefined);
    });
  });
});
