// Tells when the configuration file has other content than before. Kubernetes swaps a symbolic link beside the file, editors
// replace the file or write into it: the directory is watched, and because some mounts tell nothing, the file is looked at too.
import { createHash } from 'node:crypto';
import { type FSWatcher, watch } from 'node:fs';
import { dirname } from 'node:path';
import { type FileContent, loadBoundedFile } from '../files/bounded-file.ts';
import { fileSignature, notARegularFile } from '../files/file-signature.ts';

export interface ConfigWatchOptions {
  readonly file: string;
  /** What is in effect: it is not told. */
  readonly known: FileContent;
  /** One call at a time; what changes meanwhile is told once, with the newest content. Must not reject. */
  readonly onContent: (content: FileContent) => Promise<unknown>;
  readonly onProblem: (problem: string) => void;
  /** How long new content must have stood. */
  readonly settleMs?: number;
  /** Time between two looks at the file. */
  readonly lookEveryMs?: number;
}

export interface ConfigWatch {
  /** Tells the content as it is now, also where it is the same as before: a file that it names may have changed. */
  tellNow(): void;
  stop(): void;
}

interface Candidate {
  readonly digest: string;
  readonly sinceMs: number;
}

// A file that is written in place is seen half-written, and half of a configuration may be a looser one.
const usualSettleMs = 500;
const usualLookEveryMs = 1000;
/** A burst of events is one look. */
const gatherMs = 50;

export async function startConfigWatch(options: ConfigWatchOptions): Promise<ConfigWatch> {
  const { file, onContent, onProblem, settleMs = usualSettleMs, lookEveryMs = usualLookEveryMs } = options;
  let told = digestOf(options.known);
  let looked: string | undefined;
  let candidate: Candidate | undefined;
  let wanted: 'look' | 'tell' | undefined;
  let isTurning = false;
  let isStopped = false;
  let soon: NodeJS.Timeout | undefined;
  let watcher: FSWatcher | undefined;

  async function turn(): Promise<void> {
    if (isTurning) return;
    isTurning = true;
    while (wanted !== undefined && !isStopped) {
      const isAsked = wanted === 'tell';
      wanted = undefined;
      await look(isAsked);
    }
    isTurning = false;
  }

  async function look(isAsked: boolean): Promise<void> {
    const signature = await fileSignature(file);
    // Each content is read again once it has settled, so that a change within one tick of the file system's clock is seen.
    if (!isAsked && signature === looked && candidate === undefined) return;
    looked = isAsked ? undefined : signature;
    const content = await readRegularFile(file, signature);
    if (isStopped) return;
    const digest = digestOf(content);
    const nowMs = performance.now();
    if (!isAsked && digest === told) {
      candidate = undefined;
      return;
    }
    const standsSinceMs = candidate?.digest === digest ? candidate.sinceMs : nowMs;
    if (isAsked || nowMs - standsSinceMs >= settleMs) {
      candidate = undefined;
      told = digest;
      await onContent(content);
      return;
    }
    candidate = { digest, sinceMs: standsSinceMs };
    lookIn(settleMs);
  }

  function want(what: 'look' | 'tell'): void {
    if (wanted !== 'tell') wanted = what;
    void turn();
  }

  function lookIn(delayMs: number): void {
    clearTimeout(soon);
    soon = setTimeout(() => want('look'), delayMs).unref();
  }

  if ((await fileSignature(file)) === notARegularFile) {
    onProblem('the configuration is no regular file: its changes are not seen');
    return { tellNow: () => undefined, stop: () => undefined };
  }
  try {
    watcher = watch(dirname(file), { persistent: false }, () => lookIn(gatherMs));
    watcher.on('error', () => onProblem('the watch of the directory has ended: the file is looked at each second'));
  } catch {
    onProblem('the directory cannot be watched: the file is looked at each second');
  }
  const looks = setInterval(() => want('look'), lookEveryMs).unref();

  return {
    tellNow: () => want('tell'),
    stop() {
      isStopped = true;
      clearTimeout(soon);
      clearInterval(looks);
      watcher?.close();
    },
  };
}

// A pipe would block the reader until somebody writes to it.
async function readRegularFile(file: string, signature: string): Promise<FileContent> {
  if (signature === notARegularFile) return { kind: 'problem', problem: 'the file is not a regular file' };
  return loadBoundedFile(file);
}

function digestOf(content: FileContent): string {
  return content.kind === 'problem' ? content.problem : createHash('sha256').update(content.bytes).digest('hex');
}
