// The CheckRequest decoder: what it reads, which contradictions it reports, and that it agrees with proto-loader.
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import type { RequestFacts } from '../../src/authz/request-facts.ts';
import { authorizationService } from '../../src/envoy/proto-files.ts';
import type { CheckRequestMessage } from '../../src/envoy/protocol.ts';
import { readRequestFacts } from '../../src/envoy/request.ts';
import { type CheckRequestParts, checkRequest, rawHeader } from '../support/check-request.ts';

const { requestSerialize, requestDeserialize } = authorizationService.Check;

/** Reads a message from the bytes that a gRPC client would send. */
function toRequestFacts(message: CheckRequestMessage): RequestFacts {
  return readRequestFacts(Buffer.from(requestSerialize(message)));
}

describe('CheckRequest', () => {
  for (const raw of [false, true]) {
    describe(raw ? 'with a header list' : 'with a header map', () => {
      it('has method, target and headers', () => {
        const facts = toRequestFacts(checkRequest({ raw, method: 'POST', path: '/a?b=%20', headers: { 'x-a': '1' } }));
        expect(facts).to.include({ method: 'POST', target: '/a?b=%20', contradiction: undefined });
        expect(facts.headers.get('x-a')).to.deep.equal(['1']);
      });
      it('has header names in lower case', () => {
        expect(
          toRequestFacts(checkRequest({ raw, headers: { Authorization: 'x' } })).headers.get('authorization'),
        ).to.deep.equal(['x']);
      });
      it('G-029 reads headers named like prototype members', () => {
        const headers = JSON.parse('{"__proto__":"a","constructor":"b"}') as Record<string, string>;
        const facts = toRequestFacts(checkRequest({ raw, headers }));
        expect(facts.headers.get('__proto__')).to.deep.equal(['a']);
        expect(facts.headers.get('constructor')).to.deep.equal(['b']);
        expect(facts.headers.get('toString')).to.equal(undefined);
      });
    });
  }

  it('keeps the lines of a header separate in the list', () => {
    const facts = toRequestFacts(checkRequest({ raw: true, headers: { 'x-a': ['1', '2'] } }));
    expect(facts.headers.get('x-a')).to.deep.equal(['1', '2']);
  });

  it('H-019 reads bytes that are not UTF-8 as one character each', () => {
    const header_map = { headers: [rawHeader('authorization', Buffer.from('Bearer \xff\x00', 'latin1'))] };
    expect(
      toRequestFacts(checkRequest({ raw: true, http: { header_map } })).headers.get('authorization'),
    ).to.deep.equal(['Bearer \xff\x00']);
  });

  it('H-018 reads the text value of a header without raw bytes', () => {
    const header_map = { headers: [{ key: 'x-a', value: 'text', raw_value: Buffer.alloc(0) }] };
    expect(toRequestFacts(checkRequest({ raw: true, http: { header_map } })).headers.get('x-a')).to.deep.equal([
      'text',
    ]);
  });

  const contradictions: readonly (readonly [name: string, message: CheckRequestMessage, detail: string])[] = [
    ['G-005 no attributes', { attributes: null }, 'no HTTP attributes'],
    ['G-006 no request', { attributes: { request: null, context_extensions: {} } }, 'no HTTP attributes'],
    ['G-006 no http', { attributes: { request: { http: null }, context_extensions: {} } }, 'no HTTP attributes'],
    [
      'P-058 a :path header that differs',
      checkRequest({ headers: { ':path': '/other' } }),
      ':path contradicts the path',
    ],
    [
      'P-058 a :path header that differs, in the list',
      checkRequest({ raw: true, headers: { ':path': '/other' } }),
      ':path contradicts the path',
    ],
    [
      'R-011 two :path headers',
      checkRequest({ raw: true, headers: { ':path': ['/api/subscriptions/acct1', '/other'] } }),
      ':path contradicts the path',
    ],
    [
      'a :method header that differs',
      checkRequest({ headers: { ':method': 'POST' } }),
      ':method contradicts the method',
    ],
    ['a query beside the path', checkRequest({ http: { query: 'a=1' } }), 'query contradicts the path'],
    [
      'a query that differs from that of the path',
      checkRequest({ path: '/a?b=1', http: { query: 'b=2' } }),
      'query contradicts the path',
    ],
    ['a query that is the path', checkRequest({ path: 'a=1', http: { query: 'a=1' } }), 'query contradicts the path'],
    ['a fragment beside the path', checkRequest({ http: { fragment: 'x' } }), 'a fragment beside the path'],
    [
      'H-018 bytes and text that differ',
      checkRequest({ http: { header_map: { headers: [{ key: 'x-a', value: 'b', raw_value: Buffer.from('a') }] } } }),
      'two values in one header',
    ],
    [
      'H-017 a map and a list that differ',
      checkRequest({
        headers: { authorization: 'Bearer a' },
        http: { header_map: { headers: [rawHeader('authorization', 'Bearer b')] } },
      }),
      'two header lists that disagree',
    ],
    [
      'a map with one line of two in the list',
      checkRequest({
        headers: { 'x-a': '12' },
        http: { header_map: { headers: [rawHeader('x-a', '1'), rawHeader('x-a', '2')] } },
      }),
      'two header lists that disagree',
    ],
  ];
  it('takes a line of the map for the lines of the list that Envoy joins', () => {
    const message = checkRequest({
      headers: { 'x-a': '1,2,3', 'x-b': '4' },
      http: { header_map: { headers: ['1', '2', '3'].map(line => rawHeader('x-a', line)) } },
    });
    expect(toRequestFacts(message).contradiction).to.equal(undefined);
  });
  for (const [name, message, detail] of contradictions) {
    it(`contradicts itself with ${name}`, () => {
      expect(toRequestFacts(message).contradiction).to.equal(detail);
    });
  }

  describe('with many headers', () => {
    const named = (count: number): Record<string, string> =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, `${i}`]));
    const pseudo = { ':method': 'GET', ':path': '/a', ':scheme': 'https', ':authority': 'a.test', ':protocol': 'b' };
    const cases: readonly (readonly [title: string, parts: CheckRequestParts, isTooLong: boolean])[] = [
      ['200 headers and the pseudo-headers', { headers: { ...pseudo, ...named(200) } }, false],
      ['201 headers', { headers: named(201) }, true],
      ['201 headers and the pseudo-headers', { headers: { ...pseudo, ...named(201) } }, true],
      ['200 headers and six pseudo-headers', { headers: { ...pseudo, ':a': 'b', ...named(200) } }, true],
      ['2,000 headers', { headers: named(2000) }, true],
    ];
    for (const [title, parts, isTooLong] of cases) {
      for (const raw of [false, true]) {
        it(`${isTooLong ? 'refuses' : 'accepts'} ${title} in the ${raw ? 'list' : 'map'}`, () => {
          const facts = toRequestFacts(checkRequest({ raw, path: '/a', ...parts }));
          expect(facts.contradiction).to.equal(isTooLong ? 'more than 200 headers' : undefined);
        });
      }
    }

    it('refuses 201 lines of one header', () => {
      const headers = { 'x-a': Array.from({ length: 201 }, () => '1') };
      expect(toRequestFacts(checkRequest({ raw: true, headers })).contradiction).to.equal('more than 200 headers');
    });

    it('counts map and list separately, since Envoy fills only one of them', () => {
      const headers = named(200);
      const header_map = { headers: Object.entries(headers).map(([name, value]) => rawHeader(name, value)) };
      expect(toRequestFacts(checkRequest({ headers, http: { header_map } })).contradiction).to.equal(undefined);
    });
  });

  const consistent: readonly (readonly [name: string, parts: CheckRequestParts])[] = [
    [
      'a map and a list that agree',
      { headers: { 'x-a': '1' }, http: { header_map: { headers: [rawHeader('x-a', '1')] } } },
    ],
    ['a query that the path has too', { path: '/a?b=1', http: { query: 'b=1' } }],
    [
      'bytes and text that agree',
      { http: { header_map: { headers: [{ key: 'x-a', value: 'é', raw_value: Buffer.from('é') }] } } },
    ],
    ['a :path in UTF-8', { raw: true, path: '/a?é' }],
    ['a :path in UTF-8, in the map', { path: '/a?é', headers: { ':path': '/a?é' } }],
    ['no pseudo headers', { http: { headers: {} } }],
  ];
  for (const [name, parts] of consistent) {
    it(`has no contradiction with ${name}`, () => {
      expect(toRequestFacts(checkRequest(parts)).contradiction).to.equal(undefined);
    });
  }

  const captures = new URL('../fixtures/captures/', import.meta.url);
  for (const version of readdirSync(captures)) {
    for (const file of readdirSync(new URL(`${version}/`, captures)).filter(name => name.endsWith('.bin'))) {
      it(`equals the proto-loader result for ${file} of Envoy ${version}, without a contradiction`, () => {
        const bytes = readFileSync(new URL(`${version}/${file}`, captures));
        const facts = readRequestFacts(bytes);
        expect(facts.contradiction).to.equal(undefined);
        expect(facts.method).to.match(/^[A-Z]+$/);
        expect(read(facts)).to.deep.equal(readWithLoader(requestDeserialize(bytes)));
      });
    }
  }

  const text = fc.oneof(fc.string({ maxLength: 20 }), fc.string({ unit: 'grapheme', maxLength: 20 }));
  const headerName = fc.oneof(fc.constantFrom('authorization', ':path', '__proto__', 'X-A'), text);
  const message = fc.record({
    attributes: fc.option(
      fc.record({
        source: fc.record({ service: text, certificate: text, labels: fc.dictionary(text, text, { maxKeys: 2 }) }),
        request: fc.option(
          fc.record({
            time: fc.record({ seconds: fc.constant('1800000000'), nanos: fc.nat(999) }),
            http: fc.option(
              fc.record({
                id: text,
                method: fc.oneof(fc.constant('GET'), text),
                headers: fc.dictionary(headerName, text, { maxKeys: 4 }),
                path: text,
                host: text,
                scheme: text,
                query: fc.oneof(fc.constant(''), text),
                fragment: fc.oneof(fc.constant(''), text),
                size: fc.constant('-1'),
                body: text,
                raw_body: fc.uint8Array({ maxLength: 20 }).map(bytes => Buffer.from(bytes)),
                header_map: fc.option(
                  fc.record({
                    headers: fc.array(
                      fc.record({
                        key: headerName,
                        value: fc.oneof(fc.constant(''), text),
                        raw_value: fc.uint8Array({ maxLength: 20 }).map(bytes => Buffer.from(bytes)),
                      }),
                      { maxLength: 5 },
                    ),
                  }),
                ),
              }),
            ),
          }),
        ),
        context_extensions: fc.dictionary(text, text, { maxKeys: 2 }),
      }),
    ),
  });

  it('G-030 G-031 equals the proto-loader result for every message', () => {
    fc.assert(
      fc.property(message, each => {
        const bytes = Buffer.from(requestSerialize(each as unknown as CheckRequestMessage));
        expect(read(readRequestFacts(bytes))).to.deep.equal(readWithLoader(requestDeserialize(bytes)));
      }),
      { numRuns: 2000 },
    );
  });

  it('ignores unknown fields and merges repeated parts of a message', () => {
    const unknown = Buffer.from([0xfa, 0x3f, 3, 1, 2, 3, 0xf8, 0x3f, 7]);
    const part = (http: object): Buffer =>
      requestSerialize({ attributes: { request: { http } } } as unknown as CheckRequestMessage);
    const parts = [unknown, part({ method: 'GET' }), unknown, part({ path: '/a' })];
    const facts = readRequestFacts(Buffer.concat(parts));
    expect(facts).to.include({ method: 'GET', target: '/a', contradiction: undefined });
  });

  it('G-028 ignores nesting in unknown fields, and throws for unterminated groups', () => {
    let nested = Buffer.alloc(0);
    for (let depth = 0; depth < 500; depth += 1) nested = Buffer.concat([fieldHead(1, nested.length), nested]);
    expect(readRequestFacts(Buffer.concat([fieldHead(99, nested.length), nested])).method).to.equal('');
    const startGroup = 0x0b;
    expect(() => readRequestFacts(Buffer.alloc(30_000, startGroup)))
      .to.throw(Error)
      .that.is.not.a('TypeError');
  });

  it('ignores unknown fields of the header list, and keeps a header without a name', () => {
    // attributes { request { http { header_map { 2: 0x0a00, headers { raw_value: "1" } } } } }
    const bytes = [0x0a, 15, 0x22, 13, 0x12, 11, 0x6a, 9, 0x12, 2, 0x0a, 0, 0x0a, 3, 0x1a, 1, 0x31];
    const { headers } = readRequestFacts(Buffer.from(bytes));
    expect(Array.from(headers.keys(), name => [name, headers.get(name)])).to.deep.equal([['', ['1']]]);
  });

  it('throws a RangeError for a field that exceeds its message', () => {
    const tooLong = 'a field reaches beyond its message';
    // attributes { request { http { … } } }, where an inner field is longer than its parent.
    const inHttp = [0x0a, 6, 0x22, 4, 0x12, 2, 0x12, 2, 0x41, 0x42];
    const inHeader = [0x0a, 9, 0x22, 7, 0x12, 5, 0x1a, 3, 0x0a, 2, 0x41, 0x42];
    const inHeaderOnly = [0x0a, 12, 0x22, 10, 0x12, 8, 0x1a, 3, 0x0a, 4, 0x41, 0x42, 0x43, 0x44];
    expect(() => readRequestFacts(Buffer.from(inHeaderOnly))).to.throw(RangeError, tooLong);
    expect(() => readRequestFacts(Buffer.from(inHttp))).to.throw(RangeError, tooLong);
    expect(() => readRequestFacts(Buffer.from(inHeader))).to.throw(RangeError, tooLong);
  });

  it('throws for a message truncated at any byte', () => {
    const bytes = Buffer.from(requestSerialize(checkRequest({ raw: true, headers: { 'x-a': '1' } })));
    for (let end = 1; end < bytes.length; end += 1) {
      expect(() => readRequestFacts(bytes.subarray(0, end)), String(end)).to.throw();
    }
  });

  it('yields facts or throws an error other than TypeError for any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200, size: 'max' }), bytes => {
        try {
          expect(readRequestFacts(Buffer.from(bytes)).method).to.be.a('string');
        } catch (error) {
          expect(error).to.be.an('error').that.is.not.a('TypeError');
        }
      }),
      { numRuns: 2000 },
    );
  });
});

/** Tag and length of a length-delimited field. */
function fieldHead(number: number, length: number): Buffer {
  const varint = (value: number): number[] => (value < 128 ? [value] : [(value & 127) | 128, ...varint(value >> 7)]);
  return Buffer.from([...varint((number << 3) | 2), ...varint(length)]);
}

/** What the policy sees of a request. */
interface Seen {
  readonly method: string;
  readonly target: string;
  readonly contradicts: boolean;
  readonly headers: ReadonlyMap<string, readonly string[] | undefined>;
}

function read({ method, target, contradiction, headers }: RequestFacts): Seen {
  const lines = new Map(Array.from(headers.keys(), name => [name, headers.get(name)] as const));
  return { method, target, contradicts: contradiction !== undefined, headers: lines };
}

/** Derives the same from the message that proto-loader decodes, with plain code. */
function readWithLoader(message: CheckRequestMessage): Seen {
  const http = message.attributes?.request?.http ?? undefined;
  if (http === undefined) return { method: '', target: '', contradicts: true, headers: new Map() };
  const group = (lines: readonly (readonly [string, string])[]): Map<string, string[]> => {
    const groups = new Map<string, string[]>();
    for (const [name, value] of lines)
      groups.set(name.toLowerCase(), [...(groups.get(name.toLowerCase()) ?? []), value]);
    return groups;
  };
  const list = http.header_map?.headers ?? [];
  const joined = group(Object.entries(http.headers));
  const listed = group(
    list.map(({ key, value, raw_value }) => [key, raw_value.length > 0 ? raw_value.toString('latin1') : value]),
  );
  const decoded = (line: string): string => Buffer.from(line, 'latin1').toString('utf8');
  const differs = (attribute: string, lines: readonly string[] | undefined): boolean =>
    lines !== undefined &&
    (lines.length !== 1 || lines.every(line => line !== attribute && decoded(line) !== attribute));
  const contradictions = [
    list.some(each => each.value !== '' && each.raw_value.length > 0 && each.value !== each.raw_value.toString('utf8')),
    [...listed].some(([name, lines]) => joined.has(name) && joined.get(name)?.join() !== lines.join()),
    [joined, listed].some(
      lines => differs(http.path, lines.get(':path')) || differs(http.method, lines.get(':method')),
    ),
    http.query !== '' && (!http.path.includes('?') || http.path.slice(http.path.indexOf('?') + 1) !== http.query),
    http.fragment !== '',
  ];
  return {
    method: http.method,
    target: http.path,
    contradicts: contradictions.includes(true),
    headers: new Map([...joined, ...listed]),
  };
}
