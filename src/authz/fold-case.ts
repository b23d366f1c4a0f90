// Folds case as widely as any server does, to find text that a server may take for a configured name.

/** Lower case, and every character that some case mapping turns into ASCII letters (ſ, K, ß, İ, ı) as these letters. */
export function foldCase(text: string): string {
  // Java's and the Turkish mapping turn İ into i; JavaScript keeps its dot as a combining mark.
  return text.replaceAll('\u0130', 'i').toLowerCase().toUpperCase().toLowerCase();
}
