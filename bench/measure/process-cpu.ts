// The CPU time that a process has used, user and system together, as Linux tells it in /proc.
import { readFileSync } from 'node:fs';

// USER_HZ, which is 100 on every Linux of today and has no file to be read from.
const microsecondsPerTick = 10_000;

/** In steps of 10 ms; undefined where the process or /proc is not there. */
export function cpuMicroseconds(pid: number): number | undefined {
  try {
    return parseCpu(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return undefined;
  }
}

/** Of the text of /proc/PID/stat; the second field is a name in parentheses that may hold anything. */
export function parseCpu(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * microsecondsPerTick;
}
