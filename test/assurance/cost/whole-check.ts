// A whole Check call without its connection, and its processor time. The unit is an allowed request with a new token, as in a client's first request.
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { checkRequest } from '../../../lab/check-request.ts';
import { signingKey } from '../../../lab/signing-key.ts';
import { audience, issuer, now, token } from '../../../lab/token.ts';
import { createCheck } from '../../../src/check/check.ts';
import { createEngine } from '../../../src/check/engine.ts';
import { configSchema } from '../../../src/config/schema.ts';
import { createAnswers } from '../../../src/envoy/answers.ts';
import { createIdentityHeaders } from '../../../src/envoy/identity-headers.ts';
import { authorizationService } from '../../../src/envoy/proto-files.ts';
import { readRequestFacts } from '../../../src/envoy/request.ts';
import { parseKeySet } from '../../../src/keys/jwks.ts';
import { createCheckSpans } from '../../../src/service/check-spans.ts';
import { createLogger, logCheck } from '../../../src/service/log.ts';
import { createMetrics } from '../../../src/service/metrics.ts';
import { fixedKeyRings } from '../../support/fixed-key-rings.ts';

/** The most that one request may cost, in allowed requests with a new token: docs/dev/performance.md. */
export const maxMultiple = 50;

/** Bytes of a CheckRequest to bytes of the answer; `unreadable` if the library would answer INTERNAL. */
export type WholeCheck = (message: Buffer) => Buffer | Promise<Buffer> | 'unreadable';

/** With metrics, spans, and a log that is discarded. Without a cache each run verifies a new token. */
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
  const engine = createEngine({ config, keyRings: fixedKeyRings(config, set.keys), now: () => now });
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

export function statusOf(answer: Buffer | 'unreadable'): number | undefined {
  return answer === 'unreadable' ? undefined : authorizationService.Check.responseDeserialize(answer).status.code;
}

export async function allowedRequestMicroseconds(check: WholeCheck): Promise<number> {
  const batchSize = 20;
  let least = Number.POSITIVE_INFINITY;
  for (let batch = 0; batch < 12; batch += 1) {
    const messages = await Promise.all(Array.from({ length: batchSize }, newRequest));
    const before = process.cpuUsage();
    const results: (Buffer | 'unreadable')[] = [];
    for (const message of messages) results.push(await check(message));
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / batchSize);
    if (results.some(each => statusOf(each) !== 0)) throw new Error('the request of the unit is not allowed');
  }
  return least;
}

async function newRequest(): Promise<Buffer> {
  const headers = { authorization: `Bearer ${await token()}` };
  return Buffer.from(authorizationService.Check.requestSerialize(checkRequest({ headers })));
}

/**
 * Of one run each, from the operating system: other processes do not add to it, and the minimum of several runs excludes garbage collection and
 * JIT compilation. The runs take turns, so that all meet the same machine.
 */
export async function microsecondsOf(runs: readonly (() => unknown)[], attempts: number): Promise<readonly number[]> {
  const measured = runs.map(run => ({ run, least: Number.POSITIVE_INFINITY, times: 1 }));
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    for (const each of measured) {
      const before = process.cpuUsage();
      for (let i = 0; i < each.times; i += 1) {
        const result = each.run();
        if (result instanceof Promise) await result;
      }
      const { user, system } = process.cpuUsage(before);
      each.least = Math.min(each.least, Math.max((user + system) / each.times, 0.01));
      each.times = Math.min(Math.max(Math.round(200 / each.least), 1), 1000);
    }
  }
  return measured.map(({ least }) => least);
}
