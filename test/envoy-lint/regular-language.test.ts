// The regular languages of the lint against the regular expressions of the runtime, where both know the syntax.
import { expect } from 'chai';
import fc from 'fast-check';
import { parseRe2 } from '../../src/envoy-lint/re2-syntax.ts';
import { findText, isIn, type Language, toLanguage } from '../../src/envoy-lint/regular-language.ts';

function languageOf(pattern: string): Language {
  const expression = parseRe2(pattern);
  if (expression.kind === 'problem') throw new Error(`${pattern} ${expression.problem}`);
  const language = toLanguage(expression);
  if (language === undefined) throw new Error(`${pattern} is too large`);
  return language;
}

const atom = fc.constantFrom(
  'a',
  'b',
  '-',
  '.',
  '[ab]',
  '[^a]',
  '[a-c_-]',
  '\\d',
  '\\w',
  '\\.',
  '\\-',
  '[\\w.]',
  '^',
  '$',
);
const pattern = fc.letrec<{ all: string; repeated: string; grouped: string; joined: string }>(tie => ({
  all: fc.oneof({ maxDepth: 4 }, atom, tie('repeated'), tie('grouped'), tie('joined')),
  repeated: fc
    .tuple(
      fc.oneof(fc.constantFrom('a', '[ab]', '.'), tie('grouped')),
      fc.constantFrom('*', '+', '?', '{2}', '{1,}', '{0,2}', '*?'),
    )
    .map(([inner, count]) => inner + count),
  grouped: fc.tuple(tie('all'), tie('all')).map(([one, other]) => `(?:${one}|${other})`),
  joined: fc.tuple(tie('all'), tie('all')).map(([one, other]) => `(${one})${other}`),
})).all;
const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '-', '.', '_', '1'), maxLength: 6 });

describe('regular languages', () => {
  it('hold what the runtime matches as a whole', () => {
    fc.assert(
      fc.property(pattern, fc.array(text, { minLength: 8, maxLength: 8 }), (source, texts) => {
        const language = languageOf(source);
        const expression = new RegExp(`^(?:${source})$`);
        for (const each of texts) expect(isIn(language, each), each).to.equal(expression.test(each));
      }),
      { numRuns: 500 },
    );
  });

  it('find a text that is in one and not in the other, or none', () => {
    fc.assert(
      fc.property(pattern, pattern, text, (one, other, sample) => {
        const [wanted, unwanted] = [new RegExp(`^(?:${one})$`), new RegExp(`^(?:${other})$`)];
        const found = findText([languageOf(one)], languageOf(other));
        if (found.kind === 'text')
          expect([wanted.test(found.text), unwanted.test(found.text)]).to.deep.equal([true, false]);
        else expect(wanted.test(sample) && !unwanted.test(sample)).to.equal(found.kind === 'too many');
      }),
      { numRuns: 500 },
    );
  });

  const same: readonly (readonly [pattern: string, inside: readonly string[], outside: readonly string[]])[] = [
    ['x[-_]auth[-_].*', ['x-auth-uid', 'x_auth-'], ['x-auth', 'ax-auth-uid', 'X-auth-uid']],
    ['(?i)x-(?:A|b)', ['x-a', 'X-B'], ['x-c']],
    ['a(?i:b)c', ['abc', 'aBc'], ['Abc', 'abC']],
    ['(?P<n>a)|(?<m>b)', ['a', 'b'], ['ab']],
    ['\\Qa.*\\E+', ['a.*', 'a.**'], ['ab']],
    ['\\Aab\\z', ['ab'], ['abc']],
    ['[[:alpha:][:digit:]]', ['a', '1'], ['-']],
    ['[^[:^alnum:]]', ['a'], ['-']],
    ['[]a]', [']', 'a'], ['b']],
    ['[a\\]-]', [']', '-', 'a'], ['\\']],
    ['\\x41\\x{42}\\t', ['AB\t'], ['AB']],
    ['a{,2}', ['a{,2}'], ['a', 'aa']],
    ['a|', ['a', ''], ['b']],
    ['(?i)[^a]', ['b'], ['a', 'A']],
    ['(?s).', ['\n', 'a'], ['']],
    ['.', ['a', 'é'], ['\n']],
    ['^^a$$|^$', ['a', ''], ['aa']],
    ['a^b', [], ['ab', 'a', 'b']],
  ];
  for (const [source, inside, outside] of same) {
    it(`read ${source} as RE2 does`, () => {
      const language = languageOf(source);
      expect(inside.filter(each => !isIn(language, each))).to.deep.equal([]);
      expect(outside.filter(each => isIn(language, each))).to.deep.equal([]);
    });
  }

  for (const source of [
    '(?=a)',
    '(?!a)',
    '(?<=a)b',
    '(?<!a)b',
    '\\1',
    '\\bx',
    '\\pL',
    'a**',
    'a++',
    '*a',
    '(a',
    'a)',
    '[a',
    '[b-a]',
    '[[:foo:]]',
    'a{2,1}',
    'a{1001}',
    '\\',
    '\\x4',
    '(?z)a',
    `${'('.repeat(60)}${')'.repeat(60)}`,
    'a'.repeat(5000),
  ]) {
    it(`cannot judge ${source.slice(0, 20)}`, () => {
      expect(parseRe2(source)).to.have.property('kind', 'problem');
    });
  }

  it('give up on what would be too large', () => {
    const expression = parseRe2('((((a{100}){100}){100}){100}){100}');
    expect(expression.kind === 'problem' ? expression : toLanguage(expression)).to.equal(undefined);
  });
});
