// The identity headers: those that an allow sets or removes, and the names that an upstream could read as one of them.
import { upstreamFields } from '../authz/principal.ts';

export interface IdentityHeaders {
  /** Field → header name, in the order of the response. */
  readonly names: ReadonlyMap<(typeof upstreamFields)[number], string>;
  /** Every spelling of them with `_` for one or more `-`: CGI and WSGI read both as the same variable (RFC 3875 section 4.1.18). */
  readonly lookAlikes: readonly string[];
  /** Those of the given request headers that have the prefix and are neither one of them nor a look-alike. */
  strayNames(received: Iterable<string>): readonly string[];
}

const headerName = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;

export function createIdentityHeaders(prefix: string): IdentityHeaders {
  const names = new Map(upstreamFields.map(field => [field, prefix + field]));
  const own = new Set(names.values());
  const lookAlikes = [...own].flatMap(underscoreSpellings);
  const removedAnyway = new Set(lookAlikes);
  return {
    names,
    lookAlikes,
    strayNames(received) {
      const found = new Set<string>();
      for (const name of received) {
        if (!isUnder(prefix, name) || own.has(name) || removedAnyway.has(name)) continue;
        // Envoy forwards no invalid name, and rejects a whole response that contains one.
        if (headerName.test(name)) found.add(name);
      }
      return [...found];
    },
  };
}

/** Whether a name starts with the prefix, with `_` read as `-`. */
function isUnder(prefix: string, name: string): boolean {
  if (name.length < prefix.length) return false;
  for (let i = 0; i < prefix.length; i += 1) {
    const character = name[i];
    if (character !== prefix[i] && !(character === '_' && prefix[i] === '-')) return false;
  }
  return true;
}

/** Every mixture of `-` and `_` but the name itself. */
export function underscoreSpellings(name: string): string[] {
  const spellings = name
    .split('-')
    .reduce<string[]>(
      (starts, part, i) => (i === 0 ? [part] : starts.flatMap(start => [`${start}-${part}`, `${start}_${part}`])),
      [],
    );
  return spellings.filter(spelling => spelling !== name);
}
