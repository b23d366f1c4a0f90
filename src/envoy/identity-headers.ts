// The headers that we own: five that an allow sets, and every name that could be taken for one of ours upstream.

export const identityFields = ['uid', 'app', 'acc', 'role', 'iss'] as const;
export type IdentityField = (typeof identityFields)[number];

export interface IdentityHeaders {
  /** Field → header name, in the order in which they are set. */
  readonly names: ReadonlyMap<IdentityField, string>;
  /** Every spelling of the five with `_` for one or more `-`: CGI and its heirs read them as the same variable (RFC 3875 section 4.1.18). */
  readonly lookAlikes: readonly string[];
  /** Of the headers that a request shows, those under our prefix that an allow does not overwrite. */
  shownToRemove(shown: Iterable<string>): readonly string[];
}

const headerName = /^[!#$%&'*+.^_`|~0-9a-z-]{1,256}$/;

export function createIdentityHeaders(prefix: string): IdentityHeaders {
  const names = new Map(identityFields.map(field => [field, prefix + field]));
  const own = new Set(names.values());
  const lookAlikes = [...own].flatMap(underscoreSpellings);
  const removedAnyway = new Set(lookAlikes);
  return {
    names,
    lookAlikes,
    shownToRemove(shown) {
      const found = new Set<string>();
      for (const name of shown) {
        if (!isUnder(prefix, name) || own.has(name) || removedAnyway.has(name)) continue;
        // What is no header name cannot be forwarded by Envoy either, and naming it would void the whole answer.
        if (headerName.test(name)) found.add(name);
      }
      return [...found];
    },
  };
}

/** Whether a name starts with the prefix, `_` read as `-`. */
function isUnder(prefix: string, name: string): boolean {
  if (name.length < prefix.length) return false;
  for (let i = 0; i < prefix.length; i += 1) {
    const character = name[i];
    if (character !== prefix[i] && !(character === '_' && prefix[i] === '-')) return false;
  }
  return true;
}

function underscoreSpellings(name: string): string[] {
  const spellings = name
    .split('-')
    .reduce<string[]>(
      (starts, part, i) => (i === 0 ? [part] : starts.flatMap(start => [`${start}-${part}`, `${start}_${part}`])),
      [],
    );
  return spellings.filter(spelling => spelling !== name);
}
