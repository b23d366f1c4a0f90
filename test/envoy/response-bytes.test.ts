// The writer of answers against proto/, as the loader reads and writes it.
import { expect } from 'chai';
import fc from 'fast-check';
import { authorizationService } from '../../src/envoy/proto-files.ts';
import type { CheckResponseMessage, HeaderValueOption } from '../../src/envoy/protocol.ts';
import { encodeCheckResponse } from '../../src/envoy/response-bytes.ts';

const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('', '__proto__', 'é', '😀'));
const int32 = fc.oneof(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), fc.constantFrom(0, 7, 16, 401, 403));

const header: fc.Arbitrary<HeaderValueOption> = fc.record(
  {
    header: fc.record({ key: text, value: text }),
    append: fc.option(fc.record({ value: fc.boolean() })),
    append_action: fc.integer({ min: 0, max: 3 }),
  },
  { requiredKeys: ['header'] },
);

const answer = fc.oneof(
  fc.record({
    denied_response: fc.record({ status: fc.record({ code: int32 }), headers: fc.array(header), body: text }),
  }),
  fc.record({ ok_response: fc.record({ headers: fc.array(header), headers_to_remove: fc.array(text) }) }),
  fc.constant({}),
);

const response: fc.Arbitrary<CheckResponseMessage> = fc
  .tuple(
    fc.record({ code: int32 }),
    answer,
    fc.option(
      fc.dictionary(text, fc.record({ stringValue: text })).map(fields => ({ fields })),
      { nil: undefined },
    ),
  )
  .map(([status, member, dynamic_metadata]) => ({
    status,
    ...member,
    ...(dynamic_metadata === undefined ? {} : { dynamic_metadata }),
  }));

describe('the bytes of a CheckResponse', () => {
  it('are those that the loader writes, for all messages', () => {
    fc.assert(
      fc.property(response, message => {
        const bytes = encodeCheckResponse(message);
        expect(bytes.toString('hex')).to.equal(authorizationService.Check.responseSerialize(message).toString('hex'));
      }),
      { numRuns: 500 },
    );
  });

  it('have the code 0 written out, since Envoy takes what is absent for it', () => {
    expect(encodeCheckResponse({ status: { code: 0 } }).toString('hex')).to.equal('0a020800');
  });
});
