// A process of its own that runs a group's tests: once as they are, to learn what each reaches, then once for each mutant that it is
// sent. The mutants share the process and nothing else: every run imports the bundle anew.
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import Mocha from 'mocha';

export interface Baseline {
  readonly kind: 'baseline';
  readonly failures: readonly string[];
  /** Milliseconds of each test, in the order of their declaration. */
  readonly durations: readonly number[];
  /** Mutant → how often it was reached, and by which tests; undefined: outside of any test, so that all of them are to be asked. */
  readonly reached: Readonly<Record<string, { readonly hits: number; readonly tests: readonly number[] | undefined }>>;
}

export interface Verdict {
  readonly kind: 'verdict';
  readonly id: string;
  readonly status: 'killed' | 'timeout' | 'survived';
  /** The test that failed. */
  readonly by: string | undefined;
  /** Whether what clears up after the test still waits. */
  readonly hangs: boolean;
}

export interface Order {
  readonly id: string;
  readonly hits: number;
  readonly tests: readonly number[] | undefined;
  readonly durations: readonly number[];
}

interface Switch {
  activeMutant?: string | undefined;
  currentTestId?: string | undefined;
  mutantCoverage?: { readonly static: Counts; readonly perTest: Record<string, Counts> };
  hitCount?: number | undefined;
  hitLimit?: number | undefined;
}

type Counts = Readonly<Record<string, number>>;

const [bundle = ''] = process.argv.slice(2);
const mutants: Switch = {};
Object.assign(globalThis, { __stryker__: mutants });
// The same inputs for each mutant; a counterexample need not be made small.
fc.configureGlobal({ seed: 20_261_121, endOnFailure: true });
const hangMs = 3000;
let loads = 0;

async function load(): Promise<{ readonly mocha: Mocha; readonly tests: readonly Mocha.Test[] }> {
  // What an earlier mutant left behind fails in nobody's turn; mocha does not take its listeners away where it stops early.
  for (const event of ['uncaughtException', 'unhandledRejection']) {
    process.removeAllListeners(event);
    process.on(event, () => undefined);
  }
  const mocha = new Mocha({ reporter: Mocha.reporters.Base, timeout: 20_000 });
  mocha.suite.emit('pre-require', globalThis, bundle, mocha);
  loads += 1;
  await import(`${pathToFileURL(bundle).href}?load=${loads}`);
  const tests: Mocha.Test[] = [];
  mocha.suite.eachTest(test => tests.push(test));
  return { mocha, tests };
}

async function baseline(): Promise<Baseline> {
  const { mocha, tests } = await load();
  const failures: string[] = [];
  await new Promise(done => {
    const runner = mocha.run(done);
    runner.on('test', test => {
      mutants.currentTestId = String(tests.indexOf(test));
    });
    runner.on('test end', () => {
      mutants.currentTestId = undefined;
    });
    runner.on('fail', (test, error) => failures.push(`${test.fullTitle()}: ${error.message}`));
  });
  const coverage = mutants.mutantCoverage ?? { static: {}, perTest: {} };
  const reached: Record<string, { hits: number; tests: number[] | undefined }> = {};
  for (const [test, counts] of Object.entries(coverage.perTest)) {
    for (const [id, hits] of Object.entries(counts)) {
      const known = reached[id] ?? { hits: 0, tests: [] };
      reached[id] = known;
      known.hits += hits;
      known.tests?.push(Number(test));
    }
  }
  for (const [id, hits] of Object.entries(coverage.static)) {
    reached[id] = { hits: (reached[id]?.hits ?? 0) + hits, tests: undefined };
  }
  return { kind: 'baseline', failures, durations: tests.map(test => test.duration ?? 0), reached };
}

async function judge({ id, hits, tests: wanted, durations }: Order): Promise<Verdict> {
  Object.assign(mutants, { activeMutant: id, currentTestId: undefined, hitCount: 0, hitLimit: hits * 100 + 1000 });
  try {
    const { mocha, tests } = await load();
    const chosen = new Set(wanted === undefined ? tests : wanted.map(index => tests[index]));
    for (const [index, test] of tests.entries()) test.timeout(Math.max(hangMs, 10 * (durations[index] ?? 0)));
    eachSuite(mocha.suite, suite => {
      suite.tests = suite.tests.filter(test => chosen.has(test));
    });
    mocha.bail(true);
    let failed: { readonly by: string; readonly error: unknown } | undefined;
    const hangs = await new Promise<boolean>(done => {
      const runner = mocha.run(() => done(false));
      runner.on('fail', (test, error) => {
        failed ??= { by: test.fullTitle(), error };
        setTimeout(() => done(true), hangMs);
      });
    });
    const isLoop = (mutants.hitCount ?? 0) > (mutants.hitLimit ?? 0) || isTimeout(failed?.error);
    if (failed === undefined) return { kind: 'verdict', id, status: 'survived', by: undefined, hangs };
    return { kind: 'verdict', id, status: isLoop ? 'timeout' : 'killed', by: failed.by, hangs };
  } catch {
    return { kind: 'verdict', id, status: 'killed', by: 'the import of the tests', hangs: false };
  } finally {
    mutants.activeMutant = undefined;
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_MOCHA_TIMEOUT';
}

function eachSuite(suite: Mocha.Suite, visit: (suite: Mocha.Suite) => void): void {
  visit(suite);
  for (const each of suite.suites) eachSuite(each, visit);
}

process.on('message', (order: Order | 'baseline') => {
  const answer = order === 'baseline' ? baseline() : judge(order);
  answer.then(
    result => process.send?.(result),
    () => process.exit(1),
  );
});
process.on('disconnect', () => process.exit(0));
