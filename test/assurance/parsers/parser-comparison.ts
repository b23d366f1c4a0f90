// Compares what parsers read in generated queries with what account-authz compared with the token.
import { accountsInQuery, compileAccountParameters } from '../../../src/authz/account-query.ts';
import { createRandom } from '../generator/random.ts';
import { generateQuery, parameter } from './queries.ts';

export interface ParserCount {
  readonly queries: number;
  /** Queries in which the parser reads at least one account. */
  readonly bound: number;
  /** Those of them that are refused. */
  readonly refused: number;
}

export interface ParserDifference {
  readonly parser: string;
  readonly query: string;
  readonly read: readonly string[];
}

export interface ParserComparison {
  readonly counts: ReadonlyMap<string, ParserCount>;
  /** Queries with which a request is allowed. */
  readonly allowed: number;
  /** A parser reads another account than that of a token with which the request is allowed. */
  readonly differences: readonly ParserDifference[];
}

/** The accounts of a query that were compared with the token, or that it is refused. */
export type ReadQuery = (query: string) => readonly string[] | 'refused';

const parameters = compileAccountParameters([parameter]);

export function readByProduct(query: string): readonly string[] | 'refused' {
  const accounts = accountsInQuery(parameters, query);
  return 'kind' in accounts ? 'refused' : accounts;
}

export function generateQueries(seed: number, count: number): readonly string[] {
  return Array.from({ length: count }, (_, number) => generateQuery(createRandom(seed, number)));
}

/** `readings` has, by parser, the accounts in each of the queries. */
export function compareParsers(
  queries: readonly string[],
  readings: ReadonlyMap<string, readonly (readonly string[])[]>,
  readQuery: ReadQuery = readByProduct,
): ParserComparison {
  const permitted = queries.map(query => accountOf(readQuery(query)));
  const differences: ParserDifference[] = [];
  const counts = new Map<string, ParserCount>();
  for (const [parser, accounts] of readings) {
    if (accounts.length !== queries.length) throw new Error(`${parser} has not read every query`);
    let bound = 0;
    let refused = 0;
    for (const [i, read] of accounts.entries()) {
      const account = permitted[i];
      // Spring joins equal values by a comma. An empty value is no account, nor is the rest of the query, which a parser that does not split at `&` reads.
      if (read.every(text => text === '')) continue;
      bound += 1;
      if (account === undefined) refused += 1;
      else if (read.some(text => !text.includes('&') && text.split(',').some(each => each !== account.name)))
        differences.push({ parser, query: queries[i] ?? '', read });
    }
    counts.set(parser, { queries: queries.length, bound, refused });
  }
  return { counts, allowed: permitted.filter(each => each !== undefined).length, differences };
}

/** The one account with whose token the query is allowed, `name` being undefined for any token; undefined if it is refused. */
function accountOf(accounts: readonly string[] | 'refused'): { readonly name: string | undefined } | undefined {
  if (accounts === 'refused') return undefined;
  const [name, ...others] = new Set(accounts);
  if (others.length > 0 || (name !== undefined && !/^[A-Za-z0-9_~-]{1,128}$/.test(name))) return undefined;
  return { name };
}

/** One line for each parser: parser, queries, bound, refused. */
export function toTable({ counts }: ParserComparison): string {
  const rows = [
    ['parser', 'queries', 'bound', 'refused'],
    ...Array.from(counts, ([parser, { queries, bound, refused }]) => [parser, queries, bound, refused].map(String)),
  ];
  return rows
    .map(([parser = '', ...numbers]) => parser.padEnd(42) + numbers.map(each => each.padStart(9)).join(''))
    .join('\n');
}
