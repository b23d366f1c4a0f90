// What product.md section 6 lets a request be answered, given what the issuer did: a model of the rule, not of the product.
// It knows when the issuer answered, not when the product took that in, so that around each change two answers may be right.
import type { AnsweredFetch, IssuerHistory } from './watched-issuer.ts';

/** A token that is good but for its key, as it may be answered: 200, 401 or 503, each with its one reason. */
export type KeyVerdict = 'allowed' | 'token_invalid' | 'keys_unavailable';

export interface KeyRule {
  readonly maxAgeMs: number;
  readonly cooldownMs: number;
  /** How long an unknown kid may wait for the refresh that it asked for. */
  readonly waitMs: number;
  /** At most this long after the issuer's answer was written, what it says is in force. */
  readonly settleMs: number;
}

export interface Asked {
  readonly kid: string;
  readonly sentMs: number;
  readonly answeredMs: number;
}

export function permittedVerdicts(history: IssuerHistory, rule: KeyRule, asked: Asked): ReadonlySet<KeyVerdict> {
  const verdicts = new Set<KeyVerdict>();
  const { fetches } = history;
  const [first] = fetches;
  if (first === undefined || asked.sentMs <= first.answeredMs + rule.settleMs) verdicts.add('keys_unavailable');
  for (const [index, fetch] of fetches.entries()) {
    const next = fetches[index + 1];
    // While this set may have been in force, as far as the request lived through it.
    const fromMs = Math.max(asked.sentMs, fetch.answeredMs);
    const toMs = Math.min(asked.answeredMs, next === undefined ? Infinity : next.answeredMs + rule.settleMs);
    if (fromMs > toMs) continue;
    // The age counts from the start of the fetch, which the issuer sees a little later.
    const oldMs = fetch.askedMs + rule.maxAgeMs;
    if (toMs >= oldMs - rule.settleMs) verdicts.add('keys_unavailable');
    if (fromMs >= oldMs) continue;
    if (fetch.kids.has(asked.kid)) verdicts.add('allowed');
    else for (const verdict of withoutKey(history, rule, asked, fetch, fromMs)) verdicts.add(verdict);
  }
  return verdicts;
}

/** The kid is not in a set that is in force. */
function* withoutKey(
  history: IssuerHistory,
  rule: KeyRule,
  asked: Asked,
  fetch: AnsweredFetch,
  fromMs: number,
): Generator<KeyVerdict> {
  // After the cooldown the issuer has to be asked again; then the verdict is that of the next set, or 503.
  if (fromMs <= fetch.answeredMs + rule.cooldownMs + rule.settleMs) yield 'token_invalid';
  if (asked.answeredMs - asked.sentMs >= rule.waitMs || mayHaveFailed(history, rule, asked)) yield 'keys_unavailable';
}

/** Whether the latest refresh that the product knew of may have been a failed one. */
function mayHaveFailed({ fetches, outages }: IssuerHistory, rule: KeyRule, { sentMs, answeredMs }: Asked): boolean {
  return outages.some(({ fromMs }) => {
    const recovery = fetches.find(fetch => fetch.askedMs > fromMs);
    return fromMs <= answeredMs && (recovery === undefined || sentMs <= recovery.answeredMs + rule.settleMs);
  });
}

/** Whether the issuer vouched for this kid during the whole life of the request: then its token is a good one. */
export function isPublished({ publications }: IssuerHistory, { kid, sentMs, answeredMs }: Asked): boolean {
  return publications.every(({ atMs, kids }, index) => {
    const next = publications[index + 1];
    const overlaps = atMs <= answeredMs && (next === undefined || next.atMs >= sentMs);
    return !overlaps || kids.has(kid);
  });
}
