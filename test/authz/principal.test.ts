import { expect } from 'chai';
import { isAccount, isIdentityField } from '../../src/authz/principal.ts';

const printable = Array.from({ length: 0x7f - 0x20 }, (_, i) => String.fromCharCode(0x20 + i));
const foreign = ['', '\0', '\t', '\n', 'a\n', '\x7f', '\u00e9', '\u212a', '\ud800', 'a'.repeat(129)];

describe('the grammar of an identity field', () => {
  it('takes every visible character but comma, semicolon and double quote, alone and between others', () => {
    const taken = printable.filter(character => ![' ', '"', ',', ';'].includes(character));
    expect(printable.filter(isIdentityField)).to.deep.equal(taken);
    expect(printable.filter(character => isIdentityField(`a${character}b`))).to.deep.equal(taken);
    expect(printable.filter(character => isIdentityField(`${character}a`))).to.deep.equal(taken);
    expect(printable.filter(character => isIdentityField(`a${character}`))).to.deep.equal(taken);
  });

  it('takes up to 128 characters', () => {
    expect(isIdentityField('a'.repeat(128))).to.equal(true);
  });

  it('takes nothing else', () => {
    expect(foreign.filter(isIdentityField)).to.deep.equal([]);
  });
});

describe('the grammar of an account', () => {
  it('takes the unreserved characters alone, alone and between others', () => {
    const taken = printable.filter(character => /[A-Za-z0-9._~-]/.test(character));
    expect(printable.filter(isAccount)).to.deep.equal(taken.filter(character => character !== '.'));
    expect(printable.filter(character => isAccount(`a${character}b`))).to.deep.equal(taken);
    expect(printable.filter(character => isAccount(`${character}a`))).to.deep.equal(taken);
    expect(printable.filter(character => isAccount(`a${character}`))).to.deep.equal(taken);
  });

  it('takes up to 128 characters', () => {
    expect(isAccount('a'.repeat(128))).to.equal(true);
  });

  it('takes three dots, but no dot segment', () => {
    expect(['.', '..', '...'].filter(isAccount)).to.deep.equal(['...']);
  });

  it('takes nothing else', () => {
    expect(foreign.filter(isAccount)).to.deep.equal([]);
  });
});
