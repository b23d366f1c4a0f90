// One line of a revocation list: the entry that it makes, or its problems.
import { expect } from 'chai';
import { secrets } from '../../lab/secrets.ts';
import { parseRevocation } from '../../src/revocation/list-reader.ts';

function problemsOf(line: string | Uint8Array): readonly string[] {
  const parsed = parseRevocation(Buffer.from(line));
  secrets.show('command', JSON.stringify(parsed));
  if (parsed.kind === 'revocation') return [];
  return parsed.problems.map(({ member, message }) => (member === undefined ? message : `${member}: ${message}`));
}

describe('revocation entry', () => {
  it('may have a jti of 1,024 characters', () => {
    expect(problemsOf(`{"jti":"${'j'.repeat(1024)}"}`)).to.deep.equal([]);
  });

  it('has the members of the line, and times in seconds', () => {
    const line =
      '{"jti":"7f3c","sid":"08a5","uid":"alice","acc":"a.b","app":"web","iss":"https://auth.example.com","issuedBefore":"2026-11-23T04:00:00Z","expires":"2026-11-24t05:00:00.5+01:00"}';
    expect(parseRevocation(Buffer.from(line))).to.deep.equal({
      kind: 'revocation',
      values: { jti: '7f3c', sid: '08a5', uid: 'alice', acc: 'a.b', app: 'web', iss: 'https://auth.example.com' },
      issuedBefore: Date.UTC(2026, 10, 23, 4) / 1000,
      expires: Date.UTC(2026, 10, 24, 4) / 1000 + 0.5,
    });
  });

  it('matches all tokens for ever without times', () => {
    expect(parseRevocation(Buffer.from(' { "uid" : "alice" }\t'))).to.deep.equal({
      kind: 'revocation',
      values: { uid: 'alice' },
      issuedBefore: Infinity,
      expires: Infinity,
    });
  });

  const good: readonly string[] = [
    `{"uid":"${'a'.repeat(128)}"}`,
    `{"jti":"${'ü'.repeat(500)}"}`,
    '{"jti":"a b, \\"c\\" \\u0000"}',
    '{"iss":"https://auth.example.com/"}',
    '{"\\u0075id":"alice"}',
  ];
  for (const line of good) it(`may be ${line.slice(0, 40)}`, () => expect(problemsOf(line)).to.deep.equal([]));

  const unknown = 'is not a known member: the members are iss, uid, acc, app, sid, jti, issuedBefore, expires';
  const identity = 'must be 1 to 128 visible ASCII characters without space , ; and "';
  const account = 'must be 1 to 128 of A-Z a-z 0-9 . _ ~ -, and not . or ..';
  const time = 'must be an RFC 3339 time such as 2026-11-23T04:00:00Z';
  const notJson = 'must be a JSON object on a line of its own';
  const bad: readonly (readonly [line: string | Uint8Array, ...problems: readonly string[]])[] = [
    ['alice', notJson],
    ['- { uid: alice }', notJson],
    ['{"uid":"alice"} {"uid":"bob"}', notJson],
    ['{"uid":"alice"}\r{"uid":"bob"}', notJson],
    ['{"uid":"alice"},', notJson],
    ['{"uid":"alice"} # left', notJson],
    [' ', notJson],
    [' # indented', notJson],
    ['\ufeff{"uid":"alice"}', notJson],
    ['[]', 'must be a JSON object'],
    ['[{"uid":"alice"}]', 'must be a JSON object'],
    ['"alice"', 'must be a JSON object'],
    ['null', 'must be a JSON object'],
    [Buffer.from([...Buffer.from('{"uid":"'), 0xff, ...Buffer.from('"}')]), 'must be text in UTF-8'],
    ['{"uid":"a","uid":"a"}', 'must not have a member twice'],
    ['{"uid":"a","\\u0075id":"b"}', 'must not have a member twice'],
    ['{}', 'must have at least one of iss, uid, acc, app, sid, jti'],
    ['{"expires":"2026-11-23T04:00:00Z"}', 'must have at least one of iss, uid, acc, app, sid, jti'],
    ['{"uid":"a","role":"b"}', `role: ${unknown}`],
    ['{"UID":"a"}', `UID: ${unknown}`],
    ['{"__proto__":{"uid":"a"}}', `__proto__: ${unknown}`],
    ['{"uid":"a","constructor":"b"}', `constructor: ${unknown}`],
    ...['1', 'null', 'true', '["a"]', '{"a":"b"}'].map(
      value => [`{"uid":${value}}`, 'uid: must be text: put it in quotes'] as const,
    ),
    ['{"jti":7}', 'jti: must be text: put it in quotes'],
    ['{"uid":"a","expires":1700000000}', 'expires: must be text: put it in quotes'],
    ['{"uid":""}', `uid: ${identity}`],
    ['{"uid":"a b"}', `uid: ${identity}`],
    ['{"app":"a,b"}', `app: ${identity}`],
    [`{"uid":"${'a'.repeat(129)}"}`, `uid: ${identity}`],
    ['{"acc":"a/b"}', `acc: ${account}`],
    ['{"acc":".."}', `acc: ${account}`],
    ['{"iss":""}', 'iss: must be 1 to 1024 visible ASCII characters'],
    ['{"jti":""}', 'jti: must not be empty'],
    ['{"sid":""}', 'sid: must not be empty'],
    ['{"uid":"a","issuedBefore":"yesterday"}', `issuedBefore: ${time}`],
    ['{"uid":"a","issuedBefore":"2026-11-23"}', `issuedBefore: ${time}`],
    ['{"uid":"a","expires":"2026-02-30T00:00:00Z"}', `expires: ${time}`],
    ['{"uid":1,"acc":"a/b"}', 'uid: must be text: put it in quotes', `acc: ${account}`],
  ];
  for (const [line, ...problems] of bad)
    it(`must not be ${JSON.stringify(Buffer.from(line).toString('latin1')).slice(0, 60)}`, () =>
      expect(problemsOf(line)).to.deep.equal(problems));
});
