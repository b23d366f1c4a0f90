// The key of a token: by alg, kid and the thumbprints of its certificate.
import { expect } from 'chai';
import { findTokenKey } from '../../src/keys/token-key.ts';
import { jwk, keySetOf } from './parsed-keys.ts';

const unknown = 'kid is not a key of the issuer';
const otherAlg = 'the key is not for this algorithm';
const noAlg = 'no key of the issuer is for this algorithm';
const several = 'several keys of the issuer fit, and neither kid nor x5t names one';

describe('findTokenKey', () => {
  interface Entry {
    readonly key: string;
    readonly kid?: string;
    readonly alg?: string;
    readonly x5t?: string;
    readonly x5tS256?: string;
  }
  const a = { key: 'a', kid: 'a' };
  const b = { key: 'b', kid: 'b' };
  const one = { ...a, x5t: 'one' };
  const r = { key: 'r', kid: 'r', alg: 'RS256' };
  const same = [
    { key: 'a', kid: 's', x5t: 'one', x5tS256: 'ONE' },
    { key: 'b', kid: 's', x5t: 'two', x5tS256: 'TWO' },
    { ...r, kid: 's' },
  ];
  const nameless = [{ key: 'a', x5t: 'one' }, { key: 'b', x5t: 'two' }, r];

  const rows: readonly (readonly [entries: Entry[], header: Partial<Entry & { alg: string }>, expected: string])[] = [
    [[a, b], { kid: 'a' }, 'a'],
    [[a, b], { kid: 'c' }, unknown],
    [[a, b], { kid: '' }, unknown],
    [[a, r], { kid: 'r' }, otherAlg],
    [[a, r], { kid: 'r', alg: 'RS256' }, 'r'],
    [[{ key: 'a' }], { kid: 'a' }, unknown],
    // Without a kid.
    [[a], {}, 'a'],
    [[a, r], {}, 'a'],
    [[a, r], { alg: 'RS256' }, 'r'],
    [[a], { alg: 'RS256' }, noAlg],
    [[a, b], {}, several],
    [[a, { key: 'a', kid: 'again' }], {}, 'a'],
    [[a, { key: 'a' }], {}, 'a'],
    [[a, { key: 'a', kid: 'again' }, b], {}, several],
    // Several under one kid.
    [same, { kid: 's', alg: 'RS256' }, 'r'],
    [same, { kid: 's' }, several],
    [same, { kid: 's', x5t: 'two' }, 'b'],
    [same, { kid: 's', x5tS256: 'ONE' }, 'a'],
    [same, { kid: 's', x5t: 'one=', x5tS256: 'ONE' }, 'a'],
    [same, { kid: 's', x5t: 'one', x5tS256: 'TWO' }, several],
    [same, { kid: 's', x5t: 'ONE' }, several],
    [same, { kid: 's', x5t: 'x' }, several],
    // ADFS
    [nameless, { x5t: 'two' }, 'b'],
    [nameless, {}, several],
    // A thumbprint is compared only where several fit.
    [[a], { kid: 'a', x5t: 'x' }, 'a'],
    [[one, { ...b, x5t: 'one' }], { x5t: 'one' }, several],
    [[one, { key: 'a', x5t: 'one' }, b], { x5t: 'one' }, 'a'],
  ];
  for (const [entries, header, expected] of rows) {
    const named = entries.map(({ key, kid, x5t }) => [key, kid ?? 'no kid', x5t ?? ''].join(' ').trim()).join(', ');
    it(`of ${JSON.stringify(header)} among [${named}] is ${expected}`, async () => {
      const thumbprints = new Map<string, string>();
      const published = entries.map(async ({ key, kid, alg = 'ES256', x5t, x5tS256 }) => {
        const full = await jwk(key, alg);
        const [only] = (await keySetOf([full])).keys.keys();
        thumbprints.set(only?.thumbprint ?? '', key);
        return { ...full, kid, x5t, 'x5t#S256': x5tS256 };
      });
      const set = await keySetOf(await Promise.all(published));
      const { alg = 'ES256', kid, x5t, x5tS256 } = header;
      const found = findTokenKey(set, { alg, kid, x5t, x5tS256 });
      expect(found.kind === 'key' ? thumbprints.get(found.key.thumbprint) : found.detail).to.equal(expected);
    });
  }
});
