// Percentiles by the nearest-rank method: each is a measured value, never an interpolation.

/** The smallest value that at least that percentage of all values does not exceed, for each percentage in the given order. */
export function percentiles(values: readonly number[], percents: readonly number[]): (number | undefined)[] {
  const sorted = Float64Array.from(values).sort();
  return percents.map(percent => sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)]);
}
