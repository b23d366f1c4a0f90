// The accounts that an issuer may speak for: names and starts of names, without those that are excepted.

interface Names {
  readonly names: ReadonlySet<string>;
  /** Without their `*`. The empty one stands for every account. */
  readonly prefixes: ReadonlySet<string>;
  /** The lengths of the prefixes: each costs one look-up, however many prefixes there are. */
  readonly prefixLengths: readonly number[];
}

export interface IssuerAccounts extends Names {
  /** The entries with `!`, which win wherever they stand. */
  readonly excepted: Names;
}

export function compileIssuerAccounts(entries: readonly string[]): IssuerAccounts {
  const excepted = entries.flatMap(entry => (entry.startsWith('!') ? entry.slice(1) : []));
  return { ...compileNames(entries.filter(entry => !entry.startsWith('!'))), excepted: compileNames(excepted) };
}

/** Compares byte for byte. */
export function mayClaim(accounts: IssuerAccounts, account: string): boolean {
  return covers(accounts, account) && !covers(accounts.excepted, account);
}

function compileNames(entries: readonly string[]): Names {
  const prefixes = new Set(entries.flatMap(entry => (entry.endsWith('*') ? entry.slice(0, -1) : [])));
  const prefixLengths = [...new Set(Array.from(prefixes, ({ length }) => length))];
  return { names: new Set(entries.filter(entry => !entry.endsWith('*'))), prefixes, prefixLengths };
}

function covers({ names, prefixes, prefixLengths }: Names, account: string): boolean {
  return (
    names.has(account) ||
    prefixLengths.some(length => length <= account.length && prefixes.has(account.slice(0, length)))
  );
}
