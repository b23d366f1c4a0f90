// The resident memory of a process over time, as Linux tells it in /proc.
import { readFileSync } from 'node:fs';

export interface MemorySample {
  /** Of performance.now(). */
  readonly atMs: number;
  readonly megabytes: number;
}

export interface MemoryWatch {
  /** Empty where there is no /proc. */
  readonly samples: readonly MemorySample[];
  stop(): void;
}

export function watchResidentMemory(pid: number, intervalMs = 250): MemoryWatch {
  const samples: MemorySample[] = [];
  const look = (): void => {
    const megabytes = residentMegabytes(pid);
    if (megabytes !== undefined) samples.push({ atMs: performance.now(), megabytes });
  };
  look();
  const timer = setInterval(look, intervalMs);
  return { samples, stop: () => clearInterval(timer) };
}

/** In units of 1,048,576 bytes; undefined where the process or /proc is not there. */
export function residentMegabytes(pid: number): number | undefined {
  try {
    const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kibibytes === undefined ? undefined : Number(kibibytes) / 1024;
  } catch {
    return undefined;
  }
}
