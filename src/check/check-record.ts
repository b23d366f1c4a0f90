// The record of one check: source of its log line, metrics and span.
import type { DecisionWord } from '../authz/decision.ts';
import type { SignedIdentity } from '../authz/principal.ts';
import type { Reason } from '../authz/refusal.ts';

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
  readonly traceId: string | undefined;
  /** The header that `traceId` was read from, and the `tracestate` beside it. */
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
}
