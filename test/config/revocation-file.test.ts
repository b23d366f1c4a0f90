// The revocation list file: accepted YAML and JSON forms, and every problem with its place.
import { expect } from 'chai';
import { stringify } from 'yaml';
import { parseRevocations } from '../../src/config/revocation-file.ts';
import type { Revocation } from '../../src/revocation/revocation-list.ts';
import { secrets } from '../support/secrets.ts';

interface Parsed {
  readonly entries: readonly Revocation[];
  /** `line:column place: message`. */
  readonly problems: readonly string[];
}

function parse(content: string | Uint8Array): Parsed {
  const entries: Revocation[] = [];
  const problems = parseRevocations(Buffer.from(content), some => entries.push(...some));
  secrets.show('command', JSON.stringify(problems));
  return {
    entries,
    problems: problems.map(({ line, column, place, message }) => `${line}:${column} ${place}: ${message}`),
  };
}

const entry = (selectors: string, key: string, times: Partial<Revocation> = {}): Revocation => ({
  selectors,
  key,
  issuedBefore: Infinity,
  expires: Infinity,
  ...times,
});

describe('revocation file', () => {
  it('is parsed into entries', () => {
    const { entries, problems } = parse(`# who is out
- jti: 7f3c
- { uid: alice, acc: acme }   # left on Monday
- acc: acme
  issuedBefore: 2026-11-23T04:00:00Z
  expires: 2026-11-24t05:00:00.5+01:00
- iss: https://auth.example.com
  app: web
  issuedBefore: "2026-11-23T04:00:00-00:30"
`);
    expect(problems).to.deep.equal([]);
    expect(entries).to.deep.equal([
      entry('jti', '7f3c'),
      entry('uid, acc', 'alice\0acme'),
      entry('acc', 'acme', {
        issuedBefore: Date.UTC(2026, 10, 23, 4) / 1000,
        expires: Date.UTC(2026, 10, 24, 4) / 1000 + 0.5,
      }),
      entry('iss, app', 'https://auth.example.com\0web', { issuedBefore: Date.UTC(2026, 10, 23, 4, 30) / 1000 }),
    ]);
  });

  const some = [{ jti: 'a' }, { uid: 'b', expires: '2026-11-23T04:00:00Z' }, { acc: 'c', app: 'd' }];
  const forms: Readonly<Record<string, string | Uint8Array>> = {
    'as a block list': stringify(some),
    'as an indented block list': stringify(some).replace(/^/gm, '  ').trimEnd(),
    'as JSON on one line': JSON.stringify(some),
    'as JSON on many lines': JSON.stringify(some, null, 2),
    'as lines of JSON': some.map(each => `- ${JSON.stringify(each)}\n`).join(''),
    'with CRLF line ends': stringify(some).replaceAll('\n', '\r\n'),
    'with a byte order mark': `\ufeff${stringify(some)}`,
    'with a document start and end': `%YAML 1.2\n# list\n---\n\n${stringify(some)}...\n`,
    'with the list on the document start line': `--- ${JSON.stringify(some)}`,
    'with values on separate lines':
      '- jti:\n    a\n-\n  uid: b\n  expires:\n   2026-11-23T04:00:00Z\n- acc: "c"\n  app: \'d\'\n',
    'with a YAML tag': '- jti: !!str a\n- { uid: b, expires: 2026-11-23T04:00:00Z }\n- { acc: c, app: d }\n',
  };
  for (const [name, text] of Object.entries(forms)) {
    it(`is parsed ${name}`, () => {
      expect(parse(text)).to.deep.equal({
        problems: [],
        entries: [
          entry('jti', 'a'),
          entry('uid', 'b', { expires: Date.UTC(2026, 10, 23, 4) / 1000 }),
          entry('acc, app', 'c\0d'),
        ],
      });
    });
  }

  // A write that fails midway can leave an empty file.
  it('may be an empty list, and must not be an empty file', () => {
    for (const text of ['[]', '[]\n', '# nobody\n[ ]\n'])
      expect(parse(text)).to.deep.equal({ entries: [], problems: [] });
    for (const text of ['', '\n', '# nobody\n', '---\n'])
      expect(parse(text).problems).to.deep.equal(['1:1 : the file must not be empty: write [] for an empty list']);
  });

  const unreadable: readonly (readonly [name: string, content: string | Uint8Array, problem: string])[] = [
    ['a mapping', 'jti: a\n', '1:1 : the file must be a list'],
    ['a word', 'alice', '1:1 : the file must be a list'],
    ['null', '~', '1:1 : the file must be a list'],
    ['bytes that are not UTF-8', Buffer.from([0x2d, 0x20, 0xff]), '1:1 : the file must be text in UTF-8'],
    [
      'two documents',
      '- jti: a\n---\n- jti: b\n',
      '1:1 : the file must be one YAML document: remove the line "---" between documents',
    ],
    [
      'a bracket that is not closed',
      '[{jti: a}, {jti: b}',
      '1:20 : a closing quote, a comma, a colon or a space is missing',
    ],
    [
      'deep nesting',
      `- jti: ${'['.repeat(40)}${']'.repeat(40)}`,
      '1:1 : the file must not be nested deeper than 32 levels',
    ],
    [
      'an unknown tag',
      '- !x { jti: a }',
      '1:3 : a tag is unknown or does not fit its value: put text that starts with ! in quotes',
    ],
  ];
  for (const [name, content, problem] of unreadable) {
    it(`is refused with ${name} as its content`, () => {
      expect(parse(content).problems).to.include(problem);
      expect(parse(content).entries).to.deep.equal([]);
    });
  }

  const time = 'must be an RFC 3339 time such as 2026-11-23T04:00:00Z';
  const unknownKey = 'is not a known key: the keys here are iss, uid, acc, app, jti, issuedBefore, expires';
  const identity = 'must be 1 to 128 visible ASCII characters without space , ; and "';
  const bad: readonly (readonly [entry: string, problem: string])[] = [
    ['-', '1:2 [0]: must be a mapping'],
    ['- alice', '1:3 [0]: must be a mapping'],
    ['- [alice]', '1:3 [0]: must be a mapping'],
    ['- {}', '1:3 [0]: must have at least one of iss, uid, acc, app, jti'],
    ['- expires: 2026-11-23T04:00:00Z', '1:3 [0]: must have at least one of iss, uid, acc, app, jti'],
    ['- { uid: a, role: b }', `1:13 [0].role: ${unknownKey}`],
    ['- { uid: a, UID: b }', `1:13 [0].UID: ${unknownKey}`],
    ['- { uid: a, constructor: b }', `1:13 [0].constructor: ${unknownKey}`],
    ['- { uid: a, __proto__: b }', `1:13 [0].__proto__: ${unknownKey}`],
    ['- { uid: a, <<: { acc: b } }', `1:13 [0]["<<"]: ${unknownKey}`],
    ['- { uid: a, uid: b }', '1:13 [0].uid: is set twice: remove one'],
    ['- { uid: }', '1:10 [0].uid: must be text: put it in quotes'],
    ['- { uid: 12 }', '1:10 [0].uid: must be text: put it in quotes'],
    ['- { jti: true }', '1:10 [0].jti: must be text: put it in quotes'],
    ['- { jti: [a] }', '1:5 [0].jti: must be text: put it in quotes'],
    ['- { jti: &a b, uid: *a }', '1:16 [0].uid: must be text: put it in quotes'],
    ['- { uid: "" }', `1:10 [0].uid: ${identity}`],
    ['- { uid: "a b" }', `1:10 [0].uid: ${identity}`],
    ['- { app: "a,b" }', `1:10 [0].app: ${identity}`],
    [`- { uid: ${'a'.repeat(129)} }`, `1:10 [0].uid: ${identity}`],
    ['- { acc: "a/b" }', '1:10 [0].acc: must be 1 to 128 of A-Z a-z 0-9 . _ ~ -, and not . or ..'],
    ['- { acc: .. }', '1:10 [0].acc: must be 1 to 128 of A-Z a-z 0-9 . _ ~ -, and not . or ..'],
    ['- { iss: "" }', '1:10 [0].iss: must be 1 to 1024 visible ASCII characters'],
    ['- { jti: "" }', '1:10 [0].jti: must have 1 to 1024 characters'],
    [`- { jti: ${'a'.repeat(1025)} }`, '1:10 [0].jti: must have 1 to 1024 characters'],
    ['- { uid: a, expires: 2026-11-23 }', `1:22 [0].expires: ${time}`],
    ['- { uid: a, expires: 2026-11-23T04:00:00 }', `1:22 [0].expires: ${time}`],
    ['- { uid: a, expires: 2026-11-23T04:00Z }', `1:22 [0].expires: ${time}`],
    ['- { uid: a, issuedBefore: 2026-02-30T04:00:00Z }', `1:27 [0].issuedBefore: ${time}`],
    ['- { uid: a, issuedBefore: 1764000000 }', '1:27 [0].issuedBefore: must be text: put it in quotes'],
    ['- { uid: a, issuedBefore: now }', `1:27 [0].issuedBefore: ${time}`],
  ];
  for (const [text, problem] of bad) {
    it(`is refused with ${text.slice(0, 60)}`, () => {
      expect(parse(`${text}\n`).problems).to.deep.equal([problem]);
    });
  }

  it('reports all problems at once, with their places and without values', () => {
    const { problems, entries } = parse(
      '- uid: a\n- uid: secret value\n  acc: 1\n- jit: x\n- { jti: b, expires: soon }\n',
    );
    expect(problems).to.deep.equal([
      `2:8 [1].uid: ${identity}`,
      '3:8 [1].acc: must be text: put it in quotes',
      `4:3 [2].jit: ${unknownKey}`,
      '4:3 [2]: must have at least one of iss, uid, acc, app, jti',
      `5:22 [3].expires: ${time}`,
    ]);
    expect(problems.join()).to.not.contain('secret');
    expect(entries).to.deep.equal([]);
  });

  for (const [form, text] of Object.entries({
    block: (lines: readonly string[]) => lines.map(line => `- ${line}\n`).join(''),
    indented: (lines: readonly string[]) => lines.map(line => `    - ${line}\n`).join(''),
    flow: (lines: readonly string[]) => `[\n${lines.join(',\n')}\n]`,
  })) {
    it(`reports the exact place of a problem in a long ${form} list`, () => {
      const lines = Array.from({ length: 1000 }, (_, i) => `{ jti: "it's [${i}], {-" }`);
      expect(parse(text(lines)).entries.map(({ key }) => key)).to.deep.equal(lines.map((_, i) => `it's [${i}], {-`));
      const column = text(['']).split('\n')[form === 'flow' ? 1 : 0]?.length ?? 0;
      const line = (index: number): number => index + (form === 'flow' ? 2 : 1);
      for (const index of [0, 255, 256, 257, 511, 512, 999]) {
        const { problems } = parse(text(lines.with(index, '{ jti: 1 }')));
        expect(problems).to.deep.equal([`${line(index)}:${column + 8} [${index}].jti: must be text: put it in quotes`]);
      }
    });
  }

  it('is not split inside a string that looks like entries', () => {
    const long = Array.from({ length: 600 }, (_, i) => `    - uid: u${i}`).join('\n');
    expect(
      parse(`- jti: "\n${long}"\n- jti: |\n${long}\n`).problems.map(each => each.replace(/ .*?:/, ':')),
    ).to.deep.equal(['1:8: must have 1 to 1024 characters', '602:8: must have 1 to 1024 characters']);
  });

  it('gives no entry if one of its plain lines is wrong', () => {
    expect(parse('- jti: a\n- jit: b\n- jti: c\n')).to.deep.equal({
      entries: [],
      problems: [`2:3 [1].jit: ${unknownKey}`, '2:3 [1]: must have at least one of iss, uid, acc, app, jti'],
    });
  });

  it('may have a jti of 1024 characters', () => {
    const jti = 'a'.repeat(1024);
    expect(parse(`- { jti: ${jti} }`)).to.deep.equal({ entries: [entry('jti', jti)], problems: [] });
  });

  it('reports 100 problems, and that more are not listed', () => {
    for (const after of ['- jti: 1\n', `${'- jti: a\n'.repeat(600)}- jti: 1\n`]) {
      const { problems } = parse(`${'- jti: 1\n'.repeat(100)}${after}`);
      expect(problems).to.have.lengthOf(101);
      expect(problems.at(-1)).to.match(/^\d+:8 : more problems are not listed$/);
    }
  });

  it('may have at most 100,000 entries', function () {
    this.timeout(60_000);
    const { entries, problems } = parse(Array.from({ length: 100_000 }, (_, i) => `- jti: id-${i}\n`).join(''));
    expect(problems).to.deep.equal([]);
    expect(entries).to.have.lengthOf(100_000);
    for (const count of [100_001, 101_000]) {
      expect(parse('- jti: a\n'.repeat(count)).problems).to.deep.equal([
        '1:1 : the file must not have more than 100000 entries: remove those that have expired',
      ]);
    }
  });
});
