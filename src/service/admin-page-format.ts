// How the admin page formats numbers and times.

const counting = new Intl.NumberFormat('en-GB');
// Rounded down, so that `100%` means all of them.
const sharing = new Intl.NumberFormat('en-GB', { style: 'percent', maximumFractionDigits: 1, roundingMode: 'floor' });

/** 1,234 */
export function formatCount(count: number): string {
  return counting.format(count);
}

/** 33.3% */
export function formatShare(part: number, whole: number): string {
  return sharing.format(part / whole);
}

const units = [['d', 86_400] as const, ['h', 3600] as const, ['min', 60] as const, ['s', 1] as const];

/** In at most two units: `4 min 12 s`. */
export function formatDuration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const [[unit, size] = ['s', 1], lower] = units.slice(units.findIndex(each => whole >= each[1]));
  const rest = lower === undefined ? '' : ` ${Math.floor((whole % size) / lower[1])} ${lower[0]}`;
  return `${Math.floor(whole / size)} ${unit}${rest}`;
}

/** A short time in the unit in which it is read best: `250 µs`, `2.5 ms`. */
export function formatShortTime(seconds: number): string {
  const [perSecond, unit] = seconds < 0.001 ? [1e6, 'µs'] : seconds < 1 ? [1e3, 'ms'] : [1, 's'];
  return `${Number((seconds * Number(perSecond)).toPrecision(3))}\u00a0${unit}`;
}

/** `2026-11-21 12:00:03 UTC` */
export function formatInstant(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}
