// Decides the cases of a user's table as the server would, one after the other.
import { createCheck } from '../check.ts';
import type { Config } from '../config/schema.ts';
import { createEngine, type Engine } from '../engine.ts';
import { createAnswers } from '../envoy/answers.ts';
import { createIdentityHeaders } from '../envoy/identity-headers.ts';
import { readRequestFacts } from '../envoy/request.ts';
import { toCheckRequest } from '../explain/check-request.ts';
import { type FetchSettings, fetchKeys } from '../explain/current-keys.ts';
import type { KeyRings } from '../keys/key-rings.ts';
import type { CheckRecord } from '../operations/check-record.ts';
import type { RevocationList } from '../token/revocation.ts';
import type { IssuerKeys } from '../token/verifier.ts';
import type { Expectation, PolicyCase } from './cases.ts';
import { createStandInIssuers } from './stand-in-issuer.ts';

export interface CaseResult {
  readonly name: string;
  readonly expected: Expectation;
  readonly received: Expectation;
  /** What the log line of the service would say about a refusal. */
  readonly detail: string | undefined;
}

/**
 * Fetches keys only if a case has a token of its own. Calls `onResult` after each case. Rejects if a jwksFile is missing or invalid,
 * see isKeyFileError.
 */
export async function runCases(
  settings: FetchSettings & { readonly revocations: RevocationList | undefined },
  cases: readonly PolicyCase[],
  onResult: (result: CaseResult) => void,
): Promise<readonly CaseResult[]> {
  const { config, revocations } = settings;
  const standIns = await createStandInIssuers(config);
  const rings = cases.some(({ token }) => token !== undefined) ? await fetchKeys(settings) : undefined;
  try {
    const decideByStandIns = createDecider(config, revocations, standIns.keys);
    const decideByIssuers =
      rings === undefined ? decideByStandIns : createDecider(config, revocations, byIssuer(rings));
    const results: CaseResult[] = [];
    for (const { name, claims, token, request, expect: expected, at } of cases) {
      const now = at ?? Date.now() / 1000;
      const bearer = claims === undefined ? token : await standIns.sign(claims, now);
      const message = toCheckRequest({
        request: { method: request.method, target: request.path, headers: request.headers },
        authorization: bearer === undefined ? undefined : `Bearer ${bearer}`,
      });
      const decide = token === undefined ? decideByStandIns : decideByIssuers;
      const { reason: received, detail } = await decide(message, now);
      const result = { name, expected, received, detail };
      results.push(result);
      onResult(result);
    }
    return results;
  } finally {
    await rings?.stop();
  }
}

function byIssuer(rings: KeyRings): ReadonlyMap<string, IssuerKeys> {
  return new Map(rings.active().map(ring => [ring.issuer, ring]));
}

function createDecider(
  config: Config,
  revocations: RevocationList | undefined,
  keyRings: ReadonlyMap<string, IssuerKeys>,
) {
  let time = 0;
  let last: CheckRecord | undefined;
  const engine: Engine = createEngine({ config, keyRings, revocations: () => revocations, now: () => time });
  const identityHeaders = createIdentityHeaders(config.identityHeaders);
  const answers = createAnswers({ identityHeaders, forward: config.token.forward });
  const check = createCheck({
    current: () => ({ engine, answers }),
    record: record => {
      last = record;
    },
    // The record says `internal`, which fails a case that expects anything else.
    onFault: () => undefined,
    monotonicNow: () => performance.now(),
  });
  return async (message: Buffer, now: number): Promise<CheckRecord> => {
    time = now;
    await check(readRequestFacts(message));
    if (last === undefined) throw new Error('a check without a record');
    return last;
  };
}
