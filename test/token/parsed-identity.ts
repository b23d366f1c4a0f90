// The identity of changed claims under changed rules.
import { expect } from 'chai';
import { claimRules, claims } from '../../lab/token.ts';
import { parseIdentity } from '../../src/token/identity-claims.ts';

export type Rules = Parameters<typeof claimRules>[0];

export type Changes = Readonly<Record<string, unknown>>;

/** What the token says for each account, with sets and maps as plain values; the detail of a refusal, which is `token_invalid`. */
export function read(changes: Changes, rules?: Rules): unknown {
  const parsed = parseIdentity(claims(changes), claimRules(rules));
  if ('kind' in parsed) return detailOf(parsed);
  const { accounts, role, scope, actor, jti, sid } = parsed;
  return {
    accounts: typeof accounts === 'string' ? accounts : 'kind' in accounts ? accounts.detail : [...accounts],
    role: plain(role),
    scope: plain(scope),
    actor,
    jti,
    sid,
  };
}

export function plain(claimed: unknown): unknown {
  if (typeof claimed !== 'object' || claimed === null || !('claimed' in claimed)) return claimed;
  const entries = [...(claimed.claimed as ReadonlyMap<string, unknown>)];
  return Object.fromEntries(
    entries.map(([account, each]) => [
      account,
      typeof each === 'object' && each !== null && 'reason' in each ? detailOf(each) : each,
    ]),
  );
}

function detailOf(refused: object): unknown {
  expect(refused).to.include({ reason: 'token_invalid' });
  return 'detail' in refused ? refused.detail : undefined;
}

export const many = (count: number) => Array.from({ length: count }, (_, i) => `a${i}`);

export const objectOf = (names: readonly string[], value: unknown = {}) =>
  Object.fromEntries(names.map(name => [name, value]));

export const keysOf: Rules = { claims: { acc: { keysOf: '/orgs' } } };
