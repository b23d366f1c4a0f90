// The result of a check: response, log line and metrics are built from it.
import type { AllowedPrincipal } from './principal.ts';
import type { Refusal } from './refusal.ts';

interface Allow {
  readonly kind: 'allow';
  readonly principal: AllowedPrincipal;
  /** What is left of `cookie` for the upstream without the token; empty: nothing. Undefined: it stays as it is. */
  readonly otherCookies?: string;
}

export type Decision = Allow | Refusal;

/** A refusal is `deny` or `unavailable` by its reason. */
export type DecisionWord = 'allow' | 'deny' | 'unavailable';
