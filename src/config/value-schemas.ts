// Schemas for the kinds of values in the configuration. A check reports at most one problem and does not abort other checks.
import * as z from 'zod';
import { isIdentityField } from '../authz/principal.ts';
import { accountHeaderProblem } from '../headers/headers.ts';
import { memberOf } from '../json/strict-json.ts';
import { keyUrlProblem } from '../text/url.ts';

// zod would compile each schema into a function, for a configuration that is read once: a megabyte.
z.config({ jitless: true });

/** Runs a check even if zod has already reported the value: the check takes an unknown value. */
export const evenIfInvalid = { when: () => true };

export function report(context: z.RefinementCtx, problem: string | undefined, path: readonly PropertyKey[] = []): void {
  if (problem !== undefined) context.addIssue({ code: 'custom', message: problem, path: [...path] });
}

/** One character that is no control character, in a pattern of the JSON Schema: not every reader of patterns has `\p{Cc}`. */
export const notControl = '[^\\0-\\x1f\\x7f-\\x9f]';

/** Text that a rule validates. The rule gives the rest of a sentence about an invalid text. */
export function text(problemOf: (text: string) => string | undefined) {
  return z.string().superRefine((value, context) => report(context, problemOf(value)));
}

/** Text that a pattern validates. The JSON Schema has the same pattern. */
export function patternedText(pattern: RegExp, problem: string) {
  return text(value => (pattern.test(value) ? undefined : problem)).meta({ pattern: pattern.source });
}

// Not z.int(), whose issues would skip the checks of the objects around it.
export function integer(minimum: number, maximum = Number.MAX_SAFE_INTEGER) {
  const isBounded = maximum < Number.MAX_SAFE_INTEGER;
  const range = isBounded ? `from ${minimum} to ${maximum}` : `of at least ${minimum}`;
  return z
    .number()
    .superRefine((value, context) => {
      const isInside = Number.isSafeInteger(value) && value >= minimum && value <= maximum;
      report(context, isInside ? undefined : `must be a whole number ${range}`);
    })
    .meta({ type: 'integer', minimum, maximum });
}

/** A mapping with these keys and no others. */
export function mapping<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  const problem = unknownKeyProblem(Object.keys(shape));
  return z.strictObject(shape, { error: ({ code }) => (code === 'unrecognized_keys' ? problem : undefined) });
}

function unknownKeyProblem(known: readonly string[]): string {
  return `is not a known key: the keys here are ${known.join(', ')}`;
}

interface ListRules {
  /** The name of one item, for "must name at least one …". */
  readonly noun: string;
  /** Two items with the same result are duplicates. */
  readonly sameBy?: (item: unknown) => unknown;
  /** The field of an item at which a duplicate is reported. */
  readonly repeatedAt?: string;
  readonly min?: number;
  readonly max?: number;
}

/** A list with at least one item, or `min`, and no duplicates. */
export function list<Item extends z.ZodType>(
  item: Item,
  { noun, sameBy = each => each, repeatedAt, min = 1, max }: ListRules,
) {
  return z
    .array(item)
    .superRefine((value: unknown, context) => {
      if (!Array.isArray(value)) return;
      if (value.length < min) report(context, `must name at least ${min === 1 ? `one ${noun}` : `${min} ${noun}s`}`);
      if (max !== undefined && value.length > max) report(context, tooMany(max, noun));
      const seen = new Set<string>();
      for (const [i, each] of value.entries()) {
        const key = sameBy(each);
        if (typeof key !== 'string') continue;
        if (seen.has(key))
          report(context, `must not name the same ${noun} twice`, repeatedAt === undefined ? [i] : [i, repeatedAt]);
        seen.add(key);
      }
    }, evenIfInvalid)
    .meta({ minItems: min, ...(max && { maxItems: max }), ...(repeatedAt === undefined && { uniqueItems: true }) });
}

export function tooMany(max: number, noun: string): string {
  return `must name at most ${max} ${noun}s`;
}

/** Of the lists and tables of the configuration that grow with its users. A longer one is not validated further. */
export const maxEntries = { issuers: 200, routes: 2000, public: 2000, roles: 200, scopes: 200 } as const;

/** Http to any host too, which requireAllowedHttp refuses. */
export function keyUrl() {
  return text(url => keyUrlProblem(url, true)).meta({ format: 'uri', pattern: keyUrlPattern('https?://[^\\s/?#@]+') });
}

/** A pattern of the URLs that need no allowHttp. */
export const secureKeyUrlPattern = keyUrlPattern(
  'https://[^\\s/?#@]+|http://(?:[Ll]ocalhost|LOCALHOST|127\\.[0-9.]+|\\[[0:]+1\\])(?::[0-9]+)?',
);

function keyUrlPattern(origin: string): string {
  return `^(?:${origin})(?:[/?][^\\s#]*)?$`;
}

/** Relative names are relative to the folder of the configuration file. */
export function fileName() {
  return patternedText(/^[^\0]+$/, 'must be a file name: not empty and without a NUL character');
}

/** A role or an application, in the grammar of the claims: any other text could never equal a claim. */
export function identityField(noun: string) {
  const rule = `must be ${noun} of 1 to 128 visible ASCII characters without space , ; and "`;
  return text(value => (isIdentityField(value) ? undefined : rule)).meta({ pattern: '^[!#-+.-:<-~-]{1,128}$' });
}

/** RFC 6749 section 3.3; the length is bounded because the log and a challenge repeat it. */
export function scopeToken() {
  return patternedText(
    /^[!#-[\]-~]{1,256}$/,
    'must be a scope of 1 to 256 visible ASCII characters without space, " and \\',
  );
}

/** Converted to lower case: header names are case-insensitive (RFC 9110 section 5.1). */
export function accountHeader(example?: string) {
  return text(name => accountHeaderProblem(name.toLowerCase(), example))
    .toLowerCase()
    .meta({ pattern: '^[A-Za-z0-9]([A-Za-z0-9-]{0,126}[A-Za-z0-9])?$' });
}

/** Of two numbers of a section. Says nothing where one of them is none. */
export function requireAtLeast(section: unknown, larger: string, smaller: string, context: z.RefinementCtx): void {
  const [most, least] = [memberOf(section, larger), memberOf(section, smaller)];
  if (typeof most !== 'number' || typeof least !== 'number' || !(most < least)) return;
  report(context, `must be at least ${smaller} (${least})`, [larger]);
}
