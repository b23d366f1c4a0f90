// The health service against proto/: the same methods, and messages that mean the same to both.
import { expect } from 'chai';
import fc from 'fast-check';
import { healthMethods } from '../../src/envoy/health-messages.ts';
import { healthService } from '../../src/envoy/proto-files.ts';

const methods = ['Check', 'Watch'] as const;

describe('the methods of the health service', () => {
  it('have the paths and directions of proto/', () => {
    expect(Object.keys(healthMethods)).to.deep.equal(Object.keys(healthService));
    for (const name of methods) {
      const { path, requestStream, responseStream } = healthService[name];
      expect(healthMethods[name]).to.deep.include({ path, requestStream, responseStream });
    }
  });

  for (const name of methods) {
    const served = healthMethods[name];
    const described = healthService[name];

    it(`write the messages of ${name} as the loader does`, () => {
      fc.assert(
        fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 0, max: 3 }), (service, status) => {
          expect(served.requestSerialize({ service })).to.deep.equal(described.requestSerialize({ service }));
          expect(served.responseSerialize({ status })).to.deep.equal(described.responseSerialize({ status }));
        }),
      );
    });

    it(`read the messages of ${name} as the loader does`, () => {
      // Beside the field, once or twice: fields that nobody knows, of each wire type, and what breaks off.
      const others = ['10ff01', '1a0162', '2501020304', '190102030405060708', '10', '1a05'];
      const bytesOf = (...pieces: string[]) =>
        fc
          .array(fc.constantFrom(...pieces, ...others), { maxLength: 4 })
          .map(list => Buffer.concat(list.map(hex => Buffer.from(hex, 'hex'))));
      fc.assert(
        fc.property(
          bytesOf('0a0161', '0a00', '0a02c3a9', '0a05'),
          bytesOf('0803', '0800', '08'),
          (request, response) => {
            expect(outcomeOf(() => served.requestDeserialize(request))).to.deep.equal(
              outcomeOf(() => ({ ...described.requestDeserialize(request) })),
            );
            expect(outcomeOf(() => served.responseDeserialize(response))).to.deep.equal(
              outcomeOf(() => ({ ...described.responseDeserialize(response) })),
            );
          },
        ),
        { numRuns: 1000 },
      );
    });
  }
});

function outcomeOf<Value>(read: () => Value): Value | 'refused' {
  try {
    return read();
  } catch {
    return 'refused';
  }
}
