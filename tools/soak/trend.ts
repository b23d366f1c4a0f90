// A linear regression (least squares).

export interface Sample {
  /** Any unit of time, the same in all samples. */
  readonly at: number;
  readonly value: number;
}

/** The slope per unit of time; 0 without two distinct times. */
export function slopeOf(samples: readonly Sample[]): number {
  const meanAt = mean(samples.map(({ at }) => at));
  const meanValue = mean(samples.map(({ value }) => value));
  const spread = samples.reduce((sum, { at }) => sum + (at - meanAt) ** 2, 0);
  const shared = samples.reduce((sum, { at, value }) => sum + (at - meanAt) * (value - meanValue), 0);
  return spread === 0 ? 0 : shared / spread;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
