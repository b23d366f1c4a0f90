// The processor time and the memory of a process, from Linux's /proc.
import { readFileSync } from 'node:fs';

// USER_HZ: 100 on every current Linux, and not readable from a file.
const microsecondsPerTick = 10_000;

/** User and system time, in steps of 10 ms; NaN without the process or /proc. */
export function cpuMicroseconds(pid: number): number {
  const stat = read(`/proc/${pid}/stat`);
  // The second field is a name in parentheses and may contain anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * microsecondsPerTick;
}

/** `VmHWM` is the peak of `VmRSS`; `RssAnon` is what no file backs: heaps and stacks, not the pages of the program. In MiB, or NaN. */
export function megabytes(pid: number, field: 'VmRSS' | 'VmHWM' | 'RssAnon'): number {
  const [, kibibytes] = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(read(`/proc/${pid}/status`)) ?? [];
  return Number(kibibytes) / 1024;
}

function read(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}
