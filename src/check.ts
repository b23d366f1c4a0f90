// One Check call: facts → decision → answer → one log line and one count. The only catch-all of the product:
// whatever throws in here is answered as a refusal (503), because an error of the call would leave the answer to Envoy.
import { randomUUID } from 'node:crypto';
import type { DecisionWord } from './authz/decision.ts';
import { answerOf, type Reason, refusal } from './authz/refusal.ts';
import { type RequestFacts, singleHeader } from './authz/request-facts.ts';
import type { Engine, Judgement } from './engine.ts';
import type { Answers } from './envoy/answers.ts';
import type { CheckRecord } from './operations/check-record.ts';

export interface CheckDependencies {
  /** Asked once a call, so that a call is decided by one configuration from its start to its end. */
  current(): CheckConfiguration;
  /** Log line and count. A throw here changes nothing of the answer. */
  record(record: CheckRecord): void;
  onFault(error: unknown): void;
  /** Monotonic, in milliseconds. */
  monotonicNow(): number;
}

export interface CheckConfiguration {
  readonly engine: Engine;
  readonly answers: Answers;
}

/** Gives the bytes of a CheckResponse, at once where nothing has to be waited for. Never throws and never rejects. */
export type Check = (facts: RequestFacts) => Buffer | Promise<Buffer>;

interface Call {
  readonly facts: RequestFacts;
  readonly configuration: CheckConfiguration;
  readonly startedMs: number;
  /** Empty until the headers are read. */
  requestId: string;
}

const faultJudgement: Judgement = {
  decision: refusal('internal', 'a fault, see the log line before this one'),
  route: undefined,
  principal: undefined,
  kid: undefined,
  cache: undefined,
};
const requestIdGrammar = /^[A-Za-z0-9._-]{1,128}$/;
// W3C Trace Context section 3.2.2; a trace id of zeros is no trace id.
const traceparentGrammar = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/;

export function createCheck(dependencies: CheckDependencies): Check {
  const { current, record, onFault, monotonicNow } = dependencies;

  function answer(call: Call, judgement: Judgement): Buffer {
    const { requestId, facts, configuration } = call;
    const { decision, principal } = judgement;
    const shownHeaders = facts.headers.keys();
    const bytes = configuration.answers.encode(decision, { requestId, shownHeaders, principal });
    recordQuietly(call, judgement);
    return bytes;
  }

  function answerFault(call: Call, error: unknown): Buffer {
    onFault(error);
    if (call.requestId === '') call.requestId = randomUUID();
    const { requestId, configuration } = call;
    const { decision } = faultJudgement;
    const bytes = configuration.answers.encode(decision, { requestId, shownHeaders: [], principal: undefined });
    recordQuietly(call, faultJudgement);
    return bytes;
  }

  function recordQuietly(call: Call, judgement: Judgement): void {
    try {
      record(toRecord(call, judgement, monotonicNow() - call.startedMs));
    } catch (error) {
      onFault(error);
    }
  }

  return facts => {
    const startedMs = monotonicNow();
    const call: Call = { facts, configuration: current(), startedMs, requestId: '' };
    try {
      call.requestId = requestIdOf(facts);
      const judged = call.configuration.engine.judge(facts);
      if (!(judged instanceof Promise)) return answer(call, judged);
      return judged.then(judgement => answer(call, judgement)).catch(error => answerFault(call, error));
    } catch (error) {
      return answerFault(call, error);
    }
  };
}

function requestIdOf(facts: RequestFacts): string {
  const sent = singleHeader(facts, 'x-request-id');
  return sent !== undefined && requestIdGrammar.test(sent) ? sent : randomUUID();
}

function toRecord({ facts, requestId }: Call, judgement: Judgement, durationMs: number): CheckRecord {
  const { decision, route, principal, kid, cache } = judgement;
  const refused = decision.kind === 'refusal' ? decision : undefined;
  const word: DecisionWord = refused === undefined ? 'allow' : answerOf(refused.reason).decision;
  const reason: Reason | 'allowed' = refused?.reason ?? 'allowed';
  const traceId = traceparentGrammar.exec(singleHeader(facts, 'traceparent') ?? '')?.[1];
  return {
    requestId,
    decision: word,
    reason,
    detail: refused?.detail,
    method: facts.method,
    route,
    principal,
    kid,
    cache,
    durationMs,
    traceId,
  };
}
