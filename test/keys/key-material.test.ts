// The Ed25519 keys that are accepted from a JWK.
import { expect } from 'chai';
import { readMaterial } from '../../src/keys/key-material.ts';

/** The public keys of RFC 8032 section 7.1, tests 1 to 3. */
const publicKeys = [
  'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
  '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
  'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
];

const read = (hex: string) =>
  readMaterial({ kty: 'OKP', crv: 'Ed25519', x: Buffer.from(hex, 'hex').toString('base64url') });

describe('readMaterial of an Ed25519 key', () => {
  for (const hex of publicKeys) {
    it(`accepts ${hex.slice(0, 8)}… of RFC 8032`, () => {
      expect(read(hex)).to.have.property('fits').that.deep.equals(['EdDSA', 'Ed25519']);
    });
  }

  it('refuses a key that is not 32 bytes long', () => {
    expect(read('09'.repeat(31))).to.equal('malformed');
    expect(read('09'.repeat(33))).to.equal('malformed');
  });
});
