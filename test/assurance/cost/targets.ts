// Every function that reads untrusted bytes before a token is verified, alone and within a whole check, with known
// expensive inputs.
import protobuf from 'protobufjs/minimal.js';
import { accountsNamed } from '../../../src/authz/account.ts';
import { accountsInQuery, compileAccountParameters } from '../../../src/authz/account-query.ts';
import { refuseAmbiguousHeaders } from '../../../src/authz/ambiguous-headers.ts';
import { parseBearerToken, refuseAmbiguousAuthorization } from '../../../src/authz/bearer.ts';
import { parseRequestTarget } from '../../../src/authz/path.ts';
import { compileRoutes, matchRoutes } from '../../../src/authz/route-tree.ts';
import { createIdentityHeaders } from '../../../src/envoy/identity-headers.ts';
import { readRequestFacts } from '../../../src/envoy/request.ts';
import { parseDecisionLine } from '../../../src/explain/decision-line.ts';
import { parseStrictJson } from '../../../src/json/strict-json.ts';
import { maxKeySetBytes, parseKeySet } from '../../../src/keys/jwks.ts';
import { parseDiscovery } from '../../../src/keys/key-source.ts';
import { parseTraceParent } from '../../../src/operations/trace-context.ts';
import { parseCompactJws } from '../../../src/token/compact.ts';
import { facts } from '../../support/facts.ts';
import { base64url, issuer, token } from '../../support/token.ts';
import { inFields, inJson, inLines, inSegments, type Shape } from '../fuzz/shapes.ts';
import type { FuzzTarget } from '../fuzz/target.ts';
import { createParts, createTargets } from '../fuzz/targets.ts';
import type { Run } from './measure.ts';
import { type Pattern, pattern, repeated, unrepeated } from './pattern.ts';
import { createQuietCheck, type QuietCheck } from './quiet-check.ts';

export interface CostTarget {
  readonly name: string;
  /** The bound for one input: a multiple of an allowed request, or an absolute time if an input is not a request. */
  readonly bound: { readonly kind: 'multiple' } | { readonly kind: 'milliseconds'; readonly milliseconds: number };
  /** The longest input that reaches it. */
  readonly maxBytes: number;
  readonly fragments: readonly Buffer[];
  readonly shapes: readonly Shape[];
  /** The seeds of the search. Never empty. */
  readonly known: readonly Pattern[];
  /** Prepares work that does not belong to the target. */
  load(input: Buffer): Run;
}

// The bounds of src/envoy/grpc-server.ts, src/authz/path.ts, src/config/schema.ts (token.maxBytes) and src/commands/explain.ts.
const maxMessageBytes = 256 * 1024;
const maxTargetBytes = 8192;
const maxTokenBytes = 8192;
const maxTokenJsonBytes = 6000;
const maxLineBytes = 128 * 1024;
/** Envoy's limit for the headers of one request (max_request_headers_kb). */
const maxHeaderBytes = 60 * 1024;

const perRequest = { kind: 'multiple' } as const;
/** A document of an issuer or an operator, which is not bound to a request. */
const perDocument = { kind: 'milliseconds', milliseconds: 20 } as const;

const path = '/api/subscriptions/acct1';

const fragments = [
  ...[
    'a',
    'A',
    '%',
    '&',
    '+',
    '=',
    '[',
    ']',
    ';',
    ' ',
    '\t',
    '\0',
    '.',
    '/',
    '"',
    '\\',
    '{',
    '}',
    ',',
    '-',
    '_',
    ':',
    '!',
    '?',
  ],
  ...[
    '%41',
    '%25',
    '%u0041',
    '%26',
    'a=',
    '&a',
    '{n}',
    '&{n}=1',
    '[]',
    '\r\n',
    '\n',
    'é',
    '\u0301',
    '\u212a',
    '\ufdfa',
    '\u{1d538}',
  ],
  ...[
    'account_id',
    'account_id=',
    'x-account-id',
    'x-auth-',
    'x_auth_{n}\n',
    'x-{n}:1\n',
    '"{n}":1,',
    '[[',
    '\\u0041',
    '\\"',
    '0',
    '1e9',
  ],
].map(text => Buffer.from(text));

export async function createCostTargets(): Promise<{
  readonly check: QuietCheck;
  readonly targets: readonly CostTarget[];
}> {
  const { engine } = await createParts();
  const check = createQuietCheck(engine);
  const fuzzed = new Map((await createTargets()).map(target => [target.name, target]));
  const targets = [
    ...requestTargets(),
    ...tokenTargets(fuzzed),
    ...checkTargets(check, await token(), fuzzed),
    ...documentTargets(fuzzed),
  ];
  return { check, targets };
}

const atFullLength = (
  bytes: number,
  pumps: readonly (readonly [head: string, pump: string, tail?: string])[],
): Pattern[] => pumps.map(([head, pump, tail]) => pattern(bytes, head, pump, tail));

const texts = { shapes: [inSegments, inLines], fragments, bound: perRequest } as const;

const queries: readonly (readonly [head: string, pump: string, tail?: string])[] = [
  ['%41', '+', 'a['],
  ['', '%&'],
  ['&%'.repeat(255), '%'],
  ['', '%'],
  ['', '%25'],
  ['', '\u0301'],
  ['%41', '\ufdfa'],
  ['%41=', ';'],
  ['%41', 'account_id;'],
  ['', '&{n}=%41'],
  ['%41', '['],
  ['%41', '\0', 'a'],
  ['account_id.%41', '.'],
  ['=account_id;%41', 'a;'],
  ['x=account_id;%41', 'a%41;'],
  ['_method;%41', '%;'],
  ['account_id%2541', '%2541'],
  ['accountid%41', '\uff41'],
];

function requestTargets(): CostTarget[] {
  const parameters = compileAccountParameters(['account_id', 'acct']);
  const identityHeaders = createIdentityHeaders('x-auth-');
  const routes = compileRoutes(
    ['a', ':any'].flatMap(one =>
      ['a', 'b', ':any'].flatMap(two =>
        ['a', ':any'].map(three => ({ path: `/${one}/${two}/${three}/*`, characters: 'rfc3986' as const })),
      ),
    ),
  );
  const places = { headers: ['x-account-id', 'x-acct'], query: parameters, dots: false };
  return [
    {
      ...texts,
      name: 'request-target',
      maxBytes: maxMessageBytes,
      known: atFullLength(maxTargetBytes, [
        ['/', 'a/'],
        ['/a', '.', '!'],
        ['/?', '&'],
        ['/?', 'a'],
        ['/', '/'],
        ['/', '%C3%9C/'],
        ['/', '%20'],
        ['/', '%20.', '%FF'],
        ['/', '%FF'],
        ['/', '+/'],
      ]),
      load: input => () => {
        const target = parseRequestTarget(input.toString());
        return target.kind === 'refusal' ? target : matchRoutes(routes, target);
      },
    },
    {
      ...texts,
      name: 'connection and content-type',
      maxBytes: maxHeaderBytes,
      known: atFullLength(maxHeaderBytes, [
        ['', ','],
        ['', 'x-auth,'],
        ['', ' ', 'a'],
        ['', 'charset'],
        ['charset', ' '],
        ['', 'charset='],
        ['', ';charset=utf-8 '],
      ]),
      load(input) {
        const line = input.toString();
        const request = facts({ headers: { connection: line, 'content-type': line } });
        return () => refuseAmbiguousHeaders('x-auth-', places, request.headers);
      },
    },
    {
      ...texts,
      name: 'account-query',
      maxBytes: maxTargetBytes,
      known: atFullLength(maxTargetBytes - 2, queries),
      load: input => () => {
        // A target is bounded by its own limits.
        const target = parseRequestTarget(`/?${input}`);
        return target.kind === 'refusal' ? target : accountsInQuery(parameters, target.query);
      },
    },
    {
      ...texts,
      name: 'account-headers',
      maxBytes: maxHeaderBytes,
      known: atFullLength(maxHeaderBytes, [
        ['', ' '],
        ['', ' ', 'a'],
        ['', '_\n'],
        ['', 'x_account_i{n}\n'],
      ]),
      load(input) {
        // The first line is the value of an account header, all are header names.
        const lines = input.toString().split('\n', 206);
        const headers = Object.fromEntries(lines.map(line => [line, 'a']));
        const request = facts({ headers: { ...headers, 'x-account-id': lines[0] ?? '' } });
        return () => accountsNamed(places, request, '');
      },
    },
    {
      ...texts,
      name: 'bearer',
      maxBytes: maxMessageBytes,
      known: atFullLength(maxMessageBytes, [
        ['Bearer a', ' ', 'a'],
        ['', '\t', ','],
        ['', ' \n'],
        ['', ' '],
      ]),
      load(input) {
        const values = input.toString().split('\n', 206);
        return () => [refuseAmbiguousAuthorization(values), parseBearerToken(values)];
      },
    },
    {
      ...texts,
      name: 'identity-headers',
      maxBytes: maxHeaderBytes,
      known: atFullLength(maxHeaderBytes, [
        ['', 'x-auth-{n}\n'],
        ['x-auth-', '_'],
        ['x-auth-', '-', '\u00e9'],
      ]),
      load(input) {
        const names = input.toString().split('\n', 206);
        return () => identityHeaders.strayNames(names);
      },
    },
    {
      ...texts,
      name: 'traceparent',
      maxBytes: maxHeaderBytes,
      known: atFullLength(maxHeaderBytes, [
        ['01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-', 'a'],
        ['', '0'],
      ]),
      load: input => () => parseTraceParent(input.toString()),
    },
  ];
}

const jsonTexts: readonly (readonly [head: string, pump: string, tail?: string])[] = [
  ['', '['],
  ['', '{"a":'],
  ['{"a":[', '[],', '0]}'],
  ['{', '"{n}":0,', '"a":0}'],
  ['{', '"a":0,', '"a":0}'],
  ['{"a":"', '\\\\', '"}'],
  ['{"a":"', '\\"', '"}'],
  ['{"a":"', '\\u0041', '"}'],
  ['{"a":"', ':', '"}'],
  ['{"a":', '9', '}'],
  ['', ' '],
];

function tokenTargets(fuzzed: ReadonlyMap<string, FuzzTarget>): CostTarget[] {
  const header = base64url('{"alg":"ES256","kid":"k1"}');
  const payload = base64url(JSON.stringify({ iss: issuer }));
  const known = atFullLength(maxTokenJsonBytes, jsonTexts);
  const json = { ...texts, shapes: [inJson], maxBytes: maxTokenJsonBytes, known };
  return [
    {
      ...texts,
      name: 'compact-jws',
      maxBytes: maxTokenBytes,
      fragments: [...fragments, ...(fuzzed.get('compact-jws')?.dictionary ?? [])],
      known: atFullLength(maxTokenBytes, [
        ['', 'a'],
        ['', 'a.'],
        ['a.b.', 'A'],
        [`${header}.${payload}.`, 'A'],
        [`${header}.`, 'A', '.AAAA'],
        ['', '.'],
      ]),
      load: input => () => parseCompactJws(input.toString()),
    },
    {
      ...json,
      name: 'token-header',
      load(input) {
        const text = `${input.toString('base64url')}.${payload}.AAAA`;
        return () => parseCompactJws(text);
      },
    },
    {
      ...json,
      name: 'token-payload',
      load(input) {
        const text = `${header}.${input.toString('base64url')}.AAAA`;
        return () => parseCompactJws(text);
      },
    },
    { ...json, name: 'strict-json', load: input => () => parseStrictJson(input) },
  ];
}

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

function checkTargets(check: QuietCheck, good: string, fuzzed: ReadonlyMap<string, FuzzTarget>): CostTarget[] {
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

function documentTargets(fuzzed: ReadonlyMap<string, FuzzTarget>): CostTarget[] {
  const seedsOf = (name: string): Pattern[] => (fuzzed.get(name)?.seeds ?? []).map(unrepeated);
  const dictionaryOf = (name: string): Buffer[] => [...fragments, ...(fuzzed.get(name)?.dictionary ?? [])];
  const document = { bound: perDocument, shapes: [inJson] } as const;
  return [
    {
      ...document,
      name: 'key-set',
      maxBytes: maxKeySetBytes,
      fragments: dictionaryOf('jwks'),
      known: [
        ...seedsOf('jwks'),
        ...atFullLength(maxKeySetBytes, [
          ...jsonTexts,
          ['{"keys":[', '{"kty":"RSA","kid":"{n}"},', '{}]}'],
          ['{"keys":[{"kty":"EC","kid":"k","key_ops":[', '"a",', '"a"]}]}'],
        ]),
      ],
      load: input => () => parseKeySet(input, ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA']),
    },
    {
      ...document,
      name: 'discovery',
      maxBytes: maxKeySetBytes,
      fragments: dictionaryOf('discovery'),
      known: [
        ...seedsOf('discovery'),
        ...atFullLength(maxKeySetBytes, [
          ...jsonTexts,
          [`{"issuer":"${issuer}","jwks_uri":"https://`, 'a.', '"}'],
          [`{"issuer":"${issuer}","jwks_uri":"https://idp.test/`, '../../', '"}'],
        ]),
      ],
      load: input => () => parseDiscovery(input, 'https://idp.test/.well-known/openid-configuration', issuer),
    },
    {
      ...document,
      name: 'decision-line',
      maxBytes: maxLineBytes,
      fragments,
      known: atFullLength(maxLineBytes, [
        ...jsonTexts,
        ['{"msg":"check",', '"{n}":0,', '"requestId":"a","decision":"deny","reason":"token_missing","method":"GET"}'],
        [
          '{"msg":"check","requestId":"a","decision":"deny","reason":"token_missing","method":"GET","detail":"',
          '\u00e9',
          '"}',
        ],
        ['', ' ', '{'],
      ]),
      load: input => () => parseDecisionLine(input.toString()),
    },
  ];
}
