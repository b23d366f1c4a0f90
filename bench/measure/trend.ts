// The straight line through samples (least squares).

export interface Sample {
  /** Any unit of time, the same in all samples. */
  readonly at: number;
  readonly value: number;
}

/** How much the line rises in one unit of time; 0 where there are not two different times. */
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
