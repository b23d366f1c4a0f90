// What a run of the bench has measured, as it lies in bench/results/bench.json: figures of rounds, nothing judged.

export interface BenchResults {
  readonly run: RunFacts;
  readonly contenders: readonly { readonly name: string; readonly title: string; readonly family: string }[];
  readonly absent: readonly { readonly name: string; readonly title: string; readonly reason: string }[];
  readonly calls: Rounds<CallRound>;
  /** By contender, then by calls a second. */
  readonly latency: Readonly<Record<string, Rounds<LatencyRound>>>;
  /** By contender, then by number of connections. */
  readonly connections: Readonly<Record<string, Rounds<ConnectionsRound>>>;
  /** Milliseconds to the first right answer. */
  readonly start: Rounds<number>;
  readonly envoy: Rounds<EnvoyRound>;
  /** By storm: `quiet`, `forged`, `new`. */
  readonly storms: Rounds<LatencyRound>;
  /** By number of known tokens. */
  readonly memory: Rounds<MemoryRound>;
  readonly scan: Rounds<ScanRound>;
  readonly replicas: Rounds<ReplicasRound>;
}

export type Rounds<Round> = Readonly<Record<string, readonly Round[]>>;

export interface RunFacts {
  readonly isWhole: boolean;
  readonly rounds: number;
  readonly algorithm: string;
  readonly requestBytes: number;
  readonly pinned: boolean;
  /** Of what each contender in JavaScript ran on. */
  readonly node: string;
  readonly nodeOptions: readonly string[];
  readonly go: string | undefined;
  readonly envoy: string | undefined;
  readonly calls: { readonly connections: number; readonly inFlight: number };
  readonly storm: { readonly knownPerSecond: number; readonly stormPerSecond: number };
}

export interface CallRound {
  readonly perSecond: number;
  readonly cpuMicrosecondsPerCall: number;
  /** Share of its core that the server used; much less than 1: something else was the limit. */
  readonly serverShare: number;
  readonly loadShare: number;
  readonly residentMegabytes: number;
}

export interface LatencyRound {
  readonly meanMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
}

export interface ConnectionsRound extends CallRound {
  /** At the lowest rate of scenario `latency`. */
  readonly p99Ms: number;
}

export interface EnvoyRound {
  readonly perSecond: number;
  /** Of Envoy and the service together. */
  readonly cpuMicrosecondsPerRequest: number;
  /** At a low fixed rate. */
  readonly meanMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface MemoryRound {
  /** The most while under load. */
  readonly residentMegabytes: number;
  /** On the heap and beside it, after a full collection. */
  readonly liveMegabytes: number;
}

export interface ScanRound {
  /** Of the calls with hot tokens, those that found theirs in the cache. */
  readonly hotHitShare: number;
}

export interface ReplicasRound {
  readonly perSecond: number;
  readonly residentMegabytes: number;
  readonly keyFetches: number;
}
