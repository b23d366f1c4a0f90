// The one function that every output of foreign text goes through: what it lets pass, what it escapes, and how long it may get.
import { expect } from 'chai';
import fc from 'fast-check';
import { foreignMembers, foreignText, foreignValue, quotedForeignText } from '../src/foreign-text.ts';

const unprintable = {
  'a C0 control': '\u0007',
  'the start of a sequence': '\u001b',
  'a line end': '\n',
  'a tab': '\t',
  DEL: '\u007f',
  'the start of a sequence in one C1 control': '\u009b',
  'a next line': '\u0085',
  'the marks left to right and right to left': '\u200e\u200f\u061c',
  'the embeddings and overrides': '\u202a\u202b\u202c\u202d\u202e',
  'the isolates': '\u2066\u2067\u2068\u2069',
  'the line and the paragraph separator': '\u2028\u2029',
  'what has no width': '\u200b\u200c\u200d\u2060\ufeff\u00ad',
  'spaces other than the plain one': '\u00a0\u2003\u202f\u3000',
  'characters without a shape': '\u034f\u115f\u3164\uffa0\ufe0f\u2800',
  'a tag': '\u{e0041}',
  'halves of pairs': '\ud800',
  'the other half': '\udc00',
  'private characters': '\ue000\u{f0000}',
  'what is no character': '\uffff\u{1fffe}',
} as const;

describe('foreign text', () => {
  for (const [name, text] of Object.entries(unprintable)) {
    it(`L-003 has ${name} escaped`, () => {
      const escapes = Array.from(text, each => `\\u{${(each.codePointAt(0) ?? 0).toString(16)}}`).join('');
      expect(foreignText(`a${text}b`)).to.equal(`a${escapes}b`);
      expect(quotedForeignText(text)).to.equal(`"${escapes}"`);
    });
  }

  for (const text of ['', 'GET', 'Schlüssel', 'キー', 'ключ', '\u{1f511}', '"\\"', '…', 'a\\u{9b}']) {
    it(`leaves ${JSON.stringify(text)} as it is`, () => {
      expect(foreignText(text)).to.equal(text);
    });
  }

  it('is cut at the bound, between characters and between escapes', () => {
    expect(foreignText('a'.repeat(20), 20)).to.equal('a'.repeat(20));
    expect(foreignText('a'.repeat(21), 20)).to.equal(`${'a'.repeat(19)}…`);
    expect(foreignText('\u{1f511}'.repeat(11), 20)).to.equal(`${'\u{1f511}'.repeat(9)}…`);
    expect(foreignText('\u009b'.repeat(4), 20)).to.equal(`${'\\u{9b}'.repeat(3)}…`);
    expect(foreignText('\u009b'.repeat(1000))).to.have.length.at.most(96);
  });

  it('has quotes and backslashes marked between quotes', () => {
    expect(quotedForeignText('a"b\\c\u202e')).to.equal('"a\\"b\\\\c\\u{202e}"');
    expect(quotedForeignText('a'.repeat(21), 20)).to.equal(`"${'a'.repeat(19)}…"`);
  });

  it('looks at no more of a text than it shows', () => {
    const long = Buffer.alloc(40_000_000, '\u202e', 'utf16le').toString('utf16le');
    const start = performance.now();
    foreignText(long);
    expect(performance.now() - start).to.be.below(100);
  });

  it('is within its bound, printable and unchanged by a second pass, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), fc.integer({ min: 8, max: 200 }), (text, bound) => {
        const shown = foreignText(text, bound);
        expect(shown.length).to.be.at.most(bound);
        expect(shown.replaceAll(' ', '')).to.match(/^[^\p{C}\p{Z}]*$/u);
        expect(foreignText(shown, bound)).to.equal(shown);
      }),
    );
  });

  it('is found in lists and objects, and what is no text stays', () => {
    const at = new Date(0);
    const value = { a: ['\u009b', 1, null, undefined, true], b: { c: '\u202e' }, at };
    expect(foreignValue(value)).to.deep.equal({ a: ['\\u{9b}', 1, null, undefined, true], b: { c: '\\u{202e}' }, at });
    const plain = { a: 'GET', b: 1 };
    expect(foreignMembers(plain)).to.equal(plain);
  });
});
