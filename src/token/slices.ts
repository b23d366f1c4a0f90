// Runs short tasks in line, but no more than a slice of time in each turn of the event loop: what is left waits, first come,
// first served, for the next turns, so that the other calls of a turn never wait for longer than a slice.

export interface Slices {
  /**
   * What the task gives, at once where the slice of this turn has room; otherwise the promise of it. Undefined where too many wait
   * already: then it is never begun.
   */
  run<Result>(task: () => Result): Result | Promise<Result> | undefined;
}

export function createSlices(options: {
  readonly sliceMilliseconds: number;
  readonly maxWaiting: number;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
}): Slices {
  const { sliceMilliseconds, maxWaiting, now } = options;
  let waiting: (() => void)[] = [];
  let spent = 0;
  let isTurnComing = false;

  function awaitTurn(): void {
    if (isTurnComing) return;
    isTurnComing = true;
    setImmediate(turn);
  }

  function begin<Result>(task: () => Result): Result {
    awaitTurn();
    const started = now();
    try {
      return task();
    } finally {
      spent += now() - started;
    }
  }

  // At least one task, so that whatever waits has its turn; and each task sees to the next turn.
  function turn(): void {
    isTurnComing = false;
    spent = 0;
    do waiting.shift()?.();
    while (waiting.length > 0 && spent < sliceMilliseconds);
    // A list that stays would leave what it outgrows in V8's old generation, with the calls that waited then (docs/performance.md).
    if (waiting.length === 0) waiting = [];
  }

  return {
    run(task) {
      // Where some wait, the slice is used up until their turn, so that no task passes another.
      if (spent < sliceMilliseconds) return begin(task);
      if (waiting.length >= maxWaiting) return undefined;
      awaitTurn();
      return new Promise((resolve, reject) => {
        waiting.push(() => {
          try {
            resolve(begin(task));
          } catch (error) {
            reject(error);
          }
        });
      });
    },
  };
}
