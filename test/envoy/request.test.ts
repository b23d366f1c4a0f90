import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import { authorizationService, type CheckRequestMessage } from '../../src/envoy/protocol.ts';
import { toRequestFacts } from '../../src/envoy/request.ts';
import { type CheckRequestParts, checkRequest, rawHeader } from '../support/check-request.ts';

describe('CheckRequest', () => {
  for (const raw of [false, true]) {
    describe(raw ? 'with a header list' : 'with a header map', () => {
      it('gives method, target and headers', () => {
        const facts = toRequestFacts(checkRequest({ raw, method: 'POST', path: '/a?b=%20', headers: { 'x-a': '1' } }));
        expect(facts).to.include({ method: 'POST', target: '/a?b=%20', contradiction: undefined });
        expect(facts.headers.get('x-a')).to.deep.equal(['1']);
      });
      it('gives names in lower case', () => {
        expect(
          toRequestFacts(checkRequest({ raw, headers: { Authorization: 'x' } })).headers.get('authorization'),
        ).to.deep.equal(['x']);
      });
      it('G-029 takes names of prototype members for headers', () => {
        const headers = JSON.parse('{"__proto__":"a","constructor":"b"}') as Record<string, string>;
        const facts = toRequestFacts(checkRequest({ raw, headers }));
        expect(facts.headers.get('__proto__')).to.deep.equal(['a']);
        expect(facts.headers.get('constructor')).to.deep.equal(['b']);
        expect(facts.headers.get('toString')).to.equal(undefined);
      });
    });
  }

  it('keeps the lines of a header apart in the list', () => {
    const facts = toRequestFacts(checkRequest({ raw: true, headers: { 'x-a': ['1', '2'] } }));
    expect(facts.headers.get('x-a')).to.deep.equal(['1', '2']);
  });

  it('H-019 keeps bytes that are not UTF-8 as they are, one character each', () => {
    const header_map = { headers: [rawHeader('authorization', Buffer.from('Bearer \xff\x00', 'latin1'))] };
    expect(
      toRequestFacts(checkRequest({ raw: true, http: { header_map } })).headers.get('authorization'),
    ).to.deep.equal(['Bearer \xff\x00']);
  });

  it('H-018 reads the text of a header that has no bytes', () => {
    const header_map = { headers: [{ key: 'x-a', value: 'text', raw_value: Buffer.alloc(0) }] };
    expect(toRequestFacts(checkRequest({ raw: true, http: { header_map } })).headers.get('x-a')).to.deep.equal([
      'text',
    ]);
  });

  const contradictions: readonly (readonly [name: string, message: CheckRequestMessage])[] = [
    ['G-005 no attributes', { attributes: null }],
    ['G-006 no request', { attributes: { request: null, context_extensions: {} } }],
    ['G-006 no http', { attributes: { request: { http: null }, context_extensions: {} } }],
    ['P-058 a :path header that differs', checkRequest({ headers: { ':path': '/other' } })],
    ['P-058 a :path header that differs, in the list', checkRequest({ raw: true, headers: { ':path': '/other' } })],
    [
      'R-011 two :path headers',
      checkRequest({ raw: true, headers: { ':path': ['/api/subscriptions/acct1', '/other'] } }),
    ],
    ['a :method header that differs', checkRequest({ headers: { ':method': 'POST' } })],
    ['a query beside the path', checkRequest({ http: { query: 'a=1' } })],
    ['a query that differs from that of the path', checkRequest({ path: '/a?b=1', http: { query: 'b=2' } })],
    ['a fragment beside the path', checkRequest({ http: { fragment: 'x' } })],
    [
      'H-018 bytes and text that differ',
      checkRequest({ http: { header_map: { headers: [{ key: 'x-a', value: 'b', raw_value: Buffer.from('a') }] } } }),
    ],
    [
      'H-017 a map and a list that differ',
      checkRequest({
        headers: { authorization: 'Bearer a' },
        http: { header_map: { headers: [rawHeader('authorization', 'Bearer b')] } },
      }),
    ],
  ];
  for (const [name, message] of contradictions) {
    it(`says that it contradicts: ${name}`, () => {
      expect(toRequestFacts(message).contradiction).to.be.a('string');
    });
  }

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
    ['no pseudo headers', { http: { headers: {} } }],
  ];
  for (const [name, parts] of consistent) {
    it(`finds nothing wrong with ${name}`, () => {
      expect(toRequestFacts(checkRequest(parts)).contradiction).to.equal(undefined);
    });
  }

  const captures = new URL('../fixtures/captures/', import.meta.url);
  for (const version of readdirSync(captures)) {
    for (const file of readdirSync(new URL(`${version}/`, captures)).filter(name => name.endsWith('.bin'))) {
      it(`reads ${file} of Envoy ${version} without a contradiction`, () => {
        const message = authorizationService.Check.requestDeserialize(
          readFileSync(new URL(`${version}/${file}`, captures)),
        );
        const facts = toRequestFacts(message);
        expect(facts.contradiction).to.equal(undefined);
        expect(facts.method).to.match(/^[A-Z]+$/);
      });
    }
  }

  it('gives facts for any bytes that decode', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), bytes => {
        let message: CheckRequestMessage;
        try {
          message = authorizationService.Check.requestDeserialize(Buffer.from(bytes));
        } catch {
          return;
        }
        expect(toRequestFacts(message)).to.have.property('headers').that.is.a('map');
      }),
      { numRuns: 1000 },
    );
  });
});
