// The path: each `:account_id` of each route that it matches names an account.
import type { AccountGrammar } from '../principal.ts';
import { accountSegments } from '../route-tree.ts';
import { type AccountPlace, toAccounts } from './place.ts';

const details = {
  dots: 'a segment with a dot names an account, and account.dots is off',
  grammar: 'the segment of an account is outside its grammar',
} as const;

export function pathPlace(grammar: AccountGrammar): AccountPlace {
  return {
    read: ({ match }) => (match.kind === 'refusal' ? match : toAccounts(accountSegments(match), grammar, details)),
  };
}
