// The flags of V8 for a service that answers many small calls.
import { setFlagsFromString } from 'node:v8';

/** Each with what it does to throughput and memory: docs/dev/performance.md. The image's command line has the size of the young generation, which is fixed at the start. */
export const v8Flags = ['--heap-growing-percent=60', '--no-allocation-site-pretenuring', '--no-maglev'];

/**
 * To be called when all modules are loaded. On the command line these flags cost 50 ms of each start: under other flags V8 does not take the
 * code of Node's own modules that Node has compiled beforehand (docs/dev/performance.md).
 */
export function setV8Flags(): void {
  for (const flag of v8Flags) setFlagsFromString(flag);
}
