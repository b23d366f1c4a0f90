// The CPU time of a process, user and system, from Linux's /proc.
import { readFileSync } from 'node:fs';

// USER_HZ: 100 on every current Linux, and not readable from a file.
const microsecondsPerTick = 10_000;

/** In steps of 10 ms; undefined without the process or /proc. */
export function cpuMicroseconds(pid: number): number | undefined {
  try {
    return parseCpu(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return undefined;
  }
}

/** Parses /proc/PID/stat; the second field is a name in parentheses and may contain anything. */
export function parseCpu(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * microsecondsPerTick;
}
