// How long and how hard a bench measures: whole, or quick, which judges nothing.

export interface BenchForm {
  readonly connections: number;
  readonly inFlight: number;
  readonly warmMs: number;
  readonly callsMs: number;
  readonly latencyMs: number;
  /** Calls a second of the open loops; the lowest first. */
  readonly rates: readonly number[];
  /** Of new tokens: a round of calls may use up as many. */
  readonly newTokens: number;
  readonly connectionCounts: readonly number[];
  readonly envoyPerSecond: number;
  readonly envoyMs: number;
  readonly storm: { readonly knownPerSecond: number; readonly stormPerSecond: number; readonly ms: number };
  readonly memoryMs: number;
  readonly scanMs: number;
  /** Rounds of the scenarios that start processes. */
  readonly startRounds: number;
}

export const wholeForm: BenchForm = {
  connections: 4,
  inFlight: 64,
  warmMs: 300,
  callsMs: 1500,
  latencyMs: 1500,
  rates: [1000, 3000],
  newTokens: 24_000,
  connectionCounts: [1, 2, 8, 64],
  envoyPerSecond: 500,
  envoyMs: 1500,
  storm: { knownPerSecond: 1000, stormPerSecond: 2000, ms: 2000 },
  memoryMs: 4000,
  scanMs: 4000,
  startRounds: 5,
};

export const quickForm: BenchForm = {
  ...wholeForm,
  warmMs: 200,
  callsMs: 800,
  latencyMs: 800,
  newTokens: 12_000,
  connectionCounts: [1, 64],
  envoyMs: 800,
  storm: { ...wholeForm.storm, ms: 1000 },
  memoryMs: 2000,
  scanMs: 2000,
  startRounds: 2,
};
