// JSON Pointers (RFC 6901) that name claims: which members they reach, and which they must not.
import { expect } from 'chai';
import { parsePath, valueAt } from '../../src/json/strict-json.ts';

/** The document of RFC 6901 section 5, extended by members that only look like array indices or prototype members. */
const document: unknown = JSON.parse(`{
  "foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\\\j": 5, "k\\"l": 6, " ": 7, "m~n": 8,
  "o": { "p": [[10], { "q": 11 }], "": { "": 12 }, "0": 13 }, "text": "abc", "long": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, "tenth", "eleventh"], "nothing": null,
  "~1": 14, "own": { "__proto__": 15, "constructor": 16, "length": 17 }
}`);

describe('JSON Pointer', () => {
  const found: readonly (readonly [pointer: string, value: unknown])[] = [
    ['/foo', ['bar', 'baz']],
    ['/foo/0', 'bar'],
    ['/foo/1', 'baz'],
    ['/long/10', 'tenth'],
    ['/long/11', 'eleventh'],
    ['/', 0],
    ['/a~1b', 1],
    ['/c%d', 2],
    ['/e^f', 3],
    ['/g|h', 4],
    ['/i\\j', 5],
    ['/k"l', 6],
    ['/ ', 7],
    ['/m~0n', 8],
    ['/o/p/0/0', 10],
    ['/o/p/1/q', 11],
    ['/o//', 12],
    ['/o/0', 13],
    ['/~01', 14],
    ['/nothing', null],
    ['/own/__proto__', 15],
    ['/own/constructor', 16],
    ['/own/length', 17],
  ];
  for (const [pointer, value] of found) {
    it(`${JSON.stringify(pointer)} resolves to ${JSON.stringify(value)}`, () => {
      expect(valueAt(document, parsePath(pointer) ?? [])).to.deep.equal(value);
    });
  }

  const unresolved = [
    ...'/bar /foo/2 /foo/- /foo/-0 /foo/-1 /foo/00 /foo/01 /foo/+1 /foo/1.0 /foo/1e0 /foo/1a /foo/'.split(' '),
    ...'/foo/length /foo/at /foo/0/0 /foo/0/length /text/0 /text/length /nothing/0 /__proto__'.split(' '),
    ...'/constructor /constructor/name /o/__proto__ /o/toString /FOO /a/b'.split(' '),
    '/foo/ 1',
    `/foo/${'9'.repeat(250)}`,
    '/ foo',
  ];
  for (const pointer of unresolved) {
    it(`${JSON.stringify(pointer.slice(0, 20))} resolves to nothing`, () => {
      expect(valueAt(document, parsePath(pointer) ?? [])).to.equal(undefined);
    });
  }

  for (const text of ['/~', '/a~', '/~2', '/~a', '/~~1', '/a/~/b']) {
    it(`${JSON.stringify(text)} has an invalid escape and is refused`, () => {
      expect(parsePath(text)).to.equal(undefined);
    });
  }

  for (const name of ['', 'foo', '#/foo', 'a/b', ' /a', 'a.b', '~']) {
    it(`${JSON.stringify(name)} is the name of one top-level member, not a pointer`, () => {
      expect(parsePath(name)).to.deep.equal([name]);
    });
  }
});
