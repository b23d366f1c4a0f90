// Query parsers of Node frameworks, each in the modes that applications set.
import { parse as parseByNode } from 'node:querystring';
import { parse as parseFast } from 'fast-querystring';
import { getQuery, type H3Event } from 'h3';
import { type Options, parse as parsePico } from 'picoquery';
import qs from 'qs';
import { parameter } from './queries.ts';

/** The accounts that an application reads in a query if it asks for the configured parameter. */
export type ReadAccounts = (query: string) => readonly string[];

const qsModes: Readonly<Record<string, qs.IParseOptions<true>>> = {
  'qs, as in Express': { allowPrototypes: true },
  'qs, allowDots': { allowDots: true },
  'qs, allowDots and decodeDotInKeys': { allowDots: true, decodeDotInKeys: true },
  'qs, comma': { comma: true },
  'qs, depth 0': { depth: 0 },
  'qs, depth 1': { depth: 1 },
  'qs, no arrays': { parseArrays: false },
  'qs, sparse arrays': { allowSparse: true },
  'qs, ignoreQueryPrefix': { ignoreQueryPrefix: true },
  'qs, plainObjects': { plainObjects: true },
  'qs, delimiter ;': { delimiter: ';' },
  'qs, delimiters & ;': { delimiter: /[&;]/ },
  'qs, the last of doubles': { duplicates: 'last' },
  'qs, charset sentinel': { charsetSentinel: true, interpretNumericEntities: true },
  'qs, Latin-1': { charset: 'iso-8859-1', interpretNumericEntities: true },
  'qs, all at once': {
    allowDots: true,
    comma: true,
    ignoreQueryPrefix: true,
    delimiter: /[&;]/,
    charsetSentinel: true,
  },
};

const picoqueryModes: Readonly<Record<string, Partial<Options>>> = {
  'picoquery, dots': { nesting: true, nestingSyntax: 'dot' },
  'picoquery, brackets': { nesting: true, nestingSyntax: 'index' },
  'picoquery, dots and brackets': {
    nesting: true,
    nestingSyntax: 'js',
    arrayRepeat: true,
    arrayRepeatSyntax: 'bracket',
  },
  'picoquery, flat': { nesting: false, arrayRepeat: true, arrayRepeatSyntax: 'repeat' },
};

export const nodeParsers: ReadonlyMap<string, ReadAccounts> = new Map<string, ReadAccounts>([
  ...Object.entries(qsModes).map(([name, options]) => [name, byMember(query => qs.parse(query, options))] as const),
  ...Object.entries(picoqueryModes).map(
    ([name, options]) => [name, byMember(query => parsePico(query, options))] as const,
  ),
  ['node:querystring', byMember(query => parseByNode(query))],
  ['node:querystring, delimiter ;', byMember(query => parseByNode(query, ';'))],
  ['URLSearchParams', query => new URLSearchParams(query).getAll(parameter)],
  ['URL', query => new URL(`http://api.test/?${query}`).searchParams.getAll(parameter)],
  ['fast-querystring', byMember(query => parseFast(query))],
  ['h3', byMember(query => getQuery({ path: `/?${query}` } as H3Event))],
  // The names of a record that ignores case and signs, as ASP.NET and grpc-gateway bind them.
  [
    'URLSearchParams, case and signs ignored',
    query =>
      [...new URLSearchParams(query)].flatMap(([name, value]) =>
        name.toLowerCase().replace(/[_-]/g, '') === parameter.replace('_', '') ? [value] : [],
      ),
  ],
]);

function byMember(parse: (query: string) => object): ReadAccounts {
  return query => textsIn(new Map(Object.entries(parse(query))).get(parameter));
}

/** The texts in a value, at any depth. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}
