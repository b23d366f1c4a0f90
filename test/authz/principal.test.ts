// The grammar of identity fields and accounts.
import { expect } from 'chai';
import { foldAccountCase, isAccount, isIdentityField } from '../../src/authz/principal.ts';

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
  const isName = (text: string): boolean => isAccount(text, { dots: false, lower: false });
  const isNameWithDots = (text: string): boolean => isAccount(text, { dots: true, lower: false });

  it('accepts only the unreserved characters of RFC 3986, the dot only where account.dots is on', () => {
    const accepted = printable.filter(character => /[A-Za-z0-9_~-]/.test(character));
    expect(printable.filter(isName)).to.deep.equal(accepted);
    for (const place of [(it: string) => `a${it}b`, (it: string) => `${it}a`, (it: string) => `a${it}`]) {
      expect(printable.filter(character => isName(place(character)))).to.deep.equal(accepted);
      const withDots = printable.filter(character => isNameWithDots(place(character)));
      expect(withDots).to.deep.equal(printable.filter(character => accepted.includes(character) || character === '.'));
    }
  });

  it('refuses upper-case letters where account.case is lower, which a request may name all the same', () => {
    const lower = { dots: false, lower: true };
    expect(['acme', 'a-1', 'Acme', 'acmE', 'a.b'].filter(it => isAccount(it, lower))).to.deep.equal(['acme', 'a-1']);
    expect(['ACME-1', 'Acme', '\u212a'].map(text => foldAccountCase(text, lower))).to.deep.equal([
      'acme-1',
      'acme',
      '\u212a',
    ]);
    expect(foldAccountCase('ACME', { dots: false, lower: false })).to.equal('ACME');
  });

  it('accepts 128 characters', () => {
    expect([isName, isNameWithDots].map(accepts => accepts('a'.repeat(128)))).to.deep.equal([true, true]);
  });

  it('refuses the dot segments "." and ".." with and without account.dots', () => {
    expect(['.', '..', '...'].filter(isNameWithDots)).to.deep.equal(['...']);
    expect(['.', '..', '...', 'a.b'].filter(isName)).to.deep.equal([]);
  });

  it('refuses empty text, control characters, non-ASCII text and 129 characters', () => {
    expect(invalid.filter(isName)).to.deep.equal([]);
    expect(invalid.filter(isNameWithDots)).to.deep.equal([]);
  });
});
