// Numbers, times and long names as the page for people writes them.
import { foreignText } from '../foreign-text.ts';

// Of a kid, the longest name that is shown.
const maxNameLength = 256;

const counting = new Intl.NumberFormat('en-GB');
// Not en-GB, which writes a million as m, the unit prefix of a thousandth.
const counting3Digits = new Intl.NumberFormat('en-US', { notation: 'compact', maximumSignificantDigits: 3 });

/** 1,234 */
export function spellCount(count: number): string {
  return counting.format(count);
}

/** 1.23K: where there is little room. */
export function spellCountShort(count: number): string {
  return counting3Digits.format(count);
}

const secondsPerUnit = { d: 86_400, h: 3600, min: 60, s: 1 } as const;

/** Of two units at most: `4 min 12 s`. */
export function spellDuration(seconds: number): string {
  let rest = Math.max(0, Math.floor(seconds));
  const amounts = Object.entries(secondsPerUnit).map(([unit, size]) => {
    const amount = Math.floor(rest / size);
    rest %= size;
    return { unit, amount };
  });
  const first = amounts.findIndex(({ amount }) => amount > 0);
  if (first === -1) return '0 s';
  const largest = amounts.slice(first, first + 2).filter(({ amount }) => amount > 0);
  return largest.map(({ unit, amount }) => `${amount} ${unit}`).join(' ');
}

/** A short time in the unit in which it is read best: `250 µs`, `2.5 ms`. */
export function toShortTime(seconds: number): { readonly amount: string; readonly unit: 'µs' | 'ms' | 's' } {
  const [size, unit] =
    seconds < 0.001 ? ([1e-6, 'µs'] as const) : seconds < 1 ? ([1e-3, 'ms'] as const) : ([1, 's'] as const);
  return { amount: String(Number((seconds / size).toPrecision(3))), unit };
}

export function spellShortTime(seconds: number): string {
  const { amount, unit } = toShortTime(seconds);
  return `${amount}\u00a0${unit}`;
}

/** Rounded down, so that `100 %` means all of them. */
export function spellShare(part: number, whole: number): string {
  const perMille = Math.floor((part / whole) * 1000);
  return perMille === 1000 ? '100 %' : `${(perMille / 10).toFixed(1)} %`;
}

/** `2026-11-21 12:00:03 UTC` */
export function spellInstant(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** Both ends of a name that is too long: names made by programs differ at either. Printable. */
export function shortened(name: string, maxLength: number): string {
  const characters = Array.from(foreignText(name, maxNameLength));
  if (characters.length <= maxLength) return characters.join('');
  const keptAtEnd = Math.floor(maxLength / 3);
  const start = characters.slice(0, maxLength - 1 - keptAtEnd);
  return `${start.join('')}…${characters.slice(-keptAtEnd).join('')}`;
}
