// Text that others wrote, made fit for people: printable, on one line, bounded. Every output goes through here: the log, the admin
// server, the answers and messages of the commands.

/** The usual bound, in UTF-16 code units of what is shown. */
const usualMaxLength = 96;

/**
 * What a terminal, a browser or a log viewer obeys or does not show (CVE-2024-45808, CVE-2021-42574): controls, marks of direction,
 * line ends, spaces other than the plain one, characters without a shape, halves of pairs, code points without a character.
 */
const unprintable = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|[^\P{Zs} ]/gu;

/** The text with `\u{…}` for each unprintable character, and an ellipsis in the place of what is beyond the bound. Idempotent. */
export function foreignText(text: string, maxLength = usualMaxLength): string {
  return isPlain(text, maxLength) ? text : bounded(text, maxLength, escaped);
}

/** The same between double quotes, where a quote and a backslash of the text have a backslash before them. */
export function quotedForeignText(text: string, maxLength = usualMaxLength): string {
  const shown = bounded(text, maxLength, character =>
    /["\\]/.test(character) ? `\\${character}` : escaped(character),
  );
  return `"${shown}"`;
}

/** A value for JSON: every text in its lists and plain objects as `foreignText` gives it. */
export function foreignValue(value: unknown, maxLength = usualMaxLength): unknown {
  if (typeof value === 'string') return foreignText(value, maxLength);
  if (Array.isArray(value)) return value.map(each => foreignValue(each, maxLength));
  return isPlainObject(value) ? foreignMembers(value, maxLength) : value;
}

/** `foreignValue` of an object; the same object where nothing in it has to change, as in most lines of the log. */
export function foreignMembers(object: Record<string, unknown>, maxLength = usualMaxLength): Record<string, unknown> {
  const isFit = Object.values(object).every(value =>
    typeof value === 'string' ? isPlain(value, maxLength) : typeof value !== 'object',
  );
  if (isFit) return object;
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, foreignValue(value, maxLength)]));
}

/** Whether a character of the text stands for something else than itself. */
export function isUnprintable(text: string): boolean {
  return text.search(unprintable) !== -1;
}

/** Replaces each unprintable character, without a bound: for text in a format with escapes of its own. */
export function replaceUnprintable(text: string, replace: (character: string) => string): string {
  return text.replace(unprintable, replace);
}

function isPlain(text: string, maxLength: number): boolean {
  return text.length <= maxLength && /^[ -~]*$/.test(text);
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function escaped(character: string): string {
  return isUnprintable(character) ? `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}` : character;
}

/** Looks at no more of the text than it shows, by code points. */
function bounded(text: string, maxLength: number, show: (character: string) => string): string {
  let shown = '';
  let keptBeforeEllipsis = 0;
  for (const character of text) {
    const next = show(character);
    if (shown.length + next.length > maxLength) return `${shown.slice(0, keptBeforeEllipsis)}…`;
    shown += next;
    if (shown.length < maxLength) keptBeforeEllipsis = shown.length;
  }
  return shown;
}
