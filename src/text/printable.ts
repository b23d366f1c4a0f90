// Escapes and bounds untrusted text so that it is printable and stays on one line. Every output uses it: the log, the admin server,
// the answers and the messages of the commands.

/** In UTF-16 code units of the result. */
const defaultMaxLength = 96;

/**
 * Characters that a terminal, a browser or a log viewer interprets or hides (CVE-2024-45808, CVE-2021-42574): controls, bidirectional
 * marks, line separators, spaces other than U+0020, invisible characters, lone surrogates, unassigned code points.
 */
const unprintable = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|[^\P{Zs} ]/gu;

/** Replaces each unprintable character by `\u{…}`, and the text beyond the bound by an ellipsis. Idempotent. */
export function printable(text: string, maxLength = defaultMaxLength): string {
  return isPlain(text, maxLength) ? text : bounded(text, maxLength, escaped);
}

/** The same in double quotes, with quotes and backslashes of the text escaped by a backslash. */
export function quotedPrintable(text: string, maxLength = defaultMaxLength): string {
  const shown = bounded(text, maxLength, character =>
    /["\\]/.test(character) ? `\\${character}` : escaped(character),
  );
  return `"${shown}"`;
}

/** Applies `printable` to every text in a value for JSON, its lists and plain objects included. */
export function printableValue(value: unknown, maxLength = defaultMaxLength): unknown {
  if (typeof value === 'string') return printable(value, maxLength);
  if (Array.isArray(value)) return value.map(each => printableValue(each, maxLength));
  return isPlainObject(value) ? printableMembers(value, maxLength) : value;
}

/** `printableValue` of an object; the same object if nothing changes, as in most log lines. */
export function printableMembers(
  object: Record<string, unknown>,
  maxLength = defaultMaxLength,
): Record<string, unknown> {
  const isPrintable = Object.values(object).every(value =>
    typeof value === 'string' ? isPlain(value, maxLength) : typeof value !== 'object',
  );
  if (isPrintable) return object;
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, printableValue(value, maxLength)]));
}

/** Whether the text has an unprintable character. */
export function isUnprintable(text: string): boolean {
  return text.search(unprintable) !== -1;
}

/** Replaces each unprintable character, without a bound: for formats that have their own escapes. */
export function replaceUnprintable(text: string, replace: (character: string) => string): string {
  return text.replace(unprintable, replace);
}

/** A character in a text in double quotes (YAML 1.2 section 5.7). */
export function toYamlEscape(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16);
  return code.length > 4 ? `\\U${code.padStart(8, '0')}` : `\\u${code.padStart(4, '0')}`;
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

/** Stops reading at the bound, and never splits a code point. */
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

/** Each row as a line of a table: every cell as wide as its column, but for the last one. */
export function alignColumns(rows: readonly (readonly string[])[]): readonly string[] {
  const none: readonly number[] = [];
  const widths = rows.reduce((max, row) => row.map((cell, i) => Math.max(max[i] ?? 0, cell.length)), none);
  return rows.map(row => row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')).map(line => line.trimEnd());
}

/** `a, b, c and 4 more`: the first ones and the number of the others. */
export function listWords(words: readonly string[], maxListed: number): string {
  const shown = words.slice(0, maxListed).join(', ');
  return words.length > maxListed ? `${shown} and ${words.length - maxListed} more` : shown;
}
