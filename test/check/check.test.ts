// The Check call around the engine: internal errors, the request id, the trace context and the record of each check.
import { expect } from 'chai';
import { invariants } from '../../lab/invariants.ts';
import type { RequestFacts } from '../../src/authz/request-facts.ts';
import { type CallMetadata, type CheckRecord, createCheck } from '../../src/check/check.ts';
import type { CheckResult, Engine } from '../../src/check/engine.ts';
import { createAnswers } from '../../src/envoy/answers.ts';
import { authorizationService, type CheckResponseMessage } from '../../src/envoy/protocol.ts';
import { createIdentityHeaders } from '../../src/headers/headers.ts';
import { facts, principal } from '../support/facts.ts';

const answers = createAnswers({ identityHeaders: createIdentityHeaders('x-auth-'), removedHeaders: ['authorization'] });
const allowed: CheckResult = {
  decision: { kind: 'allow', principal: principal(), forwarded: [] },
  route: undefined,
  principal: principal(),
  signed: undefined,
  kid: 'k1',
  cache: 'hit',
};

interface Lab {
  readonly answer: CheckResponseMessage;
  readonly records: readonly CheckRecord[];
  readonly faults: readonly unknown[];
}

async function check(
  decide: Engine['decide'],
  request: RequestFacts,
  { failingRecord = false, metadata }: { failingRecord?: boolean; metadata?: CallMetadata } = {},
): Promise<Lab> {
  const records: CheckRecord[] = [];
  const faults: unknown[] = [];
  let clock = 100;
  const run = createCheck({
    current: () => ({ engine: { decide, cachedTokens: () => 0 }, answers }),
    record(record) {
      records.push(record);
      if (failingRecord) throw new Error('the log is broken');
    },
    onFault: fault => faults.push(fault),
    monotonicNow: () => (clock += 5),
  });
  const answer = authorizationService.Check.responseDeserialize(await run(request, metadata));
  invariants.hold(answer);
  return { answer, records, faults };
}

function reasonOf({ answer }: Lab): string | undefined {
  return answer.dynamic_metadata?.fields.reason?.stringValue;
}

describe('check', () => {
  const fault = new Error('a fault');
  const faults: readonly (readonly [name: string, decide: Engine['decide']])[] = [
    ['a rejected promise', () => Promise.reject(fault)],
    [
      'an exception',
      () => {
        throw fault;
      },
    ],
    ['F-001 a missing result', () => Promise.resolve(undefined as unknown as CheckResult)],
    [
      'F-013 an unknown kind of decision',
      () => Promise.resolve({ ...allowed, decision: { kind: 'perhaps' } } as unknown as CheckResult),
    ],
    ['an allow of none', () => Promise.resolve({ ...allowed, decision: { kind: 'allow' } } as unknown as CheckResult)],
  ];
  for (const [name, decide] of faults) {
    it(`G-023 F-014 answers 503 internal after ${name}`, async () => {
      const lab = await check(decide, facts());
      expect(lab.answer.status.code).to.equal(14);
      expect(lab.answer.denied_response?.status.code).to.equal(503);
      expect(reasonOf(lab)).to.equal('internal');
      expect(lab.faults).to.have.lengthOf(1);
      expect(lab.records.map(({ reason }) => reason)).to.deep.equal(['internal']);
      expect(lab.records[0]?.detail).to.equal('internal error: see the log line before this one');
    });
  }

  it('answers 503 internal when reading the headers throws', async () => {
    const unreadable: RequestFacts = {
      ...facts(),
      headers: {
        get() {
          throw fault;
        },
        keys: () => [],
      },
    };
    const lab = await check(() => Promise.resolve(allowed), unreadable);
    expect(lab.answer.status.code).to.equal(14);
    expect(reasonOf(lab)).to.equal('internal');
    const body = JSON.parse(lab.answer.denied_response?.body ?? '{}');
    expect(body.request_id).to.match(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  });

  it('answers as usual when writing the record throws', async () => {
    const lab = await check(() => Promise.resolve(allowed), facts(), { failingRecord: true });
    expect(reasonOf(lab)).to.equal('allowed');
    expect(lab.faults).to.have.lengthOf(1);
  });

  it("keeps the client's request id in an internal error", async () => {
    const { answer } = await check(() => Promise.reject(fault), facts({ headers: { 'x-request-id': 'r-7' } }));
    expect(JSON.parse(answer.denied_response?.body ?? '{}')).to.include({ request_id: 'r-7' });
  });

  it('records the duration of the check', async () => {
    const { records } = await check(() => Promise.resolve(allowed), facts());
    expect(records[0]?.durationMs).to.equal(5);
  });

  for (const sent of [undefined, 'a b', 'a'.repeat(129), '', 'é'] as const) {
    it(`generates a request id when the client sends ${sent === undefined ? 'none' : JSON.stringify(sent.slice(0, 5))}`, async () => {
      const headers = sent === undefined ? {} : { 'x-request-id': sent };
      const { records } = await check(() => Promise.resolve(allowed), facts({ headers }));
      expect(records[0]?.requestId).to.match(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    });
  }

  const sent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const none = { traceparent: undefined, tracestate: undefined };
  const fromEnvoy = '00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01';
  /** The call metadata come before the request headers, and a tracestate is read beside its traceparent alone. */
  const traces: readonly (readonly [
    headers: Readonly<Record<string, string>>,
    metadata: Readonly<Record<string, string | Buffer | string[]>>,
    read: Pick<CheckRecord, 'traceparent' | 'tracestate'>,
  ])[] = [
    [{}, {}, none],
    [{ traceparent: sent, tracestate: 'a=1' }, {}, { traceparent: sent, tracestate: 'a=1' }],
    [
      { traceparent: sent, tracestate: 'a=1' },
      { traceparent: fromEnvoy, tracestate: 'b=2' },
      { traceparent: fromEnvoy, tracestate: 'b=2' },
    ],
    [{ tracestate: 'a=1' }, { traceparent: fromEnvoy }, { traceparent: fromEnvoy, tracestate: undefined }],
    [{ tracestate: 'a=1' }, {}, none],
    [{}, { traceparent: [sent, sent] }, none],
    [{}, { traceparent: Buffer.from(sent) }, none],
  ];
  for (const [headers, metadata, read] of traces) {
    it(`reads the trace ${read.traceparent} of the headers ${JSON.stringify(headers)} and the call ${JSON.stringify(metadata)}`, async () => {
      const get = (key: string): (string | Buffer)[] => [metadata[key] ?? []].flat();
      const { records } = await check(() => Promise.resolve(allowed), facts({ headers }), { metadata: { get } });
      expect(records.map(({ traceparent, tracestate }) => ({ traceparent, tracestate }))).to.deep.equal([read]);
    });
  }

  it('answers as usual when reading the call metadata throws', async () => {
    const metadata = {
      get(): never {
        throw fault;
      },
    };
    const lab = await check(() => Promise.resolve(allowed), facts(), { metadata });
    expect(reasonOf(lab)).to.equal('allowed');
    expect(lab.faults).to.deep.equal([fault]);
  });
});
