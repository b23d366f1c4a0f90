// Claim sources: where the payload of a token has a claim, and in which form.
import { isJsonObject, type JsonPath, memberOf, parsePath, valueAt } from '../json/strict-json.ts';
import { quotedPrintable } from '../text/printable.ts';

/** In a JSON Pointer, a whole segment that stands for the addressed account. */
export const accountPlaceholder = '{acc}';

/** As the configuration writes it: text leads to a value, the others to the names of an object or to the words of a string. */
export type ClaimSource =
  | string
  | { readonly keysOf: string; readonly having?: typeof accountPlaceholder }
  | { readonly wordsOf: string; readonly by?: ',' };

/** One text, or several of which the first that a token has counts. */
export type FieldSource = string | readonly string[];

/** What a source reads: a string or a list of strings, the names of an object, the words of a string, or words or a list. */
type ClaimForm = 'value' | 'keys' | 'words' | 'words or list';

export interface CompiledSource {
  /** As the configuration has it. */
  readonly text: string;
  readonly form: ClaimForm;
  /** The path, cut at each placeholder. One part: the source is the same for all accounts of a token. */
  readonly parts: readonly [JsonPath, ...JsonPath[]];
  /** Only names whose value is an object with a member named like the account count. */
  readonly havingAccount: boolean;
  readonly separator: ' ' | ',';
  /** Whether an integer is read as its digits. */
  readonly allowsIntegers: boolean;
}

type NumberProblem = 'a number and allowIntegerClaims is off' | 'a number that is no integer from 0 to 2^53 - 1';

export type SourceProblem =
  | 'has another type than its source reads'
  | 'has a member that is not a string'
  | `${'is' | 'has'} ${NumberProblem}`
  | 'has words that single spaces do not separate'
  | 'has words that single commas do not separate';

/** A string that stands alone, the strings of a list, or undefined where the source leads to nothing. */
export type SourceValue = string | readonly string[] | { readonly problem: SourceProblem } | undefined;

/** Throws on an invalid source, which the validation of a configuration reports. */
export function compileSource(
  source: ClaimSource,
  allowsIntegers: boolean,
  formOfText: ClaimForm = 'value',
): CompiledSource {
  const text = textOf(source);
  const path = parsePath(text);
  if (path === undefined) throw new Error('the configuration has an invalid JSON Pointer');
  const parts: [string[], ...string[][]] = [[]];
  for (const segment of path) {
    if (segment === accountPlaceholder) parts.push([]);
    else parts.at(-1)?.push(segment);
  }
  const form = typeof source === 'string' ? formOfText : 'keysOf' in source ? 'keys' : 'words';
  const havingAccount = typeof source === 'object' && 'having' in source;
  const separator = typeof source === 'object' && 'by' in source ? ',' : ' ';
  return { text, form, parts, havingAccount, separator, allowsIntegers };
}

/** What the source has for all accounts of the token. Its path must have no placeholder; `having` is not looked at. */
export function readSource(payload: unknown, source: CompiledSource): SourceValue {
  return toStrings(valueAt(payload, source.parts[0]), source);
}

/** The first of several sources that the token has, which is never skipped for its type; of a single one, that one. */
export function presentSource(payload: unknown, sources: readonly CompiledSource[]): CompiledSource | undefined {
  if (sources.length === 1) return sources[0];
  return sources.find(({ parts: [path] }) => {
    const value = valueAt(payload, path);
    return value !== undefined && value !== null && value !== '';
  });
}

/** Returns a function that reads the source for one account. What all accounts share is read once. */
export function readSourceByAccount(payload: unknown, source: CompiledSource): (account: string) => SourceValue {
  const [common, ...rest] = source.parts;
  const start = valueAt(payload, common);
  const valueFor = (account: string): unknown =>
    rest.reduce<unknown>((value, path) => valueAt(memberOf(value, account), path), start);
  if (!source.havingAccount) return account => toStrings(valueFor(account), source);
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

/** Each text of what the configuration has under one field. */
export function textsOf(source: ClaimSource | FieldSource): readonly string[] {
  return isList(source) ? source : [textOf(source)];
}

function isList(source: ClaimSource | FieldSource): source is readonly string[] {
  return Array.isArray(source);
}

/** As a person would write it, printable: `"org_id"`, `["sub", "client_id"]`, `{ keysOf: "/organization" }`. */
export function describeSource(source: ClaimSource | FieldSource): string {
  if (typeof source === 'string') return quotedPrintable(source);
  if (isList(source)) return `[${source.map(each => quotedPrintable(each)).join(', ')}]`;
  const having = 'having' in source ? `, having: "${source.having}"` : '';
  const by = 'by' in source ? `, by: "${source.by}"` : '';
  return `{ ${'keysOf' in source ? 'keysOf' : 'wordsOf'}: ${quotedPrintable(textOf(source))}${having}${by} }`;
}

function toStrings(value: unknown, source: CompiledSource): SourceValue {
  const { form } = source;
  if (value === undefined) return undefined;
  if (form === 'keys') return isJsonObject(value) ? Object.keys(value) : wrongType;
  if (typeof value === 'string') return form === 'value' ? value : toWords(value, source);
  if (form === 'words') return wrongType;
  if (Array.isArray(value)) return toMembers(value, source);
  if (form !== 'value' || typeof value !== 'number') return wrongType;
  const text = toDigits(value, source);
  return typeof text === 'string' ? text : { problem: `is ${text.wrong}` };
}

const wrongType = { problem: 'has another type than its source reads' } as const;

function toMembers(values: readonly unknown[], source: CompiledSource): SourceValue {
  const texts: string[] = [];
  for (const value of values) {
    if (typeof value !== 'string' && typeof value !== 'number') return { problem: 'has a member that is not a string' };
    const text = typeof value === 'string' ? value : toDigits(value, source);
    if (typeof text !== 'string') return { problem: `has ${text.wrong}` };
    texts.push(text);
  }
  return texts;
}

// Beyond the safe integers, JSON parsing reads two texts as one number, so two accounts could become one.
function toDigits(value: number, { allowsIntegers }: CompiledSource): string | { readonly wrong: NumberProblem } {
  if (!allowsIntegers) return { wrong: 'a number and allowIntegerClaims is off' };
  const isSafe = Number.isSafeInteger(value) && value >= 0 && !Object.is(value, -0);
  return isSafe ? String(value) : { wrong: 'a number that is no integer from 0 to 2^53 - 1' };
}

// RFC 6749 section 3.3: single spaces separate the words of a scope.
function toWords(text: string, { separator }: CompiledSource): SourceValue {
  if (text === '') return [];
  const words = text.split(separator);
  if (!words.includes('')) return words;
  return { problem: `has words that single ${separator === ' ' ? 'spaces' : 'commas'} do not separate` };
}
