// The most expensive requests that searches for hours have found: each costs at most 50 allowed requests with a new token.
import { expect } from 'chai';
import protobuf from 'protobufjs/minimal.js';
import { base64url, token } from '../../../lab/token.ts';
import { createWholeCheck, statusOf, type WholeCheck } from '../../support/whole-check.ts';
import { allowedRequestMicroseconds, maxMultiple, microsecondsOf } from './processor-time.ts';

/** A part that repeats between a head and a tail; `{n}` in it counts. */
type Pattern = readonly [head: string, repeated: string, tail?: string];
type Line = readonly [name: string, value: string];

const path = '/api/subscriptions/acct1';
// The bounds of a message, and within them of the target, of a token, and Envoy's of all headers (max_request_headers_kb).
const maxMessageBytes = 256 * 1024 - 4096;
const maxTargetBytes = 8192;
const maxTokenBytes = 8192;
const maxTokenJsonBytes = 6000;
const maxHeaderBytes = 60 * 1024;

// CheckRequest.attributes.request.http, by the field numbers of proto/.
function field(number: number, value: Uint8Array | string): Uint8Array {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value;
  const tag = (number << 3) | 2;
  return protobuf.Writer.create().uint32(tag).bytes(bytes).finish();
}
const inHttp = (...fields: readonly Uint8Array[]): Buffer =>
  Buffer.from(field(1, field(4, field(2, Buffer.concat(fields)))));
const entry = (name: string, value: string, valueField: number): Uint8Array =>
  Buffer.concat([field(1, name), field(valueField, value)]);
const asMap = (...lines: readonly Line[]): Uint8Array =>
  Buffer.concat(lines.map(([name, value]) => field(3, entry(name, value, 2))));
const asList = (...lines: readonly Line[]): Uint8Array =>
  field(13, Buffer.concat(lines.map(([name, value]) => field(1, entry(name, value, 3)))));
const linesOf = (input: string): Line[] =>
  input.split('\n').map(line => [line.split(':', 1)[0] ?? '', line.slice(line.indexOf(':') + 1)]);
const method = field(2, 'GET');
const toPath = field(4, path);

interface Place {
  readonly bytes: number;
  readonly patterns: readonly Pattern[];
  message(input: string, authorization: Line): Buffer;
}

/** Patterns in a text: `head|repeated|tail`, between spaces. */
const patternsIn = (text: string): readonly Pattern[] =>
  text.split(' ').map((each): Pattern => {
    const [head = '', repeated = '', tail = ''] = each.split('|');
    return [head, repeated, tail];
  });
const queries = patternsIn(
  `%41|+|a[ |%& ${'&%'.repeat(255)}|% |% |%25 |\u0301 %41|\ufdfa %41=|; %41|account_id; |&{n}=%41 %41|[ %41|\0|a ` +
    'account_id.%41|. =account_id;%41|a; x=account_id;%41|a%41; _method;%41|%; account_id%2541|%2541 accountid%41|\uff41',
);
const paths = patternsIn('/|a/ /a|.|! /|/ /|%C3%9C/ /|%20.|%FF /|%FF /|+/');
const json: readonly Pattern[] = [
  ...patternsIn(
    '|[ |{"a": {"a":[|[],|0]} {|"{n}":0,|"a":0} {|"a":0,|"a":0} {"a":"|\\\\|"} {"a":"|\\u0041|"} {"a":|9|}',
  ),
  ['', ' '],
];
const headerLines = patternsIn(
  '|x-{n}:\n |x-auth-{n}:a\n x-auth-|_ |x:\n |X_ACCOUNT.ID:\n |x_account_i{n}:\n x:|a |\u212a',
);
const header = (name: string, ...patterns: readonly Pattern[]): Place => ({
  bytes: maxHeaderBytes,
  patterns,
  message: (input, authorization) => inHttp(method, toPath, asMap(authorization, [name, input])),
});
const lists: readonly Pattern[] = [...patternsIn('|, |x-auth, |charset text/plain|;charset=utf-8'), ['charset', ' ']];

const places: Readonly<Record<string, Place>> = {
  path: {
    bytes: maxTargetBytes,
    patterns: paths,
    message: (input, authorization) => inHttp(method, field(4, input), asMap(authorization)),
  },
  query: {
    bytes: maxTargetBytes - path.length - 1,
    patterns: queries,
    message: (input, authorization) => inHttp(method, field(4, `${path}?${input}`), asMap(authorization)),
  },
  'query without a token': {
    bytes: maxTargetBytes - path.length - 1,
    patterns: queries,
    message: input => inHttp(method, field(4, `${path}?${input}`)),
  },
  method: {
    bytes: maxHeaderBytes,
    patterns: patternsIn('|A |\u0301'),
    message: (input, authorization) => inHttp(field(2, input), toPath, asMap(authorization)),
  },
  'header map': {
    bytes: maxMessageBytes / 2,
    patterns: headerLines,
    message: (input, authorization) => inHttp(method, toPath, asMap(authorization, ...linesOf(input))),
  },
  'header list': {
    bytes: maxMessageBytes / 2,
    patterns: headerLines,
    message: (input, authorization) => inHttp(method, toPath, asList(authorization, ...linesOf(input))),
  },
  'header map and list': {
    bytes: maxMessageBytes / 4,
    patterns: headerLines,
    message: input => inHttp(method, toPath, asMap(...linesOf(input)), asList(...linesOf(input))),
  },
  authorization: {
    bytes: maxHeaderBytes,
    patterns: [
      ['', ' '],
      ['', '\t', ','],
      ['Bearer ', '.'],
      ['Bearer a', ' ', 'a'],
    ],
    message: input => inHttp(method, toPath, asMap(['authorization', input])),
  },
  token: {
    bytes: maxTokenBytes,
    patterns: [
      ['', 'a'],
      ['', 'a.'],
      ['a.b.', 'A'],
      [`${base64url('{"alg":"ES256","kid":"k1"}')}.`, 'A', '.AAAA'],
    ],
    message: input => inHttp(method, toPath, asMap(['authorization', `Bearer ${input}`])),
  },
  'header of a token': {
    bytes: maxTokenJsonBytes,
    patterns: json,
    message: input => inHttp(method, toPath, asMap(['authorization', `Bearer ${base64url(input)}.e30.AAAA`])),
  },
  'payload of a token': {
    bytes: maxTokenJsonBytes,
    patterns: json,
    message(input) {
      const text = `${base64url('{"alg":"ES256","kid":"k1"}')}.${base64url(input)}.${'A'.repeat(86)}`;
      return inHttp(method, toPath, asMap(['authorization', `Bearer ${text}`]));
    },
  },
  connection: header('connection', ...lists, ...patternsIn('|a,')),
  cookie: header('cookie', ...patternsIn('|; |x=1; |\t;')),
  'content-type': header('content-type', ...lists),
  'x-account-id': header('x-account-id', ['', ' '], ['', ' ', 'a']),
  'x-request-id': header('x-request-id', ['', 'a'], ['', '.', '!']),
  traceparent: header('traceparent', ['00-', '0'], ['01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-', 'a']),
  tracestate: {
    bytes: maxHeaderBytes,
    patterns: patternsIn('|a=1, |,'),
    message(input, authorization) {
      const parent: Line = ['traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'];
      return inHttp(method, toPath, asMap(authorization, parent, ['tracestate', input]));
    },
  },
  'fields of the message': {
    bytes: maxMessageBytes,
    patterns: patternsIn('|\x22\x00 |\x22\x01a |\x1a\x04\x0a\x02x1 |\x6a\x00 |\x0b |\x0b\x0c |\x08\x00'),
    message: input => inHttp(Buffer.from(input, 'latin1')),
  },
  'the message': {
    bytes: maxMessageBytes,
    patterns: patternsIn('|\x0b |\x0a\x00 |\x00'),
    message: input => Buffer.from(input, 'latin1'),
  },
};

function inputOf([head, repeated, tail = '']: Pattern, bytes: number): string {
  const room = bytes - Buffer.byteLength(head + tail);
  const times = Math.floor(room / (Buffer.byteLength(repeated) + (repeated.includes('{n}') ? 2 : 0)));
  return head + Array.from({ length: times }, (_, n) => repeated.replace('{n}', n.toString(36))).join('') + tail;
}

describe('the cost of a request', () => {
  let check: WholeCheck;
  let authorization: Line;
  let unit: number;
  before(async () => {
    check = await createWholeCheck({
      account: { headers: ['x-account-id'], query: ['account_id'] },
      token: { from: ['authorization', ...'abc'.split('').map(cookie => ({ cookie }))], origins: ['https://app.test'] },
    });
    authorization = ['authorization', `Bearer ${await token()}`];
    unit = await allowedRequestMicroseconds(check);
    expect(statusOf(await check(inHttp(method, toPath, asMap(authorization))))).to.equal(0);
  });

  for (const [name, { bytes, patterns, message }] of Object.entries(places)) {
    it(`is at most ${maxMultiple} allowed requests for the most expensive of: ${name}`, async () => {
      for (const pattern of patterns) {
        const input = message(inputOf(pattern, bytes), authorization);
        const [microseconds = Number.NaN] = await microsecondsOf([() => check(input)], 8);
        expect(microseconds / unit, JSON.stringify(pattern)).to.be.at.most(maxMultiple);
      }
    });
  }
});
