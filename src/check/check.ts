// Answers one Check call: request → decision → response, one log line and one count. Catches every internal error of a check and refuses
// (503), because a failed gRPC call would leave the decision to Envoy.
import { randomUUID } from 'node:crypto';
import type { DecisionWord } from '../authz/decision.ts';
import { answerOf, type Reason, refusal } from '../authz/refusal.ts';
import { type RequestFacts, singleHeader } from '../authz/request-facts.ts';
import type { Answers } from '../envoy/answers.ts';
import type { CheckRecord } from './check-record.ts';
import type { CheckResult, Engine } from './engine.ts';
import { parseTraceParent } from './trace-context.ts';

interface CheckDependencies {
  /** Called once per call, so that a reload does not change a call in flight. */
  current(): CheckConfiguration;
  /** Log line and count. The answer does not change if it throws. */
  record(record: CheckRecord): void;
  onFault(error: unknown): void;
  /** Monotonic, in milliseconds. */
  monotonicNow(): number;
}

interface CheckConfiguration {
  readonly engine: Engine;
  readonly answers: Answers;
}

/** The gRPC metadata of the call, by lower-case name. */
export interface CallMetadata {
  get(name: string): readonly (string | Uint8Array)[];
}

/** Returns the bytes of a CheckResponse, synchronously when the result is already known. Never throws and never rejects. */
export type Check = (facts: RequestFacts, metadata?: CallMetadata) => Buffer | Promise<Buffer>;

interface Call {
  readonly facts: RequestFacts;
  readonly metadata: CallMetadata | undefined;
  readonly configuration: CheckConfiguration;
  readonly startedMs: number;
  /** Empty until the headers are read. */
  requestId: string;
}

const faultResult: CheckResult = {
  decision: refusal('internal', 'internal error: see the log line before this one'),
  route: undefined,
  principal: undefined,
  signed: undefined,
  kid: undefined,
  cache: undefined,
};
const requestIdGrammar = /^[A-Za-z0-9._-]{1,128}$/;

export function createCheck(dependencies: CheckDependencies): Check {
  const { current, record, onFault, monotonicNow } = dependencies;

  function answer(call: Call, result: CheckResult, receivedHeaders: Iterable<string>): Buffer {
    const { requestId, configuration } = call;
    const { decision, principal } = result;
    const bytes = configuration.answers.encode(decision, { requestId, receivedHeaders, principal });
    recordQuietly(call, result);
    return bytes;
  }

  // Reads nothing of the request: it may be what failed.
  function answerFault(call: Call, error: unknown): Buffer {
    onFault(error);
    if (call.requestId === '') call.requestId = randomUUID();
    return answer(call, faultResult, []);
  }

  function recordQuietly(call: Call, result: CheckResult): void {
    try {
      record(toRecord(call, result, monotonicNow() - call.startedMs));
    } catch (error) {
      onFault(error);
    }
  }

  return (facts, metadata) => {
    const startedMs = monotonicNow();
    const call: Call = { facts, metadata, configuration: current(), startedMs, requestId: '' };
    try {
      call.requestId = requestIdOf(facts);
      const decided = call.configuration.engine.decide(facts);
      const answerResult = (result: CheckResult): Buffer => answer(call, result, facts.headers.keys());
      if (!(decided instanceof Promise)) return answerResult(decided);
      return decided.then(answerResult).catch(error => answerFault(call, error));
    } catch (error) {
      return answerFault(call, error);
    }
  };
}

function requestIdOf(facts: RequestFacts): string {
  const sent = singleHeader(facts, 'x-request-id');
  return sent !== undefined && requestIdGrammar.test(sent) ? sent : randomUUID();
}

function toRecord({ facts, metadata, requestId }: Call, result: CheckResult, durationMs: number): CheckRecord {
  const { decision, route, principal, signed, kid, cache } = result;
  const refused = decision.kind === 'refusal' ? decision : undefined;
  const word: DecisionWord = refused === undefined ? 'allow' : answerOf(refused.reason).decision;
  const reason: Reason | 'allowed' = refused?.reason ?? 'allowed';
  // With tracing on, Envoy names its own span in the metadata. Otherwise the headers are what the client sent.
  const ofCall = textOf(metadata, 'traceparent');
  const traceparent = ofCall ?? singleHeader(facts, 'traceparent');
  return {
    requestId,
    decision: word,
    reason,
    detail: refused?.detail,
    found: refused?.found,
    method: facts.method,
    route,
    principal: principal ?? signed,
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
