// The facts of a CheckRequest: headers in both forms, and messages that contradict themselves.
import { expect } from 'chai';
import { type CheckRequestParts, checkRequest, rawHeader } from '../../lab/check-request.ts';
import type { RequestFacts } from '../../src/authz/request-facts.ts';
import { authorizationService, type CheckRequestMessage } from '../../src/envoy/protocol.ts';
import { readRequestFacts } from '../../src/envoy/request.ts';

/** Reads a message from the bytes that a gRPC client would send. */
function toRequestFacts(message: CheckRequestMessage): RequestFacts {
  return readRequestFacts(Buffer.from(requestSerialize(message)));
}

const { requestSerialize } = authorizationService.Check;

describe('CheckRequest', () => {
  for (const raw of [false, true]) {
    describe(raw ? 'with a header list' : 'with a header map', () => {
      it('has method, target, host and headers', () => {
        const http = { host: '\u00fc.test:8443' };
        const parts: CheckRequestParts = { raw, method: 'POST', path: '/a?b=%20', headers: { 'x-a': '1' }, http };
        const facts = toRequestFacts(checkRequest(parts));
        expect(facts).to.include({ method: 'POST', target: '/a?b=%20', host: http.host, contradiction: undefined });
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
    expect(toRequestFacts(checkRequest({ raw: true, http: { header_map } })).headers.get('x-a')).to.eql(['text']);
  });

  it('is read into values: a getter would keep each message until the next major collection', () => {
    const properties = Object.values(Object.getOwnPropertyDescriptors(toRequestFacts(checkRequest())));
    expect(properties.map(({ get }) => get)).to.deep.equal(properties.map(() => undefined));
  });

  const [noPath, noQuery] = [':path contradicts the path', 'query contradicts the path'];
  const contradictions: readonly (readonly [name: string, message: CheckRequestMessage, detail: string])[] = [
    ['G-005 no attributes', { attributes: null }, 'no HTTP attributes'],
    ['G-006 no request', { attributes: { request: null, context_extensions: {} } }, 'no HTTP attributes'],
    ['G-006 no http', { attributes: { request: { http: null }, context_extensions: {} } }, 'no HTTP attributes'],
    ['P-058 another :path', checkRequest({ headers: { ':path': '/other' } }), noPath],
    ['P-058 another :path in the list', checkRequest({ raw: true, headers: { ':path': '/other' } }), noPath],
    [
      'R-011 two :path headers',
      checkRequest({ raw: true, headers: { ':path': ['/api/subscriptions/acct1', '/b'] } }),
      noPath,
    ],
    ['another :method', checkRequest({ headers: { ':method': 'POST' } }), ':method contradicts the method'],
    ['a query beside the path', checkRequest({ http: { query: 'a=1' } }), noQuery],
    ['another query than in the path', checkRequest({ path: '/a?b=1', http: { query: 'b=2' } }), noQuery],
    ['a query that is the path', checkRequest({ path: 'a=1', http: { query: 'a=1' } }), noQuery],
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
      ['256 headers and the pseudo-headers', { headers: { ...pseudo, ...named(256) } }, false],
      ['257 headers', { headers: named(257) }, true],
      ['257 headers and the pseudo-headers', { headers: { ...pseudo, ...named(257) } }, true],
      ['256 headers and six pseudo-headers', { headers: { ...pseudo, ':a': 'b', ...named(256) } }, true],
      ['2,000 headers', { headers: named(2000) }, true],
    ];
    for (const [title, parts, isTooLong] of cases) {
      for (const raw of [false, true]) {
        it(`${isTooLong ? 'refuses' : 'accepts'} ${title} in the ${raw ? 'list' : 'map'}`, () => {
          const facts = toRequestFacts(checkRequest({ raw, path: '/a', ...parts }));
          expect(facts.contradiction).to.equal(isTooLong ? 'more than 256 headers' : undefined);
        });
      }
    }

    it('refuses 257 lines of one header', () => {
      const headers = { 'x-a': Array.from({ length: 257 }, () => '1') };
      expect(toRequestFacts(checkRequest({ raw: true, headers })).contradiction).to.equal('more than 256 headers');
    });

    it('counts map and list separately, since Envoy fills only one of them', () => {
      const headers = named(256);
      const header_map = { headers: Object.entries(headers).map(([name, value]) => rawHeader(name, value)) };
      expect(toRequestFacts(checkRequest({ headers, http: { header_map } })).contradiction).to.equal(undefined);
    });
  });

  const consistent: readonly (readonly [name: string, parts: CheckRequestParts])[] = [
    ['an equal map and list', { headers: { 'x-a': '1' }, http: { header_map: { headers: [rawHeader('x-a', '1')] } } }],
    ['a query that the path has too', { path: '/a?b=1', http: { query: 'b=1' } }],
    ['equal values', { http: { header_map: { headers: [{ key: 'x-a', value: 'é', raw_value: Buffer.from('é') }] } } }],
    ['a :path in UTF-8', { raw: true, path: '/a?é' }],
    ['a :path in UTF-8, in the map', { path: '/a?é', headers: { ':path': '/a?é' } }],
    ['no pseudo headers', { http: { headers: {} } }],
  ];
  for (const [name, parts] of consistent) {
    it(`has no contradiction with ${name}`, () => {
      expect(toRequestFacts(checkRequest(parts)).contradiction).to.equal(undefined);
    });
  }
});
