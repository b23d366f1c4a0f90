// A bench from its first process to its results: who takes part, which scenarios, round after round.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { envoyBinary } from '../../test/support/envoy.ts';
import type { Peers } from './build-peers.ts';
import { type CallsForm, measureCalls } from './calls.ts';
import { type Contender, type SetName, setNames } from './contender.ts';
import { type Field, makeField } from './contenders.ts';
import { clientRequests, clientSet, measureVariant, type RunningVariant, startVariant } from './envoy-bench.ts';
import { envoyTitles, envoyVariants } from './envoy-variants.ts';
import type { BenchForm } from './form.ts';
import type { BenchLab } from './lab.ts';
import { measureLatency } from './latency.ts';
import { nodeVersion } from './node-binary.ts';
import type { BenchOptions } from './options.ts';
import { preflightCases } from './preflight.ts';
import { hotSet, measureMemory, measureReplicas, measureScan, measureStorms, scans, storms } from './product-bench.ts';
import { knownToken, makeRequestSet } from './request-sets.ts';
import { checkCall } from './requests.ts';
import type { BenchResults, ConnectionsRound, EnvoyRound, LatencyRound, Rounds } from './results.ts';
import { inTurn, persistently } from './rounds.ts';
import { type ScenarioName, type Selection, select } from './scenario-names.ts';
import { spreadOf } from './spread.ts';
import { createStable, type Stable } from './stable.ts';

export type BenchEnd =
  | { readonly kind: 'results'; readonly results: BenchResults }
  | { readonly kind: 'unknown names'; readonly names: readonly string[]; readonly known: readonly string[] };

type Progress = (text: string) => void;

/** In latency, connections and start: enough to tell what is whose share, few enough to end in time. */
const latencyContenders = ['nothing', 'go-nothing', 'known', 'rotation', 'new', 'forged', 'jose', 'go-jwt', 'opa'];
const connectionsContenders = ['nothing', 'known'];
const startContenders = ['nothing', 'known', 'jose', 'go-jwt', 'opa'];

interface Bench {
  readonly lab: BenchLab;
  readonly form: BenchForm;
  readonly rounds: number;
  readonly stable: Stable;
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
  const field = await makeField(lab, peers);
  const names = [...field.contenders, ...field.absent].map(({ name }) => name);
  const selected = select(options.only, names, options.quick);
  if (selected.kind === 'unknown') return { kind: 'unknown names', names: selected.names, known: names };
  const { selection } = selected;
  const contenders = field.contenders.filter(({ name }) => selection.isWanted(name));
  await defineSets(lab, form, selection, contenders);
  const stable = createStable(lab, {
    cases: () => preflightCases(lab.tokens),
    allow: field.allow,
    account: (await knownToken(lab.tokens)).account,
    form,
  });
  const bench: Bench = { lab, form, rounds: options.rounds, stable, contenders, progress };
  try {
    return { kind: 'results', results: await measure(bench, field, selection, options, peers) };
  } finally {
    await stable.stop();
  }
}

async function measure(
  bench: Bench,
  field: Field,
  { scenarios, isWanted }: Selection,
  options: BenchOptions,
  peers: Peers,
): Promise<BenchResults> {
  const { lab, form, rounds } = bench;
  const when = async <Value>(
    name: ScenarioName,
    take: () => Promise<Record<string, Value>>,
  ): Promise<Record<string, Value>> => (scenarios.has(name) ? take() : {});
  // First, of a machine that nothing has kept busy yet: a tail tells of all that runs, also of what a kernel does about it.
  const stormRounds = await when('storms', () => benchStorms(bench));
  const calls = await when('calls', () => benchCalls(bench));
  const latency = await when('latency', () => benchLatency(bench, calls));
  const connections = await when('connections', () => benchConnections(bench));
  const start = await when('start', () => benchStart(bench));
  const envoy = await when('envoy', () => benchEnvoy(bench));
  // What stood ready would now only be in the way.
  await bench.stable.stop();
  const memory = await when('memory', () => benchMemory(bench));
  const scan = await when('scan', () => benchScan(bench));
  const replicas = await when('replicas', () => benchReplicas(bench));
  const known = checkCall(await knownToken(lab.tokens));
  return {
    run: {
      isWhole: !options.quick && options.only.length === 0,
      rounds,
      algorithm: options.algorithm,
      requestBytes: (known.body?.length ?? 5) - 5,
      pinned: lab.cores !== undefined,
      node: await nodeVersion(lab.node),
      nodeOptions: options.nodeOptions,
      go: peers.go.kind === 'built' ? await goVersion() : undefined,
      envoy: scenarios.has('envoy') ? await envoyVersion() : undefined,
      calls: { connections: form.connections, inFlight: form.inFlight },
      storm: form.storm,
    },
    contenders: field.contenders.map(({ name, title, family }) => ({ name, title, family })),
    absent: field.absent.filter(({ name }) => isWanted(name)),
    calls,
    latency,
    connections,
    start,
    envoy,
    storms: stormRounds,
    memory,
    scan,
    replicas,
  };
}

function callsForm({ connections, inFlight, callsMs }: BenchForm): CallsForm {
  return { connections, inFlight, warmMs: 100, measureMs: callsMs };
}

function benchCalls({ lab, form, rounds, stable, contenders, progress }: Bench): Promise<BenchResults['calls']> {
  return inTurn(rounds, contenders, (contender, round) => {
    progress(`calls, round ${round + 1} of ${rounds}: ${contender.title}`);
    return stable.lend(contender, server => measureCalls(lab, server, contender.set, callsForm(form)));
  });
}

async function benchLatency(bench: Bench, calls: BenchResults['calls']): Promise<Record<string, Rounds<LatencyRound>>> {
  const { lab, form, stable, progress } = bench;
  const rounds = Math.min(bench.rounds, form.mostRounds);
  const { connections, latencyWarmMs: warmMs, latencyMs: measureMs } = form;
  const taken = await inTurn(rounds, named(bench, latencyContenders), (contender, round) => {
    progress(`latency, round ${round + 1} of ${rounds}: ${contender.title}`);
    const capacity = spreadOf((calls[contender.name] ?? []).map(({ perSecond }) => perSecond)).median;
    return stable.lend(contender, async server => {
      const byRate: Record<string, LatencyRound> = {};
      for (const perSecond of form.rates) {
        // A queue that only grows has no latency to tell.
        if (perSecond * 1.2 > capacity) continue;
        const form = { connections, perSecond, warmMs, measureMs };
        byRate[perSecond] = await measureLatency(lab, server, contender.set, form);
      }
      return byRate;
    });
  });
  return byContender(taken);
}

async function benchConnections(bench: Bench): Promise<Record<string, Rounds<ConnectionsRound>>> {
  const { lab, form, stable, progress } = bench;
  const [perSecond = 1000] = form.rates;
  const taken = await inTurn(form.fewRounds, named(bench, connectionsContenders), (contender, round) => {
    progress(`connections, round ${round + 1} of ${form.fewRounds}: ${contender.title}`);
    return stable.lend(contender, async server => {
      const byCount: Record<string, ConnectionsRound> = {};
      for (const connections of form.connectionCounts) {
        const closed = await measureCalls(lab, server, contender.set, { ...callsForm(form), connections });
        const timed = { connections, perSecond, warmMs: form.latencyWarmMs, measureMs: form.latencyMs };
        const { p99Ms } = await measureLatency(lab, server, contender.set, timed);
        byCount[connections] = { ...closed, p99Ms };
      }
      return byCount;
    });
  });
  return byContender(taken);
}

function benchStart({ form, progress, ...bench }: Bench): Promise<BenchResults['start']> {
  const rounds = 2 + form.fewRounds;
  return inTurn(rounds, named(bench, startContenders), async (contender, round) => {
    progress(`start, round ${round + 1} of ${rounds}: ${contender.title}`);
    const server = await contender.start();
    await server.stop();
    return server.startMs;
  });
}

async function benchEnvoy(bench: Bench): Promise<Record<string, EnvoyRound[]>> {
  const { lab, form, stable, contenders, progress } = bench;
  const rounds = Math.min(bench.rounds, form.mostRounds);
  const running = new Map<string, RunningVariant>();
  const variants = envoyVariants(lab.tokens).filter(
    ({ contender }) => contender === undefined || contenders.some(({ name }) => name === contender),
  );
  try {
    for (const variant of variants) {
      progress(`envoy: starting it for ${envoyTitles.get(variant.name)}`);
      const asked = contenders.find(({ name }) => name === variant.contender);
      const services = asked === undefined ? [] : [await stable.standing(asked)];
      const started = await startVariant(lab, variant, services);
      running.set(variant.name, started);
    }
    return await inTurn(rounds, variants, ({ name }, round) => {
      const turn = `envoy, round ${round + 1} of ${rounds}: ${envoyTitles.get(name)}`;
      progress(turn);
      const started = running.get(name);
      if (started === undefined) throw new Error(`${name} was not started`);
      // Envoy refuses what takes longer than its time limits, so a machine that stands still for a moment gives wrong answers.
      return persistently(
        () => measureVariant(lab, started, form),
        error => progress(`${turn}, again, since ${String(error)}`),
      );
    });
  } finally {
    await Promise.all(Array.from(running.values(), started => started.stop()));
  }
}

async function benchStorms({ lab, form, progress }: Bench): Promise<Record<string, LatencyRound[]>> {
  const rounds = form.fewRounds;
  const taken: Record<string, LatencyRound>[] = [];
  for (let round = 0; round < rounds; round++) {
    progress(`storms, round ${round + 1} of ${rounds}`);
    taken.push(await measureStorms(lab, form));
  }
  return Object.fromEntries(
    storms.map(({ name }) => [name, taken.flatMap(each => (each[name] === undefined ? [] : [each[name]]))]),
  );
}

function benchMemory({ lab, form, progress }: Bench): Promise<BenchResults['memory']> {
  const sets = [{ name: 'known' }, { name: 'rotation' }] as const;
  const rounds = form.fewRounds;
  return inTurn(rounds, sets, ({ name }, round) => {
    progress(`memory, round ${round + 1} of ${rounds}: ${name}`);
    return measureMemory(lab, form, name);
  });
}

function benchScan({ lab, form, progress }: Bench): Promise<BenchResults['scan']> {
  const rounds = Math.min(2, form.fewRounds);
  return inTurn(rounds, scans, (scan, round) => {
    progress(`scan, round ${round + 1} of ${rounds}: ${scan.title}`);
    return measureScan(lab, form, scan);
  });
}

function benchReplicas({ lab, form, progress }: Bench): Promise<BenchResults['replicas']> {
  const counts = [
    { name: '1', count: 1 },
    { name: '2', count: 2 },
  ] as const;
  const rounds = form.fewRounds;
  return inTurn(rounds, counts, ({ count }, round) => {
    progress(`replicas, round ${round + 1} of ${rounds}: ${count}`);
    return measureReplicas(lab, form, count);
  });
}

async function defineSets(
  lab: BenchLab,
  form: BenchForm,
  { scenarios }: Selection,
  contenders: readonly Contender[],
): Promise<void> {
  const needed = new Set<SetName>(['known', ...contenders.map(({ set }) => set)]);
  if (scenarios.has('storms')) for (const set of ['forged', 'new'] as const) needed.add(set);
  if (scenarios.has('memory')) needed.add('rotation');
  if (scenarios.has('scan')) needed.add('new');
  for (const name of setNames.filter(each => needed.has(each)))
    await lab.load.define(name, await makeRequestSet(name, lab.tokens, form.newTokens));
  if (scenarios.has('envoy')) await lab.load.define(clientSet, await clientRequests(lab));
  if (scenarios.has('scan')) {
    for (const scan of scans) {
      const tokens = await lab.tokens.good(0, scan.hot);
      const requests = tokens.map(token => checkCall(token));
      await lab.load.define(hotSet(scan), { requests, once: false, expected: 'allow' });
    }
  }
}

function named({ contenders }: Pick<Bench, 'contenders'>, names: readonly string[]): Contender[] {
  return contenders.filter(({ name }) => names.includes(name));
}

/** Rounds of values by key, turned into rounds by key. */
function byContender<Round>(
  taken: Readonly<Record<string, readonly Readonly<Record<string, Round>>[]>>,
): Record<string, Rounds<Round>> {
  return Object.fromEntries(
    Object.entries(taken).map(([name, rounds]) => {
      const byKey = new Map<string, Round[]>();
      for (const round of rounds)
        for (const [key, value] of Object.entries(round)) byKey.set(key, [...(byKey.get(key) ?? []), value]);
      return [name, Object.fromEntries(byKey)];
    }),
  );
}

async function goVersion(): Promise<string | undefined> {
  const { stdout } = await promisify(execFile)('go', ['version']);
  return /go(\d+\.\d+(?:\.\d+)?)/.exec(stdout)?.[1];
}

async function envoyVersion(): Promise<string | undefined> {
  const { stdout } = await promisify(execFile)(await envoyBinary(), ['--version']);
  return /\/(\d+\.\d+\.\d+)/.exec(stdout)?.[1];
}
