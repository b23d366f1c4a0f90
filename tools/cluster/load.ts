// The load of a cluster run, from a pod of its own, and what came of it between two moments.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { build } from 'esbuild';
import type { Order } from '../../lab/load.ts';
import { type Answer, apply, askFrom, kubectl, programPod, untilSettled } from './kubectl.ts';
import type { LoadLine, LoadPlan } from './load-pod.ts';

export interface Window {
  readonly requests: number;
  /** By what came in the place of the expected answer. */
  readonly lost: Readonly<Record<string, number>>;
  /** The longest time without a good answer, in seconds. */
  readonly longestGapSeconds: number;
}

export interface ClusterLoad {
  /** The number of lines so far: a moment, in the clock of the pod. */
  now(): number;
  /** What came since that moment, once a second more of load has passed. */
  since(moment: number): Promise<Window>;
  /** One request of the pod of the load. */
  ask(url: string, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  stop(): Promise<void>;
}

export interface LoadOptions {
  readonly namespace: string;
  readonly image: string;
  readonly service: { readonly name: string; readonly namespace: string; readonly port: number };
  readonly orders: readonly Order[];
}

/** One file of a program with its imports, as a module that runs on the Node of the image. */
export async function bundle(file: string): Promise<string> {
  const entry = new URL(file, import.meta.url).pathname;
  const options = { bundle: true, write: false, platform: 'node', format: 'esm', target: 'node20' } as const;
  const { outputFiles } = await build({ ...options, entryPoints: [entry] });
  return outputFiles[0]?.text ?? '';
}

export async function startClusterLoad({ namespace, image, service, orders }: LoadOptions): Promise<ClusterLoad> {
  const at = ['get', 'service', '-n', service.namespace, service.name, '-o', 'jsonpath={.spec.clusterIP}'];
  const plan: LoadPlan = { address: await kubectl(at), port: service.port, orders };
  const program = await bundle('load-pod.ts');
  await apply(programPod({ name: 'load', namespace, image, program, files: { 'load.json': JSON.stringify(plan) } }));
  const [pod] = await untilSettled(namespace, 'app=load', 1);
  const logs = spawn('kubectl', ['logs', '-n', namespace, '--follow', pod?.name ?? ''], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: LoadLine[] = [];
  createInterface(logs.stdout).on('line', line => lines.push(JSON.parse(line)));
  const later = async (count: number): Promise<void> => {
    const from = lines.length;
    for (let waited = 0; lines.length < from + count; waited += 1) {
      if (waited > 600) throw new Error('the load pod reports nothing');
      await delay(50);
    }
  };
  await later(10);
  return {
    now: () => lines.length,
    async since(moment) {
      await later(10);
      const window = lines.slice(moment);
      const lost: Record<string, number> = {};
      for (const line of window)
        for (const [what, count] of Object.entries(line.lost)) lost[what] = (lost[what] ?? 0) + count;
      return {
        requests: window.reduce((sum, { requests }) => sum + requests, 0),
        lost,
        longestGapSeconds: Math.max(0, ...window.map(({ longestGapMs }) => longestGapMs)) / 1000,
      };
    },
    ask: (url, headers = {}) => askFrom(['-n', namespace, 'deployment/load'], url, { headers }),
    async stop() {
      logs.kill();
      await kubectl(['delete', '-n', namespace, 'deployment/load', 'secret/load', '--wait=true']);
    },
  };
}
