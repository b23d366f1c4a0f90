// The revocation list of the service: loads the one that a configuration names, watches its file, and replaces it once a changed file is
// valid. A file that is not changes nothing.
import { misconfiguration, type RefusedConfig, refuse, toListProblems, unreadable } from '../config/problems.ts';
import { accepted, fileVersions, type WatchFiles, type WatchOutcome } from '../files/file-watch.ts';
import { type LoadedRevocations, loadRevocations } from '../revocation/revocation-file.ts';
import type { RevocationList } from '../revocation/revocation-list.ts';
import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';
import type { RevocationStatus } from './reload-record.ts';

/** A list with the watch of its file. */
interface WatchedList {
  readonly file: string;
  list(): RevocationList;
  status(): RevocationStatus;
  /** Reads the file again, even if it is unchanged. */
  reloadNow(): void;
  stop(): void;
}

export interface Revocations {
  /** Loads the list of a configuration; keeps the list in force if it names the same file. Rejects with a RevocationFileError. */
  prepare(file: string | undefined): Promise<{
    readonly list: () => RevocationList | undefined;
    activate(): void;
    discard(): void;
  }>;
  /** Undefined without a list. */
  status(): RevocationStatus | undefined;
  reloadNow(): void;
  stop(): void;
}

/** The list that a configuration names cannot be used. */
export class RevocationFileError extends Error {
  readonly refused: RefusedConfig;

  constructor(refused: RefusedConfig) {
    super('the revocation list cannot be used');
    this.refused = refused;
  }
}

export function createRevocations(options: {
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'countRevocationReload'>;
  /** Wall time in seconds since the epoch. */
  readonly now: () => number;
  readonly watchFiles: WatchFiles;
}): Revocations {
  const { logger, metrics, now, watchFiles } = options;
  let active: WatchedList | undefined;

  async function startWatchedList(file: string): Promise<WatchedList> {
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
        logger.error({ problems, count }, 'revocation list refused, the old one stays in force');
      }
      return next.kind === 'problem' && next.reason === 'other' ? retry : { kind: 'refused', alsoWatch: [] };
    }

    const watch = watchFiles({ files: [file], known, load, apply });
    return { file, list: () => list, status: () => status, reloadNow: watch.applyNow, stop: watch.stop };
  }

  return {
    async prepare(file) {
      const before = active;
      if (file !== undefined && file === before?.file)
        return { list: before.list, activate: () => undefined, discard: () => undefined };
      const next = file === undefined ? undefined : await startWatchedList(file);
      return {
        list: () => next?.list(),
        activate() {
          before?.stop();
          active = next;
        },
        discard: () => next?.stop(),
      };
    },
    status: () => active?.status(),
    reloadNow: () => active?.reloadNow(),
    stop: () => active?.stop(),
  };
}

const retry: WatchOutcome = { kind: 'retry' };

function refuseList(file: string, loaded: Exclude<LoadedRevocations, { kind: 'revocations' }>): RefusedConfig {
  return refuse(
    file,
    loaded.kind === 'problem' ? unreadable(loaded.problem) : misconfiguration(toListProblems(file, loaded.problems)),
  );
}
