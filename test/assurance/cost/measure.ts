// Processor time of one run from the operating system: other processes do not add to it, and the minimum of several runs excludes
// garbage collection and JIT compilation, whose threads count too.

export type Run = () => unknown;

const batchMicroseconds = 200;

export async function microsecondsOf(run: Run, attempts: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  let runs = 1;
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const before = process.cpuUsage();
    for (let i = 0; i < runs; i += 1) {
      const result = run();
      if (result instanceof Promise) await result;
    }
    const { user, system } = process.cpuUsage(before);
    const each = Math.max((user + system) / runs, 0.01);
    least = Math.min(least, each);
    runs = Math.min(Math.max(Math.round(batchMicroseconds / least), 1), 1000);
  }
  return least;
}
