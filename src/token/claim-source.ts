// Claim sources: where the payload of a token has accounts, roles and scopes, as the configuration writes it.
import { quotedPrintable } from '../text/printable.ts';

/** In a JSON Pointer, a whole segment that stands for the addressed account. */
export const accountPlaceholder = '{acc}';

/** One of the forms: text leads to a value, the others to the names of an object or to the words of a string. */
export type ClaimSource =
  | string
  | { readonly keysOf: string; readonly having?: typeof accountPlaceholder }
  | { readonly wordsOf: string };

/** Where the source leads, as the configuration writes it. */
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
