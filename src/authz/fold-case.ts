// One case for text that is compared with configured names: what some server's case mapping makes equal is equal here.

/** Lower case; the characters that a case mapping turns into ASCII letters (U+017F, U+212A, U+00DF, U+0130, U+0131) become these letters. */
export function foldCase(text: string): string {
  // Java's and the Turkish mapping turn İ into i; JavaScript keeps its dot as a combining mark.
  return text.replaceAll('\u0130', 'i').toLowerCase().toUpperCase().toLowerCase();
}
