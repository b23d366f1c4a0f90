// A whole Check call without its connection: one issuer with fixed keys, metrics, spans, and a log that is discarded.
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { signingKey } from '../../lab/signing-key.ts';
import { audience, issuer, now } from '../../lab/token.ts';
import { createCheck } from '../../src/check/check.ts';
import { createEngine } from '../../src/check/engine.ts';
import { configSchema } from '../../src/config/schema.ts';
import { createAnswers } from '../../src/envoy/answers.ts';
import { authorizationService } from '../../src/envoy/protocol.ts';
import { readRequestFacts } from '../../src/envoy/request.ts';
import { createIdentityHeaders } from '../../src/headers/headers.ts';
import { parseKeySet } from '../../src/keys/jwks.ts';
import { createCheckSpans } from '../../src/service/check-spans.ts';
import { createLogger, logCheck } from '../../src/service/log.ts';
import { createMetrics } from '../../src/service/metrics.ts';
import { fixedKeyRings } from './fixed-key-rings.ts';

/** Bytes of a CheckRequest to bytes of the answer; `unreadable` if the library would answer INTERNAL. */
export type WholeCheck = (message: Buffer) => Buffer | Promise<Buffer> | 'unreadable';

/** By default each check verifies its token: nothing is cached. */
export async function createWholeCheck(
  settings: Readonly<Record<string, unknown>>,
  issuerSettings: Readonly<Record<string, unknown>> = {},
): Promise<WholeCheck> {
  const { publicJwk } = await signingKey('k1', 'ES256');
  const set = await parseKeySet(Buffer.from(JSON.stringify({ keys: [publicJwk] })), ['ES256']);
  if (set.kind === 'problem') throw new Error(set.problem);
  const issuers = [
    { issuer, audiences: [audience], jwksUrl: 'https://idp.test/jwks', algorithms: ['ES256'], ...issuerSettings },
  ];
  const routes = [{ path: '/api/subscriptions/:account_id/*' }];
  const config = configSchema.parse({ issuers, routes, roles: { owner: ['*'] }, cache: { maxTokens: 0 }, ...settings });
  const engine = createEngine({ config, keyRings: fixedKeyRings(config, set), now: () => now });
  const answers = createAnswers({
    identityHeaders: createIdentityHeaders('x-auth-'),
    removedHeaders: ['authorization'],
  });
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

export function statusOf(answer: Buffer | 'unreadable'): number | undefined {
  return answer === 'unreadable' ? undefined : authorizationService.Check.responseDeserialize(answer).status.code;
}
