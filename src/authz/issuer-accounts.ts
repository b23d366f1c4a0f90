// The accounts that an issuer may speak for: names, and starts of names.

export interface IssuerAccounts {
  readonly names: ReadonlySet<string>;
  /** Without their `*`. The empty one stands for every account. */
  readonly prefixes: ReadonlySet<string>;
  /** The lengths of the prefixes: each costs one look-up, however many prefixes there are. */
  readonly prefixLengths: readonly number[];
}

export function compileIssuerAccounts(entries: readonly string[]): IssuerAccounts {
  const prefixes = new Set(entries.filter(entry => entry.endsWith('*')).map(entry => entry.slice(0, -1)));
  const prefixLengths = [...new Set(Array.from(prefixes, ({ length }) => length))];
  return { names: new Set(entries.filter(entry => !entry.endsWith('*'))), prefixes, prefixLengths };
}

/** Compares byte for byte. An unknown issuer may speak for none. */
export function mayClaim(accounts: IssuerAccounts | undefined, account: string): boolean {
  if (accounts === undefined) return false;
  const { names, prefixes, prefixLengths } = accounts;
  return (
    names.has(account) ||
    prefixLengths.some(length => length <= account.length && prefixes.has(account.slice(0, length)))
  );
}
