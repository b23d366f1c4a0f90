// Finds the account that a request addresses.
import { mayClaim } from './issuer-accounts.ts';
import type { Account, Identity } from './principal.ts';
import { type Refusal, refusal } from './refusal.ts';

/** The account that the request is about: the one that it names or, if it names none, the only one of the token. Always one of the token. */
export function addressedAccount(
  named: readonly Account[],
  { accounts, issuerAccounts }: Pick<Identity, 'accounts' | 'issuerAccounts'>,
): Account | Refusal {
  const [addressed, ...others] = named;
  if (others.some(other => other !== addressed))
    return refusal('account_mismatch', 'the request names different accounts');
  if (typeof accounts === 'object' && 'kind' in accounts) return accounts;
  if (addressed === undefined) {
    if (typeof accounts === 'string') return accounts;
    return refusal('account_required', 'the token has several accounts and the request names none');
  }
  const isOfToken = typeof accounts === 'string' ? accounts === addressed : accounts.has(addressed);
  if (isOfToken) return addressed;
  return mayClaim(issuerAccounts, addressed)
    ? refusal('account_mismatch', 'the request names another account than the token')
    : refusal('account_mismatch', 'the issuer may not speak for the account that the request names');
}
