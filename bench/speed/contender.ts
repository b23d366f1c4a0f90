// A contender: a server and its requests, under a name for --only. contenders.ts lists them.
import type { WireTarget } from '../load/wire-client.ts';
import type { ServerProcess } from './server-process.ts';

export type Family =
  /** account-authz itself. */
  | 'product'
  /** Answers without reading the request. */
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
  /** Its requests, by the name of a request set. */
  readonly set: SetName;
  /** True if it refuses with 401 and 403 only, and its allow removes no client header (docs/dev/performance.md). */
  readonly isCoarse: boolean;
  /** True of another checkout, which answers as the contract of its time says: it is timed, not examined. */
  readonly isUnexamined?: boolean;
  start(): Promise<RunningContender>;
}

/** Signals an absent peer, which is reported and is not a failure. */
export interface AbsentContender {
  readonly name: string;
  readonly title: string;
  readonly reason: string;
}

export const setNames = ['known', 'rotation', 'new', 'garbage', 'forged'] as const;
export type SetName = (typeof setNames)[number];
