// Reads the accounts that a request names, and finds the one that it addresses.
import { type AccountParameters, accountsInQuery } from './account-query.ts';
import type { DetailOf } from './checks.ts';
import { mayClaim } from './issuer-accounts.ts';
import { type Account, type AccountGrammar, accountProblem, foldAccountCase, type Identity } from './principal.ts';
import { type Refusal, refusal } from './refusal.ts';
import type { RequestFacts } from './request-facts.ts';
import { accountSegments, type RouteMatch } from './route.ts';

export interface AccountPlaces {
  /** Lower-case header names. */
  readonly headers: readonly string[];
  readonly query: AccountParameters;
  readonly grammar: AccountGrammar;
}

/** Every account that headers and query name. An ambiguous header or parameter is refused, and an account outside the grammar. */
export function accountsNamed(places: AccountPlaces, facts: RequestFacts, query: string): readonly Account[] | Refusal {
  const inHeaders: string[] = [];
  for (const name of places.headers) {
    const values = facts.headers.get(name);
    if (values === undefined) continue;
    const [value = ''] = values;
    if (values.length !== 1) return refusal('request_invalid', 'an account header twice');
    if (value.trim() === '') return refusal('request_invalid', 'an empty account header');
    if (value.includes(',')) return refusal('request_invalid', 'a list in an account header');
    inHeaders.push(value);
  }
  if (hasLookAlike(places.headers, facts)) return refusal('request_invalid', 'a look-alike of an account header');
  const inQuery = accountsInQuery(places.query, query);
  if ('kind' in inQuery) return inQuery;
  return toAccounts([...inHeaders, ...inQuery], places.grammar, {
    dots: 'an account with a dot, and account.dots is off',
    grammar: 'an account outside the grammar',
  });
}

/** Every account that the path names, one for each `:account_id` of each route. */
export function accountsInPath(match: RouteMatch, grammar: AccountGrammar): readonly Account[] | Refusal {
  return toAccounts(accountSegments(match), grammar, {
    dots: 'a segment with a dot names an account, and account.dots is off',
    grammar: 'the segment of an account is outside its grammar',
  });
}

function toAccounts(
  named: readonly string[],
  grammar: AccountGrammar,
  details: Readonly<Record<'dots' | 'grammar', DetailOf<'request_invalid'>>>,
): readonly Account[] | Refusal {
  const accounts = named.map(name => foldAccountCase(name, grammar));
  for (const account of accounts) {
    const problem = accountProblem(account, grammar);
    if (problem !== undefined) return refusal('request_invalid', details[problem === 'dots' ? 'dots' : 'grammar']);
  }
  return accounts as readonly string[] as readonly Account[];
}

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

// CGI folds `-` and `_` into one variable name (RFC 3875 section 4.1.18). Its heirs fold every character but letters and digits
// (Apache before 2.4, lighttpd) or the dot (PHP, "Variables From External Sources"), so such a header could win upstream.
function hasLookAlike(names: readonly string[], facts: RequestFacts): boolean {
  if (names.length === 0) return false;
  for (const shown of facts.headers.keys()) {
    // A look-alike has the length of the name, so other headers cost nothing.
    if (!names.some(({ length }) => length === shown.length)) continue;
    if (/[^a-z0-9-]/.test(shown) && names.includes(shown.replaceAll(/[^a-z0-9]/g, '-'))) return true;
  }
  return false;
}
