// `npm run mutate -- [--only PATH] [--minutes N] [--workers N] [--again survivors|all|none] [--no-report]`: runs the tests against every
// mutant.
// Results are cached in .cache/mutation/, a file for each group, and are valid until the source or a test of its group changes, so a
// run can be split. Runs at the same time do not disturb each other, as long as they ask for different groups. At its end
// docs/dev/mutation.md is written, which needs every group, and the mutants are compared with the listed survivors.
import { type ChildProcess, fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Bundle, bundle } from './bundle.ts';
import { type Found, instrument, type Mutant, nameOf, type Status } from './mutants.ts';
import { report } from './report.ts';
import { type Group, groups, project } from './scope.ts';
import { type Disagreement, disagreements, readSurvivors } from './survivors.ts';
import type { Baseline, Order, Verdict } from './worker.ts';

interface Kept {
  readonly status: Status;
  readonly by: string | undefined;
  /** A digest of the source file and of everything that the tests include. */
  readonly source: string;
  readonly tests: string;
}

const directory = `${project}.cache/mutation/`;
const keptFile = (group: Group): string => `${directory}${group.name}.json`;
// For a loop that never yields. Tests of a surviving mutant end within three times their normal duration.
const verdictLimitMs = (baselineMs: number): number => Math.max(45_000, 3 * baselineMs);
// At the lowest priority on a busy machine the tests of a group take minutes.
const baselineLimitMs = 900_000;
const mutantsPerProcess = 80;

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    minutes: { type: 'string', default: '60' },
    workers: { type: 'string', default: '2' },
    again: { type: 'string', default: 'changed' },
    report: { type: 'boolean', default: true },
  },
  allowNegative: true,
});
const endMs = performance.now() + Number(values.minutes) * 60_000;

mkdirSync(directory, { recursive: true });
// Bundles of this run alone: another run, or one of another work tree, numbers its mutants in its own way.
const bundles = `${mkdtempSync(`${directory}run-`)}/`;
process.on('exit', () => rmSync(bundles, { recursive: true, force: true }));
const found: Found[] = [];
const left: Mutant[] = [];
for (const group of groups) if (values.report || group.sources.some(isAsked)) await ask(group);
const survivors = readSurvivors();
if (values.report) writeFileSync(`${project}docs/dev/mutation.md`, report(found, left, survivors));
// The report covers all results; the exit code covers the mutants of this run.
const asked = found.filter(({ mutant }) => isAsked(mutant.file));
const toJudge = left.filter(({ file }) => isAsked(file)).length;
const wrong = disagreements(survivors, asked);
for (const each of wrong) process.stdout.write(`${told(each)}\n`);
const survived = asked.filter(({ status }) => status === 'survived' || status === 'unreached').length;
process.stdout.write(`${asked.length} mutants judged, ${survived} alive, ${toJudge} still to judge\n`);
process.exitCode = toJudge > 0 || wrong.length > 0 ? 1 : 0;

function isAsked(file: string): boolean {
  return file.includes(values.only);
}

async function ask(group: Group): Promise<void> {
  const sources = await instrument(group.sources);
  // Mutants outside this run keep their verdict, whatever their tests are.
  const built = group.sources.some(isAsked) ? await bundle(group, sources, bundles) : undefined;
  const kept = new Map<string, Kept>(Object.entries(readJson(keptFile(group)) as Record<string, Kept>));
  const save = (): void => writeFileSync(keptFile(group), JSON.stringify(Object.fromEntries(kept), null, 1));
  const tests = digest(built?.inputs.filter(input => !group.sources.includes(input)) ?? []);
  const digests = new Map(group.sources.map(file => [file, digest([file])]));
  const isKnown = (mutant: Mutant): boolean => {
    const known = kept.get(nameOf(mutant));
    if (known === undefined || known.source !== digests.get(mutant.file)) return false;
    if (!isAsked(mutant.file) || values.again === 'none') return true;
    if (values.again === 'all') return false;
    const isDead = known.status === 'killed' || known.status === 'timeout';
    return known.tests === tests || (isDead && values.again === 'survivors');
  };
  const keep = (mutant: Mutant, status: Status, by: string | undefined): void => {
    kept.set(nameOf(mutant), { status, by, source: digests.get(mutant.file) ?? '', tests });
  };
  const wanted = sources.mutants.filter(mutant => isAsked(mutant.file) && !isKnown(mutant));
  const judged = new Set<Mutant>();
  if (built !== undefined && wanted.length > 0 && performance.now() < endMs) {
    process.stdout.write(`${group.name}: ${wanted.length} of ${sources.mutants.length} mutants\n`);
    await judgeAll(built, wanted, (mutant, status, by) => {
      judged.add(mutant);
      keep(mutant, status, by);
      if (judged.size % 20 === 0) save();
    });
    save();
  }
  for (const mutant of sources.mutants) {
    const known = kept.get(nameOf(mutant));
    if (known !== undefined && (judged.has(mutant) || isKnown(mutant))) found.push({ mutant, ...known });
    else left.push(mutant);
  }
}

async function judgeAll(
  built: Bundle,
  mutants: readonly Mutant[],
  keep: (mutant: Mutant, status: Status, by: string | undefined) => void,
): Promise<void> {
  const { baseline: learnt, limitMs } = await learn(built);
  const queue = mutants.filter(mutant => {
    if (learnt.reached[mutant.id] !== undefined) return true;
    keep(mutant, 'unreached', undefined);
    return false;
  });
  const work = async (): Promise<void> => {
    let child: ChildProcess | undefined;
    let asked = 0;
    for (let mutant = queue.shift(); mutant !== undefined && performance.now() < endMs; mutant = queue.shift()) {
      const reached = learnt.reached[mutant.id] ?? { hits: 0, tests: undefined };
      if (child === undefined || asked >= mutantsPerProcess) {
        child?.disconnect();
        child = start(built.file);
        asked = 0;
      }
      asked += 1;
      const order: Order = { id: mutant.id, ...reached, durations: learnt.durations };
      const verdict = await answerOf<Verdict>(child, order, limitMs);
      keep(mutant, verdict?.status ?? 'timeout', verdict?.by);
      if (verdict?.status === 'survived') process.stdout.write(`${place(mutant)}\n`);
      // Handles that it left open would take time from the next mutants.
      if (verdict === undefined || verdict.status === 'timeout' || verdict.hangs) {
        child.kill('SIGKILL');
        child = undefined;
      }
    }
    child?.disconnect();
  };
  await Promise.all(Array.from({ length: Number(values.workers) }, work));
}

interface Learnt {
  /** A digest of everything that is bundled. */
  readonly tests: string;
  readonly baseline: Baseline;
  readonly limitMs: number;
}

/** What a run without a mutant teaches, kept until a bundled file changes. */
async function learn({ file, inputs }: Bundle): Promise<Learnt> {
  const keptAt = `${directory}${basename(file)}.baseline.json`;
  const tests = digest(inputs);
  const known = readJson(keptAt) as Partial<Learnt>;
  if (known.tests === tests) return known as Learnt;
  const child = start(file);
  const startedMs = performance.now();
  const baseline = await answerOf<Baseline>(child, 'baseline', baselineLimitMs);
  if (baseline === undefined) {
    const limit = `${baselineLimitMs / 1000} s`;
    throw new Error(`the tests without a mutant end their process, or take longer than ${limit}: ${stateOf(child)}`);
  }
  child.disconnect();
  if (baseline.failures.length > 0) throw new Error(`tests fail without a mutant:\n${baseline.failures.join('\n')}`);
  const learnt = { tests, baseline, limitMs: verdictLimitMs(performance.now() - startedMs) };
  writeFileSync(keptAt, JSON.stringify(learnt));
  return learnt;
}

function start(file: string): ChildProcess {
  const worker = fileURLToPath(new URL('worker.ts', import.meta.url));
  return fork(worker, [file], {
    // Fewer random sequences of the key set's state machine than the 10,000 of a normal run.
    env: { ...process.env, FAST_CHECK_RUNS: '500' },
    // As in .mocharc.yaml.
    execArgv: ['--import', 'tsx', '--min-semi-space-size=16'],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
}

/** undefined if the process ends, or does not answer in time. */
async function answerOf<Answer>(
  child: ChildProcess,
  order: Order | 'baseline',
  limitMs: number,
): Promise<Answer | undefined> {
  const waiting = new AbortController();
  const timer = setTimeout(() => waiting.abort(), limitMs);
  const { signal } = waiting;
  try {
    child.send(order);
    const answered = once(child, 'message', { signal }).then(([answer]) => answer as Answer);
    return await Promise.race([answered, once(child, 'exit', { signal }).then(() => undefined)]);
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
    waiting.abort();
  }
}

/** Of a child whose answer is missing; it is ended. */
function stateOf(child: ChildProcess): string {
  const { exitCode, signalCode } = child;
  if (exitCode !== null || signalCode !== null) return `ended with ${exitCode ?? signalCode}`;
  child.kill('SIGKILL');
  return 'still running';
}

function digest(files: readonly string[]): string {
  const hash = createHash('sha256');
  for (const file of files) hash.update(`${file}\0`).update(readFileSync(`${project}${file}`));
  return hash.digest('base64url');
}

/** An empty object where there is no such file. */
function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return {};
  }
}

function place({ file, line, operator, original, replacement }: Mutant): string {
  const short = (text: string): string => text.replace(/\s+/g, ' ').slice(0, 100);
  return `  survives: ${file}:${line} ${operator}: ${short(original)} → ${short(replacement)}`;
}

function told({ problem, name }: Disagreement): string {
  return `survivors.json: ${problem}: ${name}`;
}
