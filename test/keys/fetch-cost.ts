// Child process of key-fetch-cost.test.ts: fetches key sets from hostile issuers and prints the cost of each as a JSON line.
// Arguments: time limit in ms, a valid JWKS URL, then hostile ones.
import { createFetchSlots } from '../../src/keys/fetch-slots.ts';
import { createKeySource, type SourceResult } from '../../src/keys/key-source.ts';
import { getKeyDocument } from '../../src/keys/key-transport.ts';

const [timeoutMs = '', goodUrl = '', ...hostileUrls] = process.argv.slice(2);

const read = (jwksUrl: string): Promise<SourceResult> => {
  const source = createKeySource({
    settings: { issuer: 'https://issuer', algorithms: ['ES256'], jwksUrl },
    timeoutMs: Number(timeoutMs),
    proxy: {},
    getDocument: getKeyDocument,
    slots: createFetchSlots(),
  });
  return source.read(new AbortController().signal, () => undefined);
};

// Warm-up: load and compile the code and let the heap grow to its working size.
for (let i = 0; i < 50; i += 1) await read(goodUrl);

for (const url of hostileUrls) {
  const costs = [await measure(url), await measure(url), await measure(url)];
  const [least] = costs.sort((one, other) => one.megabytes - other.megabytes);
  console.log(JSON.stringify({ ...least, tookMs: Math.max(...costs.map(({ tookMs }) => tookMs)) }));
}

// The TypeScript loader shares this process and its heap grows at random, so the least of three runs counts.
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
