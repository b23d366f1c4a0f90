// A contender: a server and the requests that it is sent, by a name that --only takes. Who they are is in contenders.ts.
import type { RequestSet } from '../load/wire-load.ts';
import type { ServerProcess } from './server-process.ts';

export type Family =
  /** account-authz itself. */
  | 'product'
  /** Answers without a look at the request. */
  | 'floor'
  /** Does the same work. */
  | 'peer';

export interface RunningContender extends ServerProcess {
  readonly port: number;
}

/** What a peer cannot say in an answer, however it is told to decide. */
export interface Limits {
  /** False for one whose allow takes no header of the client away. */
  readonly removesHeaders: boolean;
  /** What it may refuse with instead, by the status that is due. */
  readonly refusals: ReadonlyMap<number, readonly number[]>;
  /** Cases of preflight.ts that it has no answer to, by name: they are not asked. */
  readonly unasked: readonly string[];
}

export interface Contender {
  readonly name: string;
  readonly title: string;
  readonly family: Family;
  /** What it is sent, by the name of a request set. */
  readonly set: SetName;
  /** Cases of preflight.ts that it cannot answer rightly, by name; docs/performance.md says why. */
  readonly exceptions?: readonly string[];
  readonly limits?: Limits;
  start(): Promise<RunningContender>;
}

/** The absence of a peer, which is reported and no fault. */
export interface AbsentContender {
  readonly name: string;
  readonly title: string;
  readonly reason: string;
}

export const setNames = ['known', 'known-as-shipped', 'rotation', 'new', 'garbage', 'mismatch', 'forged'] as const;
export type SetName = (typeof setNames)[number];

export type RequestSets = Readonly<Record<SetName, RequestSet>>;
