// `npm run bench`: account-authz beside its peers and the floors beneath them, in one run on one core. Prints tables, leaves a page
// and charts, and ends with 1 where a floor of product.md section 7 is not met.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { toned, toText } from './report/table.ts';
import { type CallRound, measureCalls } from './speed/calls.ts';
import type { RunningContender } from './speed/contender.ts';
import { makeContenders } from './speed/contenders.ts';
import { type BenchLab, projectDirectory, startBenchLab } from './speed/lab.ts';
import { type BenchOptions, parseBenchOptions, usage } from './speed/options.ts';
import { callsTable } from './speed/report.ts';
import { makeRequestSet } from './speed/request-sets.ts';

const isTerminal = process.stdout.isTTY === true;
const colour = isTerminal && (process.env.NO_COLOR ?? '') === '';

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

const parsed = parseBenchOptions(process.argv.slice(2));
switch (parsed.kind) {
  case 'help':
    print(usage);
    break;
  case 'usage problem':
    process.stderr.write(`bench: ${parsed.problem}\n${usage}`);
    process.exitCode = 1;
    break;
  case 'options':
    process.exitCode = await run(parsed.options);
}

async function run(options: BenchOptions): Promise<number> {
  progress('building the peers');
  const compiler = join(projectDirectory, 'node_modules', '.bin', 'tsc');
  await promisify(execFile)(compiler, ['-p', join(projectDirectory, 'bench', 'peers', 'node', 'tsconfig.json')]);
  const lab = await startBenchLab({
    algorithm: options.algorithm,
    node: process.execPath,
    nodeOptions: options.nodeOptions,
  });
  try {
    return await measure(lab, options);
  } finally {
    await lab.stop();
  }
}

async function measure(lab: BenchLab, options: BenchOptions): Promise<number> {
  const all = await makeContenders(lab);
  const contenders = all.filter(({ name }) => options.only.length === 0 || options.only.includes(name));
  const form = { connections: 4, inFlight: 64, warmMs: 300, measureMs: options.quick ? 1000 : 1500 };
  progress('making tokens and requests');
  for (const name of new Set(['known' as const, ...contenders.map(({ set }) => set)]))
    await lab.load.define(name, await makeRequestSet(name, lab.tokens, 25_000));

  const running = new Map<string, RunningContender>();
  const rounds = new Map<string, CallRound[]>();
  try {
    for (let round = 0; round < options.rounds; round++) {
      for (const contender of contenders) {
        progress(`calls, round ${round + 1} of ${options.rounds}: ${contender.title}`);
        const server = running.get(contender.name) ?? (await contender.start());
        if (contender.startsAnew || !running.has(contender.name)) {
          // A server that has just started is warmed by what it knows already.
          const warm = contender.startsAnew ? { ...contender, set: 'known' as const } : contender;
          await measureCalls(lab, warm, server, { ...form, warmMs: 0, measureMs: 2000 });
        }
        if (contender.startsAnew) await lab.load.rewind(contender.set);
        else running.set(contender.name, server);
        const figures = await measureCalls(lab, contender, server, form);
        rounds.set(contender.name, [...(rounds.get(contender.name) ?? []), figures]);
        if (contender.startsAnew) await server.stop();
      }
    }
  } finally {
    await Promise.all(Array.from(running.values(), server => server.stop()));
  }
  progress('');
  print(`${toText(callsTable(contenders, rounds), colour)}\n`);
  return 0;
}

function print(text: string): void {
  process.stdout.write(text);
}

/** On a terminal, a line that the next one replaces. */
function progress(text: string): void {
  if (isTerminal) process.stdout.write(`\r\x1b[2K${toned(text, 'dim', colour)}`);
}
