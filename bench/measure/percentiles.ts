// Percentiles by nearest rank: each is a value that was measured, none lies between two.

/** The smallest value that at least so many percent of all values do not exceed, of each in the order asked for. */
export function percentiles(values: readonly number[], percents: readonly number[]): (number | undefined)[] {
  const sorted = Float64Array.from(values).sort();
  return percents.map(percent => sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)]);
}
