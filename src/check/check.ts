// Answers one Check call: request → decision → response, one log line and one count. Catches every internal error of a check and refuses
// (503), because a failed gRPC call would leave the decision to Envoy.
import { randomUUID } from 'node:crypto';
import type { DecisionWord } from '../authz/authorize.ts';
import type { SignedIdentity } from '../authz/principal.ts';
import { answerOf, type Reason, refusal } from '../authz/refusal.ts';
import { type RequestFacts, singleHeader } from '../authz/request-facts.ts';
import type { Answers } from '../envoy/answers.ts';
import type { CheckResult, Engine } from './engine.ts';

/** The source of a log line, metrics and a span. */
export interface CheckRecord {
  readonly requestId: string;
  readonly decision: DecisionWord;
  readonly reason: Reason | 'allowed';
  readonly detail: string | undefined;
  /** What a verified token says in the place of what `detail` asks for. */
  readonly found: string | undefined;
  /** As the client sent it. */
  readonly method: string;
  readonly route: string | undefined;
  /** Only of a token whose signature is verified. */
  readonly principal: SignedIdentity | undefined;
  /** As the token's header says, verified or not. */
  readonly kid: string | undefined;
  readonly cache: 'hit' | 'miss' | undefined;
  readonly durationMs: number;
  /** As it was sent, and the `tracestate` beside it. */
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
}

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

const faultResult: CheckResult = {
  decision: refusal('internal', 'internal error: see the log line before this one'),
  route: undefined,
  principal: undefined,
  signed: undefined,
  kid: undefined,
  cache: undefined,
};
const requestIdGrammar = /^[A-Za-z0-9._-]{1,128}$/;

export function createCheck({ current, record, onFault, monotonicNow }: CheckDependencies): Check {
  return (facts, metadata) => {
    const startedMs = monotonicNow();
    const { engine, answers } = current();
    // Empty until the headers are read.
    let requestId = '';

    const answer = (result: CheckResult, receivedHeaders: Iterable<string> = facts.headers.keys()): Buffer => {
      const { decision, principal } = result;
      const bytes = answers.encode(decision, { requestId, receivedHeaders, principal });
      try {
        record(toRecord(result, facts, metadata, { requestId, durationMs: monotonicNow() - startedMs }));
      } catch (error) {
        onFault(error);
      }
      return bytes;
    };
    // Reads nothing of the request: it may be what failed.
    const answerFault = (error: unknown): Buffer => {
      onFault(error);
      if (requestId === '') requestId = randomUUID();
      return answer(faultResult, []);
    };
    try {
      requestId = requestIdOf(facts);
      const decided = engine.decide(facts);
      return decided instanceof Promise ? decided.then(result => answer(result)).catch(answerFault) : answer(decided);
    } catch (error) {
      return answerFault(error);
    }
  };
}

function requestIdOf(facts: RequestFacts): string {
  const sent = singleHeader(facts, 'x-request-id');
  return sent !== undefined && requestIdGrammar.test(sent) ? sent : randomUUID();
}

type Measured = Pick<CheckRecord, 'requestId' | 'durationMs'>;

function toRecord(result: CheckResult, facts: RequestFacts, metadata: CallMetadata | undefined, call: Measured) {
  const { decision, route, principal, signed, kid, cache } = result;
  const refused = decision.kind === 'refusal' ? decision : undefined;
  // With tracing on, Envoy names its own span in the metadata. Otherwise the headers are what the client sent.
  const ofCall = textOf(metadata, 'traceparent');
  const traceparent = ofCall ?? singleHeader(facts, 'traceparent');
  const sentState = traceparent === undefined ? undefined : facts.headers.get('tracestate')?.join();
  return {
    requestId: call.requestId,
    decision: refused === undefined ? ('allow' as const) : answerOf(refused.reason).decision,
    reason: refused?.reason ?? ('allowed' as const),
    detail: refused?.detail,
    found: refused?.found,
    method: facts.method,
    route,
    principal: principal ?? signed,
    kid,
    cache,
    durationMs: call.durationMs,
    traceparent,
    tracestate: ofCall === undefined ? sentState : textOf(metadata, 'tracestate'),
  };
}

function textOf(metadata: CallMetadata | undefined, name: string): string | undefined {
  const values = metadata?.get(name);
  const value = values?.length === 1 ? values[0] : undefined;
  return typeof value === 'string' ? value : undefined;
}
