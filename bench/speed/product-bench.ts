// Scenarios about account-authz alone: storms, the cost of cached tokens, the cache under a scan, and more than one process.
import { freePorts } from '../../test/support/envoy.ts';
import type { RunFigures } from '../load/wire-load.ts';
import { residentMegabytes, watchResidentMemory } from '../measure/resident-memory.ts';
import { rightAnswers } from './calls.ts';
import type { SetName } from './contender.ts';
import type { BenchForm } from './form.ts';
import { liveMegabytes } from './heap.ts';
import { imageRuntime } from './image-runtime.ts';
import type { BenchLab } from './lab.ts';
import { firstLane } from './latency.ts';
import { metric, type Product, startProduct } from './product.ts';
import { knownToken, rotationTokens } from './request-sets.ts';
import { checkCall, checkCallBlocks, talkativeCallBlocks } from './requests.ts';
import type { LatencyRound, MemoryRound, ReplicasRound, ScanRound } from './results.ts';

interface Storm {
  readonly name: string;
  readonly title: string;
  /** What comes beside the known token. */
  readonly beside?: SetName;
  /** The headers of all calls; those of the shipped envoy.yaml if not given. */
  readonly shared?: typeof checkCallBlocks;
}

const quiet: Storm = { name: 'quiet', title: 'alone' };
const forged: Storm = { name: 'forged', title: 'beside forged signatures', beside: 'forged' };
const others: readonly Storm[] = [
  { name: 'new', title: 'beside new tokens', beside: 'new' },
  {
    name: 'forged-talkative',
    title: 'beside forged signatures, with all headers that an Envoy adds by itself',
    beside: 'forged',
    shared: talkativeCallBlocks,
  },
];

export const storms: readonly Storm[] = [quiet, forged, ...others];

/** All of them on one process that was started for them; the latency of the known token alone. */
export async function measureStorms(lab: BenchLab, form: BenchForm): Promise<Record<string, LatencyRound>> {
  const { knownPerSecond, stormPerSecond, rehearsalMs, turns, turnMs, onceMs } = form.storm;
  return withProduct(lab, {}, async product => {
    const undergo = async (
      { name, beside, shared = checkCallBlocks }: Storm,
      measureMs: number,
    ): Promise<RunFigures> => {
      const figures = await lab.load.run({
        kind: 'open',
        run: { ...runOf(product, form), shared, measureMs },
        lanes: [
          { set: 'known', perSecond: knownPerSecond },
          ...(beside === undefined ? [] : [{ set: beside, perSecond: stormPerSecond }]),
        ],
      });
      rightAnswers(`storm ${name}`, figures);
      return figures;
    };
    await saturate(lab, product, { ...form, memoryMs: form.startWarmMs }, 'known');
    // What a storm is made of is compiled before, or the figure would be that of a start.
    for (const storm of [forged, ...others]) await undergo(storm, rehearsalMs);
    const calm: RunFigures[] = [];
    const storming: RunFigures[] = [];
    for (let turn = 0; turn < turns; turn++) {
      calm.push(await undergo(quiet, turnMs));
      storming.push(await undergo(forged, turnMs));
    }
    const rounds: Record<string, LatencyRound> = { quiet: firstLane(...calm), forged: firstLane(...storming) };
    for (const storm of others) rounds[storm.name] = firstLane(await undergo(storm, onceMs));
    return rounds;
  });
}

/** With one known token, or with the 10,000 of the rotation, as the image runs it: the most memory under load, and what is alive afterwards. */
export async function measureMemory(lab: BenchLab, form: BenchForm, set: 'known' | 'rotation'): Promise<MemoryRound> {
  const runtime = await imageRuntime();
  // Two processes: an inspector that is on costs memory itself.
  const residentMegabytesAtMost = await withProduct(lab, { runtime }, async product => {
    const watch = watchResidentMemory(product.pid, 50);
    await saturate(lab, product, form, set);
    watch.stop();
    return Math.max(...watch.samples.map(({ megabytes }) => megabytes));
  });
  const [inspector = 0] = await freePorts(1);
  const live = await withProduct(lab, { runtime, flags: [`--inspect=127.0.0.1:${inspector}`] }, async product => {
    await saturate(lab, product, form, set);
    return liveMegabytes(inspector);
  });
  return { residentMegabytes: residentMegabytesAtMost, liveMegabytes: live };
}

const scanTokens = 1000;

export interface Scan {
  readonly name: string;
  readonly title: string;
  /** Hot tokens, used in turn. */
  readonly hot: number;
  readonly hotPerSecond: number;
  readonly floodPerSecond: number;
}

/** A hot token comes back after hot/hotPerSecond seconds, and meanwhile so many others of the flood have come. */
export const scans: readonly Scan[] = [
  { name: 'scan-within', title: '400 others between two uses', hot: 100, hotPerSecond: 500, floodPerSecond: 2000 },
  { name: 'scan-beyond', title: '4,000 others between two uses', hot: 100, hotPerSecond: 50, floodPerSecond: 2000 },
];

/** How many calls with hot tokens are hits while good tokens that are used once stream by. The cache holds 1,000. */
export async function measureScan(lab: BenchLab, form: BenchForm, scan: Scan): Promise<ScanRound> {
  return withProduct(lab, { maxTokens: scanTokens }, async product => {
    const hot = { set: hotSet(scan), perSecond: scan.hotPerSecond };
    // Each hot token several times before, as a token is that is in use.
    await lab.load.run({
      kind: 'open',
      run: { ...runOf(product, form), warmMs: 0, measureMs: 2000 },
      lanes: [{ ...hot, perSecond: 500 }],
    });
    const hits = async (): Promise<number> =>
      metric(await product.metrics(), 'account_authz_token_cache_total', 'result="hit"');
    const flood = (measureMs: number): Promise<RunFigures> =>
      lab.load.run({
        kind: 'open',
        run: { ...runOf(product, form), warmMs: 0, measureMs },
        lanes: [hot, { set: 'new', perSecond: scan.floodPerSecond }],
      });
    // What the flood finds is not what it leaves: each hot token has its first hit behind it before hits are counted.
    await flood(2000);
    const before = await hits();
    const figures = await flood(form.scanMs);
    rightAnswers(scan.name, figures);
    return { hotHitShare: ((await hits()) - before) / (figures.lanes[0]?.answered ?? NaN) };
  });
}

export function hotSet({ name }: Scan): string {
  return `hot ${name}`;
}

/** One process on the core of the servers, or a second one on the core of the load, which has most of its time to spare. */
export async function measureReplicas(lab: BenchLab, form: BenchForm, count: 1 | 2): Promise<ReplicasRound> {
  const fetchesBefore = lab.issuer.requests('jwks').length;
  const cores = [lab.cores?.server, lab.cores?.load].slice(0, count);
  const products: Product[] = [];
  try {
    for (const core of cores) products.push(await startProduct(lab, await knownRequest(lab), { core }));
    const run = {
      ...runOf({ port: 0, pid: 0 }, form),
      target: products.map(({ port }) => ({ port })),
      measureMs: form.callsMs,
      pids: products.map(({ pid }) => pid),
    };
    await lab.load.run({
      kind: 'closed',
      set: 'known',
      inFlight: form.inFlight,
      run: { ...run, measureMs: form.startWarmMs },
    });
    const figures = await lab.load.run({ kind: 'closed', set: 'known', inFlight: form.inFlight, run });
    return {
      perSecond: (rightAnswers('replicas', figures) / figures.elapsedMs) * 1000,
      residentMegabytes: products.reduce((sum, { pid }) => sum + (residentMegabytes(pid) ?? NaN), 0),
      keyFetches: lab.issuer.requests('jwks').length - fetchesBefore,
    };
  } finally {
    await Promise.all(products.map(product => product.stop()));
  }
}

function runOf(
  { port, pid }: { readonly port: number; readonly pid: number },
  { connections, latencyWarmMs: warmMs }: BenchForm,
) {
  return { target: { port }, shared: checkCallBlocks, connections, warmMs, pids: [pid] };
}

/** For that long at least, and until each token of the set was used. */
async function saturate(lab: BenchLab, product: Product, form: BenchForm, set: 'known' | 'rotation'): Promise<void> {
  const run = { ...runOf(product, form), warmMs: 0, measureMs: form.memoryMs };
  let calls = 0;
  while (calls < 2 * rotationTokens)
    calls += rightAnswers(set, await lab.load.run({ kind: 'closed', set, inFlight: form.inFlight, run }));
}

async function withProduct<Value>(
  lab: BenchLab,
  options: Parameters<typeof startProduct>[2],
  use: (product: Product) => Promise<Value>,
): Promise<Value> {
  const product = await startProduct(lab, await knownRequest(lab), options);
  try {
    return await use(product);
  } finally {
    await product.stop();
  }
}

async function knownRequest(lab: BenchLab) {
  return checkCall(await knownToken(lab.tokens));
}
