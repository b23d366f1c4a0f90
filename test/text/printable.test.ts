// Foreign text in every output: which characters are escaped, which pass, and the length limit.
import { expect } from 'chai';
import fc from 'fast-check';
import { printable, printableMembers, printableValue, quotedPrintable } from '../../src/text/printable.ts';
import { anyCharacter } from '../support/any-character.ts';

const unprintable = {
  'C0 controls': '\u0007',
  'the ESC that starts a terminal sequence': '\u001b',
  'line feeds': '\n',
  tabs: '\t',
  DEL: '\u007f',
  'the C1 control CSI': '\u009b',
  'the C1 control NEL': '\u0085',
  'directional marks': '\u200e\u200f\u061c',
  'directional embeddings and overrides': '\u202a\u202b\u202c\u202d\u202e',
  'directional isolates': '\u2066\u2067\u2068\u2069',
  'line and paragraph separators': '\u2028\u2029',
  'zero-width characters': '\u200b\u200c\u200d\u2060\ufeff\u00ad',
  'non-ASCII spaces': '\u00a0\u2003\u202f\u3000',
  'invisible letters and fillers': '\u034f\u115f\u3164\uffa0\ufe0f\u2800',
  'tag characters': '\u{e0041}',
  'high surrogates': '\ud800',
  'low surrogates': '\udc00',
  'private-use characters': '\ue000\u{f0000}',
  noncharacters: '\uffff\u{1fffe}',
} as const;

describe('foreign text', () => {
  for (const [name, text] of Object.entries(unprintable)) {
    it(`L-003 escapes ${name}`, () => {
      const escapes = Array.from(text, each => `\\u{${(each.codePointAt(0) ?? 0).toString(16)}}`).join('');
      expect(printable(`a${text}b`)).to.equal(`a${escapes}b`);
      expect(quotedPrintable(text)).to.equal(`"${escapes}"`);
    });
  }

  for (const text of ['', 'GET', 'Schlüssel', 'キー', 'ключ', '\u{1f511}', '"\\"', '…', 'a\\u{9b}']) {
    it(`leaves ${JSON.stringify(text)} unchanged`, () => {
      expect(printable(text)).to.equal(text);
    });
  }

  it('is truncated at the limit, never inside a character or an escape', () => {
    expect(printable('a'.repeat(20), 20)).to.equal('a'.repeat(20));
    expect(printable('a'.repeat(21), 20)).to.equal(`${'a'.repeat(19)}…`);
    expect(printable('\u{1f511}'.repeat(11), 20)).to.equal(`${'\u{1f511}'.repeat(9)}…`);
    expect(printable('\u009b'.repeat(4), 20)).to.equal(`${'\\u{9b}'.repeat(3)}…`);
    expect(printable('\u009b'.repeat(1000))).to.have.length.at.most(96);
  });

  it('has quotes and backslashes escaped inside quotes', () => {
    expect(quotedPrintable('a"b\\c\u202e')).to.equal('"a\\"b\\\\c\\u{202e}"');
    expect(quotedPrintable('a'.repeat(21), 20)).to.equal(`"${'a'.repeat(19)}…"`);
  });

  it('is read only up to the limit, however long it is', () => {
    const long = Buffer.alloc(40_000_000, '\u202e', 'utf16le').toString('utf16le');
    const fastestMs = (text: string): number =>
      Math.min(
        ...Array.from({ length: 5 }, () => {
          const start = performance.now();
          printable(text);
          return performance.now() - start;
        }),
      );
    expect(fastestMs(long)).to.be.below(200 * Math.max(fastestMs(long.slice(0, 4_000)), 0.02));
  });

  it('is within the limit, printable and unchanged by a second pass, for any text', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: anyCharacter, maxLength: 60, size: 'max' }),
        fc.integer({ min: 8, max: 200 }),
        (text, bound) => {
          const shown = printable(text, bound);
          expect(shown.length).to.be.at.most(bound);
          expect(shown.replaceAll(' ', '')).to.match(/^[^\p{C}\p{Z}]*$/u);
          expect(printable(shown, bound)).to.equal(shown);
        },
      ),
    );
  });

  it('is escaped inside lists and objects, and other values stay unchanged', () => {
    const at = new Date(0);
    const value = { a: ['\u009b', 1, null, undefined, true], b: { c: '\u202e' }, at };
    const a = ['\\u{9b}', 1, null, undefined, true];
    expect(printableValue(value)).to.deep.equal({ a, b: { c: '\\u{202e}' }, at });
    const plain = { a: 'GET', b: 1 };
    expect(printableMembers(plain)).to.equal(plain);
  });
});
