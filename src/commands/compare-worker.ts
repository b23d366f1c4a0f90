// The thread that counts what a changed configuration allows more. It starts at a reload, beside the thread that decides, and ends with
// its answer: `serve` itself loads nothing of the toolkit.
import { parentPort, workerData } from 'node:worker_threads';
import type { Widening } from '../service/reload-record.ts';
import { compareConfigs } from '../toolkit/compare/comparison.ts';
import { validateCompared } from '../toolkit/compare/settings.ts';

parentPort?.postMessage('ready');
const [old, now] = await Promise.all(
  (workerData as readonly Uint8Array[]).map(bytes => validateCompared({ kind: 'bytes', bytes })),
);
if (old?.kind === 'config' && now?.kind === 'config') {
  const { more, unordered, complete } = compareConfigs([old, now]);
  const rows = more.length + unordered.length;
  const widening: Widening = { widens: rows > 0, rows };
  if (complete) parentPort?.postMessage(widening);
}
