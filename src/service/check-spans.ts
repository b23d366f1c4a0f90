// One span per check, for an OpenTelemetry SDK that the operator has preloaded. A span has what a metric may have: no identity, no token,
// no path.
import {
  createTraceState,
  isSpanContextValid,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { CheckRecord } from '../check/check.ts';
import { parseTraceParent } from '../check/trace-context.ts';

interface CheckSpans {
  /** Records the span of a check that has just ended. Throws what the SDK throws. */
  record(record: CheckRecord): void;
}

const scope = 'account-authz';
const method = 'envoy.service.auth.v3.Authorization/Check';

/** The tracer of the registered SDK; undefined without one. */
export function registeredTracer(version: string): Tracer | undefined {
  const tracer = trace.getTracer(scope, version);
  return makesSpans(tracer) ? tracer : undefined;
}

// Without an SDK every span has the invalid context (OpenTelemetry API specification, "Behavior of the API in the absence of an
// installed SDK"). This span is never ended, so an SDK never exports it.
function makesSpans(tracer: Tracer): boolean {
  try {
    return isSpanContextValid(tracer.startSpan(method, { root: true }).spanContext());
  } catch {
    // A span processor threw, so there is an SDK.
    return true;
  }
}

export function createCheckSpans(tracer: Tracer): CheckSpans {
  return {
    record({ decision, reason, cache, durationMs, traceparent, tracestate }) {
      const endMs = Date.now();
      const parent = parentOf(traceparent, tracestate);
      const span = tracer.startSpan(
        method,
        {
          kind: SpanKind.SERVER,
          startTime: endMs - durationMs,
          attributes: {
            // Semantic conventions for gRPC, 1.41 (release candidate). The call itself never fails: a refusal is an answer.
            'rpc.system.name': 'grpc',
            'rpc.method': method,
            'rpc.response.status_code': 'OK',
            'account_authz.decision': decision,
            'account_authz.reason': reason,
            ...(cache !== undefined && { 'account_authz.token_cache': cache }),
            ...(decision === 'unavailable' && { 'error.type': reason }),
          },
        },
        parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent),
      );
      if (decision === 'unavailable') span.setStatus({ code: SpanStatusCode.ERROR });
      span.end(endMs);
    },
  };
}

function parentOf(traceparent: string | undefined, tracestate: string | undefined): SpanContext | undefined {
  const parent = parseTraceParent(traceparent);
  if (parent === undefined) return undefined;
  return {
    traceId: parent.traceId,
    spanId: parent.parentId,
    traceFlags: parent.sampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
    ...(tracestate !== undefined && { traceState: createTraceState(tracestate) }),
  };
}
