// Long lists that are read in pieces: the pieces together are the list that the YAML library reads at once, with the same places.
import { expect } from 'chai';
import fc from 'fast-check';
import { Document, isNode, type Node, parse } from 'yaml';
import { composePiece, splitList } from '../../src/config/yaml-list.ts';

/** The items of all pieces as plain values, and the text of each in the file by its place. */
function readInPieces(text: string) {
  const pieces = [...splitList(text)];
  const read = pieces.map(piece => ({ ...piece, ...composePiece(piece) }));
  const items = read.flatMap(({ items: nodes, source, shift }) =>
    nodes
      .filter((node): node is Node => isNode(node))
      .map(node => {
        const [start = 0, end = 0] = node.range ?? [];
        expect(text.slice(start + shift, end + shift)).to.equal(source.slice(start, end));
        const value: unknown = node.toJS(new Document());
        return value;
      }),
  );
  return { items, sizes: read.map(each => each.items.length), problems: read.flatMap(({ problems }) => problems) };
}

const seed = fc.integer({ min: 1, max: 2 ** 31 - 1 });
const count = fc.integer({ min: 1, max: 900 });
const lineEnd = fc.constantFrom('\n', '\r\n');

const blockItems = [
  'jti: a',
  '"jti: a"',
  '{ uid: a, acc: "b, c" }',
  'uid: a\n  acc: b',
  '- nested\n  - list',
  '|\n  text\n  - no item',
  '"folded\n\n  - no item"',
  'uid: a # - no item',
  '\n  uid: a',
  '-1',
  'key:\n  - nested\n  - list',
];
const flowItems = [
  '{ jti: a }',
  '{ uid: [a, b], acc: "c, d" }',
  '"a, b"',
  "'it''s, ]'",
  '[a, [b, c]]',
  'plain',
  '{ a: {b: c, d: e} }',
  // As the marks that the lexer of the library inserts.
  '\u001f',
  '\u0002',
  '\u0018',
];

describe('a YAML list in pieces', () => {
  it('is a block list as the library reads it at once', () => {
    const form = fc.record({
      items: fc.array(fc.constantFrom(...blockItems), { minLength: 1, maxLength: 700, size: 'max' }),
      start: fc.constantFrom('', '# comment\n', '\n\n', '%YAML 1.2\n---\n', '--- \n', '  # indented\n#\n'),
      indent: fc.constantFrom('', '  '),
      between: fc.constantFrom('', '\n', '# - comment\n'),
      end: lineEnd,
    });
    fc.assert(
      fc.property(form, ({ items, start, indent, between, end }) => {
        const lines = items.map(item => `${indent}- ${item.replaceAll('\n', `\n${indent}`)}\n`).join(between);
        const text = `${start}${lines}`.replaceAll('\n', end);
        const { items: found, sizes, problems } = readInPieces(text);
        expect(problems).to.deep.equal([]);
        expect(found).to.deep.equal(parse(text, { schema: 'core' }));
        expect(Math.max(...sizes)).to.be.at.most(257);
      }),
      { numRuns: 60 },
    );
  });

  it('is a flow list as the library reads it at once', () => {
    const form = fc.record({
      items: fc.array(fc.constantFrom(...flowItems), { minLength: 1, maxLength: 700, size: 'max' }),
      start: fc.constantFrom('', '# comment, [\n', '---\n', ' '),
      between: fc.constantFrom(',', ', ', ',\n  ', ' # comment, ]\n,'),
      end: fc.constantFrom(']', ' ]\n', ',]', '\n] # comment, [\n'),
    });
    fc.assert(
      fc.property(form, ({ items, start, between, end }) => {
        const text = `${start}[${items.join(between)}${end}`;
        const { items: found, sizes, problems } = readInPieces(text);
        expect(problems).to.deep.equal([]);
        expect(found).to.deep.equal(parse(text, { schema: 'core' }));
        expect(Math.max(...sizes)).to.be.at.most(257);
      }),
      { numRuns: 60 },
    );
  });

  it('reports a problem of a later piece at its place in the file', () => {
    fc.assert(
      fc.property(count, seed, fc.boolean(), (many, at, isFlow) => {
        const broken = at % many;
        const items = Array.from({ length: many }, (_, i) => (i === broken ? '@none' : 'a'));
        const text = isFlow ? `[${items.join(', ')}]` : items.map(item => `- ${item}\n`).join('');
        const { problems, sizes } = readInPieces(text);
        expect(sizes.filter(size => size === 0)).to.have.lengthOf(1);
        expect(problems.map(({ offset }) => text.slice(offset, offset + 5))).to.deep.equal(['@none']);
      }),
      { numRuns: 60 },
    );
  });

  it('is one document, wherever another one starts', () => {
    for (let before = 250; before < 260; before += 1) {
      const { problems } = readInPieces(`${'- a\n'.repeat(before)}---\n${'- b\n'.repeat(300)}`);
      expect(problems.map(({ message }) => message)).to.deep.equal([
        'the file must be one YAML document: remove the line "---" between documents',
      ]);
    }
  });

  it('has the types of YAML 1.2, whatever its directive says', () => {
    const { items, problems } = readInPieces('%YAML 1.1\n---\n- yes\n- 0o17\n');
    expect({ items, problems }).to.deep.equal({ items: ['yes', 15], problems: [] });
  });

  for (const [text, message] of [
    ['', 'the file must not be empty: write [] for an empty list'],
    ['# nothing\n', 'the file must not be empty: write [] for an empty list'],
    ['a: 1\n', 'the file must be a list'],
    ['-a\n', 'the file must be a list'],
    [`{ ${Array.from({ length: 600 }, (_, i) => `a${i}: b`).join(', ')} }`, 'the file must be a list'],
    ['- !!binary YQ==\n', 'a tag is unknown or does not fit its value: put text that starts with ! in quotes'],
    ['- [a]: b\n', 'a key must be text'],
    ['- a\n---\n- b\n', 'the file must be one YAML document: remove the line "---" between documents'],
  ] as const) {
    it(`is refused when it is ${JSON.stringify(text).slice(0, 60)}`, () => {
      const { items, problems } = readInPieces(text);
      expect(items).to.deep.equal([]);
      expect(problems.map(problem => problem.message)).to.deep.equal([message]);
    });
  }
});
