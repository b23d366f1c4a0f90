// One Check call: facts → decision → answer → one log line and one count. The only catch-all of the product:
// whatever throws in here is answered as a refusal (503), because an error of the call would leave the answer to Envoy.
import { randomUUID } from 'node:crypto';
import type { DecisionWord } from './authz/decision.ts';
import { answerOf, type Reason, refusal } from './authz/refusal.ts';
import { type RequestFacts, singleHeader } from './authz/request-facts.ts';
import type { Engine, Judgement } from './engine.ts';
import type { Answers } from './envoy/answers.ts';
import type { CheckRecord } from './operations/check-record.ts';
import { parseTraceParent } from './operations/trace-context.ts';

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

/** The metadata of the call itself, by lower-case name. */
export interface CallMetadata {
  get(name: string): readonly (string | Uint8Array)[];
}

/** Gives the bytes of a CheckResponse, at once where nothing has to be waited for. Never throws and never rejects. */
export type Check = (facts: RequestFacts, metadata?: CallMetadata) => Buffer | Promise<Buffer>;

interface Call {
  readonly facts: RequestFacts;
  readonly metadata: CallMetadata | undefined;
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

  return (facts, metadata) => {
    const startedMs = monotonicNow();
    const call: Call = { facts, metadata, configuration: current(), startedMs, requestId: '' };
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

function toRecord({ facts, metadata, requestId }: Call, judgement: Judgement, durationMs: number): CheckRecord {
  const { decision, route, principal, kid, cache } = judgement;
  const refused = decision.kind === 'refusal' ? decision : undefined;
  const word: DecisionWord = refused === undefined ? 'allow' : answerOf(refused.reason).decision;
  const reason: Reason | 'allowed' = refused?.reason ?? 'allowed';
  // An Envoy that traces names its own call in the metadata; one that does not shows what the client sent.
  const ofCall = textOf(metadata, 'traceparent');
  const traceparent = ofCall ?? singleHeader(facts, 'traceparent');
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
    traceId: parseTraceParent(traceparent)?.traceId,
    traceparent,
    tracestate: ofCall === undefined ? sentTraceState(facts, traceparent) : textOf(metadata, 'tracestate'),
  };
}

function sentTraceState(facts: RequestFacts, traceparent: string | undefined): string | undefined {
  return traceparent === undefined ? undefined : facts.headers.get('tracestate')?.join();
}

function textOf(metadata: CallMetadata | undefined, name: string): string | undefined {
  const values = metadata?.get(name);
  const value = values?.length === 1 ? values[0] : undefined;
  return typeof value === 'string' ? value : undefined;
}
