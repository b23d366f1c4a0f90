// Decides the cases of a user's table as the server would, one after the other.
import type { CheckRecord } from '../../check/check.ts';
import type { RevocationList } from '../../revocation/revocation-list.ts';
import { toCheckRequest } from '../offline/check-request.ts';
import { type FetchSettings, fetchKeys } from '../offline/fetched-keys.ts';
import { createRecordedCheck } from '../offline/recorded-check.ts';
import { type Expectation, expectedFields, type PolicyCase } from './cases.ts';
import { createStandInIssuers } from './stand-in-issuer.ts';

export interface CaseResult {
  readonly name: string;
  readonly isAsExpected: boolean;
  /** The decision, and of the caller what the case expects. For people: another account or actor than the expected one is not named. */
  readonly expected: string;
  readonly received: string;
  /** What the log line of the service would say about a refusal. */
  readonly detail: string | undefined;
}

/**
 * Fetches keys only if a case has a token of its own. Calls `onResult` after each case. Rejects if a jwksFile is missing or invalid,
 * see KeyFileError.
 */
export async function runCases(
  settings: FetchSettings & { readonly revocations: RevocationList | undefined },
  cases: readonly PolicyCase[],
  onResult: (result: CaseResult) => void,
): Promise<readonly CaseResult[]> {
  const { config, revocations } = settings;
  const standIns = await createStandInIssuers(config);
  const fetched = cases.some(({ token }) => token !== undefined) ? await fetchKeys(settings) : undefined;
  try {
    const checkByStandIns = createRecordedCheck({ config, revocations, keyRings: standIns.keys });
    const keyRings = fetched?.rings ?? standIns.keys;
    const checkByIssuers = createRecordedCheck({ config, revocations, keyRings });
    const results: CaseResult[] = [];
    for (const { name, claims, token, request, expect: expected, at } of cases) {
      const now = at ?? Date.now() / 1000;
      const bearer = claims === undefined ? token : await standIns.sign(claims, now);
      const { method, path, host, headers } = request;
      const lines = host === undefined ? headers : [['host', host] as const, ...headers];
      const message = toCheckRequest(
        {
          request: { method, target: path, headers: lines },
          authorization: bearer === undefined ? undefined : `Bearer ${bearer}`,
        },
        config.token,
      );
      const check = token === undefined ? checkByStandIns : checkByIssuers;
      const result = { name, ...compare(expected, (await check(message, now)).record) };
      results.push(result);
      onResult(result);
    }
    return results;
  } finally {
    await fetched?.stop();
  }
}

// The keys of `roles` and `scopes` are of the configuration; accounts and actors are of the token, of which nothing is printed.
function compare(expected: Expectation, { reason, detail, principal }: CheckRecord): Omit<CaseResult, 'name'> {
  const fields = expectedFields.flatMap(name => {
    const wanted = expected[name];
    if (wanted === undefined) return [];
    const found = principal?.[name] ?? null;
    const isSecret = found !== null && (name === 'acc' || name === 'actor');
    const shown = found === wanted || !isSecret ? found : 'another';
    return { isSame: found === wanted, wanted: `, ${name} ${wanted ?? 'none'}`, found: `, ${name} ${shown ?? 'none'}` };
  });
  return {
    isAsExpected: reason === expected.reason && fields.every(({ isSame }) => isSame),
    expected: [expected.reason, ...fields.map(({ wanted }) => wanted)].join(''),
    received: [reason, ...fields.map(({ found }) => found)].join(''),
    detail,
  };
}
