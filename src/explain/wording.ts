// How lists, times and ages are written in an explanation.
import type { KeyRingStatus } from '../keys/key-ring.ts';

const maxListed = 8;

/** The first few, and how many more there are. */
export function listed(items: readonly string[]): string {
  const shown = items.slice(0, maxListed).join(', ');
  return items.length > maxListed ? `${shown} and ${items.length - maxListed} more` : shown;
}

/** RFC 3339 in UTC; the number itself where the calendar ends before it. */
export function instant(seconds: number): string {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? `${seconds} s since 1970` : date.toISOString();
}

/** Whole seconds; a fraction of one is never called nothing. */
export function duration(seconds: number): string {
  return seconds > 0 && seconds < 1 ? 'less than 1 s' : `${Math.floor(seconds)} s`;
}

/** How old the keys are that are in force, and what is wrong with the latest refresh. */
export function keyAge({ state, ageSeconds, lastResult, lastProblem }: KeyRingStatus): string {
  const age = ageSeconds === undefined ? 'no key set yet' : `confirmed ${duration(ageSeconds)} ago`;
  const stale = state === 'stale' ? ', too old to be used' : '';
  const problem = lastResult === 'failure' ? `; the last refresh failed: ${lastProblem ?? 'unknown problem'}` : '';
  return `${age}${stale}${problem}`;
}
