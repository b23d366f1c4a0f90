// The encoded CheckRequest of the bench, and the verdict of an encoded CheckResponse.
import { expect } from 'chai';
import { checkMessage, grpcFrame, verdictOf } from '../../../bench/load/check-message.ts';
import { authorizationService } from '../../../src/envoy/proto-files.ts';
import type { CheckResponseMessage } from '../../../src/envoy/protocol.ts';

const parts = {
  method: 'GET',
  path: '/api/subscriptions/acct1',
  headers: { authorization: 'Bearer x.y.z', accept: '*/*' },
};

describe('a CheckRequest of the bench', () => {
  it('decodes with a map of headers', () => {
    const http = authorizationService.Check.requestDeserialize(checkMessage(parts)).attributes?.request?.http;
    expect(http).to.deep.include({ method: 'GET', path: '/api/subscriptions/acct1', scheme: 'http', header_map: null });
    expect(http?.headers).to.deep.equal({
      ':authority': 'api.example.com',
      ':method': 'GET',
      ':path': '/api/subscriptions/acct1',
      ':scheme': 'http',
      authorization: 'Bearer x.y.z',
      accept: '*/*',
    });
  });
});

describe('the verdict of a CheckResponse', () => {
  const framed = (message: CheckResponseMessage): Buffer =>
    grpcFrame(authorizationService.Check.responseSerialize(message));

  for (const [verdict, message] of [
    ['allow', { status: { code: 0 }, ok_response: { headers: [], headers_to_remove: ['authorization'] } }],
    ['deny', { status: { code: 16 }, denied_response: { status: { code: 401 }, headers: [], body: 'x'.repeat(300) } }],
    ['neither', { status: { code: 0 } }],
  ] as const satisfies readonly (readonly [string, CheckResponseMessage])[]) {
    it(`is ${verdict}, as the oneof of the response`, () => {
      expect(verdictOf(framed(message))).to.equal(verdict);
    });
  }

  it('is neither for an empty message', () => {
    expect(verdictOf(grpcFrame(Buffer.alloc(0)))).to.equal('neither');
  });

  it('is found after a field that is longer than 127 bytes', () => {
    const metadata = { fields: { word: { stringValue: 'x'.repeat(500) } } };
    const answer = framed({
      status: { code: 0 },
      ok_response: { headers: [], headers_to_remove: [] },
      dynamic_metadata: metadata,
    });
    const onlyMetadata = framed({ status: { code: 0 }, dynamic_metadata: metadata });
    const status = authorizationService.Check.responseSerialize({ status: { code: 0 } });
    const allowLast = Buffer.concat([onlyMetadata, answer.subarray(5 + status.length)]);
    expect(verdictOf(allowLast)).to.equal('allow');
    expect(verdictOf(onlyMetadata)).to.equal('neither');
  });
});
