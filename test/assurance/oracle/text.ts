// Comparisons of header text that several parts of the oracle need.

export function isSameButForSigns(name: string, other: string): boolean {
  const isSign = (character: string): boolean => !/^[a-z0-9]$/.test(character);
  const theirs = [...other];
  const ours = [...name];
  return (
    ours.length === theirs.length &&
    ours.every((character, i) => character === theirs[i] || (isSign(character) && theirs[i] === '-'))
  );
}

export function withoutSpaceAround(value: string): string {
  return value.replace(/^[ \t]+/, '').replace(/[ \t]+$/, '');
}
