// One clock for all processes of a bench: the monotonic clock of the system, in milliseconds.

/** Comparable between processes of one machine, which performance.now() is not. */
export function clockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
