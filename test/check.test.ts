import { expect } from 'chai';
import type { RequestFacts } from '../src/authz/request-facts.ts';
import { createCheck } from '../src/check.ts';
import type { Engine, Judgement } from '../src/engine.ts';
import { createAnswers } from '../src/envoy/answers.ts';
import { createIdentityHeaders } from '../src/envoy/identity-headers.ts';
import { authorizationService, type CheckResponseMessage } from '../src/envoy/protocol.ts';
import type { CheckRecord } from '../src/operations/check-record.ts';
import { facts, principal } from './support/facts.ts';

const answers = createAnswers({ identityHeaders: createIdentityHeaders('x-auth-'), forward: false });
const allowed: Judgement = {
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

async function check(judge: Engine['judge'], request: RequestFacts, failingRecord = false): Promise<Lab> {
  const records: CheckRecord[] = [];
  const faults: unknown[] = [];
  let clock = 100;
  const run = createCheck({
    current: () => ({ engine: { judge, cachedTokens: () => 0 }, answers }),
    record(record) {
      records.push(record);
      if (failingRecord) throw new Error('the log is broken');
    },
    onFault: fault => faults.push(fault),
    monotonicNow: () => (clock += 5),
  });
  const answer = authorizationService.Check.responseDeserialize(await run(request));
  return { answer, records, faults };
}

function reasonOf({ answer }: Lab): string | undefined {
  return answer.dynamic_metadata?.fields.reason?.stringValue;
}

describe('check', () => {
  const fault = new Error('a fault');
  const faults: readonly (readonly [name: string, judge: Engine['judge']])[] = [
    ['a rejection', () => Promise.reject(fault)],
    [
      'a throw',
      () => {
        throw fault;
      },
    ],
    ['a judgement that is none', () => Promise.resolve(undefined as unknown as Judgement)],
    [
      'a decision of no known kind',
      () => Promise.resolve({ ...allowed, decision: { kind: 'perhaps' } } as unknown as Judgement),
    ],
    [
      'an allow without a principal',
      () => Promise.resolve({ ...allowed, decision: { kind: 'allow' } } as unknown as Judgement),
    ],
  ];
  for (const [name, judge] of faults) {
    it(`G-023 F-014 turns ${name} into a refusal with 503`, async () => {
      const lab = await check(judge, facts());
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
    const lab = await check(() => Promise.resolve(allowed), facts(), true);
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

  const traces: readonly (readonly [traceparent: string, traceId: string | undefined])[] = [
    ['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', '0af7651916cd43dd8448eb211c80319c'],
    ['00-00000000000000000000000000000000-b7ad6b7169203331-01', undefined],
    ['ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', undefined],
    ['00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01', undefined],
    ['evil', undefined],
  ];
  for (const [traceparent, traceId] of traces) {
    it(`reads ${String(traceId)} from the traceparent ${traceparent.slice(0, 12)}…`, async () => {
      const { records } = await check(() => Promise.resolve(allowed), facts({ headers: { traceparent } }));
      expect(records[0]?.traceId).to.equal(traceId);
    });
  }
});
