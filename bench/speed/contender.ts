// A contender: a server and the requests that it is sent, by a name that --only takes. Who they are is in contenders.ts.
import type { WireTarget } from '../load/wire-client.ts';
import type { ServerProcess } from './server-process.ts';

export type Family =
  /** account-authz itself. */
  | 'product'
  /** Answers without a look at the request. */
  | 'floor'
  /** Does the same work. */
  | 'peer';

export interface RunningContender extends ServerProcess {
  readonly target: WireTarget;
}

export interface Contender {
  readonly name: string;
  readonly title: string;
  readonly family: Family;
  /** What it is sent, by the name of a request set. */
  readonly set: SetName;
  /** True for one that refuses with 401 and 403 only, and whose allow takes no header of the client away (docs/dev/performance.md). */
  readonly isCoarse: boolean;
  start(): Promise<RunningContender>;
}

/** The absence of a peer, which is reported and no fault. */
export interface AbsentContender {
  readonly name: string;
  readonly title: string;
  readonly reason: string;
}

export const setNames = ['known', 'known-as-shipped', 'rotation', 'new', 'garbage', 'forged'] as const;
export type SetName = (typeof setNames)[number];
