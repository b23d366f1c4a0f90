// Runs in a pod: sends requests to a Service without a pause and prints each 100 ms what came of them, one JSON object a line.
import { readFile } from 'node:fs/promises';
import { type Order, startLoad } from '../../lab/load.ts';

/** /program/load.json. */
export interface LoadPlan {
  readonly address: string;
  readonly port: number;
  readonly orders: readonly Order[];
}

export interface LoadLine {
  readonly requests: number;
  /** The longest time in milliseconds without a good answer that ended in these 100 ms, or goes on at their end. */
  readonly longestGapMs: number;
  /** The number of requests by what came in the place of the expected answer. */
  readonly lost: Readonly<Record<string, number>>;
}

const { address, port, orders }: LoadPlan = JSON.parse(await readFile('/program/load.json', 'utf8'));
const { answers } = startLoad({ endpoints: [{ name: 'service', address, port }], orders, pauseMs: 30 });

let reported = 0;
let lastGoodMs = performance.now();
setInterval(() => {
  const fresh = answers.slice(reported);
  reported = answers.length;
  const lost: Record<string, number> = {};
  let longestGapMs = 0;
  for (const { atMs, latencyMs, failure } of fresh) {
    if (failure !== undefined) lost[failure] = (lost[failure] ?? 0) + 1;
    else {
      longestGapMs = Math.max(longestGapMs, atMs + latencyMs - lastGoodMs);
      lastGoodMs = atMs + latencyMs;
    }
  }
  longestGapMs = Math.max(longestGapMs, performance.now() - lastGoodMs);
  const line: LoadLine = { requests: fresh.length, longestGapMs, lost };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}, 100);
