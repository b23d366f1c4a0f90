// How long and how hard a bench measures: whole, or quick, which judges nothing.

export interface BenchForm {
  readonly connections: number;
  readonly inFlight: number;
  readonly rounds: number;
  /** Of `latency`, `envoy`, `start` and `memory`. */
  readonly fewRounds: number;
  /** What a process that has just started serves before anything counts. */
  readonly startWarmMs: number;
  /** The same for one that has stood idle for the turns of the others: V8 drops compiled code from an idle process. */
  readonly turnWarmMs: number;
  readonly callsMs: number;
  /** Of an open loop: calls a second, and those of a storm beside them. */
  readonly perSecond: number;
  readonly stormPerSecond: number;
  readonly latencyMs: number;
  readonly envoyPerSecond: number;
  readonly envoyMs: number;
  readonly memoryMs: number;
  /** Taken in turn; each is forgotten before it comes again, as 10,000 are kept. */
  readonly newTokens: number;
}

export const wholeForm: BenchForm = {
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
  newTokens: 24_000,
};

export const quickForm: BenchForm = {
  ...wholeForm,
  rounds: 2,
  fewRounds: 1,
  startWarmMs: 1500,
  latencyMs: 600,
  envoyMs: 600,
  memoryMs: 1000,
};
