// JSON without ambiguity: duplicate members and invalid UTF-8 are refused, inherited members are not read.
import { expect } from 'chai';
import fc from 'fast-check';
import { itemsOf, memberOf, parseBoundedJson, parseStrictJson } from '../../src/json/strict-json.ts';

describe('parseStrictJson', () => {
  const refused: readonly (readonly [name: string, input: string | Buffer, problem: string])[] = [
    ['a duplicate member', '{"a":1,"a":2}', 'a member twice'],
    ['a duplicate member with the same value', '{"a":1,"a":1}', 'a member twice'],
    ['a duplicate member spelled with an escape', '{"acc":1,"\\u0061cc":2}', 'a member twice'],
    ['a duplicate member inside an array', '[{"a":1},{"b":{"c":1,"c":2}}]', 'a member twice'],
    ['a duplicate empty name', '{"":1,"":2}', 'a member twice'],
    ['a duplicate __proto__', '{"__proto__":1,"__proto__":2}', 'a member twice'],
    ['a duplicate member after a nested object', '{"a":{"b":1},"a":2}', 'a member twice'],
    ['a duplicate member after a string that looks like the end of the object', '{"a":"}\\"","a":2}', 'a member twice'],
    ['invalid UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'not UTF-8'],
    ['an overlong UTF-8 encoding', Buffer.from([0x22, 0xc0, 0xaf, 0x22]), 'not UTF-8'],
    ['a byte order mark', Buffer.from('\ufeff{}'), 'not JSON'],
    ['two values', '{}{}', 'not JSON'],
    ['a comment', '{/**/}', 'not JSON'],
    ['NaN', '{"a":NaN}', 'not JSON'],
    ['an empty text', '', 'not JSON'],
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
    it(`parses ${name}`, () => {
      expect(parseStrictJson(text)).to.deep.equal({ kind: 'value', value: JSON.parse(text) });
    });
  }

  it('parses a view into a larger buffer', () => {
    const text = '{"a":"é"}';
    const bytes = new Uint8Array(Buffer.from(`[${text}]`)).subarray(1, -1);
    expect(parseStrictJson(bytes)).to.deep.equal({ kind: 'value', value: { a: 'é' } });
  });

  it('parses whatever JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.jsonValue(), value => {
        const text = JSON.stringify(value);
        expect(parseStrictJson(text)).to.deep.equal({ kind: 'value', value: JSON.parse(text) });
      }),
    );
  });

  it('refuses an object that repeats any of its members', () => {
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

  it('does not overflow the stack on 100,000 nested arrays', () => {
    const depth = 100_000;
    const text = `${'['.repeat(depth)}${']'.repeat(depth)}`;
    expect(parseStrictJson(text).kind).to.be.oneOf(['value', 'problem']);
  });
});

describe('parseBoundedJson', () => {
  const rows: readonly (readonly [name: string, bytes: Uint8Array, result: unknown])[] = [
    ['parses a value within the bounds', Buffer.from('{"a":[1]}'), { kind: 'value', value: { a: [1] } }],
    ['refuses a value that is nested too deep', Buffer.from('[[[]]]'), { kind: 'problem', problem: 'nested too deep' }],
    ['refuses too many values', Buffer.from('[1,2,3,4]'), { kind: 'problem', problem: 'too many values' }],
    ['refuses a duplicate member', Buffer.from('{"a":1,"a":1}'), { kind: 'problem', problem: 'a member twice' }],
    ['refuses invalid UTF-8', Buffer.from([0x22, 0xff, 0x22]), { kind: 'problem', problem: 'not UTF-8' }],
  ];
  for (const [name, bytes, result] of rows) {
    it(name, () => {
      expect(parseBoundedJson(bytes, { maxDepth: 2, maxValues: 4 })).to.deep.equal(result);
    });
  }
});

describe('memberOf', () => {
  it('returns an own member', () => {
    expect(memberOf({ acc: 'a' }, 'acc')).to.equal('a');
    expect(memberOf(JSON.parse('{"__proto__":1}'), '__proto__')).to.equal(1);
  });

  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    it(`does not return the inherited ${name}`, () => expect(memberOf({}, name)).to.equal(undefined));
  }

  for (const value of [null, undefined, 'text', 1, ['a'], []]) {
    it(`returns nothing for ${JSON.stringify(value)}`, () => expect(memberOf(value, 'length')).to.equal(undefined));
  }
});

describe('itemsOf', () => {
  it('returns the items of a list', () => expect(itemsOf(['a', null])).to.deep.equal(['a', null]));

  for (const value of [null, undefined, 'text', 1, { 0: 'a', length: 1 }]) {
    it(`returns nothing for ${JSON.stringify(value)}`, () => expect(itemsOf(value)).to.deep.equal([]));
  }
});
