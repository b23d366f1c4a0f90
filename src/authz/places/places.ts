// All places where a request may name an account, in the order in which they are read.
import type { AccountGrammar } from '../principal.ts';
import { headerPlace } from './header-place.ts';
import { hostPlace } from './host-place.ts';
import { pathPlace } from './path-place.ts';
import type { AccountPlace } from './place.ts';
import { queryPlace } from './query-place.ts';

/** `account` of the configuration. */
export interface AccountSettings {
  readonly headers: readonly string[];
  readonly query: readonly string[];
  /** Undefined: a request may be for any host. */
  readonly hosts?: readonly string[] | undefined;
  /** The name of the path parameter that is the account. */
  readonly parameter: string;
  readonly dots: boolean;
  readonly case: 'exact' | 'lower';
}

export function compilePlaces(account: AccountSettings): readonly AccountPlace[] {
  const grammar = toAccountGrammar(account);
  return [
    headerPlace(account.headers, grammar),
    queryPlace(account.query, grammar),
    hostPlace(account.hosts, account.parameter, grammar),
    pathPlace(grammar),
  ];
}

export function toAccountGrammar({ dots, case: letters }: Pick<AccountSettings, 'dots' | 'case'>): AccountGrammar {
  return { dots, lower: letters === 'lower' };
}
