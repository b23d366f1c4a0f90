// The revocation list of the service: that of a file, watched and replaced once a changed file is valid, or one that is fetched. What is no
// list changes nothing.
import { setTimeout as delay } from 'node:timers/promises';
import { misconfiguration, type RefusedConfig, refuse, toListProblems, unreadable } from '../config/problems.ts';
import type { Config } from '../config/schema.ts';
import { accepted, fileVersions, type WatchFiles, type WatchOutcome } from '../files/file-watch.ts';
import { createAgeClock } from '../http/age-clock.ts';
import type { ProxySettings } from '../http/proxy.ts';
import {
  createFetchedList,
  type FetchedList,
  type ListSettings,
  type ListUnavailable,
} from '../revocation/fetched-list.ts';
import { type LoadedRevocations, loadRevocations } from '../revocation/revocation-file.ts';
import type { RevocationList } from '../revocation/revocation-list.ts';
import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';
import type { RevocationStatus } from './reload-record.ts';

interface KeptList {
  /** Of all that it is made from. */
  readonly id: string;
  current(): RevocationList | ListUnavailable;
  status(): RevocationStatus;
  /** Reads the source again, even if it is unchanged. */
  reloadNow(): void;
  stop(): void | Promise<void>;
  /** Undefined for a file. */
  readonly fetched?: FetchedList;
}

export interface Revocations {
  /**
   * Loads the list of a configuration; keeps the list in force if it comes from the same source. Rejects with a RevocationFileError. Waits
   * for no URL, except for a moment where a list by URL joins a service that runs.
   */
  prepare(config: Pick<Config, 'revocation' | 'keys'>): Promise<{
    readonly current: () => RevocationList | ListUnavailable | undefined;
    /** Resolves when the first fetch of a list by URL has ended, successful or not. */
    fetched(): Promise<void>;
    activate(): void;
    discard(): void;
  }>;
  /** Undefined without a list. */
  status(): RevocationStatus | undefined;
  reloadNow(): void;
  stop(): Promise<void>;
}

/** The list that a configuration names cannot be used. */
export class RevocationFileError extends Error {
  readonly refused: RefusedConfig;

  constructor(refused: RefusedConfig) {
    super('the revocation list cannot be used');
    this.refused = refused;
  }
}

// Enough for most fetches, and short within the five seconds of a reload.
const headStartMs = 1000;

export function createRevocations(options: {
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'countRevocationReload'>;
  /** Wall time in seconds since the epoch. */
  readonly now: () => number;
  readonly watchFiles: WatchFiles;
  readonly proxy: ProxySettings;
  /** A list by URL can decide: for the first time, or again. */
  readonly onUsable: () => void;
}): Revocations {
  const { logger, metrics, now, watchFiles, proxy, onUsable } = options;
  const monotonicNow = createAgeClock();
  let active: KeptList | undefined;
  let isFirst = true;

  async function startWatchedList(file: string, id: string): Promise<KeptList> {
    const versions = await fileVersions([file]);
    const load = () => loadRevocations(file);
    const first = await load();
    if (first.kind !== 'revocations') throw new RevocationFileError(refuseList(file, first));
    const known = versions.map(version => ({ ...version, digest: first.digest }));
    let { list } = first;
    let status: RevocationStatus = { entries: list.entries, loadedAtSeconds: now(), problems: 0, firstProblems: [] };

    function apply(next: LoadedRevocations, isRetry: boolean): WatchOutcome {
      if (next.kind === 'revocations') {
        ({ list } = next);
        status = { entries: list.entries, loadedAtSeconds: now(), problems: 0, firstProblems: [] };
        metrics.countRevocationReload('success');
        logger.info({ entries: list.entries }, 'revocation list reloaded');
        return accepted;
      }
      if (!isRetry) {
        const { problems, count } = refuseList(file, next);
        status = { ...status, problems: count, firstProblems: problems };
        metrics.countRevocationReload('failure');
        logger.error({ problems, count }, refusedMessage);
      }
      return next.kind === 'problem' && next.reason === 'other' ? retry : { kind: 'refused', alsoWatch: [] };
    }

    const watch = watchFiles({ files: [file], known, load, apply });
    return { id, current: () => list, status: () => status, reloadNow: watch.applyNow, stop: watch.stop };
  }

  async function startFetchedList(settings: ListSettings, id: string): Promise<KeptList> {
    let refused: Pick<RevocationStatus, 'problems' | 'firstProblems'> = { problems: 0, firstProblems: [] };
    /** What the log has said of the failures since the last success. */
    let reported: string | undefined;
    const fetched = createFetchedList({
      settings,
      proxy,
      inherited: () => active?.fetched?.exportList(settings.url),
      seedReadOnly: false,
      limitFetches: fetch => fetch(),
      watchFiles,
      monotonicNow,
      observer: {
        onFetched({ change, problem, lines }) {
          const { url, entries } = fetched.status();
          if (problem === undefined) {
            if (change !== undefined) {
              metrics.countRevocationReload('success');
              logger.info({ url, entries }, 'revocation list reloaded');
            } else if (reported !== undefined) logger.info({ url, entries }, 'revocation list confirmed again');
            refused = { problems: 0, firstProblems: [] };
            reported = undefined;
            return;
          }
          metrics.countRevocationReload('failure');
          const list = lines.length > 0 ? refuse(url, misconfiguration(toListProblems(url, lines))) : undefined;
          refused = { problems: list?.count ?? 1, firstProblems: list?.problems ?? [problem] };
          const said = JSON.stringify(refused);
          // Once: a list that is fetched every few seconds would fill the log.
          if (said === reported) return;
          reported = said;
          if (list === undefined) logger.warn({ url, problem }, 'revocation list not fetched');
          else logger.error({ url, problem, problems: list.problems, count: list.count }, refusedMessage);
        },
        onUsable() {
          const { url, entries } = fetched.status();
          logger.info({ url, entries }, 'revocation list usable');
          onUsable();
        },
        onWarning: problem => logger.warn({ url: fetched.status().url, problem }, 'revocation list'),
      },
    });
    await fetched.start();
    return {
      id,
      fetched,
      current: fetched.current,
      status() {
        const source = fetched.status();
        const { entries, ageSeconds } = source;
        const loadedAtSeconds = ageSeconds === undefined ? undefined : now() - ageSeconds;
        return { ...refused, entries, loadedAtSeconds, source };
      },
      reloadNow: fetched.refreshNow,
      stop: fetched.stop,
    };
  }

  async function startList({ revocation, keys }: Pick<Config, 'revocation' | 'keys'>, id: string) {
    if (revocation === undefined) return undefined;
    if (revocation.file !== undefined) return startWatchedList(revocation.file, id);
    const { timeoutSeconds, cacheDirectory } = keys;
    const next = await startFetchedList({ ...revocation, timeoutSeconds, cacheDirectory }, id);
    if (!isFirst && next.fetched?.status().state !== 'usable')
      await Promise.race([next.fetched?.fetchEnded(), delay(headStartMs, undefined, { ref: false })]);
    return next;
  }

  return {
    async prepare(config) {
      const before = active;
      const id = idOf(config);
      const next = id === before?.id ? before : await startList(config, id);
      isFirst = false;
      return {
        current: () => next?.current(),
        fetched: async () => next?.fetched?.fetchEnded(),
        activate() {
          if (next !== before) void before?.stop();
          active = next;
        },
        discard() {
          if (next !== before) void next?.stop();
        },
      };
    },
    status: () => active?.status(),
    reloadNow: () => active?.reloadNow(),
    stop: async () => active?.stop(),
  };
}

const retry: WatchOutcome = { kind: 'retry' };
const refusedMessage = 'revocation list refused, the old one stays in force';

function idOf({ revocation, keys }: Pick<Config, 'revocation' | 'keys'>): string {
  const ofFetch = revocation?.url === undefined ? [] : [keys.timeoutSeconds, keys.cacheDirectory];
  return JSON.stringify([revocation, ...ofFetch]);
}

function refuseList(file: string, loaded: Exclude<LoadedRevocations, { kind: 'revocations' }>): RefusedConfig {
  return refuse(
    file,
    loaded.kind === 'problem' ? unreadable(loaded.problem) : misconfiguration(toListProblems(file, loaded.problems)),
  );
}
