import { expect } from 'chai';
import type { RequestFacts } from '../src/authz/request-facts.ts';
import { type CallMetadata, createCheck } from '../src/check.ts';
import type { CheckResult, Engine } from '../src/engine.ts';
import { createAnswers } from '../src/envoy/answers.ts';
import { createIdentityHeaders } from '../src/envoy/identity-headers.ts';
import { authorizationService } from '../src/envoy/proto-files.ts';
import type { CheckResponseMessage } from '../src/envoy/protocol.ts';
import type { CheckRecord } from '../src/operations/check-record.ts';
import { facts, principal } from './support/facts.ts';
import { invariants } from './support/invariants.ts';

const answers = createAnswers({ identityHeaders: createIdentityHeaders('x-auth-'), forward: false });
const allowed: CheckResult = {
  decision: { kind: 'allow', principal: principal() },
  route: undefined,
  principal: principal(),
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
    ['a rejection', () => Promise.reject(fault)],
    [
      'a throw',
      () => {
        throw fault;
      },
    ],
    ['F-001 a result that is none', () => Promise.resolve(undefined as unknown as CheckResult)],
    [
      'F-013 a decision of no known kind',
      () => Promise.resolve({ ...allowed, decision: { kind: 'perhaps' } } as unknown as CheckResult),
    ],
    [
      'an allow without a principal',
      () => Promise.resolve({ ...allowed, decision: { kind: 'allow' } } as unknown as CheckResult),
    ],
  ];
  for (const [name, decide] of faults) {
    it(`G-023 F-014 turns ${name} into a refusal with 503`, async () => {
      const lab = await check(decide, facts());
      expect(lab.answer.status.code).to.equal(14);
      expect(lab.answer.denied_response?.status.code).to.equal(503);
      expect(reasonOf(lab)).to.equal('internal');
      expect(lab.faults).to.have.lengthOf(1);
      expect(lab.records.map(({ reason }) => reason)).to.deep.equal(['internal']);
    });
  }

  it('turns headers that cannot be read into a refusal with 503', async () => {
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
  });

  it('answers the same where the log is broken', async () => {
    const lab = await check(() => Promise.resolve(allowed), facts(), { failingRecord: true });
    expect(reasonOf(lab)).to.equal('allowed');
    expect(lab.faults).to.have.lengthOf(1);
  });

  it('keeps the request id of the client in a fault, too', async () => {
    const { answer } = await check(() => Promise.reject(fault), facts({ headers: { 'x-request-id': 'r-7' } }));
    expect(JSON.parse(answer.denied_response?.body ?? '{}')).to.include({ request_id: 'r-7' });
  });

  it('records how long it took', async () => {
    const { records } = await check(() => Promise.resolve(allowed), facts());
    expect(records[0]?.durationMs).to.equal(5);
  });

  for (const sent of [undefined, 'a b', 'a'.repeat(129), '', 'é'] as const) {
    it(`makes an id where the client sends ${sent === undefined ? 'none' : JSON.stringify(sent.slice(0, 5))}`, async () => {
      const headers = sent === undefined ? {} : { 'x-request-id': sent };
      const { records } = await check(() => Promise.resolve(allowed), facts({ headers }));
      expect(records[0]?.requestId).to.match(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    });
  }

  const [clients, envoys] = ['0af7651916cd43dd8448eb211c80319c', '4bf92f3577b34da6a3ce929d0e0e4736'];
  const sent = `00-${clients}-b7ad6b7169203331-01`;
  const traces: readonly (readonly [
    name: string,
    headers: Readonly<Record<string, string>>,
    metadata: Readonly<Record<string, string | Buffer | string[]>>,
    read: Pick<CheckRecord, 'traceId' | 'tracestate'>,
  ])[] = [
    ['nothing', {}, {}, { traceId: undefined, tracestate: undefined }],
    ['the headers', { traceparent: sent, tracestate: 'a=1' }, {}, { traceId: clients, tracestate: 'a=1' }],
    [
      'the metadata of the call before the headers',
      { traceparent: sent, tracestate: 'a=1' },
      { traceparent: `00-${envoys}-b7ad6b7169203331-01`, tracestate: 'b=2' },
      { traceId: envoys, tracestate: 'b=2' },
    ],
    [
      'no tracestate of the headers beside a call of its own',
      { tracestate: 'a=1' },
      { traceparent: `00-${envoys}-b7ad6b7169203331-01` },
      { traceId: envoys, tracestate: undefined },
    ],
    ['nothing of a tracestate alone', { tracestate: 'a=1' }, {}, { traceId: undefined, tracestate: undefined }],
    ['nothing of what is no traceparent', { traceparent: 'evil' }, {}, { traceId: undefined, tracestate: undefined }],
    ['nothing of two', {}, { traceparent: [sent, sent] }, { traceId: undefined, tracestate: undefined }],
    ['nothing of bytes', {}, { traceparent: Buffer.from(sent) }, { traceId: undefined, tracestate: undefined }],
  ];
  for (const [name, headers, metadata, read] of traces) {
    it(`reads from the trace context ${name}`, async () => {
      const get = (key: string): (string | Buffer)[] => [metadata[key] ?? []].flat();
      const { records } = await check(() => Promise.resolve(allowed), facts({ headers }), { metadata: { get } });
      expect(records.map(({ traceId, tracestate }) => ({ traceId, tracestate }))).to.deep.equal([read]);
    });
  }

  it('answers the same where the metadata cannot be read', async () => {
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
