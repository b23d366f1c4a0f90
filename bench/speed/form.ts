// Durations and rates of a bench: whole, quick, or a trial. No floor is evaluated for the last two.

export interface BenchForm {
  readonly connections: number;
  readonly inFlight: number;
  readonly rounds: number;
  /** Measured seconds of `latency`, `envoy`, `start` and `memory`. */
  readonly fewRounds: number;
  /** Warm-up of a new process. */
  readonly startWarmMs: number;
  /** Warm-up of a process that was idle during the turns of the others: V8 flushes compiled code of idle processes. */
  readonly turnWarmMs: number;
  readonly callsMs: number;
  /** Open-loop rates: calls per second, and those of a storm beside them. */
  readonly perSecond: number;
  readonly stormPerSecond: number;
  readonly latencyMs: number;
  readonly envoyPerSecond: number;
  readonly envoyMs: number;
  readonly memoryMs: number;
  readonly sidecarMs: number;
  /** Used in turn; the cache of 10,000 evicts each before it comes again. */
  readonly newTokens: number;
}

const wholeForm: BenchForm = {
  connections: 4,
  inFlight: 64,
  rounds: 10,
  fewRounds: 4,
  startWarmMs: 3000,
  turnWarmMs: 600,
  callsMs: 700,
  perSecond: 1000,
  stormPerSecond: 2000,
  latencyMs: 2000,
  envoyPerSecond: 500,
  envoyMs: 1500,
  memoryMs: 3000,
  sidecarMs: 20_000,
  newTokens: 24_000,
};

const quickForm: BenchForm = {
  ...wholeForm,
  rounds: 2,
  fewRounds: 1,
  startWarmMs: 1500,
  latencyMs: 600,
  envoyMs: 600,
  memoryMs: 1000,
  sidecarMs: 2000,
};

/** Shows that the bench runs, not how fast anything is. */
const trialForm: BenchForm = {
  ...quickForm,
  rounds: 1,
  startWarmMs: 1000,
  turnWarmMs: 300,
  callsMs: 500,
  newTokens: 2000,
};

export const forms = { whole: wholeForm, quick: quickForm, trial: trialForm };
