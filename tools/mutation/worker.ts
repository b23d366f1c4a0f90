// A child process that runs a group's tests: first without a mutant, to measure the coverage of each test, then once for each mutant that
// it receives. Mutants share only the process: every run imports a fresh copy of the bundle.
import { linkSync, rmSync } from 'node:fs';
import { INSTRUMENTER_CONSTANTS, type InstrumenterContext } from '@stryker-mutator/api/core';
import fc from 'fast-check';
import Mocha from 'mocha';

export interface Baseline {
  readonly kind: 'baseline';
  readonly failures: readonly string[];
  /** Milliseconds of each test, in order of declaration. */
  readonly durations: readonly number[];
  /** Mutant → its number of hits, and the tests that hit it; undefined: hit outside of any test, so that all of them must run. */
  readonly reached: Readonly<Record<string, { readonly hits: number; readonly tests: readonly number[] | undefined }>>;
}

export interface Verdict {
  readonly kind: 'verdict';
  readonly id: string;
  readonly status: 'killed' | 'timeout' | 'survived';
  /** The test that failed. */
  readonly by: string | undefined;
  /** Whether hooks of the failed test are still pending. */
  readonly hangs: boolean;
}

export interface Order {
  readonly id: string;
  readonly hits: number;
  readonly tests: readonly number[] | undefined;
  readonly durations: readonly number[];
}

const [bundle = ''] = process.argv.slice(2);
const mutants: InstrumenterContext = {};
Object.assign(globalThis, { [INSTRUMENTER_CONSTANTS.NAMESPACE]: mutants });
// The same inputs for each mutant, and no shrinking of counterexamples.
fc.configureGlobal({ seed: 20_261_121, endOnFailure: true });
// Wide, because a busy machine slows a test down too, and a timeout counts as a killed mutant.
const hangMs = 10_000;
/** Tests that killed a mutant of this process, which is often the neighbour of the next one. The latest runs first, after them the fastest. */
const killers = new Set<number>();
const beforeOthers = -1_000_000;
let loads = 0;

async function load(): Promise<{ readonly mocha: Mocha; readonly tests: readonly Mocha.Test[] }> {
  // Errors of an earlier mutant's leftovers belong to no test; mocha does not remove its listeners when it stops early.
  for (const event of ['uncaughtException', 'unhandledRejection']) {
    process.removeAllListeners(event);
    process.on(event, () => undefined);
  }
  // A suite takes `bail` from its parent when it is declared, so it must be set before the tests are loaded.
  const mocha = new Mocha({ reporter: Mocha.reporters.Base, timeout: 100_000, bail: true });
  loads += 1;
  // Node evaluates a module once per path, so each load links the bundle under a new name.
  const copy = `${bundle}-${process.pid}-${loads}.mjs`;
  linkSync(bundle, copy);
  mocha.addFile(copy);
  try {
    await mocha.loadFilesAsync();
  } finally {
    rmSync(copy);
  }
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
      delete mutants.currentTestId;
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

async function judge({ id, hits, tests: covering, durations }: Order): Promise<Verdict> {
  Object.assign(mutants, { activeMutant: id, hitCount: 0, hitLimit: hits * 100 + 1000 });
  try {
    const { mocha, tests } = await load();
    const chosen = new Set(covering === undefined ? tests : covering.map(index => tests[index]));
    for (const [index, test] of tests.entries()) test.timeout(Math.max(hangMs, 10 * (durations[index] ?? 0)));
    const ranks = durations.slice();
    for (const [at, index] of [...killers].entries()) ranks[index] = beforeOthers - at;
    keepInOrder(mocha.suite, test => (chosen.has(test) ? ranks[tests.indexOf(test)] : undefined));
    let failed: { readonly by: string; readonly error: unknown } | undefined;
    const hangs = await new Promise<boolean>(done => {
      const runner = mocha.run(() => done(false));
      runner.on('fail', (test, error) => {
        failed ??= { by: test.fullTitle(), error };
        // The last of the set is the latest.
        killers.delete(tests.indexOf(test));
        killers.add(tests.indexOf(test));
        setTimeout(() => done(true), hangMs);
      });
    });
    const isLoop = (mutants.hitCount ?? 0) > (mutants.hitLimit ?? 0) || isTimeout(failed?.error);
    if (failed === undefined) return { kind: 'verdict', id, status: 'survived', by: undefined, hangs };
    return { kind: 'verdict', id, status: isLoop ? 'timeout' : 'killed', by: failed.by, hangs };
  } catch {
    return { kind: 'verdict', id, status: 'killed', by: 'the import of the tests', hangs: false };
  } finally {
    delete mutants.activeMutant;
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_MOCHA_TIMEOUT';
}

/** Removes the tests without a rank and sorts the others, by suites with the sum of their ranks. Returns the sum. */
function keepInOrder(suite: Mocha.Suite, rankOf: (test: Mocha.Test) => number | undefined): number {
  const ranked = suite.tests.flatMap(test => {
    const rank = rankOf(test);
    return rank === undefined ? [] : [{ test, rank }];
  });
  const inner = suite.suites.map(each => ({ suite: each, rank: keepInOrder(each, rankOf) }));
  suite.tests = ranked.sort((a, b) => a.rank - b.rank).map(({ test }) => test);
  suite.suites = inner.sort((a, b) => a.rank - b.rank).map(({ suite: each }) => each);
  return [...ranked, ...inner].reduce((sum, { rank }) => sum + rank, 0);
}

process.on('message', (order: Order | 'baseline') => {
  const answer = order === 'baseline' ? baseline() : judge(order);
  answer.then(
    result => process.send?.(result),
    () => process.exit(1),
  );
});
process.on('disconnect', () => process.exit(0));
