// A whole Check call without its connection: bytes of a CheckRequest → bytes of the answer, with metrics, spans, and a log that
// is discarded.
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { createCheck } from '../../../src/check/check.ts';
import type { Engine } from '../../../src/check/engine.ts';
import { createAnswers } from '../../../src/envoy/answers.ts';
import { createIdentityHeaders } from '../../../src/envoy/identity-headers.ts';
import { readRequestFacts } from '../../../src/envoy/request.ts';
import { createCheckSpans } from '../../../src/service/check-spans.ts';
import { createLogger, logCheck } from '../../../src/service/log.ts';
import { createMetrics } from '../../../src/service/metrics.ts';

/** `unreadable` if the library would answer INTERNAL. */
export type QuietCheck = (message: Buffer) => Buffer | Promise<Buffer> | 'unreadable';

export function createQuietCheck(engine: Engine): QuietCheck {
  const answers = createAnswers({ identityHeaders: createIdentityHeaders('x-auth-'), forward: false });
  const logger = createLogger({ level: 'info', allowed: true }, { write: () => undefined });
  const metrics = createMetrics('0.0.0', {
    keySets: () => [],
    cachedTokens: () => engine.cachedTokens(),
    revocations: () => undefined,
  });
  const spans = createCheckSpans(new BasicTracerProvider().getTracer('cost'));
  const check = createCheck({
    current: () => ({ engine, answers }),
    record(record) {
      metrics.countCheck(record);
      logCheck(logger, { level: 'info', allowed: true }, record);
      spans.record(record);
    },
    onFault(fault) {
      throw fault;
    },
    monotonicNow: () => performance.now(),
  });
  return message => {
    let facts: ReturnType<typeof readRequestFacts>;
    try {
      facts = readRequestFacts(message);
    } catch {
      return 'unreadable';
    }
    return check(facts);
  };
}
