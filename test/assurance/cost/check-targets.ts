// A whole check, with its input in one place of the message, and the decoder alone.
import protobuf from 'protobufjs/minimal.js';
import { base64url } from '../../../lab/token.ts';
import { readRequestFacts } from '../../../src/envoy/request.ts';
import { inFields } from '../fuzz/shapes.ts';
import type { FuzzTarget } from '../fuzz/target.ts';
import {
  atFullLength,
  type CostTarget,
  fragments,
  jsonTexts,
  maxHeaderBytes,
  maxMessageBytes,
  maxTargetBytes,
  maxTokenBytes,
  maxTokenJsonBytes,
  queries,
  texts,
} from './cost-target.ts';
import { type Pattern, pattern, repeated, unrepeated } from './pattern.ts';
import type { QuietCheck } from './quiet-check.ts';

const path = '/api/subscriptions/acct1';

/** A length-delimited field. */
function field(number: number, value: Uint8Array | string): Uint8Array {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value;
  return protobuf.Writer.create()
    .uint32((number << 3) | 2)
    .bytes(bytes)
    .finish();
}

// CheckRequest.attributes.request.http, by the field numbers of proto/.
const inHttp = (...fields: readonly Uint8Array[]): Buffer =>
  Buffer.from(field(1, field(4, field(2, Buffer.concat(fields)))));
const httpField = { method: 2, header: 3, path: 4, headerMap: 13 } as const;
const entry = (name: string, value: string, valueField = 2): Uint8Array =>
  Buffer.concat([field(1, name), field(valueField, value)]);
const asMap = (lines: readonly (readonly [string, string])[]): Uint8Array =>
  Buffer.concat(lines.map(([name, value]) => field(httpField.header, entry(name, value))));
const asList = (lines: readonly (readonly [string, string])[]): Uint8Array =>
  field(httpField.headerMap, Buffer.concat(lines.map(([name, value]) => field(1, entry(name, value, 3)))));

export function checkTargets(check: QuietCheck, good: string, fuzzed: ReadonlyMap<string, FuzzTarget>): CostTarget[] {
  const authorization = ['authorization', `Bearer ${good}`] as const;
  const method = field(httpField.method, 'GET');
  const toPath = field(httpField.path, path);
  const linesOf = (input: Buffer): (readonly [string, string])[] =>
    input
      .toString('latin1')
      .split('\n')
      .map(line => {
        const [name = '', ...value] = line.split(':');
        return [name, value.join(':')];
      });
  /** A target of the whole check, with its input in one place of the message. */
  const within = (name: string, known: readonly Pattern[], message: (input: Buffer) => Uint8Array): CostTarget => ({
    ...texts,
    name: `check, ${name}`,
    maxBytes: maxMessageBytes - 4096,
    known,
    load(input) {
      const bytes = Buffer.from(message(input));
      return () => check(bytes);
    },
  });
  const oneHeader = (name: string, known: readonly Pattern[]): CostTarget =>
    within(name, known, input => inHttp(method, toPath, asMap([authorization, [name, input.toString()]])));
  const headerLines = atFullLength(maxHeaderBytes, [
    ['', 'x-{n}:\n'],
    ['', 'x-auth-{n}:a\n'],
    ['', 'x:\n'],
    ['', 'X_ACCOUNT.ID:\n'],
    ['x:', 'a'],
  ]);
  const longHeaderLines = [
    ...headerLines.map(each => ({ ...each, bytes: maxMessageBytes / 2 })),
    pattern(maxMessageBytes - 4096, '', '\u212a'),
  ];
  const message = fuzzed.get('check-request');
  const fields = [entry('a', ''), entry('x-{n}', 'a')].map(each => field(httpField.header, each));
  return [
    within(
      'target',
      atFullLength(
        maxTargetBytes,
        queries.map(([head, ...rest]) => [`${path}?${head}`, ...rest]),
      ),
      input => inHttp(method, field(httpField.path, input), asMap([authorization])),
    ),
    within(
      'target without a token',
      [pattern(maxTargetBytes, `${path}?%41`, '+', 'a['), pattern(maxTargetBytes, `${path}?`, '%&')],
      input => inHttp(method, field(httpField.path, input)),
    ),
    within(
      'method',
      atFullLength(maxHeaderBytes, [
        ['', 'A'],
        ['', '\u0301'],
      ]),
      input => inHttp(field(httpField.method, input), toPath, asMap([authorization])),
    ),
    within('header map', [...headerLines, ...longHeaderLines], input =>
      inHttp(method, toPath, asMap([authorization, ...linesOf(input)])),
    ),
    within('header list', [...headerLines, ...longHeaderLines], input =>
      inHttp(method, toPath, asList([authorization, ...linesOf(input)])),
    ),
    {
      ...within(
        'header map and list',
        [...headerLines, ...longHeaderLines].map(each => ({ ...each, bytes: each.bytes / 2 })),
        input => {
          const lines = linesOf(input);
          return inHttp(method, toPath, asMap(lines), asList(lines));
        },
      ),
      maxBytes: maxMessageBytes / 4,
    },
    within(
      'authorization',
      atFullLength(maxTokenBytes, [
        ['Bearer ', 'a'],
        ['', ' '],
        ['Bearer ', '.'],
        ['Bearer a', ' ', 'a'],
      ]),
      input => inHttp(method, toPath, asMap([['authorization', input.toString()]])),
    ),
    {
      ...within(
        'token-payload',
        atFullLength(
          maxTokenJsonBytes,
          jsonTexts.map(([head, ...rest]) => [`${head}`, ...rest]),
        ),
        input =>
          inHttp(
            method,
            toPath,
            asMap([
              [
                'authorization',
                `Bearer ${base64url('{"alg":"ES256","kid":"k1"}')}.${base64url(input)}.${'A'.repeat(86)}`,
              ],
            ]),
          ),
      ),
      maxBytes: maxTokenJsonBytes,
    },
    ...['connection', 'content-type'].map(name =>
      oneHeader(
        name,
        atFullLength(maxHeaderBytes, [
          ['', ','],
          ['', 'charset'],
          ['text/plain', ';charset=utf-8'],
        ]),
      ),
    ),
    oneHeader(
      'x-account-id',
      atFullLength(maxHeaderBytes, [
        ['', ' '],
        ['', ' ', 'a'],
      ]),
    ),
    oneHeader(
      'x-request-id',
      atFullLength(maxHeaderBytes, [
        ['', 'a'],
        ['', '.', '!'],
      ]),
    ),
    oneHeader('traceparent', atFullLength(maxHeaderBytes, [['00-', '0']])),
    within(
      'tracestate',
      atFullLength(maxHeaderBytes, [
        ['', 'a=1,'],
        ['', ','],
      ]),
      input =>
        inHttp(
          method,
          toPath,
          asMap([
            authorization,
            ['traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'],
            ['tracestate', input.toString()],
          ]),
        ),
    ),
    {
      ...within(
        'fields',
        [
          field(httpField.path, ''),
          field(httpField.path, 'a'),
          ...fields,
          field(httpField.headerMap, ''),
          Buffer.of(0x0b),
          Buffer.of(0x0b, 0x0c),
          Buffer.of(0x08, 0x00),
        ].map(pump => repeated(Buffer.from(pump), maxMessageBytes - 4096)),
        input => inHttp(method, toPath, input),
      ),
      shapes: [inFields],
      fragments: [...fragments, ...(message?.dictionary ?? [])],
    },
    {
      ...within('message', (message?.seeds ?? []).map(unrepeated), input => input),
      shapes: [inFields],
      fragments: [...fragments, ...(message?.dictionary ?? [])],
      maxBytes: maxMessageBytes,
    },
    {
      ...within(
        'decoder',
        [
          pattern(maxMessageBytes, '', '\x0b'),
          pattern(maxMessageBytes, '', '\x0a\x00'),
          pattern(maxMessageBytes, '', '\x00'),
        ],
        input => input,
      ),
      name: 'decoder',
      shapes: [inFields],
      maxBytes: maxMessageBytes,
      load: input => () => {
        try {
          return readRequestFacts(input);
        } catch {
          return 'unreadable';
        }
      },
    },
  ];
}
