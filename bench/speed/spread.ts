// The median of the rounds, and how far they lie apart.

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** NaN of nothing. */
export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = (sorted.length - 1) / 2;
  const median = ((sorted[Math.floor(middle)] ?? NaN) + (sorted[Math.ceil(middle)] ?? NaN)) / 2;
  return { median, min: sorted[0] ?? NaN, max: sorted.at(-1) ?? NaN };
}

/** Of one to another, round by round, so that what disturbed a round disturbs both. */
export function ratioOf(values: readonly number[], others: readonly number[]): Spread {
  return spreadOf(values.map((value, round) => value / (others[round] ?? NaN)));
}
