// A place where a request may name an account: a header, the query, the host, the path. One object for each.
import type { DetailOf } from '../checks.ts';
import { type Account, type AccountGrammar, accountProblem, foldAccountCase } from '../principal.ts';
import { type Refusal, refusal } from '../refusal.ts';
import type { RequestFacts } from '../request-facts.ts';
import type { RouteMatch } from '../route-tree.ts';

export interface AccountPlace {
  /** Every account that the request names there. A refusal `route_unknown` gives way to whatever makes a request invalid. */
  readonly read: (request: NamingRequest) => readonly Account[] | Refusal;
  /** Lower-case names of headers that it reads: `connection` must not nominate one. */
  readonly headers?: readonly string[];
  /** Whether some servers read it in the charset that content-type names. */
  readonly hasCharset?: boolean;
}

export interface NamingRequest {
  readonly facts: Pick<RequestFacts, 'host' | 'headers'>;
  /** Without its `?`. */
  readonly query: string;
  readonly match: RouteMatch | Refusal;
}

export function toAccounts(
  named: readonly string[],
  grammar: AccountGrammar,
  details: Readonly<Record<'dots' | 'grammar', DetailOf<'request_invalid'>>> = {
    dots: 'an account with a dot, and account.dots is off',
    grammar: 'an account outside the grammar',
  },
): readonly Account[] | Refusal {
  const accounts = named.map(name => foldAccountCase(name, grammar));
  for (const account of accounts) {
    const problem = accountProblem(account, grammar);
    if (problem !== undefined) return refusal('request_invalid', details[problem === 'dots' ? 'dots' : 'grammar']);
  }
  return accounts as readonly string[] as readonly Account[];
}
