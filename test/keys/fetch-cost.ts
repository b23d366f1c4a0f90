// A process of its own for key-fetch-cost.test.ts: reads key sets from hostile issuers and prints what each cost it.
// Arguments: time limit in ms, a good JWKS URL, then hostile ones. One JSON line for each of those.

import { createFetchSlots } from '../../src/keys/fetch-slots.ts';
import { createKeySource, type SourceResult } from '../../src/keys/key-source.ts';
import { createKeyTransport } from '../../src/keys/key-transport.ts';

const [timeoutMs = '', goodUrl = '', ...hostileUrls] = process.argv.slice(2);

const read = (jwksUrl: string): Promise<SourceResult> => {
  const source = createKeySource({
    place: { jwksUrl },
    issuers: ['https://issuer'],
    timeoutMs: Number(timeoutMs),
    proxy: {},
    createTransport: createKeyTransport,
    slots: createFetchSlots(),
  });
  return source.read(new AbortController().signal, undefined);
};

// Code is loaded and compiled, and the heap has its working size, before anything is measured.
for (let i = 0; i < 50; i += 1) await read(goodUrl);

for (const url of hostileUrls) {
  const costs = [await measure(url), await measure(url), await measure(url)];
  const [least] = costs.sort((one, other) => one.megabytes - other.megabytes);
  console.log(JSON.stringify({ ...least, tookMs: Math.max(...costs.map(({ tookMs }) => tookMs)) }));
}

// The loader of TypeScript lives in this process too and grows when it likes: what a read costs, it costs every time.
async function measure(url: string): Promise<{ problem: string; tookMs: number; megabytes: number }> {
  globalThis.gc?.();
  const before = process.memoryUsage.rss();
  let peak = before;
  const sampling = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss());
  }, 5);
  const startedMs = performance.now();
  const result = await read(url);
  const tookMs = Math.round(performance.now() - startedMs);
  clearInterval(sampling);
  peak = Math.max(peak, process.memoryUsage.rss());
  const problem = result.kind === 'problem' ? result.problem : result.kind;
  return { problem, tookMs, megabytes: (peak - before) / 1024 / 1024 };
}
