// The decoder of CheckRequest compared with proto-loader: every message, unknown fields, truncated and arbitrary bytes.
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import { checkRequest } from '../../lab/check-request.ts';
import type { RequestFacts } from '../../src/authz/request-facts.ts';
import { authorizationService, type CheckRequestMessage } from '../../src/envoy/protocol.ts';
import { readRequestFacts } from '../../src/envoy/request.ts';
import { runs } from '../support/foreign-bytes.ts';

/** What the policy sees of a request. */
interface Seen {
  readonly method: string;
  readonly target: string;
  readonly contradicts: boolean;
  readonly certificate: string;
  readonly headers: ReadonlyMap<string, readonly string[] | undefined>;
}

const { requestDeserialize, requestSerialize } = authorizationService.Check;

describe('bytes of a CheckRequest', () => {
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
      runs(200),
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

  it('ignores unknown fields of a header, raw_value in the map too, and keeps a header without a name', () => {
    const linesOf = (bytes: readonly number[]) => {
      const { headers } = readRequestFacts(Buffer.from(bytes));
      return Array.from(headers.keys(), name => [name, headers.get(name)]);
    };
    // attributes { request { http { header_map { 2: 0x0a00, headers { raw_value: "1" } } } } }
    const list = [0x0a, 15, 0x22, 13, 0x12, 11, 0x6a, 9, 0x12, 2, 0x0a, 0, 0x0a, 3, 0x1a, 1, 0x31];
    // attributes { request { http { headers { key: "a", 3: "1" } } } }
    const map = [0x0a, 12, 0x22, 10, 0x12, 8, 0x1a, 6, 0x0a, 1, 0x61, 0x1a, 1, 0x31];
    expect([linesOf(list), linesOf(map)]).to.deep.equal([[['', ['1']]], [['a', ['']]]]);
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
      runs(200),
    );
  });
});

/** Tag and length of a length-delimited field. */
function fieldHead(number: number, length: number): Buffer {
  const varint = (value: number): number[] => (value < 128 ? [value] : [(value & 127) | 128, ...varint(value >> 7)]);
  return Buffer.from([...varint((number << 3) | 2), ...varint(length)]);
}

function read({ method, target, contradiction, headers, certificate }: RequestFacts): Seen {
  const lines = new Map(Array.from(headers.keys(), name => [name, headers.get(name)] as const));
  return { method, target, contradicts: contradiction !== undefined, certificate, headers: lines };
}

/** Derives the same from the message that proto-loader decodes, with plain code. */
function readWithLoader(message: CheckRequestMessage): Seen {
  const http = message.attributes?.request?.http ?? undefined;
  const certificate = message.attributes?.source?.certificate ?? '';
  if (http === undefined) return { method: '', target: '', contradicts: true, certificate, headers: new Map() };
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
    certificate,
    headers: new Map([...joined, ...listed]),
  };
}
