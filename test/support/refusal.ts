// A refusal whose detail does not matter; the product creates only those that authz/checks.ts defines.
import type { Reason, Refusal } from '../../src/authz/refusal.ts';

export function refusalOf(reason: Reason, detail = 'why'): Refusal {
  return { kind: 'refusal', reason, detail };
}
