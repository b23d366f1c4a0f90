// The fast path for simple YAML lists: it returns what the YAML library returns, or leaves the text to the library.
import { expect } from 'chai';
import fc from 'fast-check';
import { parse } from 'yaml';
import { readPlainList } from '../../src/config/plain-list.ts';

const read = (source: string): unknown => readPlainList(source)?.map(item => Object.fromEntries(item));
const byLibrary = (source: string): unknown => parse(source, { schema: 'core', merge: false });

describe('readPlainList', () => {
  const plain = [
    '- jti: a\n',
    '- jti: a',
    '  - jti: a\n    uid: b\n  - acc: c\n',
    '- { jti: a, uid: b }\n- {acc: c}\n- { app: d,acc: e}\n',
    '- jti: 7f3c2b9e-4f1c-4a55-8f2e-5d1a3c0b9e61 # stolen\n\n# more\n- uid: "4711"\n',
    '# who\n- jti: a\n',
    '- jti: a  # two spaces\n- { uid: b }  # two spaces\n',
    '- { jti: 7f3c.a1, uid: "4711" }\n',
    '- uid: untrue\n- uid: nullify\n',
    '- iss: https://auth.example.com/realms/a|b\n  issuedBefore: 2026-11-23T04:00:00+01:00\n',
    '- uid: alice@example.com\r\n- uid: a.b\r\n',
    '[{"jti":"a","uid":"\\u0041 b"},{"acc":"c"}]',
    '[]',
  ];
  for (const source of plain) {
    it(`reads ${JSON.stringify(source)} like the library`, () => {
      expect(read(source)).to.deep.equal(byLibrary(source));
    });
  }

  const other = [
    ...['', '\n', '# a\n', 'a', '{}', '- a', '- - a', '-', '- ', '---\n- a: b', '- a: b\n...\n', '- a: b\n---\n- a: c'],
    ...['- a: 1', '- a: 1e5', '- a: 0x1f', '- a: 1.', '- a: true', '- a: NULL', '- a: ~', '- a:', '- a: ', '- a: .inf'],
    ...[
      '- a: b: c',
      '- a: b:',
      '- a: b\n    c',
      '- a: b\n  c',
      '- a: "b',
      '- a: b"',
      "- a: 'b'",
      '- a: "b\\n"',
      '- a: b c',
    ],
    ...[
      '- a: b\n  a: c',
      '- { a: b, a: c }',
      '- { a: b, }',
      '- { a: b',
      '- { a: { b: c } }',
      '- { a b: c }',
      '- { a: b c }',
      '- a: b\n{ c: d }',
      '- { a: b } c',
      '- { }',
    ],
    ...['- null: a', '- 1: a', '- True: a', '- { 1e3: a }'],
    ...['- a: *b', '- &a b: c', '- !a b: c', '- a: |', '- a: >', '- ? a', '- a: [b]', '- "a": b', '- a : b', '- a:b'],
    ...[
      '- a: b\n - a: c',
      '- a: b\n   c: d',
      '- a: b\n c: d',
      '  - a: b\n- a: c',
      '- a: b\n\tc: d',
      '- { a: b }\n  c: d',
    ],
    ...[
      '[{"a":"b","a":"c"}]',
      '[{"a":1}]',
      '[{"a":"b","c":1}]',
      '[{"a":null}]',
      '["a"]',
      '[["a"]]',
      '[{"a":["b"]}]',
      '[{a: b}]',
      '[{"a":"b"},]',
    ],
  ];
  for (const source of other) {
    it(`leaves ${JSON.stringify(source)} to the library`, () => {
      expect(readPlainList(source)).to.equal(undefined);
    });
  }

  it('never differs from the library in 50,000 random texts', () => {
    const part = fc.constantFrom(
      ...[
        '- ',
        '  ',
        '    ',
        '-',
        ' ',
        '\n',
        '\r\n',
        '{ ',
        ' }',
        '{',
        '}',
        ', ',
        ',',
        ': ',
        ':',
        '#',
        ' # x',
        '"',
        "'",
      ],
      ...[
        'a',
        'b',
        'uid',
        'jti',
        'x1',
        '1',
        '1e3',
        '0x1',
        'true',
        'null',
        '~',
        '|',
        '>',
        '&a',
        '*a',
        '!a',
        '[',
        ']',
        '?',
        '\t',
      ],
      ...[
        'a: b',
        '- uid: a\n',
        '  acc: c\n',
        '- { jti: a }\n',
        '{"a":"b"}',
        '[{"a":"b"}',
        '...',
        '---\n',
        'a.b',
        'a:b',
      ],
    );
    let count = 0;
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), parts => {
        const source = parts.join('');
        const items = read(source);
        if (items === undefined) return;
        count += 1;
        expect(items).to.deep.equal(byLibrary(source));
      }),
      { numRuns: 50_000 },
    );
    expect(count).to.be.above(100);
  });
});
