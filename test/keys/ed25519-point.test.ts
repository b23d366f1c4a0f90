// Which 32 bytes pass for an Ed25519 public key: real ones do, points off the curve or of small order do not.
import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import { isEd25519Point } from '../../src/keys/ed25519-point.ts';

/** RFC 8032 section 7.1, tests 1 to 3. */
const published = [
  'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
  '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
  'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
];

// Every point whose order divides 8, and the ways to write those beyond the canonical one (Cremers and Jackson, Prime,
// Order Please, 2019).
const smallOrder = [
  '0100000000000000000000000000000000000000000000000000000000000000',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0000000000000000000000000000000000000000000000000000000000000080',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
  '0100000000000000000000000000000000000000000000000000000000000080',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
];

describe('Ed25519 point', () => {
  for (const hex of published) {
    it(`takes the key ${hex.slice(0, 8)} of RFC 8032`, () => {
      expect(isEd25519Point(Buffer.from(hex, 'hex'))).to.equal(true);
    });
  }

  it('takes keys that are made here', () => {
    for (let i = 0; i < 20; i += 1) {
      const { x } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
      expect(isEd25519Point(Buffer.from(x ?? '', 'base64url')), x ?? '').to.equal(true);
    }
  });

  for (const hex of smallOrder) {
    it(`refuses ${hex.slice(0, 8)}…${hex.slice(-2)}, of small order or not canonical`, () => {
      expect(isEd25519Point(Buffer.from(hex, 'hex'))).to.equal(false);
    });
  }

  it('refuses a y that no point of the curve has', () => {
    expect(isEd25519Point(Buffer.from(`02${'00'.repeat(31)}`, 'hex'))).to.equal(false);
  });

  it('refuses another length', () => {
    expect(isEd25519Point(Buffer.alloc(31, 9))).to.equal(false);
    expect(isEd25519Point(Buffer.alloc(33, 9))).to.equal(false);
  });
});
