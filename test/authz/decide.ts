// One decision of a policy, for the tests of admit and authorize.
import { admit, authorize, type Decision, type Policy } from '../../src/authz/authorize.ts';
import type { Identity } from '../../src/authz/principal.ts';
import type { RequestFacts } from '../../src/authz/request-facts.ts';
import { identity } from '../support/facts.ts';

export function decide(under: Policy, request: RequestFacts, who: Identity = identity()): Decision {
  const { outcome } = admit(under, request);
  return outcome.kind === 'refusal' ? outcome : authorize(under, outcome, who, () => undefined).decision;
}

export function reasonOf(decision: Decision): string {
  return decision.kind === 'allow' ? 'allowed' : decision.reason;
}

/** The end of a title. */
export function expected(reason: string): string {
  return reason === 'allowed' ? 'is allowed' : `is refused as ${reason}`;
}
