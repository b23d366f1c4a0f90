// The answer of a check as its status and its reason.
import { reasonOf } from '../../lab/service.ts';
import type { CheckResponseMessage } from '../../src/envoy/protocol.ts';

export const mine = '/api/subscriptions/acct1';

/** HTTP status and reason of the answer, 200 for an allow. */
export function answerOf(response: CheckResponseMessage): string {
  return `${response.denied_response?.status.code ?? 200} ${reasonOf(response)}`;
}

export const allowed = '200 allowed';

export const invalid = '400 request_invalid';
