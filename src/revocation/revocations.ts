// The revocation list of the service: loads the one that a configuration names, watches its file, and replaces it once a changed file is
// valid. A file that is not changes nothing.
import { loadRevocationsInThread, maxRevocationBytes } from '../config/revocation-thread.ts';
import type { RefusedConfig } from '../config/verdict.ts';
import { loadRegularFile } from '../files/bounded-file.ts';
import { accepted, fileVersions, type WatchFiles } from '../files/file-watch.ts';
import type { Logger } from '../operations/log.ts';
import type { Metrics } from '../operations/metrics.ts';
import type { RevocationStatus } from '../operations/reload-record.ts';
import type { RevocationList } from './revocation-list.ts';

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
    takeOver(): void;
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
  /** The entry of the thread that reads a list; by default the built one. */
  readonly threadEntry?: URL | undefined;
}): Revocations {
  const { logger, metrics, now, watchFiles, threadEntry } = options;
  const thread = threadEntry === undefined ? {} : { entry: threadEntry };
  let active: WatchedList | undefined;

  async function startWatchedList(file: string): Promise<WatchedList> {
    const known = await fileVersions([file]);
    const load = () => loadRegularFile(file, maxRevocationBytes);
    const loaded = await loadRevocationsInThread(await load(), file, { ...thread, keepsProcess: active === undefined });
    if (loaded.kind === 'refused') throw new RevocationFileError(loaded);
    let { list } = loaded;
    let status: RevocationStatus = { entries: list.entries, loadedAtSeconds: now(), problems: 0 };
    const watch = watchFiles({
      files: [file],
      known,
      load,
      async apply(changed) {
        const next = await loadRevocationsInThread(changed, file, thread);
        if (next.kind === 'refused') {
          const { problems, count } = next;
          status = { ...status, problems: count };
          metrics.countRevocationReload('failure');
          logger.error({ problems, count }, 'revocation list refused, the old one stays in force');
          return { kind: 'refused', alsoWatch: [] };
        }
        ({ list } = next);
        status = { entries: list.entries, loadedAtSeconds: now(), problems: 0 };
        metrics.countRevocationReload('success');
        logger.info({ entries: list.entries }, 'revocation list reloaded');
        return accepted;
      },
    });
    return { file, list: () => list, status: () => status, reloadNow: watch.applyNow, stop: watch.stop };
  }

  return {
    async prepare(file) {
      const before = active;
      if (file !== undefined && file === before?.file)
        return { list: before.list, takeOver: () => undefined, discard: () => undefined };
      const next = file === undefined ? undefined : await startWatchedList(file);
      return {
        list: () => next?.list(),
        takeOver() {
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
