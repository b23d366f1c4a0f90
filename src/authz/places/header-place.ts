// Headers that name an account: one line each, and no header beside them that a server could take for one.
import type { AccountGrammar } from '../principal.ts';
import { type Refusal, refusal } from '../refusal.ts';
import type { RequestHeaders } from '../request-facts.ts';
import { type AccountPlace, toAccounts } from './place.ts';

/** `names` are lower case. */
export function headerPlace(names: readonly string[], grammar: AccountGrammar): AccountPlace {
  return {
    headers: names,
    read({ facts: { headers } }) {
      const named = accountsInHeaders(names, headers);
      return 'kind' in named ? named : toAccounts(named, grammar);
    },
  };
}

function accountsInHeaders(names: readonly string[], headers: RequestHeaders): readonly string[] | Refusal {
  const named: string[] = [];
  for (const name of names) {
    const values = headers.get(name);
    if (values === undefined) continue;
    const [value = ''] = values;
    if (values.length !== 1) return refusal('request_invalid', 'an account header twice');
    if (value.trim() === '') return refusal('request_invalid', 'an empty account header');
    if (value.includes(',')) return refusal('request_invalid', 'a list in an account header');
    named.push(value);
  }
  return hasLookAlike(names, headers) ? refusal('request_invalid', 'a look-alike of an account header') : named;
}

// CGI folds `-` and `_` into one variable name (RFC 3875 section 4.1.18). Its heirs fold every character but letters and digits
// (Apache before 2.4, lighttpd) or the dot (PHP, "Variables From External Sources"), so such a header could win upstream.
export function hasLookAlike(names: readonly string[], headers: RequestHeaders): boolean {
  if (names.length === 0) return false;
  for (const shown of headers.keys()) {
    // A look-alike has the length of the name, so other headers cost nothing.
    for (const name of names)
      if (name.length === shown.length && /[^a-z0-9-]/.test(shown) && shown.replaceAll(/[^a-z0-9]/g, '-') === name)
        return true;
  }
  return false;
}
