// `npm run bench`: account-authz beside its peers and the floors beneath them, in one run on one core. Prints tables, leaves a page
// and charts, and ends with 1 where a floor of product.md section 7 is not met.
import { join } from 'node:path';
import { toned, toText } from './report/table.ts';
import { buildPeers } from './speed/build-peers.ts';
import { type CallRound, measureCalls } from './speed/calls.ts';
import { type Field, makeField } from './speed/contenders.ts';
import { type BenchLab, cacheDirectory, projectDirectory, startBenchLab } from './speed/lab.ts';
import { type BenchOptions, parseBenchOptions, usage } from './speed/options.ts';
import { preflightCases } from './speed/preflight.ts';
import { callsTable } from './speed/report.ts';
import { knownToken, makeRequestSet } from './speed/request-sets.ts';
import { createStable } from './speed/stable.ts';

// A listener for each process that has to end with this one.
process.setMaxListeners(0);

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
  progress('building the peers: the first time this fetches Go modules and takes minutes');
  const peers = await buildPeers(join(projectDirectory, 'bench', 'peers'), cacheDirectory);
  const lab = await startBenchLab({
    algorithm: options.algorithm,
    node: process.execPath,
    nodeOptions: options.nodeOptions,
  });
  try {
    return await measure(lab, options, await makeField(lab, peers));
  } finally {
    await lab.stop();
  }
}

async function measure(lab: BenchLab, options: BenchOptions, field: Field): Promise<number> {
  const isWanted = ({ name }: { readonly name: string }): boolean =>
    options.only.length === 0 || options.only.includes(name);
  const contenders = field.contenders.filter(isWanted);
  for (const { name, title, reason } of field.absent.filter(isWanted))
    print(`${toned('absent', 'dim', colour)}  ${name}: ${title}: ${reason}\n`);
  const form = { connections: 4, inFlight: 64, warmMs: 300, measureMs: options.quick ? 1000 : 1500 };
  progress('making tokens and requests');
  for (const name of new Set(['known' as const, ...contenders.map(({ set }) => set)]))
    await lab.load.define(name, await makeRequestSet(name, lab.tokens, 25_000));

  const stable = createStable(lab, {
    cases: await preflightCases(lab.tokens),
    allow: field.allow,
    account: (await knownToken(lab.tokens)).account,
    warm: { ...form, warmMs: 0, measureMs: 2000 },
  });
  const rounds = new Map<string, CallRound[]>();
  try {
    for (let round = 0; round < options.rounds; round++) {
      for (const contender of contenders) {
        progress(`calls, round ${round + 1} of ${options.rounds}: ${contender.title}`);
        const server = await (contender.startsAnew ? stable.fresh(contender) : stable.standing(contender));
        if (contender.startsAnew) await lab.load.rewind(contender.set);
        const figures = await measureCalls(lab, contender, server, form);
        rounds.set(contender.name, [...(rounds.get(contender.name) ?? []), figures]);
        if (contender.startsAnew) await server.stop();
      }
    }
  } finally {
    await stable.stop();
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
