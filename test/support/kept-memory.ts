// What the built product keeps in memory once its garbage is collected.
import { readFile } from 'node:fs/promises';
import type { ServiceProcess } from '../../lab/service-process.ts';

// SIGUSR2 collects all garbage and logs the remaining memory.
const reporter = `data:text/javascript,${encodeURIComponent(`
  let count = 0;
  process.on('SIGUSR2', () => {
    globalThis.gc();
    setImmediate(() => {
      globalThis.gc();
      const { heapUsed, external } = process.memoryUsage();
      process.stdout.write(JSON.stringify({ requestId: 'memory-' + ++count, heapUsed, external }) + '\\n');
    });
  });
`)}`;

/** The image's Node options, which bound the heap, and those that make `keptMegabytesOf` work. */
export async function memoryNodeOptions(): Promise<readonly string[]> {
  const text = await readFile(new URL('../../Dockerfile', import.meta.url), 'utf8');
  const [, words = '[]'] = /^ENTRYPOINT (\[.*main\.js"\])$/m.exec(text) ?? [];
  return [...JSON.parse(words).slice(1, -1), '--expose-gc', '--import', reporter];
}

/** A function that returns the megabytes of live objects and buffers of a service started with `memoryNodeOptions`. */
export function keptMegabytesOf(service: ServiceProcess): () => Promise<number> {
  let reports = 0;
  return async () => {
    process.kill(service.pid, 'SIGUSR2');
    reports += 1;
    const { heapUsed, external } = await service.logLine(`memory-${reports}`);
    return (Number(heapUsed) + Number(external)) / 1_048_576;
  };
}
