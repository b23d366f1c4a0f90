// The memory of a process, from Linux's /proc.
import { readFileSync } from 'node:fs';

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
