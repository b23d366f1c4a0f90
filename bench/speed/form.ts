// How long and how hard a bench measures: whole, or quick, which judges nothing.

export interface BenchForm {
  readonly connections: number;
  readonly inFlight: number;
  /** What a process that has just started serves before anything counts. */
  readonly startWarmMs: number;
  /** The same for one that has stood idle for the turns of the others: V8 drops compiled code from an idle process. */
  readonly turnWarmMs: number;
  /** At the rate itself, before what is counted. */
  readonly latencyWarmMs: number;
  readonly callsMs: number;
  readonly latencyMs: number;
  /** Calls a second of the open loops; the lowest first. */
  readonly rates: readonly number[];
  /** Taken in turn; each is forgotten before it comes again, as 10,000 are kept. */
  readonly newTokens: number;
  readonly connectionCounts: readonly number[];
  readonly envoyPerSecond: number;
  readonly envoyMs: number;
  /**
   * `rehearsalMs`: each of them before any is measured, so that V8 has compiled what it is made of. `turnMs`: the quiet and the storm
   * that is judged by it, in `turns`; `onceMs`: each of the others.
   */
  readonly storm: {
    readonly knownPerSecond: number;
    readonly stormPerSecond: number;
    readonly rehearsalMs: number;
    readonly turns: number;
    readonly turnMs: number;
    readonly onceMs: number;
  };
  readonly memoryMs: number;
  readonly scanMs: number;
  /** Rounds of `latency` and `envoy`, where fewer are not asked for. */
  readonly mostRounds: number;
  /** Rounds of the scenarios of which one figure is much like the next. */
  readonly fewRounds: number;
}

export const wholeForm: BenchForm = {
  connections: 4,
  inFlight: 64,
  startWarmMs: 3000,
  turnWarmMs: 600,
  callsMs: 500,
  latencyWarmMs: 200,
  latencyMs: 1000,
  rates: [1000, 3000],
  newTokens: 24_000,
  connectionCounts: [1, 2, 8, 64],
  envoyPerSecond: 500,
  envoyMs: 1000,
  // In turns, so that a machine that changes its pace changes it for both, and for long enough that the storm holds its share of major
  // collections, which come each 12 to 19 s of one (docs/performance.md).
  storm: { knownPerSecond: 1000, stormPerSecond: 2000, rehearsalMs: 2000, turns: 6, turnMs: 4000, onceMs: 8000 },
  memoryMs: 3000,
  scanMs: 4000,
  mostRounds: 4,
  fewRounds: 3,
};

export const quickForm: BenchForm = {
  ...wholeForm,
  startWarmMs: 2000,
  callsMs: 700,
  latencyMs: 800,
  newTokens: 20_000,
  connectionCounts: [1, 64],
  envoyMs: 600,
  storm: { ...wholeForm.storm, rehearsalMs: 500, turns: 2, turnMs: 500, onceMs: 1000 },
  memoryMs: 2000,
  scanMs: 2000,
  mostRounds: 1,
  fewRounds: 1,
};
