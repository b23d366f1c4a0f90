// Runs a bench from its first process to its results: contenders, scenarios, rounds.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { envoyBinary } from '../../lab/envoy.ts';
import type { Peers } from './build-peers.ts';
import { type Contender, type SetName, setNames } from './contender.ts';
import { type Field, makeField } from './contenders.ts';
import { clientRequests, clientSet, measureVariant, type RunningVariant, startVariant } from './envoy-bench.ts';
import { envoyTitles, envoyVariants } from './envoy-variants.ts';
import type { BenchForm } from './form.ts';
import type { BenchLab } from './lab.ts';
import { measureCalls, measureLatency } from './loops.ts';
import { measureMemory, measureSidecar } from './memory.ts';
import { type BenchOptions, type ScenarioName, scenarioNames } from './options.ts';
import { knownToken, makeRequestSet } from './request-sets.ts';
import { checkCall } from './requests.ts';
import type { BenchResults, EnvoyRound, Rounds } from './results.ts';
import { inTurn, persistently } from './rounds.ts';
import { nodeVersion } from './runtime.ts';
import { createServerPool, type ServerPool } from './server-pool.ts';

export type BenchEnd =
  | { readonly kind: 'results'; readonly results: BenchResults }
  | { readonly kind: 'unknown names'; readonly names: readonly string[]; readonly known: readonly string[] };

type Progress = (text: string) => void;

/** Contenders of latency and start: enough to attribute the cost, few enough to end in time. */
const latencyContenders = [
  'nothing',
  'known',
  'known-unix',
  'known-mtls',
  'rotation',
  'new',
  'forged',
  'go-jwt',
  'opa',
];
const startContenders = ['nothing', 'known', 'go-jwt', 'opa'];

/** Measured beside a known token, in one process. */
const storms: readonly { readonly name: string; readonly beside: SetName }[] = [
  { name: 'account-authz, one known token beside forged signatures', beside: 'forged' },
  { name: 'account-authz, one known token beside new tokens', beside: 'new' },
];

interface Bench {
  readonly lab: BenchLab;
  readonly form: BenchForm;
  readonly servers: ServerPool;
  readonly contenders: readonly Contender[];
  readonly progress: Progress;
}

export async function runBench(
  lab: BenchLab,
  peers: Peers,
  form: BenchForm,
  options: BenchOptions,
  progress: Progress,
): Promise<BenchEnd> {
  progress('starting account-authz for its answer, and making tokens');
  const field = await makeField(lab, peers, options.beside);
  const names = [...field.contenders, ...field.absent].map(({ name }) => name);
  const chosen = scenarioNames.filter(name => options.only.includes(name));
  const named = names.filter(name => options.only.includes(name));
  const unknown = options.only.filter(name => ![...chosen, ...named].includes(name));
  if (unknown.length > 0) return { kind: 'unknown names', names: unknown, known: [...scenarioNames, ...names] };
  const isSelected = ({ name }: { readonly name: string }): boolean => named.length === 0 || named.includes(name);
  // Contender names alone select the scenario calls; scenario names alone select all contenders.
  const fallback: readonly ScenarioName[] = options.only.length === 0 ? scenarioNames : ['calls'];
  const scenarios = new Set(chosen.length === 0 ? fallback : chosen);
  const contenders = field.contenders.filter(isSelected);
  await defineSets(lab, form, scenarios, contenders);
  const bench: Bench = { lab, form, servers: createServerPool(lab, form, field.allow), contenders, progress };
  try {
    const measured = await measure(bench, scenarios);
    const absent = field.absent.filter(isSelected);
    return { kind: 'results', results: { ...measured, ...(await facts(lab, field, form, options)), absent } };
  } finally {
    await bench.servers.stop();
  }
}

async function measure(bench: Bench, scenarios: ReadonlySet<ScenarioName>): Promise<Pick<BenchResults, ScenarioName>> {
  const when = async <Value>(name: ScenarioName, take: (bench: Bench) => Promise<Rounds<Value>>) =>
    scenarios.has(name) ? take(bench) : {};
  const calls = await when('calls', benchCalls);
  const latency = await when('latency', benchLatency);
  const start = await when('start', benchStart);
  // The idle servers of a scenario would disturb the next one, whose figures then depend on what ran before.
  await bench.servers.stop();
  const envoy = await when('envoy', benchEnvoy);
  await bench.servers.stop();
  return { calls, latency, start, envoy, memory: await when('memory', benchMemory) };
}

async function facts(
  lab: BenchLab,
  { contenders }: Field,
  { rounds }: BenchForm,
  { form, only }: BenchOptions,
): Promise<Pick<BenchResults, 'run' | 'contenders'>> {
  const known = checkCall(await knownToken(lab.tokens));
  return {
    run: {
      isWhole: form === 'whole' && only.length === 0,
      rounds,
      algorithm: lab.tokens.algorithm,
      requestBytes: (known.body?.length ?? 5) - 5,
      pinned: lab.cores !== undefined,
      node: await nodeVersion(lab.runtime),
      nodeOptions: lab.runtime.flags,
      go: await versionOf('go', 'version', /go(\d+\.\d+(?:\.\d+)?)/),
      envoy: await versionOf(await envoyBinary(), '--version', /\/(\d+\.\d+\.\d+)/),
    },
    contenders: contenders.map(({ name, title, family }) => ({ name, title, family })),
  };
}

function benchCalls({ lab, form, servers, contenders, progress }: Bench): Promise<BenchResults['calls']> {
  const { rounds, connections, inFlight, callsMs: measureMs } = form;
  return inTurn(rounds, contenders, (contender, round) => {
    progress(`calls, round ${round + 1} of ${rounds}: ${contender.title}`);
    return servers.use(contender, server =>
      measureCalls(lab, server, contender.set, { connections, inFlight, warmMs: 100, measureMs }),
    );
  });
}

function benchLatency({ lab, form, servers, contenders, progress }: Bench): Promise<BenchResults['latency']> {
  const { connections, fewRounds, latencyMs: measureMs, perSecond, stormPerSecond } = form;
  const alone = contenders
    .filter(({ name }) => latencyContenders.includes(name))
    .map(contender => ({ name: contender.name, contender, lanes: [{ set: contender.set, perSecond }] }));
  const known = alone.find(({ name }) => name === 'known');
  const stormy = storms.flatMap(({ name, beside }) =>
    known === undefined
      ? []
      : [{ ...known, name, lanes: [...known.lanes, { set: beside, perSecond: stormPerSecond }] }],
  );
  return inTurn(fewRounds, [...alone, ...stormy], ({ name, contender, lanes }, round) => {
    progress(`latency, round ${round + 1} of ${fewRounds}: ${name}`);
    return servers.use(contender, server =>
      measureLatency(lab, server, lanes, { connections, warmMs: 500, measureMs }),
    );
  });
}

function benchStart({ form: { fewRounds }, contenders, progress }: Bench): Promise<BenchResults['start']> {
  const selected = contenders.filter(({ name }) => startContenders.includes(name));
  return inTurn(fewRounds, selected, async (contender, round) => {
    progress(`start, round ${round + 1} of ${fewRounds}: ${contender.title}`);
    const server = await contender.start();
    await server.stop();
    return server.startMs;
  });
}

async function benchEnvoy({ lab, form, servers, contenders, progress }: Bench): Promise<Record<string, EnvoyRound[]>> {
  const { fewRounds } = form;
  const running = new Map<string, RunningVariant>();
  const variants = envoyVariants(lab.tokens).filter(
    ({ contender }) => contender === undefined || contenders.some(({ name }) => name === contender),
  );
  try {
    for (const variant of variants) {
      progress(`envoy: starting it for ${envoyTitles.get(variant.name)}`);
      const contender = contenders.find(({ name }) => name === variant.contender);
      const service = contender === undefined ? undefined : await servers.get(contender);
      running.set(variant.name, await startVariant(lab, variant, service));
    }
    return await inTurn(fewRounds, variants, ({ name }, round) => {
      const turn = `envoy, round ${round + 1} of ${fewRounds}: ${envoyTitles.get(name)}`;
      progress(turn);
      const started = running.get(name);
      if (started === undefined) throw new Error(`${name} was not started`);
      // Envoy refuses a check that exceeds its timeout, so a machine that stalls for a moment causes wrong answers.
      return persistently(
        () => measureVariant(lab, started, form),
        error => progress(`${turn}, again, since ${String(error)}`),
      );
    });
  } finally {
    await Promise.all(Array.from(running.values(), started => started.stop()));
  }
}

function benchMemory({ lab, form, contenders, progress }: Bench): Promise<BenchResults['memory']> {
  const sidecars = contenders
    .filter(({ name }) => name === 'known' || name === 'nothing')
    .map(contender => ({
      name: `sidecar-${contender.name}`,
      measure: () => measureSidecar(lab, form, contender),
    }));
  const sets = (['known', 'rotation'] as const).map(name => ({ name, measure: () => measureMemory(lab, form, name) }));
  return inTurn(form.fewRounds, [...sets, ...sidecars], ({ name, measure }, round) => {
    progress(`memory, round ${round + 1} of ${form.fewRounds}: ${name}`);
    return measure();
  });
}

async function defineSets(
  lab: BenchLab,
  form: BenchForm,
  scenarios: ReadonlySet<ScenarioName>,
  contenders: readonly Contender[],
): Promise<void> {
  const needed = new Set<SetName>(['known', ...contenders.map(({ set }) => set)]);
  if (scenarios.has('latency')) for (const { beside } of storms) needed.add(beside);
  if (scenarios.has('memory')) needed.add('rotation');
  for (const name of setNames.filter(each => needed.has(each)))
    await lab.load.define(name, await makeRequestSet(name, lab.tokens, form.newTokens));
  if (scenarios.has('envoy')) await lab.load.define(clientSet, await clientRequests(lab));
}

/** undefined if the program is missing. */
async function versionOf(program: string, argument: string, pattern: RegExp): Promise<string | undefined> {
  const { stdout } = await promisify(execFile)(program, [argument]).catch(() => ({ stdout: '' }));
  return pattern.exec(stdout)?.[1];
}
