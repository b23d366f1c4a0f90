// `npm run soak -- --minutes N`: a steady load of known, new and refused tokens on one core; samples resident memory and
// event-loop delay each second and decides whether memory stays flat. Exits with 1 if it does not.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { residentMegabytes } from '../../bench/measure/resident-memory.ts';
import { toned } from '../../bench/report/table.ts';
import { type BenchLab, cacheDirectory, projectDirectory, startBenchLab } from '../../bench/speed/lab.ts';
import { measureCalls, rightAnswers } from '../../bench/speed/loops.ts';
import { metric, type Product, startProduct } from '../../bench/speed/product.ts';
import { knownToken, makeRequestSet } from '../../bench/speed/request-sets.ts';
import { checkCall, checkCallBlocks } from '../../bench/speed/requests.ts';
import { imageRuntime, nodeVersion, ownRuntime } from '../../bench/speed/runtime.ts';
import { soakSvg } from './chart.ts';
import { parseSoakOptions, type SoakOptions, usage } from './options.ts';
import { maxRiseMegabytes, type SoakSample, soakVerdict } from './verdict.ts';

/** Shares of the load. New tokens are generated during the run, one batch in advance. */
const shares = { rotation: 0.8, fresh: 0.1, forged: 0.05, garbage: 0.05 } as const;
const refused = ['forged', 'garbage'] as const;
const stretchMs = 5000;
const connections = 4;
const warmUp = ['rotation', 'forged', 'rotation', 'forged'] as const;
const warmUpMs = 2000;

process.setMaxListeners(0);
const isTerminal = process.stdout.isTTY === true;
const colour = isTerminal && (process.env.NO_COLOR ?? '') === '';
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

const parsed = parseSoakOptions(process.argv.slice(2), join(projectDirectory, 'bench', 'results'));
switch (parsed.kind) {
  case 'usage problem':
    process.stderr.write(`soak: ${parsed.problem}\n${usage}`);
    process.exitCode = 1;
    break;
  case 'options':
    process.exitCode = await run(parsed.options);
}

async function run(options: SoakOptions): Promise<number> {
  const runtime = options.ownNode ? ownRuntime : await imageRuntime(projectDirectory, cacheDirectory);
  const lab = await startBenchLab('RS256', runtime);
  const product = await startProduct(lab, checkCall(await knownToken(lab.tokens)));
  try {
    for (const name of ['rotation', ...refused] as const)
      await lab.load.define(name, await makeRequestSet(name, lab.tokens, 0));
    // Full load first: memory then reaches its level in seconds instead of minutes, which a short soak would take for a rise.
    const measureMs = Math.min(warmUpMs, options.seconds * 400);
    const turn = { connections, inFlight: 64, warmMs: 0, measureMs };
    for (const name of warmUp) await measureCalls(lab, product, name, turn);
    const { samples, calls } = await soak(lab, product, options);
    const { riseMegabytes, isFlat } = soakVerdict(samples);
    const memory = samples.map(each => each.residentMegabytes);
    const line = `${calls.toLocaleString('en')} calls in ${options.seconds} s, each answered rightly; resident ${range(memory)} MB; after warm-up ${signed(riseMegabytes)} MB along the line, at most ${maxRiseMegabytes}`;
    print(`${toned(isFlat ? 'flat' : 'NOT FLAT', isFlat ? 'good' : 'bad', colour)}  ${line}\n`);
    if (options.out !== undefined) {
      const subtitle = `Node ${await nodeVersion(runtime)}; ${options.perSecond} checks a second: eight in ten known tokens, one new, one refused`;
      await mkdir(options.out, { recursive: true });
      await writeFile(join(options.out, 'soak.svg'), soakSvg(samples, `Soak: ${line.split(';')[0]}`, subtitle));
    }
    return isFlat ? 0 : 1;
  } finally {
    await product.stop();
    await lab.stop();
  }
}

async function soak(
  lab: BenchLab,
  product: Product,
  { seconds, perSecond }: SoakOptions,
): Promise<{ readonly samples: readonly SoakSample[]; readonly calls: number }> {
  const samples: SoakSample[] = [];
  const loadStartMs = performance.now();
  const sample = async (): Promise<void> => {
    const atSeconds = (performance.now() - loadStartMs) / 1000;
    const delay = metric(await product.metrics(), 'nodejs_eventloop_lag_p99_seconds') * 1000;
    samples.push({ atSeconds, residentMegabytes: residentMegabytes(product.pid) ?? NaN, loopDelayMs: delay });
    if (isTerminal) process.stdout.write(`\r\x1b[2K${Math.round(atSeconds)} s  ${last(samples)}`);
  };
  const timer = setInterval(() => void sample().catch(() => undefined), 1000);
  let calls = 0;
  try {
    await defineFresh();
    for (let left = seconds * 1000; left > 0; left -= stretchMs) {
      const measureMs = Math.min(stretchMs, left);
      const lanes = Object.entries(shares).map(([set, share]) => ({ set, perSecond: perSecond * share }));
      const run = {
        target: product.target,
        shared: checkCallBlocks,
        connections,
        warmMs: 0,
        measureMs,
        pids: [],
      };
      const making = lab.tokens.fresh(Math.ceil((perSecond * shares.fresh * stretchMs) / 1000) + 1);
      calls += rightAnswers('soak', await lab.load.run({ kind: 'open', lanes, run }));
      await defineFresh(making);
    }
    await sample();
    return { samples, calls };
  } finally {
    clearInterval(timer);
    if (isTerminal) process.stdout.write('\r\x1b[2K');
  }

  async function defineFresh(
    making = lab.tokens.fresh(Math.ceil((perSecond * shares.fresh * stretchMs) / 1000) + 1),
  ): Promise<void> {
    const requests = (await making).map(token => checkCall(token));
    await lab.load.define('fresh', { requests, once: true, expected: 'allow' });
  }
}

function last(samples: readonly SoakSample[]): string {
  const sample = samples.at(-1);
  return sample === undefined
    ? ''
    : `${sample.residentMegabytes.toFixed(1)} MB, event loop p99 ${sample.loopDelayMs.toFixed(1)} ms`;
}

function range(values: readonly number[]): string {
  return `${Math.min(...values).toFixed(0)} to ${Math.max(...values).toFixed(0)}`;
}

function signed(value: number): string {
  return `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(1)}`;
}

function print(text: string): void {
  process.stdout.write(text);
}
