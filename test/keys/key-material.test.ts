// Which Ed25519 keys a JWK may show: real ones, and none under which a signature is good for every message.
import { expect } from 'chai';
import { readMaterial } from '../../src/keys/key-material.ts';

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
];

const read = (hex: string) =>
  readMaterial({ kty: 'OKP', crv: 'Ed25519', x: Buffer.from(hex, 'hex').toString('base64url') });

describe('Ed25519 key in a JWK', () => {
  for (const hex of published) {
    it(`${hex.slice(0, 8)} of RFC 8032 is taken`, () => {
      expect(read(hex)).to.have.property('fits').that.deep.equals(['EdDSA', 'Ed25519']);
    });
  }

  for (const hex of smallOrder) {
    it(`${hex.slice(0, 8)}…${hex.slice(-2)} is refused`, () => {
      expect(read(hex)).to.equal('point of small order');
    });
  }

  it('of another length is refused', () => {
    expect(read('09'.repeat(31))).to.equal('malformed');
    expect(read('09'.repeat(33))).to.equal('malformed');
  });
});
