// A watched file in a folder of its own, and what its watch has applied.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../../lab/until.ts';
import { loadBoundedFile } from '../../src/files/bounded-file.ts';
import { fileSignature } from '../../src/files/file-signature.ts';
import {
  accepted,
  createFileWatch,
  type FileWatch,
  fileVersions,
  type WatchedFiles,
  type WatchOutcome,
} from '../../src/files/file-watch.ts';
import { createDeferred } from '../../src/keys/deferred.ts';

export const pollMs = 20;

/** What a test has started, ended after it. */
export const ends: (() => unknown)[] = [];
export let folder: string;
export let file: string;

export interface Rig {
  readonly watch: FileWatch;
  /** The applied contents, or the problems of unreadable files. */
  readonly applied: string[];
  readonly retries: boolean[];
  outcome: WatchOutcome | Promise<WatchOutcome>;
  untilApplied(content: string): Promise<void>;
}

export async function rig(
  path = file,
  options: Partial<WatchedFiles<string>> = {},
  watchFiles = createFileWatch({ pollMs }),
) {
  const rigged: Rig = {
    applied: [],
    retries: [],
    outcome: accepted,
    untilApplied: content => until(() => rigged.applied.at(-1) === content),
    watch: watchFiles<string>({
      files: [path],
      known: await fileVersions([path]),
      async load() {
        const content = await loadBoundedFile(path);
        return content.kind === 'bytes' ? Buffer.from(content.bytes).toString() : content.problem;
      },
      apply(content, isRetry) {
        rigged.applied.push(content);
        rigged.retries.push(isRetry);
        return rigged.outcome;
      },
      ...options,
    }),
  };
  ends.push(rigged.watch.stop);
  return rigged;
}

/** Resolves after some polls of a fresh watch: whatever another watch would apply by now, it has. */
export async function somePolls(): Promise<void> {
  let polls = 0;
  const done = createDeferred<void>();
  const counting = createFileWatch({
    pollMs,
    async signatureOf(path) {
      polls += 1;
      if (polls > 6) done.resolve();
      return fileSignature(path);
    },
  });
  const { stop } = counting({ files: [file], load: async () => undefined, apply: () => accepted });
  await done.promise;
  stop();
}

/** Makes the file for a test, and ends its watches after it. */
export async function startWatchLab(): Promise<void> {
  folder = await mkdtemp(join(tmpdir(), 'account-authz-watch-'));
  file = join(folder, 'config.yaml');
  await writeFile(file, 'first');
}

export async function stopWatchLab(): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end();
  await rm(folder, { recursive: true, force: true });
}
