// Reads the accounts that a request names outside its path: in configured headers and query parameters.
import { type AccountParameters, accountsInQuery } from './account-query.ts';
import { type Refusal, refusal } from './refusal.ts';
import type { RequestFacts } from './request-facts.ts';

export interface AccountPlaces {
  /** Lower-case header names. */
  readonly headers: readonly string[];
  readonly query: AccountParameters;
}

/** Every account named there. An ambiguous header or parameter is refused. */
export function accountsNamed(places: AccountPlaces, facts: RequestFacts, query: string): readonly string[] | Refusal {
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
  return 'kind' in inQuery ? inQuery : [...inHeaders, ...inQuery];
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
