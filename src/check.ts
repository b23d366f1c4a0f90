// One Check call: request → facts → decision → response → one log line and one count. The only catch-all of the product:
// whatever throws in here is answered as a refusal (503), because an error of the call would leave the answer to Envoy.
import { randomUUID } from 'node:crypto';
import type { DecisionWord } from './authz/decision.ts';
import { answerOf, type Reason, refusal } from './authz/refusal.ts';
import { type RequestFacts, singleHeader } from './authz/request-facts.ts';
import type { Engine, Judgement } from './engine.ts';
import type { CheckRequestMessage, CheckResponseMessage } from './envoy/protocol.ts';
import { toRequestFacts } from './envoy/request.ts';
import { type ResponseSettings, toCheckResponse } from './envoy/response.ts';
import type { CheckRecord } from './operations/check-record.ts';

export interface CheckDependencies {
  /** Asked once a call, so that a call is decided by one configuration from its start to its end. */
  current(): { readonly engine: Engine; readonly response: ResponseSettings };
  /** Log line and count. A throw here changes nothing of the answer. */
  record(record: CheckRecord): void;
  onFault(error: unknown): void;
  /** Monotonic, in milliseconds. */
  monotonicNow(): number;
}

export type Check = (message: CheckRequestMessage) => Promise<CheckResponseMessage>;

const noFacts: RequestFacts = { method: '', target: '', headers: new Map(), contradiction: 'not read' };
const noJudgement = { route: undefined, principal: undefined, kid: undefined, cache: undefined };
const requestIdGrammar = /^[A-Za-z0-9._-]{1,128}$/;
// W3C Trace Context section 3.2.2; a trace id of zeros is no trace id.
const traceparentGrammar = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/;

/** The promise never rejects. */
export function createCheck(dependencies: CheckDependencies): Check {
  const { current, record, onFault, monotonicNow } = dependencies;

  return async message => {
    const started = monotonicNow();
    const { response: settings, engine } = current();
    let facts = noFacts;
    let judgement: Judgement;
    let requestId: string | undefined;
    let response: CheckResponseMessage;
    try {
      facts = toRequestFacts(message);
      requestId = requestIdOf(facts);
      judgement = await engine.judge(facts);
      const { decision, principal } = judgement;
      response = toCheckResponse(settings, decision, { requestId, shownHeaders: facts.headers.keys(), principal });
    } catch (error) {
      onFault(error);
      requestId ??= randomUUID();
      judgement = { ...noJudgement, decision: refusal('internal', 'a fault, see the log line before this one') };
      response = toCheckResponse(settings, judgement.decision, { requestId, shownHeaders: [], principal: undefined });
    }
    try {
      record(toRecord(facts, judgement, requestId, monotonicNow() - started));
    } catch (error) {
      onFault(error);
    }
    return response;
  };
}

function requestIdOf(facts: RequestFacts): string {
  const sent = singleHeader(facts, 'x-request-id');
  return sent !== undefined && requestIdGrammar.test(sent) ? sent : randomUUID();
}

function toRecord(facts: RequestFacts, judgement: Judgement, requestId: string, durationMs: number): CheckRecord {
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
