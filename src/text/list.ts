// Lists names in a sentence.

/** `a, b, c and 4 more`: the first ones and the number of the others. */
export function listWords(words: readonly string[], maxListed: number): string {
  const shown = words.slice(0, maxListed).join(', ');
  return words.length > maxListed ? `${shown} and ${words.length - maxListed} more` : shown;
}
