// `npm run bench`: what a decision costs, beside a service that does nothing and peers that do the same work, in one run on one core. Writes bench/results.md and its
// picture, and exits with 1 where a floor of the contract is missed.
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { defaultEnvoyVersion } from '../lab/envoy.ts';
import { megabytes } from '../lab/process-usage.ts';
import { clientRequest, startVariant, variants } from './behind-envoy.ts';
import { type Contender, makeContenders } from './contenders.ts';
import { checkHeaders, type Figures, load, project } from './load.ts';
import { toText } from './report/table.ts';
import { floorsOf, type Results, tablesOf, toPage, toPicture } from './report.ts';
import { checkPath } from './requests.ts';
import { askCheck, type Server, startWorkbench, type TokenSet, type Workbench } from './workbench.ts';

const usage = `npm run bench -- [options]

  --trial              in seconds: shows that the bench runs here, not how fast anything is
  --only NAME,...      the throughput of these contenders alone
  --beside REVISION    another commit of account-authz with the flags of its image: known, new, forged and behind Envoy, and nothing else
  --node-options=TEXT  flags for the Node of all contenders in JavaScript, in the place of the image's
`;
const { values } = parseArgs({
  options: {
    trial: { type: 'boolean', default: false },
    only: { type: 'string' },
    beside: { type: 'string' },
    'node-options': { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  process.stdout.write(usage);
  process.exit();
}
// One exit listener for each child process.
process.setMaxListeners(0);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

/** Many short rounds, as a shared machine changes its pace within seconds. New tokens: more than the cache holds, so that each is evicted before it comes again. */
const whole = {
  rounds: 32,
  fewRounds: 4,
  seconds: 0.5,
  warmSeconds: 0.05,
  sidecarSeconds: 20,
  rotation: 10_000,
  newTokens: 24_000,
  large: 4000,
};
const trial: typeof whole = {
  rounds: 1,
  fewRounds: 1,
  seconds: 1,
  warmSeconds: 1,
  sidecarSeconds: 2,
  rotation: 1000,
  newTokens: 1000,
  large: 100,
};
const form = values.trial ? trial : whole;
const sidecarPerSecond = 200;
/** Before the flags and the signature of today; the contract compares with it. */
const reference = 'cb3c0105';
const compared = ['known', 'new', 'forged'].flatMap(name => [name, `${name}-before`]);
const only = values.beside === undefined ? (values.only?.split(',') ?? []) : [...compared, 'known-unix'];
const isPart = only.length > 0;

const bench = await startWorkbench(form, values['node-options']?.split(' '));
const started = new Map<string, Server>();
try {
  const results = await measure(bench);
  for (const { title, table } of tablesOf(results))
    console.log(`\n${title}\n${toText(table, process.stdout.isTTY === true)}`);
  for (const each of results.absent) console.log(`absent: ${each}`);
  if (results.isWhole) {
    await mkdir(join(project, 'bench', 'results'), { recursive: true });
    await writeFile(join(project, 'bench', 'results', 'calls.svg'), toPicture(results));
    await writeFile(join(project, 'bench', 'results.md'), toPage(results));
  }
  process.exitCode = floorsOf(results).some(({ verdict }) => verdict === 'NOT MET') ? 1 : 0;
} finally {
  for (const server of started.values()) await server.stop();
  await bench.stop();
}

async function measure(bench: Workbench): Promise<Results> {
  const [contenders, absent]: [Contender[], string[]] = [[], []];
  for (const contender of await makeContenders(bench, only, values.beside ?? reference)) {
    console.error(`starting ${contender.name}; the first time this builds it`);
    try {
      const server = await contender.start();
      started.set(contender.name, server);
      if (!contender.name.startsWith('nothing')) await expectRightAnswers(server);
      contenders.push(contender);
    } catch (error) {
      if (contender.family === 'product') throw error;
      absent.push(`${contender.name}: ${error instanceof Error ? error.message.trim().split('\n').at(-1) : error}`);
    }
  }
  // Without measuring, until each has its compiled code.
  for (const { name, tokens } of values.trial ? [] : contenders)
    for (let [calls, runs] = [0, 0]; calls < 20_000 && runs < 3; runs += 1)
      calls += (await measureCalls(tokens, started.get(name), 3)).perSecond * 3;
  const calls = await inTurn('calls', form.rounds, contenders, ({ name, tokens }) =>
    measureCalls(tokens, started.get(name)),
  );
  const envoy = values.only === undefined ? await measureBehindEnvoy() : new Map<string, Figures[]>();
  // The servers that are left would disturb what is measured at a low rate.
  for (const server of started.values()) await server.stop();
  started.clear();
  const start = await inTurn('starts', 2 * form.fewRounds, contenders, async contender => {
    const { startMs, stop } = await contender.start();
    await stop();
    return startMs;
  });
  const memory = isPart ? new Map<string, number[]>() : await measureMemory(contenders);
  const isWhole = !isPart && !values.trial;
  return { isWhole, about: await aboutRun(), contenders, absent, calls, envoy, memory, start };
}

/** Each round measures every item once, so that a machine that changes its pace affects all of them. */
async function inTurn<Item extends { readonly name: string }, Value>(
  what: string,
  rounds: number,
  items: readonly Item[],
  take: (item: Item) => Promise<Value>,
): Promise<Map<string, Value[]>> {
  const taken = new Map<string, Value[]>(items.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    console.error(`${what}, round ${round + 1} of ${rounds}`);
    // Back and forth, so that no item always comes behind the same one.
    for (const item of round % 2 === 0 ? items : items.toReversed()) taken.get(item.name)?.push(await take(item));
  }
  return taken;
}

/** A good token is allowed, another account and a forged signature are refused. */
async function expectRightAnswers({ address }: Server): Promise<void> {
  const { good, forged } = bench.tokens;
  const asked = [askCheck(address, good[0]), askCheck(address, good[0], 'acct-other1'), askCheck(address, forged)];
  const codes = (await Promise.all(asked)).map(({ code }) => code);
  if (codes[0] !== 0 || codes[1] === 0 || codes[2] === 0) throw new Error(`wrong answers: codes ${codes}`);
}

async function measureCalls(tokens: TokenSet, server?: Server, seconds = form.seconds): Promise<Figures> {
  if (server === undefined) throw new Error('a contender that was not started');
  const { good, large, forged } = bench.tokens;
  const one = { known: good[0], rotation: good[0], new: good[0], large: large[0], forged }[tokens];
  return load(server.address, {
    path: checkPath,
    headers: checkHeaders,
    callsFile: await bench.calls(tokens),
    answerBytes: [(await askCheck(server.address, one)).framed.length],
    pids: [server.pid],
    warmSeconds: form.warmSeconds,
    seconds,
  });
}

async function measureBehindEnvoy(): Promise<Map<string, Figures[]>> {
  const [known = bench.tokens.forged] = bench.tokens.good;
  const running = [];
  try {
    for (const variant of variants) {
      const service = 'service' in variant ? started.get(variant.service) : undefined;
      if ('service' in variant && service === undefined) continue;
      running.push(await startVariant(bench, variant, service));
    }
    return await inTurn('behind Envoy', form.rounds, running, ({ address, answerBytes, pids }) =>
      load(address, { ...clientRequest(known), ...form, answerBytes: [answerBytes], pids }),
    );
  } finally {
    for (const each of running) await each.stop();
  }
}

/** Of new processes. */
async function measureMemory(contenders: readonly Contender[]): Promise<Map<string, number[]>> {
  const withServer = async (name: string, take: (server: Server) => Promise<number>): Promise<number> => {
    const server = await contenders.find(each => each.name === name)?.start();
    if (server === undefined) throw new Error(`${name} is absent`);
    try {
      return await take(server);
    } finally {
      await server.stop();
    }
  };
  const underLoad = (tokens: 'known' | 'rotation' | 'large') => ({
    name: tokens,
    take: () =>
      withServer('known', async server => {
        // Each token of the set comes twice at least.
        for (let calls = 0; calls < 2 * form.rotation; )
          calls += (await measureCalls(tokens, server)).perSecond * form.seconds;
        return megabytes(server.pid, 'VmHWM');
      }),
  });
  const sidecar = (name: 'nothing' | 'known') => ({
    name: `sidecar-${name}`,
    take: () =>
      withServer(name, async ({ address, pid }) => {
        const answer = await askCheck(address, bench.tokens.good[0]);
        await load(address, {
          path: checkPath,
          headers: checkHeaders,
          callsFile: await bench.calls('known'),
          answerBytes: [answer.framed.length],
          pids: [pid],
          warmSeconds: 0,
          seconds: form.sidecarSeconds,
          perSecond: sidecarPerSecond,
        });
        return megabytes(pid, 'RssAnon');
      }),
  });
  const items = [underLoad('known'), underLoad('rotation'), underLoad('large'), sidecar('nothing'), sidecar('known')];
  return inTurn('memory', form.fewRounds, items, ({ take }) => take());
}

async function aboutRun(): Promise<string> {
  const run = async (program: string, ...args: readonly string[]): Promise<string> =>
    (await promisify(execFile)(program, args, { cwd: project })).stdout.trim();
  const isChanged = (await run('git', 'status', '--porcelain', '--untracked-files=no')) !== '';
  const { runtime, cores } = bench;
  return [
    `Commit ${await run('git', 'rev-parse', '--short', 'HEAD')}${isChanged ? ' with changes' : ''} on ${cpus()[0]?.model.trim()}, ${cpus().length} cores`,
    `Node ${runtime.version} with ${runtime.flags.join(' ') || 'no flags'}, Envoy ${defaultEnvoyVersion}`,
    `RS256, requests of 1.4 KB, ${form.rounds} rounds in turn`,
    cores === undefined ? 'not pinned to cores' : 'one core for the server, another for the load',
  ].join('; ');
}
