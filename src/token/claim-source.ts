// Claim sources: where the payload of a token has accounts, roles and scopes, and in which form.
import { type JsonPath, parsePath, valueAt } from '../json/json-pointer.ts';
import { isJsonObject, memberOf } from '../json/strict-json.ts';
import { quotedPrintable } from '../text/printable.ts';

/** In a JSON Pointer, a whole segment that stands for the addressed account. */
export const accountPlaceholder = '{acc}';

/** As the configuration writes it: text leads to a value, the others to the names of an object or to the words of a string. */
export type ClaimSource =
  | string
  | { readonly keysOf: string; readonly having?: typeof accountPlaceholder }
  | { readonly wordsOf: string };

/** What a source reads: a string or a list of strings, the names of an object, the words of a string, or words or a list. */
type ClaimForm = 'value' | 'keys' | 'words' | 'words or list';

export interface CompiledSource {
  readonly form: ClaimForm;
  /** The path, cut at each placeholder. One part: the source is the same for all accounts of a token. */
  readonly parts: readonly [JsonPath, ...JsonPath[]];
  /** Only names whose value is an object with a member named like the account count. */
  readonly havingAccount: boolean;
}

export type SourceProblem =
  | 'has another type than its source reads'
  | 'has a member that is not a string'
  | 'has words that single spaces do not separate';

/** A string or number that stands alone, the strings of a list, or undefined where the source leads to nothing. */
export type SourceValue = string | number | readonly string[] | { readonly problem: SourceProblem } | undefined;

/** Throws on an invalid source, which the validation of a configuration reports. */
export function compileSource(source: ClaimSource, formOfText: ClaimForm = 'value'): CompiledSource {
  const path = parsePath(textOf(source));
  if (path === undefined) throw new Error('the configuration has an invalid JSON Pointer');
  const parts: [string[], ...string[][]] = [[]];
  for (const segment of path) {
    if (segment === accountPlaceholder) parts.push([]);
    else parts.at(-1)?.push(segment);
  }
  const form = typeof source === 'string' ? formOfText : 'keysOf' in source ? 'keys' : 'words';
  return { form, parts, havingAccount: typeof source === 'object' && 'having' in source };
}

/** What the source has for all accounts of the token. Its path must have no placeholder; `having` is not looked at. */
export function readSource(payload: unknown, { form, parts: [path] }: CompiledSource): SourceValue {
  return toStrings(valueAt(payload, path), form);
}

/** Returns a function that reads the source for one account. What all accounts share is read once. */
export function readSourceByAccount(
  payload: unknown,
  { form, parts: [common, ...rest], havingAccount }: CompiledSource,
): (account: string) => SourceValue {
  const start = valueAt(payload, common);
  const valueFor = (account: string): unknown =>
    rest.reduce<unknown>((value, path) => valueAt(memberOf(value, account), path), start);
  if (!havingAccount) return account => toStrings(valueFor(account), form);
  const shared = rest.length === 0 ? namesByMember(start) : undefined;
  return account => {
    const value = valueFor(account);
    if (value === undefined) return undefined;
    if (!isJsonObject(value)) return wrongType;
    return (shared ?? namesByMember(value)).get(account) ?? [];
  };
}

/** For each member of the inner objects, the names of those that have it. */
function namesByMember(value: unknown): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>();
  for (const [name, inner] of Object.entries(isJsonObject(value) ? value : {})) {
    for (const member of isJsonObject(inner) ? Object.keys(inner) : []) {
      const known = names.get(member);
      if (known === undefined) names.set(member, [name]);
      else known.push(name);
    }
  }
  return names;
}

/** The text of a source, whatever its form. */
export function textOf(source: ClaimSource): string {
  if (typeof source === 'string') return source;
  return 'keysOf' in source ? source.keysOf : source.wordsOf;
}

/** As a person would write it, printable: `"org_id"`, `{ keysOf: "/organization" }`. */
export function describeSource(source: ClaimSource): string {
  if (typeof source === 'string') return quotedPrintable(source);
  const having = 'having' in source ? `, having: "${source.having}"` : '';
  return `{ ${'keysOf' in source ? 'keysOf' : 'wordsOf'}: ${quotedPrintable(textOf(source))}${having} }`;
}

function toStrings(value: unknown, form: ClaimForm): SourceValue {
  if (value === undefined) return undefined;
  if (form === 'keys') return isJsonObject(value) ? Object.keys(value) : wrongType;
  if (typeof value === 'string') return form === 'value' ? value : toWords(value);
  if (form === 'words') return wrongType;
  if (typeof value === 'number') return form === 'value' ? value : wrongType;
  if (!Array.isArray(value)) return wrongType;
  const members: readonly unknown[] = value;
  return members.every(isString) ? members : { problem: 'has a member that is not a string' };
}

const wrongType = { problem: 'has another type than its source reads' } as const;

// RFC 6749 section 3.3: single spaces separate the words of a scope.
function toWords(text: string): SourceValue {
  if (text === '') return [];
  const words = text.split(' ');
  return words.includes('') ? { problem: 'has words that single spaces do not separate' } : words;
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}
