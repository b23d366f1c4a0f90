// What the same engine as the service's answers to a planned request, here and now.
import { answerOf, type Reason } from '../../authz/refusal.ts';
import { literalStart, toRouteTemplate } from '../../authz/route-template.ts';
import { toCheckRequest } from '../check-request.ts';
import { createRecordedCheck, type RecordedCheckOptions } from '../recorded-check.ts';
import type { PlannedRequest } from './plan.ts';

export type Expected =
  | { readonly kind: 'refused'; readonly status: number; readonly reason: Reason }
  /** An answer of the API, or of Envoy on its behalf: any that is no refusal of account-authz. */
  | { readonly kind: 'passed' };

export function createExpectation(
  options: RecordedCheckOptions & {
    /** Wall time, in seconds since the epoch. */
    readonly now: () => number;
  },
): (planned: PlannedRequest) => Promise<Expected> {
  const check = createRecordedCheck(options);
  const publicRoutes = options.config.public ?? [];
  const methodsOf = new Map(publicRoutes.map(({ path, methods }) => [literalStart(toRouteTemplate(path)), methods]));
  return async ({ purpose, target, host, headers, authorization }) => {
    // account-authz is not asked for these. Envoy answers other methods than the configured ones with 404.
    if (purpose.kind === 'public path' && methodsOf.get(target)?.includes('GET')) return { kind: 'passed' };
    const request = { method: 'GET', target, headers: [['host', host] as const, ...headers] };
    const { record } = await check(
      toCheckRequest({ request, authorization }, options.config.token.from),
      options.now(),
    );
    const { reason } = record;
    return reason === 'allowed' ? { kind: 'passed' } : { kind: 'refused', status: answerOf(reason).httpStatus, reason };
  };
}
