// Processor time of one run from the operating system: other processes do not add to it, and the minimum of several runs excludes
// garbage collection and JIT compilation, whose threads count too.

export type Run = () => unknown;

const batchMicroseconds = 200;

export async function microsecondsOf(run: Run, attempts: number): Promise<number> {
  const [microseconds = Number.NaN] = await microsecondsOfEach([run], attempts);
  return microseconds;
}

/** In turns, so that all of them meet the same machine: what is compared is their ratio. */
export async function microsecondsOfEach(runs: readonly Run[], attempts: number): Promise<readonly number[]> {
  const measured = runs.map(run => ({ run, least: Number.POSITIVE_INFINITY, times: 1 }));
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    for (const each of measured) {
      const before = process.cpuUsage();
      for (let i = 0; i < each.times; i += 1) {
        const result = each.run();
        if (result instanceof Promise) await result;
      }
      const { user, system } = process.cpuUsage(before);
      each.least = Math.min(each.least, Math.max((user + system) / each.times, 0.01));
      each.times = Math.min(Math.max(Math.round(batchMicroseconds / each.least), 1), 1000);
    }
  }
  return measured.map(({ least }) => least);
}
