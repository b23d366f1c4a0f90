// The grammar of identity fields and accounts.
import { expect } from 'chai';
import { isAccount, isIdentityField } from '../../src/authz/principal.ts';

const printable = Array.from({ length: 0x7f - 0x20 }, (_, i) => String.fromCharCode(0x20 + i));
const invalid = ['', '\0', '\t', '\n', 'a\n', '\x7f', '\u00e9', '\u212a', '\ud800', 'a'.repeat(129)];

describe('isIdentityField', () => {
  it('accepts every visible ASCII character except comma, semicolon and double quote', () => {
    const accepted = printable.filter(character => ![' ', '"', ',', ';'].includes(character));
    expect(printable.filter(isIdentityField)).to.deep.equal(accepted);
    expect(printable.filter(character => isIdentityField(`a${character}b`))).to.deep.equal(accepted);
    expect(printable.filter(character => isIdentityField(`${character}a`))).to.deep.equal(accepted);
    expect(printable.filter(character => isIdentityField(`a${character}`))).to.deep.equal(accepted);
  });

  it('accepts 128 characters', () => {
    expect(isIdentityField('a'.repeat(128))).to.equal(true);
  });

  it('refuses empty text, control characters, non-ASCII text and 129 characters', () => {
    expect(invalid.filter(isIdentityField)).to.deep.equal([]);
  });
});

describe('isAccount', () => {
  it('accepts only the unreserved characters of RFC 3986', () => {
    const accepted = printable.filter(character => /[A-Za-z0-9._~-]/.test(character));
    expect(printable.filter(isAccount)).to.deep.equal(accepted.filter(character => character !== '.'));
    expect(printable.filter(character => isAccount(`a${character}b`))).to.deep.equal(accepted);
    expect(printable.filter(character => isAccount(`${character}a`))).to.deep.equal(accepted);
    expect(printable.filter(character => isAccount(`a${character}`))).to.deep.equal(accepted);
  });

  it('accepts 128 characters', () => {
    expect(isAccount('a'.repeat(128))).to.equal(true);
  });

  it('accepts three dots and refuses the dot segments "." and ".."', () => {
    expect(['.', '..', '...'].filter(isAccount)).to.deep.equal(['...']);
  });

  it('refuses empty text, control characters, non-ASCII text and 129 characters', () => {
    expect(invalid.filter(isAccount)).to.deep.equal([]);
  });
});
