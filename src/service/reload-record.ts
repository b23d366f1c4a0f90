// Records reloads of the configuration: log lines, metrics, and the last one for the admin page.
import type { FetchedListStatus } from '../revocation/fetched-list.ts';
import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';

export interface ReloadStatus {
  /** Undefined until the first change. */
  readonly lastResult: 'success' | 'failure' | undefined;
  /** When that was, in seconds since the epoch. */
  readonly lastAtSeconds: number | undefined;
  /** How many problems the last change had; 0 after a success. */
  readonly problems: number;
  /** The first of them, as in the log. */
  readonly firstProblems: readonly string[];
  /** Settings of the file that are not in effect until the process is started again. */
  readonly needsRestart: readonly string[];
}

/** The revocation list in force. */
export interface RevocationStatus {
  readonly entries: number;
  /** When it was loaded, or last confirmed where it comes by URL, in seconds since the epoch; undefined before that. */
  readonly loadedAtSeconds: number | undefined;
  /** How many problems the last change of its file had; 0 if that one is in force. */
  readonly problems: number;
  /** The first of them, as in the log. */
  readonly firstProblems: readonly string[];
  /** Of a list by URL. */
  readonly source?: FetchedListStatus;
}

/** What `account-authz compare` finds between the configuration before and after a reload. */
export interface Widening {
  /** Whether the new one allows anything that the old one does not, or cannot be ordered. */
  readonly widens: boolean;
  /** How many rows say so. */
  readonly rows: number;
}

export interface ReloadRecord {
  /** The configuration of the start is in effect. */
  started(): void;
  succeeded(change: {
    readonly issuers: number;
    readonly needsRestart: readonly string[];
    readonly widening: Widening | undefined;
  }): void;
  /** `count` is how many problems there are; the first ones are listed. */
  refused(change: { readonly problems: readonly string[]; readonly count: number }): void;
  status(): ReloadStatus;
}

export function createReloadRecord(options: {
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'countReload' | 'markLoaded'>;
  /** Wall time in seconds since the epoch. */
  readonly now: () => number;
}): ReloadRecord {
  const { logger, metrics, now } = options;
  const none = { problems: 0, firstProblems: [], needsRestart: [] };
  let status: ReloadStatus = { ...none, lastResult: undefined, lastAtSeconds: undefined };
  return {
    started: () => metrics.markLoaded(now()),
    succeeded({ issuers, needsRestart, widening }) {
      const lastAtSeconds = now();
      status = { lastResult: 'success', lastAtSeconds, problems: 0, firstProblems: [], needsRestart };
      metrics.countReload('success');
      metrics.markLoaded(lastAtSeconds);
      logger.info({ issuers, ...widening }, 'configuration reloaded');
      if (needsRestart.length > 0) logger.warn({ settings: needsRestart }, 'changed settings need a restart');
    },
    refused({ problems, count }) {
      status = { ...status, lastResult: 'failure', lastAtSeconds: now(), problems: count, firstProblems: problems };
      metrics.countReload('failure');
      logger.error({ problems, count }, 'configuration refused, the old one stays in effect');
    },
    status: () => status,
  };
}
