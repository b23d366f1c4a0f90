// Lets a few tasks run at a time and a bounded number wait: first come, first served.

export interface Turns {
  /** The promise of the task once it has its turn, or undefined where too many wait already: then it is never begun. */
  take<Result>(task: () => Promise<Result>): Promise<Result> | undefined;
}

export function createTurns({ atOnce, maxWaiting }: { readonly atOnce: number; readonly maxWaiting: number }): Turns {
  let running = 0;
  const waiting: (() => void)[] = [];

  function ended(): void {
    running -= 1;
    waiting.shift()?.();
  }

  function begin<Result>(task: () => Promise<Result>): Promise<Result> {
    running += 1;
    return task().finally(ended);
  }

  return {
    take(task) {
      if (running < atOnce) return begin(task);
      if (waiting.length >= maxWaiting) return undefined;
      return new Promise((resolve, reject) => {
        waiting.push(() => begin(task).then(resolve, reject));
      });
    },
  };
}
