// The memory of a process, from Linux's /proc.
import { readFileSync } from 'node:fs';

/** In MiB; undefined without the process or /proc. */
export function residentMegabytes(pid: number): number | undefined {
  return megabytesOf(pid, 'VmRSS');
}

/** The peak so far. */
export function peakResidentMegabytes(pid: number): number | undefined {
  return megabytesOf(pid, 'VmHWM');
}

/** Resident memory that no file backs: heaps and stacks, not the pages of the program. */
export function anonymousMegabytes(pid: number): number | undefined {
  return megabytesOf(pid, 'RssAnon');
}

function megabytesOf(pid: number, field: 'VmRSS' | 'VmHWM' | 'RssAnon'): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const kibibytes = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1];
    return kibibytes === undefined ? undefined : Number(kibibytes) / 1024;
  } catch {
    return undefined;
  }
}
