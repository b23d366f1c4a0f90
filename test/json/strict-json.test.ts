import { expect } from 'chai';
import fc from 'fast-check';
import { memberOf, parseBoundedJson, parseStrictJson } from '../../src/json/strict-json.ts';

describe('strict JSON', () => {
  const refused: readonly (readonly [name: string, input: string | Buffer, problem: string])[] = [
    ['a member twice', '{"a":1,"a":2}', 'a member twice'],
    ['a member twice with the same value', '{"a":1,"a":1}', 'a member twice'],
    ['a member twice in two spellings', '{"acc":1,"\\u0061cc":2}', 'a member twice'],
    ['a member twice inside an array', '[{"a":1},{"b":{"c":1,"c":2}}]', 'a member twice'],
    ['an empty name twice', '{"":1,"":2}', 'a member twice'],
    ['__proto__ twice', '{"__proto__":1,"__proto__":2}', 'a member twice'],
    ['a member twice around a nested object', '{"a":{"b":1},"a":2}', 'a member twice'],
    ['a member twice around text that looks like the end', '{"a":"}\\"","a":2}', 'a member twice'],
    ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'not UTF-8'],
    ['an overlong encoding', Buffer.from([0x22, 0xc0, 0xaf, 0x22]), 'not UTF-8'],
    ['a byte order mark', Buffer.from('\ufeff{}'), 'not JSON'],
    ['two values', '{}{}', 'not JSON'],
    ['a comment', '{/**/}', 'not JSON'],
    ['NaN', '{"a":NaN}', 'not JSON'],
    ['nothing', '', 'not JSON'],
  ];
  for (const [name, input, problem] of refused) {
    it(`refuses ${name}`, () => {
      expect(parseStrictJson(input)).to.deep.equal({ kind: 'problem', problem });
    });
  }

  const accepted: readonly (readonly [name: string, text: string])[] = [
    ['the same name in two objects', '[{"a":1},{"a":2}]'],
    ['the same name at two depths', '{"a":{"a":{"a":1}}}'],
    ['strings equal to a name', '{"a":"a","b":["a","a"]}'],
    ['escaped quotes and backslashes', '{"a\\"":"\\\\","a\\\\":"\\""}'],
    ['a scalar', '7'],
  ];
  for (const [name, text] of accepted) {
    it(`reads ${name}`, () => {
      expect(parseStrictJson(text)).to.deep.equal({ kind: 'value', value: JSON.parse(text) });
    });
  }

  it('reads bytes, also a part of a larger buffer', () => {
    const text = '{"a":"é"}';
    const bytes = new Uint8Array(Buffer.from(`[${text}]`)).subarray(1, -1);
    expect(parseStrictJson(bytes)).to.deep.equal({ kind: 'value', value: { a: 'é' } });
  });

  it('reads whatever JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.jsonValue(), value => {
        const text = JSON.stringify(value);
        expect(parseStrictJson(text)).to.deep.equal({ kind: 'value', value: JSON.parse(text) });
      }),
    );
  });

  it('finds a member repeated anywhere in an object', () => {
    const object = fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1, noNullPrototype: true });
    fc.assert(
      fc.property(object, fc.nat(), fc.jsonValue(), (value, pick, other) => {
        const names = Object.keys(value);
        const repeated = `${JSON.stringify(names[pick % names.length])}:${JSON.stringify(other)}`;
        const text = `${JSON.stringify(value).slice(0, -1)},${repeated}}`;
        expect(parseStrictJson(text)).to.deep.equal({ kind: 'problem', problem: 'a member twice' });
      }),
    );
  });

  it('does not exhaust the stack on deep nesting', () => {
    const depth = 100_000;
    const text = `${'['.repeat(depth)}${']'.repeat(depth)}`;
    expect(parseStrictJson(text).kind).to.be.oneOf(['value', 'problem']);
  });
});

describe('bounded JSON', () => {
  const rows: readonly (readonly [name: string, bytes: Uint8Array, result: unknown])[] = [
    ['within its bounds', Buffer.from('{"a":[1]}'), { kind: 'value', value: { a: [1] } }],
    ['that nests deeper', Buffer.from('[[[]]]'), { kind: 'problem', problem: 'nested too deep' }],
    ['of more values', Buffer.from('[1,2,3,4]'), { kind: 'problem', problem: 'too many values' }],
    ['with a member twice', Buffer.from('{"a":1,"a":1}'), { kind: 'problem', problem: 'a member twice' }],
    ['that is not UTF-8', Buffer.from([0x22, 0xff, 0x22]), { kind: 'problem', problem: 'not UTF-8' }],
  ];
  for (const [name, bytes, result] of rows) {
    it(`${name}: ${JSON.stringify(result)}`, () => {
      expect(parseBoundedJson(bytes, { maxDepth: 2, maxValues: 4 })).to.deep.equal(result);
    });
  }
});

describe('memberOf', () => {
  it('gives what the object itself has', () => {
    expect(memberOf({ acc: 'a' }, 'acc')).to.equal('a');
    expect(memberOf(JSON.parse('{"__proto__":1}'), '__proto__')).to.equal(1);
  });

  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    it(`does not give the inherited ${name}`, () => expect(memberOf({}, name)).to.equal(undefined));
  }

  for (const value of [null, undefined, 'text', 1, ['a'], []]) {
    it(`gives nothing of ${JSON.stringify(value)}`, () => expect(memberOf(value, 'length')).to.equal(undefined));
  }
});
