// The resident memory of a process, as Linux tells it in /proc.
import { readFileSync } from 'node:fs';

/** In units of 1,048,576 bytes; undefined where the process or /proc is not there. */
export function residentMegabytes(pid: number): number | undefined {
  return megabytesOf(pid, 'VmRSS');
}

/** The most so far. */
export function mostResidentMegabytes(pid: number): number | undefined {
  return megabytesOf(pid, 'VmHWM');
}

function megabytesOf(pid: number, field: 'VmRSS' | 'VmHWM'): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const kibibytes = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1];
    return kibibytes === undefined ? undefined : Number(kibibytes) / 1024;
  } catch {
    return undefined;
  }
}
