// What a check ends in: the value that the response, the log line and the metrics are made from.
import type { Principal } from './principal.ts';
import type { Refusal } from './refusal.ts';

export interface Allow {
  readonly kind: 'allow';
  readonly principal: Principal;
}

export type Decision = Allow | Refusal;

/** `allow` only for an allow; a refusal says by its reason whether it is a denial or "cannot decide". */
export type DecisionWord = 'allow' | 'deny' | 'unavailable';
