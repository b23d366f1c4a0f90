// The results of a bench run: figures per round.

export interface BenchResults {
  readonly run: RunFacts;
  readonly contenders: readonly { readonly name: string; readonly title: string; readonly family: string }[];
  readonly absent: readonly { readonly name: string; readonly title: string; readonly reason: string }[];
  readonly calls: Rounds<CallRound>;
  readonly latency: Rounds<LatencyRound>;
  /** Milliseconds to the first correct answer. */
  readonly start: Rounds<number>;
  readonly envoy: Rounds<EnvoyRound>;
  /** Megabytes: peak resident under load (`known`, `rotation`), anonymous at a sidecar's rate (`sidecar-known`, `sidecar-nothing`). */
  readonly memory: Rounds<number>;
}

export type Rounds<Round> = Readonly<Record<string, readonly Round[]>>;

export interface RunFacts {
  readonly isWhole: boolean;
  readonly rounds: number;
  readonly algorithm: string;
  readonly requestBytes: number;
  readonly pinned: boolean;
  /** The runtime of the JavaScript contenders. */
  readonly node: string;
  readonly nodeOptions: readonly string[];
  readonly go: string | undefined;
  readonly envoy: string | undefined;
}

export interface CallRound {
  readonly perSecond: number;
  readonly cpuMicrosecondsPerCall: number;
  /** The server's share of its core; far below 1, something else was the bottleneck. */
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

export interface EnvoyRound extends LatencyRound {
  readonly perSecond: number;
  /** Of Envoy and the service together. */
  readonly cpuMicrosecondsPerRequest: number;
}
