// Formats lists, times and ages for an explanation.
import type { KeyRingStatus } from '../../keys/key-ring.ts';
import { listWords } from '../../text/printable.ts';

export const maxListed = 8;

/** The first eight, and the number of the others. */
export function formatList(items: readonly string[]): string {
  return listWords(items, maxListed);
}

/** RFC 3339 in UTC; the number itself beyond the range of Date. */
export function instant(seconds: number): string {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? `${seconds} s since 1970` : date.toISOString();
}

/** Whole seconds; never `0 s` for a fraction of one. */
export function duration(seconds: number): string {
  return seconds > 0 && seconds < 1 ? 'less than 1 s' : `${Math.floor(seconds)} s`;
}

/** The age of the keys in use, the problem of the last refresh, and the keys that are not used. */
export function keyAge({ state, ageSeconds, lastResult, lastProblem, skipped }: KeyRingStatus): string {
  const age = ageSeconds === undefined ? 'no key set yet' : `confirmed ${duration(ageSeconds)} ago`;
  const stale = state === 'stale' ? ', too old to be used' : '';
  const problem = lastResult === 'failure' ? `; the last refresh failed: ${lastProblem ?? 'unknown problem'}` : '';
  const notUsed = skipped.map(({ key, reason }) => `${key} (${reason})`).join(', ');
  // The problem of a set without a usable key names them.
  const isNamed = notUsed === '' || lastProblem?.startsWith('no usable key') === true;
  return `${age}${stale}${problem}${isNamed ? '' : `; not used: ${notUsed}`}`;
}
