// Simulates a fleet that fetches a revocation list by URL, in virtual time and with the product's own state machine: the load at the publisher
// when steady, in an outage of five minutes and after it.
import { createDocumentState, nextWakeMs, reduceDocument } from '../../src/http/document-machine.ts';
import { listLimits } from '../../src/revocation/fetched-list.ts';
import { latencyMs } from './instance.ts';
import { createRandom } from './random.ts';

const minute = 60_000;
const down = { fromMs: 10 * minute, toMs: 15 * minute };
const endMs = 25 * minute;
/** The list changes so often, and has 10,000 entries of 70 bytes; a 304 has 250. */
const changeMs = 2 * minute;
const bytes = { list: 700_000, unchanged: 250 };

export function runLists(instances: number, seed: number, refreshSeconds = 5): string {
  const random = createRandom(seed);
  const perSecond = Array.from({ length: endMs / 1000 }, () => 0);
  let [unchanged, fetched] = [0, 0];
  for (let instance = 0; instance < instances; instance += 1) {
    let state = createDocumentState(listLimits({ refreshSeconds, maxAgeSeconds: 3600 })) as Parameters<
      typeof nextWakeMs
    >[0];
    let known = -1;
    // Long up at 0: their fetches are spread.
    let nowMs = random() * refreshSeconds * 1000 - minute;
    for (state = reduceDocument(state, { kind: 'started' }, nowMs); nowMs < endMs; ) {
      const second = Math.floor(nowMs / 1000);
      if (second >= 0) perSecond[second] = (perSecond[second] ?? 0) + 1;
      nowMs += latencyMs.min + (latencyMs.max - latencyMs.min) * random();
      const end = { fetch: state.fetch, jitter: random() };
      const isDown = nowMs >= down.fromMs && nowMs < down.toMs;
      const version = Math.floor(nowMs / changeMs);
      if (!isDown && nowMs >= 0 && known === version) unchanged += 1;
      else if (!isDown && nowMs >= 0) fetched += 1;
      const outcome = isDown
        ? ({ kind: 'failed', problem: 'connection refused' } as const)
        : ({ kind: known === version ? 'notModified' : 'fetched' } as const);
      if (!isDown) known = version;
      state = reduceDocument(state, { ...outcome, ...end }, nowMs);
      nowMs = Math.max(nowMs, nextWakeMs(state) ?? endMs);
      state = reduceDocument(state, { kind: 'woken' }, nowMs);
    }
  }
  const between = (fromMs: number, toMs: number) => {
    const part = perSecond.slice(fromMs / 1000, toMs / 1000);
    const mean = part.reduce((sum, each) => sum + each, 0) / part.length;
    return `${mean.toFixed(0)} a second, at most ${Math.max(...part)}`;
  };
  const upMs = endMs - (down.toMs - down.fromMs);
  const perDay = ((unchanged * bytes.unchanged) / upMs) * 1440 * minute;
  return [
    `revocation list by URL, ${instances} instances, refreshSeconds ${refreshSeconds}:`,
    `  steady: ${between(0, down.fromMs)}; ${((100 * unchanged) / (unchanged + fetched)).toFixed(1)} % are 304`,
    `  outage: ${between(down.fromMs, down.toMs)}; its last minute: ${between(down.toMs - minute, down.toMs)}`,
    `  after it, the first minute: ${between(down.toMs, down.toMs + minute)}; later: ${between(down.toMs + minute, endMs)}`,
    `  bytes: ${(perDay / 1e9).toFixed(1)} GB a day of 304, and ${((instances * bytes.list) / 1e9).toFixed(1)} GB for each change of a list of 10,000 entries`,
    '',
  ].join('\n');
}
